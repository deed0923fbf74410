//! Alignment of the ranks' clocks, using collectives that all ranks leave at the same time.

use super::matching::Together;
use super::nccl;

/// Offset of a rank's clock from the common clock. The common clock is that of the rank with the most collectives (the
/// first one if there are several).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// Amount by which the rank's clock is ahead at `at`, ns.
    pub offset: i64,
    /// Drift of the rank's clock, ns per ns.
    pub drift: f64,
    /// Time on the common clock at which `offset` holds, ns.
    pub at: i64,
    /// Spread of a collective's ends on the common clock, ns: twice the standard deviation, estimated from the median.
    pub uncertainty: i64,
    /// Number of collectives on which the offset is based; 0 for the reference rank, and for ranks aligned only by
    /// their reports' epochs.
    pub by: usize,
}

impl Offset {
    /// Converts a time on the rank's clock to the common clock.
    pub fn common_time(&self, time: i64) -> i64 {
        let since = time.saturating_sub(self.offset).saturating_sub(self.at);
        time.saturating_sub(self.offset).saturating_sub((self.drift * since as f64).round() as i64)
    }

    /// Converts a time on the common clock to the rank's own.
    pub fn own_time(&self, time: i64) -> i64 {
        let since = time.saturating_sub(self.at);
        time.saturating_add(self.offset).saturating_add((self.drift * since as f64).round() as i64)
    }
}

/// Maximum number of collectives to use when comparing two clocks.
const LOOKED_AT: usize = 400;
/// Minimum number of pairs, and minimum time that they span in ns, for drift to be distinguishable from chance.
const FOR_DRIFT: (usize, i64) = (16, 1_000_000_000);
/// Maximum long-term drift of a computer's clock, ns per ns (crystals are accurate to within 100 ppm).
const MOST_DRIFT: f64 = 5e-4;
/// Minimum uncertainty, ns: ranks leave a collective about this far apart.
const LEAST_SHARE: i64 = 1000;

fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let at = values.len() / 2;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Fits one clock to another, given pairs of readings of the same moment (other clock, this clock). The offset is the
/// median of the differences, the drift is the median of all slopes (Theil–Sen), and the spread is based on the median
/// of the residuals (MAD × 1.4826).
pub fn fit_offset(pairs: &[(i64, i64)]) -> Option<Offset> {
    let step = pairs.len().div_ceil(LOOKED_AT).max(1);
    let mut list: Vec<(i64, i64)> = pairs.iter().step_by(step).copied().collect();
    list.sort_unstable();
    let (first, last) = (list.first()?.0, list.last()?.0);
    let base = list[list.len() / 2].1.saturating_sub(list[list.len() / 2].0);
    let at = first.midpoint(last);
    let points: Vec<(f64, f64)> =
        list.iter().map(|&(t, own)| (t.saturating_sub(at) as f64, own.saturating_sub(t).saturating_sub(base) as f64)).collect();
    let mut drift = 0.0;
    if points.len() >= FOR_DRIFT.0 && last.saturating_sub(first) >= FOR_DRIFT.1 {
        let apart = (points.len() / 3).max(1);
        let mut slopes: Vec<f64> = (0..points.len())
            .flat_map(|i| (i + apart..points.len()).map(move |j| (i, j)))
            .filter(|&(i, j)| points[j].0 > points[i].0)
            .map(|(i, j)| (points[j].1 - points[i].1) / (points[j].0 - points[i].0))
            .collect();
        drift = median(&mut slopes).clamp(-MOST_DRIFT, MOST_DRIFT);
    }
    let mut rest: Vec<f64> = points.iter().map(|p| p.1 - drift * p.0).collect();
    let middle = median(&mut rest);
    let mut off: Vec<f64> = rest.iter().map(|r| (r - middle).abs()).collect();
    let spread = 1.4826 * median(&mut off);
    Some(Offset {
        offset: base.saturating_add(middle.round() as i64),
        drift,
        at,
        uncertainty: ((2.0 * spread).round() as i64).max(LEAST_SHARE),
        by: pairs.len(),
    })
}

/// Returns the clock offsets of `n` ranks. A rank that shares no collectives with the others, directly or through other
/// ranks, is aligned only by its report's `epochs`, i.e. by the machines' clocks.
pub fn align_clocks(n: usize, list: &[Together], epochs: &[Option<i64>]) -> Vec<Offset> {
    let mut by_rank: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (i, c) in list.iter().enumerate().filter(|(_, c)| nccl::leaves_together(c.kind)) {
        for a in &c.arrivals {
            by_rank[a.rank as usize].push(i);
        }
    }
    let mut out: Vec<Option<Offset>> = vec![None; n];
    let Some(reference) = (0..n).max_by_key(|&r| (by_rank[r].len(), std::cmp::Reverse(r))) else { return Vec::new() };
    out[reference] = Some(Offset { uncertainty: 0, ..Offset::default() });
    // Starting from the reference, extend the alignment to the ranks that share collectives with an aligned rank.
    let mut known = vec![reference];
    while let Some(from) = known.pop() {
        let own = out[from].unwrap_or_default();
        let mut pairs: Vec<Vec<(i64, i64)>> = vec![Vec::new(); n];
        let step = by_rank[from].len().div_ceil(LOOKED_AT * 4).max(1);
        for &i in by_rank[from].iter().step_by(step) {
            let Some(here) = list[i].arrivals.iter().find(|a| a.rank as usize == from) else { continue };
            let end = own.common_time(here.end());
            for a in list[i].arrivals.iter().filter(|a| out[a.rank as usize].is_none()) {
                pairs[a.rank as usize].push((end, a.end()));
            }
        }
        for (rank, pairs) in pairs.iter().enumerate().filter(|p| !p.1.is_empty()) {
            if let Some(found) = fit_offset(pairs) {
                out[rank] = Some(Offset { uncertainty: found.uncertainty.saturating_add(own.uncertainty), ..found });
                known.insert(0, rank);
            }
        }
    }
    let base = epochs.get(reference).copied().flatten();
    let by_epoch = |rank: usize| {
        let apart = base.zip(epochs.get(rank).copied().flatten()).map_or(0, |(base, own)| base.saturating_sub(own));
        Offset { offset: apart, ..Offset::default() }
    };
    out.into_iter().enumerate().map(|(rank, o)| o.unwrap_or_else(|| by_epoch(rank))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::matching::Arrival;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Recovers the known offsets and drifts of synthetic ranks within the stated uncertainty, despite accidents
        /// and ends that spread by microseconds.
        #[test]
        fn offsets_and_drifts_are_recovered(
            offsets in prop::collection::vec((-1_000_000_000_000i64..1_000_000_000_000, -100.0f64..100.0), 1..6),
            seed in 0u64..1000,
            spread in 200i64..20_000,
        ) {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut random = |n: i64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                i64::try_from(state % n.unsigned_abs()).unwrap()
            };
            let n = offsets.len() + 1;
            let own = |rank: usize, t: i64| match rank {
                0 => t,
                r => t + offsets[r - 1].0 + (offsets[r - 1].1 * 1e-6 * t as f64) as i64,
            };
            let list: Vec<Together> = (0..300)
                .map(|i| {
                    let end = 5_000_000 + i * 20_000_000;
                    let arrivals = (0..n).map(|rank| {
                        let accident = if random(50) == 0 { 3_000_000 } else { 0 };
                        let duration = 100_000 + random(50_000);
                        let at = own(rank, end + random(spread) - spread / 2 + accident);
                        Arrival { rank: u32::try_from(rank).unwrap(), start: at - duration, duration }
                    });
                    Together { group: 0, kind: "all_reduce", bytes: 0, arrivals: arrivals.collect() }
                })
                .collect();
            let found = align_clocks(n, &list, &vec![None; n]);
            for (rank, clock) in found.iter().enumerate() {
                for t in [0, 1_500_000_000, 3_000_000_000, 6_000_000_000] {
                    let off = (clock.common_time(own(rank, t)) - t).abs();
                    prop_assert!(off <= clock.uncertainty.max(1), "rank {rank} at {t}: {off} of {clock:?}");
                    prop_assert!((clock.own_time(t) - own(rank, t)).abs() <= clock.uncertainty.max(1));
                }
            }
        }
    }

    #[test]
    fn ranks_that_meet_only_through_another_have_its_clock() {
        let together = |a: u32, b: u32, at: i64, later: i64| Together {
            group: 0,
            kind: "all_gather",
            bytes: 0,
            arrivals: vec![Arrival { rank: a, start: at - 10, duration: 10 }, Arrival { rank: b, start: at + later - 10, duration: 10 }],
        };
        let list: Vec<Together> = (0..20).flat_map(|i| [together(0, 1, i * 1000, 500), together(1, 2, i * 1000 + 500, 70)]).collect();
        let found = align_clocks(4, &list, &[Some(5), None, None, Some(2)]);
        assert_eq!(found.iter().map(|c| c.offset).collect::<Vec<_>>(), [-500, 0, 70, 0]);
        assert_eq!(found[3].by, 0);
    }
}
