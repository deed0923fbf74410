//! Statistics of durations, defined as in `nsys stats` for those that it prints, too.

/// Number of bars of the small histogram in a table.
pub const BINS: usize = 12;

/// Statistics of durations in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    pub count: u64,
    pub total: i64,
    pub min: i64,
    pub max: i64,
    pub avg: f64,
    /// Median: for an even count, the mean of the two middle values, as nsys computes it.
    pub median: Option<f64>,
    /// Sample standard deviation (n − 1), as nsys computes it; 0 for a single value.
    pub stddev: Option<f64>,
    /// 99th percentile by nearest rank: the ⌈0.99 n⌉-th smallest value.
    pub p99: Option<i64>,
    /// Counts in [`BINS`] bins of equal ratio between minimum and maximum.
    pub histogram: Option<[u32; BINS]>,
}

impl Stats {
    /// Computes the statistics of `values`, which it reorders. `None` if there are no values.
    pub fn from_values<T: Copy + Ord + Into<i64>>(values: &mut [T]) -> Option<Self> {
        let n = values.len();
        let (least, most) = (*values.iter().min()?, *values.iter().max()?);
        let (min, max): (i64, i64) = (least.into(), most.into());
        let total: i128 = values.iter().map(|&v| i128::from(v.into())).sum();
        let avg = total as f64 / n as f64;
        let squares: f64 = values.iter().map(|&v| (v.into() as f64 - avg) * (v.into() as f64 - avg)).sum();
        let histogram = log_histogram(values, min, max);
        let (median, p99) = if min == max {
            (min as f64, min)
        } else {
            let (left, &mut upper, right) = values.select_nth_unstable(n / 2);
            let lower = if n % 2 == 1 { upper } else { left.iter().copied().max().unwrap_or(upper) };
            let (lower, upper): (i64, i64) = (lower.into(), upper.into());
            let rank = (n * 99).div_ceil(100).max(1) - 1;
            let p99 = match rank.checked_sub(n / 2 + 1) {
                Some(offset) => right.get_mut(..).map_or(max, |r| (*r.select_nth_unstable(offset).1).into()),
                None => upper,
            };
            (f64::midpoint(lower as f64, upper as f64), p99)
        };
        Some(Self::put_together((n, total, squares), (min, max), (median, p99), histogram))
    }

    fn put_together(
        (n, total, squares): (usize, i128, f64),
        (min, max): (i64, i64),
        (median, p99): (f64, i64),
        histogram: [u32; BINS],
    ) -> Self {
        Self {
            count: n as u64,
            total: i64::try_from(total).unwrap_or(i64::MAX),
            min,
            max,
            avg: total as f64 / n as f64,
            median: Some(median),
            stddev: Some(if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 }),
            p99: Some(p99),
            histogram: Some(histogram),
        }
    }

    /// Computes the statistics of a very large number of values on several threads, without reordering them.
    pub fn of_many<T: Copy + Ord + Send + Sync + Into<i64>>(values: &[T], threads: usize) -> Option<Self> {
        let n = values.len();
        let part = n.div_ceil(threads.max(1)).max(1);
        let firsts = map_parts(values, part, |part| {
            let total: i128 = part.iter().map(|&v| i128::from(v.into())).sum();
            (total, part.iter().min().copied(), part.iter().max().copied())
        });
        let total: i128 = firsts.iter().map(|f| f.0).sum();
        let min: i64 = firsts.iter().filter_map(|f| f.1).min()?.into();
        let max: i64 = firsts.iter().filter_map(|f| f.2).max()?.into();
        let avg = total as f64 / n as f64;
        let slot = |v: i64| value_slot(v.wrapping_sub(min).cast_unsigned());
        let edges = bin_edges(min, max);
        let seconds = map_parts(values, part, |part| {
            let (mut squares, mut slots, mut bins) = (0.0, vec![0_usize; SLOTS], [0_u32; BINS]);
            for &v in part {
                let v: i64 = v.into();
                squares += (v as f64 - avg) * (v as f64 - avg);
                slots[slot(v)] += 1;
                let bin: usize = edges.iter().map(|&e| usize::from(v >= e)).sum();
                bins[bin.min(BINS - 1)] += 1;
            }
            (squares, slots, bins)
        });
        let squares: f64 = seconds.iter().map(|s| s.0).sum();
        let histogram =
            if min == max { log_histogram(values, min, max) } else { std::array::from_fn(|b| seconds.iter().map(|s| s.2[b]).sum()) };
        let counts: Vec<usize> = (0..SLOTS).map(|at| seconds.iter().map(|s| s.1[at]).sum()).collect();
        let ranks = [(n / 2).saturating_sub(1), n / 2, (n * 99).div_ceil(100).max(1) - 1];
        let slots = [locate_rank(&counts, ranks[0])?, locate_rank(&counts, ranks[1])?, locate_rank(&counts, ranks[2])?];
        // Starting with the slot, narrow the range around each rank until it contains only one value.
        let mut near = slots.map(|(at, before)| Near { from: slot_start(at), to: slot_start(at + 1), before });
        while near.iter().any(|r| r.to - r.from > 1) {
            let counts = map_parts(values, part, |part| {
                let mut counts = near.map(|_| vec![0_usize; CLOSER]);
                for &v in part {
                    let v = v.into().wrapping_sub(min).cast_unsigned();
                    for (near, counts) in near.iter().zip(&mut counts).filter(|(near, _)| (near.from..near.to).contains(&v)) {
                        counts[((v - near.from) / near.step_size()) as usize] += 1;
                    }
                }
                counts
            });
            for (i, near) in near.iter_mut().enumerate() {
                let sums: Vec<usize> = (0..CLOSER).map(|at| counts.iter().map(|c| c[i][at]).sum()).collect();
                let (at, before) = locate_rank(&sums, ranks[i] - near.before)?;
                let (step, from) = (near.step_size(), near.from);
                near.from = from + at as u64 * step;
                near.to = near.to.min(near.from + step);
                near.before += before;
            }
        }
        let value = |i: usize| min.checked_add_unsigned(near[i].from);
        let upper = value(1)?;
        let lower = if n % 2 == 1 { upper } else { value(0)? };
        Some(Self::put_together((n, total, squares), (min, max), (f64::midpoint(lower as f64, upper as f64), value(2)?), histogram))
    }

    /// Standard deviation as a percentage of the mean.
    pub fn spread_percent(&self) -> Option<f64> {
        (self.avg > 0.0).then_some(self.stddev? / self.avg * 100.0)
    }
}

/// Values are counted in slots: 2¹⁰ of equal width between each power of two and the next.
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 65 << SLOT_BITS;

/// Returns the slot of a value; slots increase with values.
fn value_slot(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    let shift = bits.saturating_sub(SLOT_BITS + 1);
    // Below 2¹¹, each value has its own slot.
    ((u64::from(shift) << SLOT_BITS) + (value >> shift)) as usize
}

/// Returns the first value of a slot.
fn slot_start(slot: usize) -> u64 {
    let (high, low) = (slot >> SLOT_BITS, slot & ((1 << SLOT_BITS) - 1));
    match high {
        0 => low as u64,
        _ => (low as u64 + (1 << SLOT_BITS)).checked_shl(u32::try_from(high - 1).unwrap_or(u32::MAX)).unwrap_or(u64::MAX),
    }
}

/// Number of parts into which each narrowing step divides a range.
const CLOSER: usize = 1 << 12;

/// Range of values that contains the value at a rank, and the number of values before the range.
#[derive(Clone, Copy)]
struct Near {
    from: u64,
    to: u64,
    before: usize,
}

impl Near {
    fn step_size(self) -> u64 {
        (self.to - self.from).div_ceil(CLOSER as u64).max(1)
    }
}

/// Returns the index of the count that contains a rank, and the sum of the counts before it.
fn locate_rank(counts: &[usize], rank: usize) -> Option<(usize, usize)> {
    let mut before = 0;
    counts.iter().enumerate().find_map(|(at, &count)| {
        let first = before;
        before += count;
        (rank < before).then_some((at, first))
    })
}

/// Applies `work` to each part of the values, with one thread per part.
fn map_parts<T: Sync, R: Send>(values: &[T], part: usize, work: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = values.chunks(part).map(|part| scope.spawn(move || work(part))).collect();
        // Propagate a panic from the thread.
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Counts values in bins of equal ratio: durations of one kernel range over decades, and linear bins would put nearly
/// all of them into the first.
fn log_histogram<T: Copy + Into<i64>>(values: &[T], min: i64, max: i64) -> [u32; BINS] {
    let mut bins = [0_u32; BINS];
    if min == max {
        bins[BINS / 2] = u32::try_from(values.len()).unwrap_or(u32::MAX);
        return bins;
    }
    let edges = bin_edges(min, max);
    for &v in values {
        // Edges are ascending; comparing with all of them avoids branches.
        let v: i64 = v.into();
        let bin: usize = edges.iter().map(|&e| usize::from(v >= e)).sum();
        bins[bin.min(BINS - 1)] += 1;
    }
    bins
}

/// Lower edges of all bins but the first.
fn bin_edges(min: i64, max: i64) -> [i64; BINS - 1] {
    let (low, high) = (min.max(1) as f64, max.max(1) as f64);
    std::array::from_fn(|i| (low * (high / low).powf((i + 1) as f64 / BINS as f64)).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_percentile_and_deviation() {
        let s = Stats::from_values(&mut [40_i64, 10, 30, 20]).unwrap();
        assert_eq!((s.count, s.total, s.min, s.max, s.p99), (4, 100, 10, 40, Some(40)));
        assert_eq!(s.median, Some(25.0));
        assert!((s.stddev.unwrap() - 12.909_944).abs() < 1e-5);
        let one = Stats::from_values(&mut [7_i64]).unwrap();
        assert_eq!((one.median, one.stddev, one.p99), (Some(7.0), Some(0.0), Some(7)));
        assert_eq!(Stats::from_values::<i64>(&mut []), None);
    }

    #[test]
    fn percentile_is_by_nearest_rank_at_every_size() {
        for n in 1..=250_i64 {
            let mut values: Vec<i64> = (1..=n).rev().collect();
            let s = Stats::from_values(&mut values).unwrap();
            assert_eq!(s.p99, Some((n * 99 + 99) / 100), "{n}");
            assert_eq!(s.median, Some((n + 1) as f64 / 2.0), "{n}");
            assert_eq!(s.histogram.unwrap().iter().map(|&b| i64::from(b)).sum::<i64>(), n);
        }
    }

    #[test]
    fn slots_rise_and_begin_where_they_say() {
        for value in (0..5_000).chain((0..63).flat_map(|b| [(1_u64 << b) - 1, 1 << b, (1 << b) + 1])) {
            let at = value_slot(value);
            assert!(slot_start(at) <= value && value < slot_start(at + 1), "{value} {at} {} {}", slot_start(at), slot_start(at + 1));
            assert!(at < SLOTS);
        }
    }

    #[test]
    fn many_values_have_the_statistics_of_few() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for (n, range) in [(1, 5), (2, 5), (1_000, 3), (1_001, 1_000_000), (5_000, 1 << 31), (4_000, 1)] {
            let mut values: Vec<u32> = (0..n).map(|_| u32::try_from(random() % range).unwrap()).collect();
            // One outlier among the larger samples, far beyond the other values.
            values.extend((n > 1_500).then_some(4_000_000_000));
            let many = Stats::of_many(&values, 3).unwrap();
            let few = Stats::from_values(&mut values).unwrap();
            assert!((many.stddev.unwrap() - few.stddev.unwrap()).abs() <= 1e-9 * few.stddev.unwrap().max(1.0));
            assert_eq!(Stats { stddev: few.stddev, ..many }, few, "{n} {range}");
        }
    }

    #[test]
    fn zero_and_equal_durations_do_not_upset_the_bins() {
        assert_eq!(Stats::from_values(&mut [0_i64, 0, 0]).unwrap().histogram.unwrap()[BINS / 2], 3);
        assert!(Stats::from_values(&mut [0_i64, i64::MAX / 2]).is_some());
    }
}
