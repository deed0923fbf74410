//! Search for events by name.

use super::event::{Event, Events};
use super::group::{RowKey, Timeline};
use crate::analysis::readable::readable_name;
use crate::model::{Cancel, MemOpKind, Profile};
use rustc_hash::FxHashMap;

/// Case-insensitive search for names that contain all words. Checks each name only once, not each event.
#[derive(Clone, Debug)]
pub struct Pattern {
    kernels: Vec<bool>,
    calls: Vec<bool>,
    ranges: Vec<bool>,
    os: Vec<bool>,
    words: Vec<String>,
}

impl Pattern {
    pub fn new(profile: &Profile, text: &str) -> Self {
        let words: Vec<String> = text.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let is = |name: &str| contains_words(&words, name);
        Self {
            kernels: profile.kernels.iter().map(|k| is(&readable_name(k)) || is(k.function()) || is(k.demangled())).collect(),
            calls: profile.calls.names.iter().map(|n| is(&n.name)).collect(),
            ranges: (0..profile.ranges.names.len()).map(|n| is(&profile.ranges.label(u32::try_from(n).unwrap_or(u32::MAX)))).collect(),
            os: profile.os_calls.names.iter().map(|n| is(n)).collect(),
            words,
        }
    }

    pub fn matches_event(&self, of: &Events<'_>, event: Event) -> bool {
        let p = of.profile;
        let at = |known: &[bool], name: Option<u32>| name.and_then(|n| known.get(n as usize)).copied().unwrap_or_default();
        match event {
            Event::Launch(row) => at(&self.kernels, Some(p.launches.kernel(row as usize).0)),
            // A launch call has its kernel's name; matching both would count each launch twice.
            Event::LaunchCall(_) => false,
            Event::Call(row) => at(&self.calls, p.calls.name.get(row as usize).copied()),
            Event::Range(row) => at(&self.ranges, Some(p.ranges.get(row as usize).name)),
            Event::Os(row) => at(&self.os, p.os_calls.name.get(row as usize).copied()),
            Event::Mem(row) => {
                let set = p.memops.get(row as usize).is_some_and(|m| m.kind == MemOpKind::Set);
                contains_words(&self.words, &format!("{} {}", if set { "memset" } else { "memcpy" }, of.event_name(event)))
            }
            Event::Graph(_) | Event::Overhead(_) => contains_words(&self.words, &of.event_name(event)),
        }
    }
}

fn contains_words(words: &[String], name: &str) -> bool {
    let name = name.to_lowercase();
    words.iter().all(|w| name.contains(w))
}

/// Matching events in a lane, one bit each.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    /// Number of matches before each word of bits.
    before: Vec<u32>,
}

impl Bits {
    fn count_before(&self, at: usize) -> usize {
        let (word, bit) = (at / 64, at % 64);
        match self.words.get(word) {
            Some(bits) => self.before[word] as usize + (bits & ((1_u64 << bit) - 1)).count_ones() as usize,
            None => self.words.last().map_or(0, |last| self.before.last().map_or(0, |b| *b as usize) + last.count_ones() as usize),
        }
    }

    /// Returns the first match at or after `at` or, if not `forward`, the last one before it.
    fn next(&self, at: usize, forward: bool) -> Option<usize> {
        if forward {
            let mut bits = self.words.get(at / 64)? & (u64::MAX << (at % 64));
            let mut word = at / 64;
            while bits == 0 {
                word += 1;
                bits = *self.words.get(word)?;
            }
            return Some(word * 64 + bits.trailing_zeros() as usize);
        }
        let mut word = at / 64;
        let mut bits = self.words.get(word).copied().unwrap_or(0) & ((1_u64 << (at % 64)) - 1);
        while bits == 0 {
            word = word.min(self.words.len()).checked_sub(1)?;
            bits = *self.words.get(word)?;
        }
        Some(word * 64 + 63 - bits.leading_zeros() as usize)
    }
}

/// All events in a timeline that match a search string.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    lanes: FxHashMap<(RowKey, usize), Bits>,
    pub total: usize,
}

impl Matches {
    /// Searches all events; `None` if cancelled.
    pub fn find_all(timeline: &Timeline, of: &Events<'_>, text: &str, cancel: &Cancel) -> Option<Self> {
        let pattern = Pattern::new(of.profile, text);
        let mut out = Self::default();
        for row in timeline.groups.iter().flat_map(|g| &g.rows) {
            for (number, lane) in row.lanes().iter().enumerate() {
                let mut bits = Bits::default();
                let mut sum = 0_u32;
                for from in (0..lane.len()).step_by(64) {
                    if from % (1 << 20) == 0 && cancel.is_cancelled() {
                        return None;
                    }
                    let word = (from..lane.len().min(from + 64))
                        .filter_map(|at| lane.get(at))
                        .enumerate()
                        .filter(|(_, id)| pattern.matches_event(of, id.to_event()))
                        .fold(0_u64, |word, (bit, _)| word | 1 << bit);
                    bits.words.push(word);
                    bits.before.push(sum);
                    sum += word.count_ones();
                }
                out.total += sum as usize;
                if sum > 0 {
                    out.lanes.insert((row.key, number), bits);
                }
            }
        }
        Some(out)
    }

    /// Number of matches in a lane between two indices.
    pub fn count_between(&self, row: RowKey, lane: usize, from: usize, to: usize) -> usize {
        self.lanes.get(&(row, lane)).map_or(0, |bits| bits.count_before(to).saturating_sub(bits.count_before(from)))
    }

    /// Returns the index of the first match in a lane at or after `at` or, if not `forward`, of the last one before it.
    pub fn next(&self, row: RowKey, lane: usize, at: usize, forward: bool) -> Option<usize> {
        self.lanes.get(&(row, lane))?.next(at, forward)
    }

    /// Number of matches in a row.
    pub fn in_row(&self, row: RowKey) -> usize {
        self.lanes.iter().filter(|(key, _)| key.0 == row).map(|(_, bits)| bits.count_before(usize::MAX)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_count_and_find_as_a_list_does(set in prop::collection::btree_set(0_usize..300, 0..60), at in 0_usize..320, to in 0_usize..320) {
            let mut bits = Bits::default();
            let mut sum = 0;
            for word in 0..5 {
                let value = (0..64).filter(|b| set.contains(&(word * 64 + b))).fold(0_u64, |w, b| w | 1 << b);
                bits.words.push(value);
                bits.before.push(sum);
                sum += value.count_ones();
            }
            prop_assert_eq!(bits.count_before(to).saturating_sub(bits.count_before(at)), if at < to { set.range(at..to).count() } else { 0 });
            prop_assert_eq!(bits.next(at, true), set.range(at..).next().copied());
            prop_assert_eq!(bits.next(at, false), set.range(..at).next_back().copied());
        }
    }
}
