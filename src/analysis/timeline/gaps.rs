//! Idle times of devices with their causes, for any window.

use super::window::Window;
use crate::analysis::triage::{Idle, TimeCategory};
use std::collections::BTreeMap;

/// Idle times by device.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    devices: BTreeMap<u32, Vec<Idle>>,
}

/// A period during which a device was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Longest piece of the gap, whose cause is shown for the whole gap.
    pub most: Idle,
}

impl Gaps {
    /// Groups pieces by device and sorts them.
    pub fn new(pieces: Vec<Idle>) -> Self {
        let mut devices: BTreeMap<u32, Vec<Idle>> = BTreeMap::new();
        for piece in pieces {
            devices.entry(piece.device).or_default().push(piece);
        }
        for list in devices.values_mut() {
            list.sort_unstable_by_key(|p| (p.start, p.end));
        }
        Self { devices }
    }

    /// For each column of a window, returns the category with the most known idle time.
    pub fn dominant_parts(&self, device: u32, window: Window) -> Vec<Option<TimeCategory>> {
        let mut sums = vec![[0_i64; TimeCategory::ALL.len()]; window.columns];
        let list = self.devices.get(&device).map_or(&[][..], Vec::as_slice);
        // Pieces on one device do not overlap, so their ends are also in order.
        let from = list.partition_point(|p| p.end <= window.start);
        for piece in list[from..].iter().take_while(|p| p.start < window.end) {
            let (first, last) = (window.column_at(piece.start), window.column_at(piece.end - 1));
            for (column, sums) in (first..).zip(&mut sums[first..=last]) {
                let covered = piece.end.min(window.column_start(column + 1)) - piece.start.max(window.column_start(column));
                sums[piece.cause.part() as usize] += covered.max(0);
            }
        }
        sums.iter()
            .map(|sums| {
                TimeCategory::ALL.into_iter().filter(|p| sums[*p as usize] > 0).max_by_key(|p| (sums[*p as usize], std::cmp::Reverse(*p)))
            })
            .collect()
    }

    /// Known idle time between two times by category, longest first.
    pub fn sum_by_part(&self, device: u32, start: i64, end: i64) -> Vec<(TimeCategory, i64)> {
        let list = self.devices.get(&device).map_or(&[][..], Vec::as_slice);
        let from = list.partition_point(|p| p.end <= start);
        let mut sums = TimeCategory::ALL.map(|p| (p, 0_i64));
        for piece in list[from..].iter().take_while(|p| p.start < end) {
            sums[piece.cause.part() as usize].1 += piece.end.min(end) - piece.start.max(start);
        }
        let mut out: Vec<(TimeCategory, i64)> = sums.into_iter().filter(|s| s.1 > 0).collect();
        out.sort_by_key(|s| std::cmp::Reverse(s.1));
        out
    }

    fn gap_around(list: &[Idle], at: usize) -> Option<(Gap, usize, usize)> {
        let (mut from, mut to) = (at, at);
        while from > 0 && list[from - 1].end == list.get(from)?.start {
            from -= 1;
        }
        while list.get(to + 1).is_some_and(|next| next.start == list[to].end) {
            to += 1;
        }
        let pieces = list.get(from..=to)?;
        let most = *pieces.iter().max_by_key(|p| (p.end - p.start, std::cmp::Reverse(p.start)))?;
        Some((Gap { start: pieces.first()?.start, end: pieces.last()?.end, most }, from, to))
    }

    /// Returns the gap that contains a time.
    pub fn gap_at(&self, device: u32, time: i64) -> Option<Gap> {
        let list = self.devices.get(&device)?;
        let at = list.partition_point(|p| p.end <= time);
        list.get(at).filter(|p| p.start <= time)?;
        Self::gap_around(list, at).map(|g| g.0)
    }

    /// Returns the piece that contains a time.
    pub fn piece_at(&self, device: u32, time: i64) -> Option<Idle> {
        let list = self.devices.get(&device)?;
        list.get(list.partition_point(|p| p.end <= time)).filter(|p| p.start <= time).copied()
    }

    /// Steps through a device's gaps from the longest to the shortest: returns the one that follows the gap starting at
    /// `time`. Returns the longest gap if no gap starts there, or if that gap is the shortest.
    pub fn next_longest(&self, device: u32, time: i64) -> Option<Gap> {
        let list = self.devices.get(&device)?;
        // Longest first; among equal lengths, the earliest.
        let order = |gap: &Gap| (std::cmp::Reverse(gap.end - gap.start), gap.start);
        let now = self.gap_at(device, time).filter(|g| g.start == time);
        let (mut longest, mut next) = (None::<Gap>, None::<Gap>);
        let mut at = 0;
        while at < list.len() {
            let (gap, _, to) = Self::gap_around(list, at)?;
            if longest.is_none_or(|l| order(&gap) < order(&l)) {
                longest = Some(gap);
            }
            if now.is_some_and(|n| order(&gap) > order(&n)) && next.is_none_or(|n| order(&gap) < order(&n)) {
                next = Some(gap);
            }
            at = to + 1;
        }
        next.or(longest)
    }

    /// Returns the first gap of at least `least` ns that starts after a time or, if not `forward`, the last one that
    /// starts before it.
    pub fn next(&self, device: u32, time: i64, least: i64, forward: bool) -> Option<Gap> {
        let list = self.devices.get(&device)?;
        if forward {
            let mut at = list.partition_point(|p| p.start <= time);
            while at < list.len() {
                let (gap, _, to) = Self::gap_around(list, at)?;
                if gap.start > time && gap.end - gap.start >= least {
                    return Some(gap);
                }
                at = to + 1;
            }
            return None;
        }
        let mut at = list.partition_point(|p| p.start < time);
        while at > 0 {
            let (gap, from, _) = Self::gap_around(list, at - 1)?;
            if gap.start < time && gap.end - gap.start >= least {
                return Some(gap);
            }
            at = from;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::triage::Cause;

    #[test]
    fn gaps_are_pieces_that_touch_and_are_shaded_by_what_takes_most() {
        let piece = |start, end, cause| Idle { device: 0, start, end, cause };
        let gaps = Gaps::new(vec![piece(50, 60, Cause::Launch), piece(10, 30, Cause::Sync), piece(30, 70 - 25, Cause::Wait)]);
        let first = gaps.next(0, -5, 1, true).unwrap();
        assert_eq!((first.start, first.end, first.most.cause), (10, 45, Cause::Sync));
        assert_eq!(gaps.next(0, 10, 1, true).map(|g| (g.start, g.end)), Some((50, 60)));
        assert_eq!(gaps.next(0, 10, 11, true), None, "it is too short");
        assert_eq!(gaps.next(0, 55, 1, false).map(|g| g.start), Some(50));
        assert_eq!(gaps.next(0, 50, 1, false).map(|g| g.start), Some(10));
        assert_eq!((gaps.gap_at(0, 44).map(|g| g.end), gaps.gap_at(0, 45), gaps.gap_at(1, 20)), (Some(45), None, None));
        assert_eq!(
            gaps.sum_by_part(0, 20, 55),
            [(TimeCategory::Waiting, 15), (TimeCategory::Synchronising, 10), (TimeCategory::Launching, 5)]
        );
        // By length: 10 to 45, then 50 to 60; after the shortest, the longest again.
        let by_length = |time| gaps.next_longest(0, time).map(|g| g.start);
        assert_eq!((by_length(-5), by_length(10), by_length(50), gaps.next_longest(1, 0)), (Some(10), Some(50), Some(10), None));
        let shades = gaps.dominant_parts(0, Window::new(0, 80, 4));
        assert_eq!(shades, [Some(TimeCategory::Synchronising), Some(TimeCategory::Synchronising), Some(TimeCategory::Launching), None]);
    }
}
