//! Detects a rank that is late at regular intervals. Such a delay is not an accident, even if it is rare.

/// Minimum multiple of the median wait for a wait to count as long.
const STANDS_OUT: i64 = 4;
/// Long waits must be at least the longest wait divided by this, so that only waits of similar length are compared.
const ALIKE: i64 = 2;
/// Share of the long waits' total length that one rank must cause.
const MOSTLY: f64 = 0.8;
/// Maximum distance, in collectives, between waits due to the same delay: a rank that fell behind may need several
/// collectives to catch up.
const APART: usize = 2;
/// Upper bound on the share of collectives with delays: a rank with more of them is constantly late, not at intervals.
const NOW_AND_THEN: f64 = 0.25;
/// Maximum ratio of the longest to the shortest distance between delays.
const UNEVEN: f64 = 2.0;

/// A collective in which ranks may have waited. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub end: i64,
    /// Rank that arrived last.
    pub rank: u32,
    /// Average wait of the other ranks.
    pub ns: i64,
    /// True at the start of the capture, which may itself cause a wait. Such a wait can confirm a pattern of later
    /// waits but not establish one.
    pub start: bool,
}

/// Minimum share of the rank's lateness in these delays; below it, the rank is late all the time.
const HALF: f64 = 0.5;

/// A rank that is late at regular intervals, with the positions of its delays in the list of collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurring {
    pub rank: u32,
    /// Index of the first collective of each delay.
    pub at: Vec<usize>,
}

/// Finds the rank that causes long waits of similar length at regular intervals while most waits are short. The list
/// must be in chronological order.
pub fn find_recurring(waits: &[Wait]) -> Option<Recurring> {
    let mut sorted: Vec<i64> = waits.iter().filter(|w| !w.start).map(|w| w.ns).collect();
    sorted.sort_unstable();
    let (median, longest) = (*sorted.get(sorted.len() / 2)?, *sorted.last()?);
    let least = (longest / ALIKE).max(median.saturating_mul(STANDS_OUT)).max(1);
    let long = |w: &Wait| w.ns >= least && (!w.start || w.ns <= longest.saturating_mul(ALIKE));
    let found: Vec<usize> = (0..waits.len()).filter(|&i| long(&waits[i])).collect();
    let rank = waits.get(*found.iter().filter(|&&i| !waits[i].start).max_by_key(|&&i| waits[i].ns)?)?.rank;
    let sum = |own: bool| found.iter().filter(|&&i| !own || waits[i].rank == rank).map(|&i| waits[i].ns as f64).sum::<f64>();
    let own: f64 = waits.iter().filter(|w| w.rank == rank && !w.start).map(|w| w.ns as f64).sum();
    if sum(true) < MOSTLY * sum(false) || sum(true) < HALF * own {
        return None;
    }
    let mut at: Vec<usize> = Vec::new();
    for &i in found.iter().filter(|&&i| waits[i].rank == rank) {
        // A long wait shortly after another one belongs to the same delay.
        if at.last().is_none_or(|&last| i > last + APART) {
            at.push(i);
        }
    }
    let (first, last) = (waits[*at.first()?].end, waits[*at.last()?].end);
    let between: Vec<i64> = at.windows(2).map(|w| waits[w[1]].end.saturating_sub(waits[w[0]].end)).collect();
    let (least, most) = (*between.iter().min()?, *between.iter().max()?);
    let mean = last.saturating_sub(first) as f64 / between.len() as f64;
    let span = waits[waits.len() - 1].end.saturating_sub(waits[0].end) as f64;
    // Number of delays that would fit into the span at their mean distance. One may be missing, because it may lie
    // outside the evaluated time.
    let room = (span / mean.max(1.0)).floor();
    let often = at.len() as f64 + 1.0 >= room && (at.len() as f64) < NOW_AND_THEN * waits.len() as f64;
    (often && least > 0 && most as f64 <= UNEVEN * least as f64).then_some(Recurring { rank, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collectives that end every 10 ms. The given ones are delayed by the given time, the others by 0.1 ms, by either
    /// rank. The first tenth counts as the start of the capture.
    fn waits(n: usize, delays: &[(usize, u32, i64)]) -> Vec<Wait> {
        (0..n)
            .map(|i| {
                let found = delays.iter().find(|d| d.0 == i);
                let (rank, ms) = found.map_or((u32::try_from(i % 2).unwrap(), 100_000), |d| (d.1, d.2 * 1_000_000));
                Wait { end: 10_000_000 * i64::try_from(i).unwrap(), rank, ns: ms, start: i * 10 < n }
            })
            .collect()
    }

    #[test]
    fn what_comes_back_is_no_accident() {
        for (what, n, delays, want) in [
            ("every fifth of ten", 10, vec![(3, 1, 30), (8, 1, 30)], Some(2)),
            ("every fifth of fifteen", 15, vec![(4, 1, 30), (9, 1, 28), (14, 1, 31)], Some(3)),
            ("twice in fifteen", 15, vec![(4, 1, 30), (9, 1, 30)], Some(2)),
            ("every tenth of a hundred", 100, (0..10).map(|i| (i * 10 + 5, 0, 20)).collect(), Some(10)),
            ("the first of two at the start", 10, vec![(0, 1, 30), (5, 1, 28)], Some(2)),
            ("one delay, and a long wait at the start", 10, vec![(0, 1, 3_000), (5, 1, 28)], None),
            ("one delay, and one of another rank at the start", 10, vec![(0, 0, 30), (5, 1, 28)], None),
            ("one delay", 20, vec![(9, 1, 60)], None),
            ("one delay, and what follows it", 20, vec![(9, 1, 60), (10, 1, 40), (11, 1, 31)], None),
            ("two ranks", 20, vec![(5, 0, 30), (12, 1, 30)], None),
            ("a long one and a short one", 20, vec![(5, 1, 60), (12, 1, 8)], None),
            ("two that lie close, of many", 60, vec![(30, 1, 30), (35, 1, 30)], None),
            ("uneven distances", 40, vec![(3, 1, 30), (7, 1, 30), (30, 1, 30)], None),
            ("all the time", 20, (0..10).map(|i| (i * 2, 1, 30)).collect(), None),
            ("none", 20, vec![], None),
            ("each second one, twice for longer", 60, (0..30).map(|i| (i * 2, 1, if i % 15 == 7 { 6 } else { 1 })).collect(), None),
        ] {
            assert_eq!(find_recurring(&waits(n, &delays)).map(|r| r.at.len()), want, "{what}");
        }
    }
}
