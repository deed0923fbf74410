//! Significance tests for two samples.

/// Minimum number of launches per side for the test's normal approximation; eight is the usual rule of thumb.
const ENOUGH: usize = 8;
/// Two-sided p-value of the Mann–Whitney U test, using the normal approximation corrected for ties. `None` if either
/// side has fewer than eight values, or if all values are equal.
///
/// Source: Mann and Whitney 1947; Lehmann, *Nonparametrics*, for the variance with ties.
pub fn mann_whitney(before: &[i64], after: &[i64]) -> Option<f64> {
    if before.len() < ENOUGH || after.len() < ENOUGH {
        return None;
    }
    let mut all: Vec<(i64, bool)> = before.iter().map(|v| (*v, true)).chain(after.iter().map(|v| (*v, false))).collect();
    all.sort_unstable();
    let (first, second, total) = (before.len() as f64, after.len() as f64, all.len() as f64);
    let (mut ranks, mut ties, mut at) = (0.0, 0.0, 0);
    while at < all.len() {
        let same = all[at..].iter().take_while(|v| v.0 == all[at].0).count();
        let mean = at as f64 + f64::midpoint(same as f64, 1.0);
        ranks += mean * all[at..at + same].iter().filter(|v| v.1).count() as f64;
        ties += (same as f64).powi(3) - same as f64;
        at += same;
    }
    let statistic = ranks - first * (first + 1.0) / 2.0;
    let variance = first * second / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return None;
    }
    // Continuity correction.
    let off = ((statistic - first * second / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    Some(erfc(off / std::f64::consts::SQRT_2))
}

/// Complementary error function, by approximation 7.1.26 of Abramowitz and Stegun; the error is below 1.5e-7.
fn erfc(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t * (0.254_829_592 + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (poly * (-x * x).exp()).clamp(0.0, 1.0)
}

/// Two-sided p-value for small samples, by the exact permutation test. Among all ways to split n + m values into two
/// sides, two separate them completely, so that p = 2 ∕ C(n + m, n). Samples that overlap return 1. Two different
/// constants, each measured at least twice, return 0. From eight values on each side, [`mann_whitney`] is used instead.
/// `None` if even complete separation would prove little (p > 5 %): with equal sizes, each side needs four.
pub fn separation_p_value(first: &[f64], second: &[f64]) -> Option<f64> {
    let ends = |v: &[f64]| v.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    let (a, b) = (ends(first), ends(second));
    let constant = |v: &[f64], (low, high): (f64, f64)| v.len() > 1 && low.total_cmp(&high).is_eq();
    if constant(first, a) && constant(second, b) && a != b {
        return Some(0.0);
    }
    if first.len() >= ENOUGH && second.len() >= ENOUGH {
        let mut all: Vec<f64> = first.iter().chain(second).copied().collect();
        all.sort_by(f64::total_cmp);
        let rank = |v: &f64| i64::try_from(all.partition_point(|o| o.total_cmp(v).is_lt())).unwrap_or(i64::MAX);
        return mann_whitney(&first.iter().map(rank).collect::<Vec<_>>(), &second.iter().map(rank).collect::<Vec<_>>());
    }
    let least = 2.0 / count_combinations(first.len() + second.len(), first.len());
    if least > 0.05 || first.is_empty() || second.is_empty() {
        return None;
    }
    Some(if a.1 < b.0 || b.1 < a.0 { least } else { 1.0 })
}

/// Binomial coefficient: ways to choose `k` of `n`.
fn count_combinations(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_are_tested_exactly() {
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        let far = five.map(|v| v + 10.0);
        assert!((separation_p_value(&five, &far).unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(separation_p_value(&five, &five.map(|v| v + 1.0)), Some(1.0));
        assert_eq!(separation_p_value(&five[..3], &far[..3]), None, "one way in ten says little");
        assert_eq!(separation_p_value(&five[..1], &far), None);
        assert_eq!(separation_p_value(&[], &far), None);
        assert_eq!(separation_p_value(&[3.0, 3.0], &[4.0, 4.0]), Some(0.0));
        assert_eq!(separation_p_value(&[3.0, 3.0], &[3.0, 3.0]), None);
        let many: Vec<f64> = (0..10).map(f64::from).collect();
        let others: Vec<f64> = (100..110).map(f64::from).collect();
        assert!(separation_p_value(&many, &others).unwrap() < 0.001);
    }

    /// Reference values from the definition: all pairs counted, variance with ties, and a library's error function.
    #[test]
    fn the_test_is_the_textbook_s() {
        let a: Vec<i64> = (1..=10).collect();
        let b: Vec<i64> = (6..=15).collect();
        let p = mann_whitney(&a, &b).unwrap();
        assert!((p - 0.005_075_392).abs() < 1e-6, "{p}");
        let tied = mann_whitney(&[1, 2, 2, 3, 3, 3, 4, 5, 6], &[3, 4, 4, 5, 5, 6, 7, 8, 9, 9]).unwrap();
        assert!((tied - 0.009_431_997).abs() < 1e-6, "{tied}");
        assert!(mann_whitney(&a, &a).unwrap() > 0.9);
        assert_eq!(mann_whitney(&a[..7], &b), None, "too few");
        assert_eq!(mann_whitney(&[5; 9], &[5; 9]), None, "all equal");
        let far: Vec<i64> = (101..=110).collect();
        assert!(mann_whitney(&a, &far).unwrap() < 0.001);
    }

    #[test]
    fn the_error_function_is_right_to_seven_digits() {
        for (x, want) in [(0.0, 1.0), (0.5, 0.479_500_1), (1.0, 0.157_299_2), (2.0, 0.004_677_7)] {
            assert!((erfc(x) - want).abs() < 2e-7, "{x}: {}", erfc(x));
        }
    }
}
