//! Estimates of a whole run from short recordings at random moments (`trace --overhead`).
//!
//! The estimate of a total is the ratio estimator of cluster sampling, `T·Σx/Σt`, for moments of length `t` in a run of
//! length `T`. Its variance is that of the residuals `x − t·Σx/Σt`, with the finite population correction (Cochran,
//! Sampling Techniques, 3rd ed., 6.3 and 9A), and the interval is based on Student's t with one degree of freedom fewer
//! than there are moments. Events seen in only a few moments are not normally distributed: for those, we use the exact
//! interval for a Poisson count of moments if it is wider.

use super::Paths;
use super::estimate::{Estimate, student_t};
use super::kernel_groups::Grouping;
use super::step_estimate::{StepPercentile, estimate_steps};
use crate::model::units::{format_count, format_grouped};
use crate::model::{Nanos, Profile, RunSample};
use rustc_hash::FxHashMap;

/// Minimum number of moments for an estimate. In tests with a vLLM recording, 90 to 95 of 100 intervals from twelve
/// moments contained the true value for kernels that run all the time; from 42 moments, at least 94 did.
const LEAST: usize = 10;
/// 95% limits of a Poisson mean (Garwood 1936), indexed by the observed count from 0 on.
const POISSON: [(f64, f64); 10] = [
    (0.0, 3.689),
    (0.025, 5.572),
    (0.242, 7.225),
    (0.619, 8.767),
    (1.090, 10.242),
    (1.623, 11.668),
    (2.202, 13.059),
    (2.814, 14.423),
    (3.454, 15.763),
    (4.115, 17.085),
];

/// Launches and time of a group in the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowEstimate {
    pub count: Estimate,
    /// Total kernel time, ns.
    pub total: Estimate,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEstimate {
    pub moments: usize,
    /// Total length of the moments, and length of the run, ns.
    pub recorded: i64,
    pub span: i64,
    pub all: RowEstimate,
    /// Estimates by row of the grouping.
    pub rows: Vec<RowEstimate>,
    /// Percentiles of the step lengths, if enough steps were seen.
    pub steps: Vec<StepPercentile>,
}

/// Estimates a total from its values in the moments in which it is nonzero. `lengths` contains the lengths of all
/// moments.
fn estimate_total(parts: &[(usize, f64)], lengths: &[f64], span: f64) -> Estimate {
    let recorded: f64 = lengths.iter().sum();
    let (n, sum) = (lengths.len() as f64, parts.iter().map(|p| p.1).sum::<f64>());
    if recorded <= 0.0 || n < 2.0 {
        return Estimate::default();
    }
    let ratio = sum / recorded;
    let value = ratio * span;
    // Σ(x − r·t)²: first as if all x were 0, then corrected for the nonzero ones.
    let mut squares = ratio * ratio * lengths.iter().map(|t| t * t).sum::<f64>();
    for &(at, x) in parts {
        let expected = ratio * lengths.get(at).copied().unwrap_or(0.0);
        squares += (x - expected).powi(2) - expected * expected;
    }
    let unseen = (1.0 - recorded / span).max(0.0);
    let deviation = span / recorded * (unseen * n / (n - 1.0) * squares.max(0.0)).sqrt();
    let margin = student_t(n - 1.0) * deviation;
    let (mut low, mut high) = (value - margin, value + margin);
    if let Some((least, most)) = POISSON.get(parts.len()).filter(|_| !parts.is_empty()) {
        let seen = parts.len() as f64;
        low = low.min(value * least / seen);
        high = high.max(value * most / seen);
    }
    // The recorded part is known exactly.
    Estimate { value, low: low.max(sum).min(value), high: high.max(value) }
}

fn add(into: &mut Estimate, other: Estimate) {
    // Independent samples: their margins add in quadrature.
    let (below, above) = ((into.value - into.low).hypot(other.value - other.low), (into.high - into.value).hypot(other.high - other.value));
    into.value += other.value;
    (into.low, into.high) = (into.value - below, into.value + above);
}

/// For each moment in which something ran: index of the moment, number of launches, and time in ns.
type Parts = Vec<(usize, f64, f64)>;

fn add_part(parts: &mut Parts, moment: usize, time: f64) {
    match parts.last_mut().filter(|p| p.0 == moment) {
        Some(last) => (last.1, last.2) = (last.1 + 1.0, last.2 + time),
        None => parts.push((moment, 1.0, time)),
    }
}

fn estimate_row(parts: &Parts, lengths: &[f64], span: f64) -> RowEstimate {
    // With several streams, launches do not arrive in order of moments.
    let mut of: FxHashMap<usize, (f64, f64)> = FxHashMap::default();
    for &(moment, count, time) in parts {
        let sum = of.entry(moment).or_default();
        *sum = (sum.0 + count, sum.1 + time);
    }
    let counts: Vec<_> = of.iter().map(|(at, sum)| (*at, sum.0)).collect();
    let times: Vec<_> = of.iter().map(|(at, sum)| (*at, sum.1)).collect();
    RowEstimate { count: estimate_total(&counts, lengths, span), total: estimate_total(&times, lengths, span) }
}

fn format_times(e: Estimate) -> String {
    let time = |n: f64| Nanos(n.round() as i64);
    format!("{} ({} to {})", time(e.value), time(e.low), time(e.high))
}

fn format_counts(e: Estimate) -> String {
    let count = |n: f64| format_grouped(n.round() as i64);
    format!("{} launches ({} to {})", count(e.value), count(e.low), count(e.high))
}

impl RunEstimate {
    /// Adds the percentiles of the step lengths, unless there are several processes, whose steps cannot be told apart.
    pub fn with_steps(mut self, profile: &Profile, steps: &[(i64, i64)]) -> Self {
        if let [sample] = profile.run_samples.as_slice() {
            self.steps = estimate_steps(sample, steps);
        }
        self
    }

    /// Totals of all launches and percentiles of the steps, as a sentence.
    pub fn to_sentence(&self) -> String {
        let percentile = |s: &StepPercentile| match s.percent {
            50 => format!("the median step took {}", format_times(s.length)),
            n => format!("p{n} {}", format_times(s.length)),
        };
        let mut steps: Vec<String> = self.steps.iter().map(percentile).collect();
        steps.insert(0, String::new());
        let steps = steps.join(", ");
        format!(
            "the recording is a sample: {} of {}, {:.2}% of {}; the whole run had {}, which took {}{steps}, with 95% confidence",
            format_count(self.moments, "moment"),
            Nanos(self.recorded / i64::try_from(self.moments.max(1)).unwrap_or(1)),
            100.0 * self.recorded as f64 / (self.span as f64).max(1.0),
            Nanos(self.span),
            format_counts(self.all.count),
            format_times(self.all.total),
        )
    }

    /// Estimates the whole run and each row of a grouping; `None` in the same cases as [`Self::from_profile`].
    pub fn from_grouping(profile: &Profile, grouping: &Grouping, paths: Option<&Paths>) -> Option<Self> {
        Self::with_rows(profile, grouping.rows.len(), |launch| grouping.row_of(profile, paths, launch))
    }

    /// Estimates the totals of the whole run. `None` if the report is not a sample, has too few moments, or if sampling
    /// stopped early, so that later moments had no chance of being recorded.
    pub fn from_profile(profile: &Profile) -> Option<Self> {
        Self::with_rows(profile, 0, |_| None)
    }

    fn with_rows(profile: &Profile, count: usize, row_of: impl Fn(usize) -> Option<usize>) -> Option<Self> {
        let samples: Vec<&RunSample> = profile.run_samples.iter().filter(|s| !s.moments.is_empty()).collect();
        if samples.is_empty() || samples.iter().any(|s| s.moments.len() < LEAST || s.stopped.is_some()) {
            return None;
        }
        let mut out = Self { rows: vec![RowEstimate::default(); count], ..Self::default() };
        for sample in samples {
            let mut rows: Vec<Parts> = vec![Parts::new(); count];
            let mut all = Parts::new();
            for launch in 0..profile.launches.len() {
                let place = profile.launches.place(launch).and_then(|p| profile.places.get(p.0 as usize));
                if place.and_then(|p| p.pid).is_some_and(|pid| pid != sample.pid) {
                    continue;
                }
                let start = profile.launches.start(launch);
                let Some(moment) = sample.moments.partition_point(|m| m.0 <= start).checked_sub(1) else { continue };
                let time = profile.launches.duration(launch) as f64;
                add_part(&mut all, moment, time);
                if let Some(row) = row_of(launch).and_then(|r| rows.get_mut(r)) {
                    add_part(row, moment, time);
                }
            }
            let lengths: Vec<f64> = sample.moments.iter().map(|m| (m.1 - m.0) as f64).collect();
            let span = (sample.span.1 - sample.span.0) as f64;
            let one = estimate_row(&all, &lengths, span);
            add(&mut out.all.count, one.count);
            add(&mut out.all.total, one.total);
            for (row, parts) in out.rows.iter_mut().zip(&rows) {
                let one = estimate_row(parts, &lengths, span);
                add(&mut row.count, one.count);
                add(&mut row.total, one.total);
            }
            out.moments += sample.moments.len();
            out.recorded += sample.recorded_ns();
            out.span += sample.span.1 - sample.span.0;
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of events in a millisecond of a run, from the time and a random number.
    type Rate = fn(usize, f64) -> f64;

    #[test]
    fn a_steady_rate_is_known_exactly() {
        let parts: Vec<_> = (0..10).map(|i| (i, 50.0)).collect();
        let estimate = estimate_total(&parts, &[100.0; 10], 100_000.0);
        assert_eq!((estimate.value, estimate.low, estimate.high), (50_000.0, 50_000.0, 50_000.0));
    }

    /// Runs of several kinds, each sampled many times: the interval contains the true total in at least 93 of 100
    /// samples.
    #[test]
    fn the_true_total_lies_in_the_interval() {
        let mut seed = 1_u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1_u32 << 31)
        };
        // Events by millisecond of a run of 400 s.
        let span = 400_000;
        let kinds: [(&str, Rate); 5] = [
            ("steady", |_, x| 1.0 + x),
            ("steps of 37 ms", |t, _| f64::from(u8::from(t % 37 < 5)) * 7.0),
            ("phases", |t, _| f64::from(u8::from((t / 20_000) % 3 == 1))),
            ("seldom", |t, _| f64::from(u8::from(t % 9_000 < 40))),
            ("growing", |t, x| t as f64 * x / 400_000.0),
        ];
        for (name, rate) in kinds {
            let events: Vec<f64> = (0..span).map(|t| rate(t, random())).collect();
            let truth: f64 = events.iter().sum();
            let (mut inside, mut wide) = (0, 0.0);
            for _ in 0..400 {
                // Like the tracer: pauses of half to one and a half times the mean.
                let mut moments = Vec::new();
                let mut at = (random() * 6_000.0) as usize;
                while at + 100 < span {
                    moments.push(at);
                    at += 3_000 + (random() * 6_000.0) as usize;
                }
                let sum = |from: usize| events[from..from + 100].iter().sum::<f64>();
                let parts: Vec<_> = moments.iter().enumerate().map(|(i, &m)| (i, sum(m))).filter(|p| p.1 > 0.0).collect();
                let estimate = estimate_total(&parts, &vec![100.0; moments.len()], span as f64);
                // Nothing can be estimated about events that were never seen.
                inside += i32::from(parts.is_empty() || (estimate.low..=estimate.high).contains(&truth));
                wide += (estimate.high - estimate.low) / truth / 400.0;
            }
            assert!(inside >= 372, "{name}: {inside} of 400 intervals hold");
            assert!(wide < 5.0, "{name}: intervals are {wide} times as wide as what they are of");
        }
    }
}
