//! A lane of a row: non-overlapping events sorted by start, with prefix sums that yield the busy time in any window.

use super::event::{Category, EventId, Events};
use super::track::{Before, Track};

/// Number of events per prefix sum, and thus the maximum number of events that a query scans.
pub const BLOCK: usize = 64;

/// Consecutive events. Uses 4 bytes per event, plus one sum per category for every 64 events.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    events: Vec<EventId>,
    /// Categories that occur.
    categories: Vec<Category>,
    /// Start of the first event of each block, ns.
    starts: Vec<i64>,
    /// Total time of all events before each block by category, ns: `categories.len()` values per block.
    sums: Vec<i64>,
}

impl Lane {
    /// Builds a lane from events that are sorted by start and do not overlap.
    pub fn new(events: Vec<EventId>, of: &Events<'_>) -> Self {
        let mut seen = [false; Category::ALL.len()];
        let mut busy = [0_i64; Category::ALL.len()];
        let (mut starts, mut whole) = (Vec::new(), Vec::new());
        for (at, id) in events.iter().enumerate() {
            let (start, end) = of.span(id.to_event());
            if at % BLOCK == 0 {
                starts.push(start);
                whole.push(busy);
            }
            let category = of.category(id.to_event()) as usize;
            seen[category] = true;
            busy[category] += end - start;
        }
        let categories: Vec<Category> = Category::ALL.into_iter().filter(|c| seen[*c as usize]).collect();
        let sums = whole.iter().flat_map(|busy| categories.iter().map(|c| busy[*c as usize])).collect();
        Self { events, categories, starts, sums }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<EventId> {
        self.events.get(at).copied()
    }

    pub fn categories(&self) -> &[Category] {
        &self.categories
    }

    /// Number of events that start before a time.
    pub fn count_before(&self, of: &Events<'_>, time: i64) -> usize {
        let block = self.starts.partition_point(|&s| s < time);
        let Some(from) = block.checked_sub(1).map(|b| b * BLOCK) else { return 0 };
        let until = (from + BLOCK).min(self.events.len());
        from + self.events[from..until].partition_point(|id| of.span(id.to_event()).0 < time)
    }

    /// Returns the last event that starts at or before a time.
    pub fn last_at(&self, of: &Events<'_>, time: i64) -> Option<usize> {
        self.count_before(of, time.saturating_add(1)).checked_sub(1)
    }

    /// Returns the event that runs at a time (start ≤ time < end), or that starts there and has zero length.
    pub fn running_at(&self, of: &Events<'_>, time: i64) -> Option<usize> {
        self.last_at(of, time).filter(|&at| {
            let (start, end) = of.span(self.events[at].to_event());
            time < end || start == time
        })
    }

    /// Events that start in `start..end`.
    pub fn events_between(&self, of: &Events<'_>, start: i64, end: i64) -> impl Iterator<Item = EventId> + '_ {
        let range = self.count_before(of, start)..self.count_before(of, end).max(self.count_before(of, start));
        self.events[range].iter().copied()
    }
}

impl Track for Lane {
    fn before(&self, of: &Events<'_>, time: i64) -> Before {
        let mut out = Before { events: self.count_before(of, time), ..Before::default() };
        if out.events == 0 {
            return out;
        }
        let block = (out.events - 1) / BLOCK;
        let k = self.categories.len();
        for (category, sum) in self.categories.iter().zip(&self.sums[block * k..]) {
            out.busy[*category as usize] = *sum;
        }
        for id in &self.events[block * BLOCK..out.events] {
            let (start, end) = of.span(id.to_event());
            out.busy[of.category(id.to_event()) as usize] += end.min(time) - start;
        }
        out
    }

    fn bytes(&self) -> usize {
        self.events.capacity() * size_of::<EventId>() + (self.starts.capacity() + self.sums.capacity()) * 8
    }
}

/// Maximum number of lanes for overlapping events; no plausible program nests more deeply.
const MOST_LANES: usize = 256;

/// Distributes events over as many lanes as needed, each into the first lane that is free. The events must be sorted by
/// start, longer ones before shorter ones. Also returns the number of events for which there was no lane.
pub fn assign_lanes(events: Vec<EventId>, of: &Events<'_>) -> (Vec<Lane>, usize) {
    // Almost always, one lane suffices, and the events need not be copied.
    let mut end = i64::MIN;
    let overlap = events.iter().position(|id| {
        let (start, until) = of.span(id.to_event());
        let overlaps = start < end;
        end = until;
        overlaps
    });
    let Some(overlap) = overlap else { return (vec![Lane::new(events, of)], 0) };
    let mut out: Vec<Vec<EventId>> = vec![events[..overlap].to_vec()];
    let mut ends: Vec<i64> = vec![out[0].last().map_or(i64::MIN, |id| of.span(id.to_event()).1)];
    let mut left_out = 0;
    for id in &events[overlap..] {
        let (start, until) = of.span(id.to_event());
        let free = ends.iter().position(|&end| end <= start).unwrap_or(ends.len());
        if free == ends.len() {
            if free == MOST_LANES {
                left_out += 1;
                continue;
            }
            ends.push(i64::MIN);
            out.push(Vec::new());
        }
        ends[free] = until;
        out[free].push(*id);
    }
    drop(events);
    let lanes = out.into_iter().map(|mut lane| {
        lane.shrink_to_fit();
        Lane::new(lane, of)
    });
    (lanes.collect(), left_out)
}
