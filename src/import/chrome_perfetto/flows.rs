//! Flow events in Chrome traces: each end has a time on a track, and binds to a slice of that track.

use super::slice::{End, Slice};
use rustc_hash::FxHashMap;

/// Binds flow ends to slices; returns pairs of slice index and flow id.
pub fn bind_ends(ends: &[End], slices: &[Slice]) -> Vec<(usize, u64)> {
    let mut of_track: FxHashMap<u32, Vec<usize>> = ends.iter().map(|e| (e.track, Vec::new())).collect();
    for (at, slice) in slices.iter().enumerate() {
        if let Some(list) = of_track.get_mut(&slice.track) {
            list.push(at);
        }
    }
    let start = |at: usize| slices[at].start;
    for list in of_track.values_mut() {
        // Sort the innermost (shortest) slice last if several have the same start.
        list.sort_by_key(|&at| (start(at), -slices[at].duration));
    }
    let mut out = Vec::new();
    for end in ends {
        let Some(list) = of_track.get(&end.track) else { continue };
        let found = if end.encloses {
            let before = list.partition_point(|&at| start(at) <= end.time);
            // Slices nest, so it is enough to search a few preceding slices for an open one.
            list[..before].iter().rev().take(DEEPEST).copied().find(|&at| start(at) + slices[at].duration >= end.time)
        } else {
            list.get(list.partition_point(|&at| start(at) < end.time)).copied()
        };
        out.extend(found.map(|at| (at, end.id)));
    }
    out
}

/// Maximum number of preceding slices to search for an open one.
const DEEPEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(track: u32, start: i64, duration: i64) -> Slice {
        Slice { name: 0, category: 0, track, start, duration, details: u32::MAX }
    }

    #[test]
    fn ends_belong_to_what_is_there() {
        let slices = [slice(1, 0, 100), slice(1, 10, 20), slice(1, 40, 5), slice(2, 50, 10), slice(2, 70, 10)];
        let end = |track, time, encloses| End { id: 9, track, time, encloses };
        let at = |e: End| bind_ends(&[e], &slices).first().map(|f| f.0);
        assert_eq!(at(end(1, 15, true)), Some(1), "the innermost");
        assert_eq!(at(end(1, 35, true)), Some(0));
        assert_eq!(at(end(2, 45, true)), None);
        assert_eq!(at(end(2, 45, false)), Some(3));
        assert_eq!(at(end(2, 61, false)), Some(4));
        assert_eq!(at(end(3, 0, false)), None);
    }
}
