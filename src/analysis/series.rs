//! Distributions over many launches, reduced to the few values that a terminal can draw.

/// Counts values in `bins` bins of equal ratio between the minimum and the maximum; also returns these two.
pub fn log_bins(values: impl Iterator<Item = i64> + Clone, bins: usize) -> (Vec<u64>, i64, i64) {
    let (min, max) = values.clone().fold((i64::MAX, i64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    if bins == 0 || min > max {
        return (Vec::new(), 0, 0);
    }
    let (low, high) = ((min.max(1) as f64).ln(), (max.max(1) as f64).ln());
    let width = (high - low).max(f64::MIN_POSITIVE);
    let mut out = vec![0; bins];
    for v in values {
        let at = ((v.max(1) as f64).ln() - low) / width * bins as f64;
        out[(at as usize).min(bins - 1)] += 1;
    }
    (out, min, max)
}

/// Minimum and maximum in each of `columns` slices of the time between the first and the last point; `None` for slices
/// without points.
pub fn time_envelope(points: impl Iterator<Item = (i64, i64)> + Clone, columns: usize) -> Vec<Option<(i64, i64)>> {
    let (first, last) = points.clone().fold((i64::MAX, i64::MIN), |(a, b), (t, _)| (a.min(t), b.max(t)));
    let mut out = vec![None; columns];
    if columns == 0 || first > last {
        return out;
    }
    let span = (i128::from(last) - i128::from(first) + 1) as f64;
    for (t, v) in points {
        let at = ((i128::from(t) - i128::from(first)) as f64 / span * columns as f64) as usize;
        let slot = &mut out[at.min(columns - 1)];
        *slot = Some(slot.map_or((v, v), |(a, b): (i64, i64)| (a.min(v), b.max(v))));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_value_and_the_ends() {
        let (bins, min, max) = log_bins([1, 10, 100, 1000].into_iter(), 4);
        assert_eq!((bins, min, max), (vec![1, 1, 1, 1], 1, 1000));
        assert_eq!(log_bins([].into_iter(), 4).0, Vec::<u64>::new());
        assert_eq!(log_bins([5, 5].into_iter(), 3).0.iter().sum::<u64>(), 2);
    }

    #[test]
    fn the_envelope_keeps_extremes_and_gaps() {
        let e = time_envelope([(0, 5), (1, 9), (99, 1)].into_iter(), 4);
        assert_eq!(e, [Some((5, 9)), None, None, Some((1, 1))]);
        assert_eq!(time_envelope([(i64::MIN, 1), (i64::MAX, 2)].into_iter(), 2), [Some((1, 1)), Some((2, 2))]);
    }
}
