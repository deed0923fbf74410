//! Estimates from samples, with their intervals.

/// 97.5% quantile of the normal distribution: 95% of values lie within ± this.
const Z: f64 = 1.959_964;

/// An estimated value, with its 95% interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// 97.5% quantile of Student's t (Hill's expansion of 1970; within 0.3% from four degrees of freedom on).
pub fn student_t(freedom: f64) -> f64 {
    let z2 = Z * Z;
    let first = (z2 + 1.0) * Z / 4.0;
    let second = (5.0 * z2 * z2 + 16.0 * z2 + 3.0) * Z / 96.0;
    let third = (3.0 * z2.powi(3) + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) * Z / 384.0;
    Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, t) in [(4.0, 2.776), (9.0, 2.262), (29.0, 2.045), (1000.0, 1.962)] {
            assert!((student_t(freedom) - t).abs() < 0.01, "{freedom}: {} for {t}", student_t(freedom));
        }
    }
}
