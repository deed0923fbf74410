//! Percentiles of step lengths in a whole run, estimated from short recordings at random moments.
//!
//! A step is seen only if it lies entirely within a moment, which is less likely for a long one. Each step is therefore
//! weighted by the inverse of the share of a moment in which it could have begun (Horvitz and Thompson 1952). The
//! intervals are Woodruff's (Särndal, Swensson, Wretman, Model Assisted Survey Sampling, 5.11): we compute an interval
//! for the share of steps up to the percentile, with moments as clusters, and read its limits off the distribution of
//! lengths.

use super::estimate::{Estimate, student_t};
use crate::model::RunSample;

/// Percentiles to estimate.
const PERCENTILES: [u8; 3] = [50, 90, 99];
/// Maximum step length for an estimate, as a share of a moment: too few of the longer steps are seen.
const LONGEST: f64 = 0.5;

/// A percentile of the step lengths in the whole run, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepPercentile {
    pub percent: u8,
    pub length: Estimate,
}

/// A step that was seen: its moment, its length in ns, and its weight.
#[derive(Clone, Copy)]
struct Seen {
    moment: usize,
    length: f64,
    weight: f64,
}

/// Finds the steps that lie in moments, by increasing length.
fn find_seen(sample: &RunSample, steps: &[(i64, i64)]) -> Vec<Seen> {
    let of = |&(start, end): &(i64, i64)| {
        let moment = sample.moments.partition_point(|m| m.0 <= start).checked_sub(1)?;
        let (from, to) = *sample.moments.get(moment)?;
        let (length, room) = ((end - start) as f64, (to - from) as f64);
        (end <= to && length < room).then(|| Seen { moment, length, weight: room / (room - length) })
    };
    let mut seen: Vec<Seen> = steps.iter().filter_map(of).collect();
    seen.sort_by(|a, b| a.length.total_cmp(&b.length));
    seen
}

/// Weighted quantile: the length up to which the steps account for `share` of the total weight.
fn quantile(seen: &[Seen], total: f64, share: f64) -> f64 {
    let mut sum = 0.0;
    let reached = seen.iter().find(|s| {
        sum += s.weight;
        sum >= share * total
    });
    reached.or(seen.last()).map_or(0.0, |s| s.length)
}

fn estimate_percentile(seen: &[Seen], moments: usize, unseen: f64, longest: f64, percent: u8) -> Option<StepPercentile> {
    let share = f64::from(percent) / 100.0;
    let total: f64 = seen.iter().map(|s| s.weight).sum();
    let value = quantile(seen, total, share);
    let mut residuals = vec![0.0; moments];
    for s in seen {
        if let Some(r) = residuals.get_mut(s.moment) {
            *r += s.weight * (f64::from(u8::from(s.length <= value)) - share);
        }
    }
    let n = moments as f64;
    let between = (n / (n - 1.0) * residuals.iter().map(|r| r * r).sum::<f64>()).sqrt() / total;
    // Steps in the same moment are independent at best, so the margin must not be smaller than for independent steps.
    let within = (share * (1.0 - share) / seen.len() as f64).sqrt();
    let margin = student_t(n - 1.0) * unseen.sqrt() * between.max(within);
    let (low, high) = (share - margin, share + margin);
    // We know nothing about lengths beyond the longest step seen, so an interval must not reach that far.
    if low <= 0.0 || high >= 1.0 - 0.5 / seen.len() as f64 {
        return None;
    }
    let length = Estimate { value, low: quantile(seen, total, low), high: quantile(seen, total, high) };
    (length.high <= longest).then_some(StepPercentile { percent, length })
}

/// Estimates the percentiles for which enough steps were seen. `steps` contains start and end of each, ns.
pub fn estimate_steps(sample: &RunSample, steps: &[(i64, i64)]) -> Vec<StepPercentile> {
    let seen = find_seen(sample, steps);
    let moments = sample.moments.len();
    let span = (sample.span.1 - sample.span.0) as f64;
    if seen.is_empty() || moments < 2 || span <= 0.0 {
        return Vec::new();
    }
    let recorded = sample.recorded_ns() as f64;
    let (unseen, longest) = ((1.0 - recorded / span).max(0.0), LONGEST * recorded / moments as f64);
    PERCENTILES.iter().filter_map(|&p| estimate_percentile(&seen, moments, unseen, longest, p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length of a step in µs, from its start in µs and a random number.
    type Length = fn(i64, f64) -> f64;

    /// Runs of several kinds, each sampled many times: the interval contains the true percentile of all steps in at
    /// least 93 of 100 samples that give one.
    #[test]
    fn the_true_percentile_lies_in_the_interval() {
        let mut seed = 7_u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let span = 120_000_000;
        let kinds: [(&str, Length); 5] = [
            ("even", |_, x| 900.0 + 200.0 * x),
            ("prefill and decode", |_, x| if x < 0.07 { 30_000.0 + 100_000.0 * x } else { 2_000.0 + 500.0 * x }),
            ("phases", |t, x| if (t / 10_000_000) % 3 == 1 { 4_000.0 + 1_000.0 * x } else { 1_000.0 + 500.0 * x }),
            ("long", |_, x| 20_000.0 + 15_000.0 * x),
            ("growing", |t, x| 500.0 + t as f64 / 100_000.0 + 100.0 * x),
        ];
        for (name, length) in kinds {
            let mut steps = Vec::new();
            let mut at = 0;
            while at < span {
                let end = at + length(at, random()) as i64;
                steps.push((at, end));
                at = end;
            }
            let mut lengths: Vec<i64> = steps.iter().map(|s| s.1 - s.0).collect();
            lengths.sort_unstable();
            let truth = |percent: u8| lengths[(lengths.len() * usize::from(percent)).div_ceil(100) - 1] as f64;
            let (mut inside, mut given) = ([0, 0, 0], [0, 0, 0]);
            for _ in 0..150 {
                let mut moments = Vec::new();
                let mut at = (random() * 6_000_000.0) as i64;
                while at + 100_000 < span {
                    moments.push((at, at + 100_000));
                    at += 3_000_000 + (random() * 6_000_000.0) as i64;
                }
                let sample = RunSample { span: (0, span), moments, ..RunSample::default() };
                for one in estimate_steps(&sample, &steps) {
                    let kind = PERCENTILES.iter().position(|&p| p == one.percent).unwrap();
                    given[kind] += 1;
                    inside[kind] += i32::from((one.length.low..=one.length.high).contains(&truth(one.percent)));
                }
            }
            for (kind, &n) in given.iter().enumerate().filter(|(_, n)| **n > 30) {
                assert!(f64::from(inside[kind]) >= 0.93 * f64::from(n), "{name}, p{}: {} of {n}", PERCENTILES[kind], inside[kind]);
            }
            assert!(given[0] > 120, "{name}: the median is given {} times", given[0]);
        }
    }

    #[test]
    fn steps_that_do_not_fit_into_moments_are_not_estimated() {
        let moments: Vec<_> = (0..20).map(|i| (i * 1_000_000, i * 1_000_000 + 100_000)).collect();
        let sample = RunSample { span: (0, 20_000_000), moments, ..RunSample::default() };
        let steps: Vec<_> = (0..300).map(|i| (i * 66_000, (i + 1) * 66_000)).collect();
        assert_eq!(estimate_steps(&sample, &steps), []);
        assert_eq!(estimate_steps(&RunSample::default(), &steps), []);
    }
}
