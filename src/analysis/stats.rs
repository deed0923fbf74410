//! Statistics of a set of durations, defined as `nsys stats` defines them where it has them.

/// Bars of the little histogram in a table.
pub const BINS: usize = 12;

/// Statistics of durations in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    pub count: u64,
    pub total: i64,
    pub min: i64,
    pub max: i64,
    pub avg: f64,
    /// Median: the mean of the two middle values for an even count, as nsys computes it.
    pub median: Option<f64>,
    /// Sample standard deviation (n − 1), as nsys computes it; 0 for a single value.
    pub stddev: Option<f64>,
    /// 99th percentile by nearest rank: the ⌈0.99 n⌉-th smallest value.
    pub p99: Option<i64>,
    /// Counts in [`BINS`] bins of equal ratio between minimum and maximum.
    pub histogram: Option<[u32; BINS]>,
}

impl Stats {
    /// Statistics of values, which are reordered. `None` without values.
    #[must_use]
    pub fn of(values: &mut [i64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let (mut total, mut min, mut max) = (0_i128, i64::MAX, i64::MIN);
        for &v in values.iter() {
            total += i128::from(v);
            min = min.min(v);
            max = max.max(v);
        }
        let avg = total as f64 / n as f64;
        let squares: f64 = values.iter().map(|&v| (v as f64 - avg) * (v as f64 - avg)).sum();
        let stddev = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        let histogram = histogram(values, min, max);
        let (median, p99) = if min == max {
            (min as f64, min)
        } else {
            let (left, &mut upper, right) = values.select_nth_unstable(n / 2);
            let lower = if n % 2 == 1 { upper } else { left.iter().copied().max().unwrap_or(upper) };
            let rank = (n * 99).div_ceil(100).max(1) - 1;
            let p99 = match rank.checked_sub(n / 2 + 1) {
                Some(offset) => right.get_mut(..).map_or(max, |r| *r.select_nth_unstable(offset).1),
                None => upper,
            };
            (f64::midpoint(lower as f64, upper as f64), p99)
        };
        Some(Self {
            count: n as u64,
            total: i64::try_from(total).unwrap_or(i64::MAX),
            min,
            max,
            avg,
            median: Some(median),
            stddev: Some(stddev),
            p99: Some(p99),
            histogram: Some(histogram),
        })
    }

    /// Standard deviation over mean, in percent: how much the durations spread.
    #[must_use]
    pub fn spread_percent(&self) -> Option<f64> {
        (self.avg > 0.0).then_some(self.stddev? / self.avg * 100.0)
    }
}

/// Bins of equal ratio: durations of one kernel range over decades, and linear bins would put nearly all into the first.
fn histogram(values: &[i64], min: i64, max: i64) -> [u32; BINS] {
    let mut bins = [0_u32; BINS];
    if min == max {
        bins[BINS / 2] = u32::try_from(values.len()).unwrap_or(u32::MAX);
        return bins;
    }
    let edges = edges(min, max);
    for &v in values {
        let bin = edges.iter().take_while(|&&e| v >= e).count();
        bins[bin.min(BINS - 1)] += 1;
    }
    bins
}

/// Lower edges of all bins but the first.
fn edges(min: i64, max: i64) -> [i64; BINS - 1] {
    let (low, high) = (min.max(1) as f64, max.max(1) as f64);
    std::array::from_fn(|i| (low * (high / low).powf((i + 1) as f64 / BINS as f64)).ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_percentile_and_deviation() {
        let s = Stats::of(&mut [40, 10, 30, 20]).unwrap();
        assert_eq!((s.count, s.total, s.min, s.max, s.p99), (4, 100, 10, 40, Some(40)));
        assert_eq!(s.median, Some(25.0));
        assert!((s.stddev.unwrap() - 12.909_944).abs() < 1e-5);
        let one = Stats::of(&mut [7]).unwrap();
        assert_eq!((one.median, one.stddev, one.p99), (Some(7.0), Some(0.0), Some(7)));
        assert_eq!(Stats::of(&mut []), None);
    }

    #[test]
    fn percentile_is_by_nearest_rank_at_every_size() {
        for n in 1..=250_i64 {
            let mut values: Vec<i64> = (1..=n).rev().collect();
            let s = Stats::of(&mut values).unwrap();
            assert_eq!(s.p99, Some((n * 99 + 99) / 100), "{n}");
            assert_eq!(s.median, Some((n + 1) as f64 / 2.0), "{n}");
            assert_eq!(s.histogram.unwrap().iter().map(|&b| i64::from(b)).sum::<i64>(), n);
        }
    }

    #[test]
    fn zero_and_equal_durations_do_not_upset_the_bins() {
        assert_eq!(Stats::of(&mut [0, 0, 0]).unwrap().histogram.unwrap()[BINS / 2], 3);
        assert!(Stats::of(&mut [0, i64::MAX / 2]).is_some());
    }
}
