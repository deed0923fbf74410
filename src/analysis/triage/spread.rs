//! Distribution of idle time over gaps: recurring, or concentrated in one or two gaps.

use super::host::CLOSE_NS;
use super::idle_causes::Piece;
use super::time_category::{ByCause, Cause};
use rustc_hash::FxHashMap;

/// Minimum share of a device's idle time with one cause for a single gap to dominate.
const ONE: f64 = 0.5;
/// The same threshold for two gaps together, and for a single gap between calls. It is higher because two of three
/// equal gaps already account for two thirds of the time.
const TWO: f64 = 0.75;

/// Causes that lie inside calls. One slow call is not representative of the others, so one or two gaps may be outliers
/// regardless of the number of steps.
const CALLS: [Cause; 6] = [Cause::Launch, Cause::CopyCall, Cause::Alloc, Cause::Sync, Cause::Graph, Cause::OtherCall];

/// Causes that lie between calls, code loading, and waits in a stream. In a run with only one or two steps, a single gap of this kind may
/// well recur in each step.
const HOST: [Cause; 5] = [Cause::Compile, Cause::Wait, Cause::Compute, Cause::Unknown, Cause::Queued];
/// Minimum number of steps for a single gap of `HOST` to count as an outlier, and of repetitions of the same work on
/// each side of it in a run without steps. Two gaps never count, because they may recur.
pub const STEPS: usize = 8;

/// Idle time with one cause on one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    pub gaps: u64,
    pub ns: i64,
    /// Part of it in which the thread was between calls, ns.
    between: i64,
    /// The two largest gaps, with the longest piece of each.
    top: [Option<(i64, Piece)>; 2],
}

impl Spread {
    fn add(&mut self, ns: i64, piece: Piece) {
        self.gaps += 1;
        self.ns += ns;
        let [first, second] = &mut self.top;
        if first.is_none_or(|f| ns > f.0) {
            *second = first.replace((ns, piece));
        } else if second.is_none_or(|s| ns > s.0) {
            *second = Some((ns, piece));
        }
    }

    /// Longest gap, ns.
    fn longest_gap(&self) -> i64 {
        self.top[0].map_or(0, |t| t.0)
    }

    /// Returns the gap that accounts for more than `TWO` of the idle time, if there is one.
    fn dominant_gap(&self) -> Vec<(i64, Piece)> {
        self.top[0].filter(|one| one.0 as f64 > self.ns as f64 * TWO).into_iter().collect()
    }

    /// Returns the one or two gaps that account for most of the idle time, if there are any.
    fn dominant_gaps(&self) -> Vec<(i64, Piece)> {
        let whole = self.ns as f64;
        match self.top {
            [Some(a), Some(b)] if a.0 as f64 <= whole * ONE && (a.0 + b.0) as f64 > whole * TWO => vec![a, b],
            [Some(a), _] if a.0 as f64 > whole * ONE => vec![a],
            _ => Vec::new(),
        }
    }
}

/// Distribution of idle time by device and cause.
#[derive(Clone, Debug, Default)]
pub struct Spreads(FxHashMap<(usize, Cause), Spread>);

impl Spreads {
    /// Adds the pieces of one gap.
    pub fn add_gap(&mut self, unit: usize, pieces: &[Piece]) {
        let mut sums = ByCause::default();
        for piece in pieces {
            sums.add(piece.cause, piece.end - piece.start);
        }
        for cause in Cause::ALL.into_iter().filter(|c| sums.get(*c) > 0) {
            let longest = pieces.iter().filter(|p| p.cause == cause).max_by_key(|p| p.end - p.start);
            if let Some(piece) = longest {
                let spread = self.0.entry((unit, cause)).or_default();
                spread.add(sums.get(cause), *piece);
                spread.between += pieces.iter().filter(|p| p.cause == cause).map(|p| p.between).sum::<i64>();
            }
        }
    }

    /// Returns the number of gaps and the longest gap, ns, over all devices.
    pub fn gap_stats(&self, cause: Cause) -> (u64, i64) {
        self.0.iter().filter(|((_, c), _)| *c == cause).fold((0, 0), |(n, longest), (_, s)| (n + s.gaps, longest.max(s.longest_gap())))
    }

    /// Idle time with a cause in which the thread was between calls, ns, over all devices.
    pub fn between_calls(&self, cause: Cause) -> i64 {
        self.0.iter().filter(|((_, c), _)| *c == cause).map(|(_, s)| s.between).sum()
    }

    /// Idle time with a cause, ns, over all devices.
    fn gap_time(&self, cause: Cause) -> i64 {
        self.0.iter().filter(|((_, c), _)| *c == cause).map(|(_, s)| s.ns).sum()
    }

    /// Returns the length of the only gap that accounts for most of the idle time with a cause, ns. Unlike
    /// [`Self::outlier_gaps`], it may well recur in a longer recording.
    pub fn only_gap(&self, cause: Cause) -> Option<i64> {
        let whole = self.gap_time(cause);
        let longest = self.gap_stats(cause).1;
        (longest as f64 > whole as f64 * TWO).then_some(longest)
    }

    /// Outlier gaps that account for most of the idle time with a cause over all devices, the cause with the most time
    /// first. `steps` is the number of steps in the run; without steps, `amid` returns true for a gap before and after
    /// which the same work was done many times.
    pub fn outlier_gaps(&self, steps: usize, amid: impl Fn(usize, &Piece) -> bool) -> Vec<Single> {
        let mut out = Vec::new();
        let of_host = |cause: Cause| match steps {
            STEPS.. => true,
            // Without steps, there is nothing in which host time before a single load of code could recur.
            0 if cause == Cause::Compile => self.between_calls(cause) * 2 > self.gap_time(cause),
            0 => {
                let mut largest = self.0.iter().filter(|((_, c), _)| *c == cause).filter_map(|((unit, _), s)| Some((*unit, s.top[0]?.1)));
                self.only_gap(cause).is_some() && largest.all(|(unit, piece)| amid(unit, &piece))
            }
            _ => false,
        };
        for &cause in CALLS.iter().chain(HOST.iter().filter(|c| of_host(**c))) {
            let of_cause = || self.0.iter().filter(|((_, c), _)| *c == cause);
            let whole = self.gap_time(cause);
            let few = |s: &Spread| if CALLS.contains(&cause) { s.dominant_gaps() } else { s.dominant_gap() };
            let mut gaps: Vec<(i64, Piece)> = of_cause().flat_map(|(_, s)| few(s)).collect();
            let ns = gaps.iter().map(|g| g.0).sum::<i64>();
            // A gap no longer than a usual interval between launches is not a delay.
            if ns as f64 > whole as f64 * ONE && gaps.iter().any(|g| g.0 >= CLOSE_NS) {
                gaps.sort_by_key(|g| (std::cmp::Reverse(g.0), g.1.start));
                out.push(Single { cause, ns, gaps });
            }
        }
        out.sort_by_key(|s| (std::cmp::Reverse(s.ns), s.cause));
        out
    }
}

/// Outlier gaps with one cause, from which no rate can be derived.
#[derive(Clone, Debug)]
pub struct Single {
    pub cause: Cause,
    /// Total over the devices, ns.
    pub ns: i64,
    /// Length and longest piece of each gap, ns.
    pub gaps: Vec<(i64, Piece)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_two_gaps_that_make_most_of_it_are_single() {
        let of = |gaps: &[i64], cause, steps, amid| {
            let mut all = Spreads::default();
            for &ns in gaps {
                all.add_gap(
                    0,
                    &[Piece { start: 0, end: ns * 10_000, cause, at: 0, lane: None, name: None, between: 0, gap: (0, ns * 10_000) }],
                );
            }
            all.outlier_gaps(steps, |_, _| amid).first().map_or(0, |s| s.gaps.len())
        };
        let single = |gaps: &[i64], cause, steps| of(gaps, cause, steps, false);
        for (gaps, want) in [
            (&[100][..], 1),
            (&[50, 50], 2),
            (&[33, 33, 33], 0),
            (&[400, 390, 5, 5, 5], 2),
            (&[1000, 5, 5, 5, 5, 5, 5], 1),
            (&[30, 30, 30, 30, 30, 60], 0),
            (&[100, 10, 10], 1),
        ] {
            assert_eq!(single(gaps, Cause::Launch, 0), want, "{gaps:?}");
            assert_eq!(single(gaps, Cause::Compute, 3), 0, "one of three steps: the host may do it in each");
            assert_eq!(single(gaps, Cause::Compute, 12), usize::from(want == 1), "two may come again");
            assert_eq!(single(gaps, Cause::Unknown, 0), 0, "nothing shows that it does not come again");
            let once = *gaps.iter().max().unwrap() * 4 > gaps.iter().sum::<i64>() * 3;
            assert_eq!(of(gaps, Cause::Unknown, 0, true), usize::from(once), "amid repeated work: {gaps:?}");
        }
    }

    #[test]
    fn one_delay_of_the_host_stops_all_devices() {
        let mut all = Spreads::default();
        for unit in 0..8 {
            for ns in [900_000, 10_000, 10_000, 10_000] {
                all.add_gap(
                    unit,
                    &[Piece { start: 0, end: ns, cause: Cause::Alloc, at: 0, lane: None, name: None, between: 0, gap: (0, ns) }],
                );
            }
        }
        let found = all.outlier_gaps(0, |_, _| false);
        assert_eq!((found.len(), found[0].ns, found[0].gaps.len()), (1, 7_200_000, 8));
        assert_eq!(all.gap_stats(Cause::Alloc), (32, 900_000));
    }
}
