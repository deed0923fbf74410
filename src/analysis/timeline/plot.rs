//! A value over time: a counter, memory in use, or the share of time during which a thread was running.

use super::window::Window;
use crate::model::Profile;
use std::sync::Arc;

/// Number of samples per stored sum, and thus the maximum number that a query scans.
const BLOCK: usize = 64;

/// The samples, either in the profile or in the plot.
#[derive(Clone, Debug)]
enum Samples {
    /// Index of a track in [`Profile::counters`].
    Counter(usize),
    Own {
        times: Vec<i64>,
        values: Vec<f64>,
    },
}

/// A value over time, in which each sample holds until the next.
#[derive(Clone, Debug)]
pub struct Plot {
    samples: Samples,
    /// Time of the first sample of each block, ns.
    starts: Vec<i64>,
    /// Integral of all samples before each block, value × ns.
    sums: Vec<f64>,
    /// End of the last sample, ns.
    pub end: i64,
    pub most: f64,
    pub unit: Arc<str>,
}

/// Value in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Mean over time.
    pub mean: f64,
    /// Number of samples in the column.
    pub samples: usize,
}

impl Plot {
    /// Creates the plot of a counter in the report. The last sample is assumed to hold as long as the one before it.
    pub fn from_counter(profile: &Profile, track: usize) -> Option<Self> {
        let counter = profile.counters.get(track)?;
        let last = *counter.times.last()?;
        let period = counter.times.len().checked_sub(2).and_then(|i| counter.times.get(i)).map_or(0, |before| last - before);
        Some(Self::from_samples(Samples::Counter(track), profile, last.saturating_add(period), Arc::clone(&counter.unit)))
    }

    /// Creates a plot of values that change at these times; the last value holds until `end`.
    pub fn from_steps(times: Vec<i64>, values: Vec<f64>, end: i64, unit: &str, profile: &Profile) -> Option<Self> {
        let last = *times.last()?;
        Some(Self::from_samples(Samples::Own { times, values }, profile, end.max(last), unit.into()))
    }

    fn from_samples(samples: Samples, profile: &Profile, end: i64, unit: Arc<str>) -> Self {
        let mut out = Self { samples, starts: Vec::new(), sums: Vec::new(), end, most: 0.0, unit };
        let (times, values) = out.sample_columns(profile);
        let (mut starts, mut sums, mut sum) = (Vec::new(), Vec::new(), 0.0);
        let mut most = 0.0_f64;
        for (at, (time, value)) in times.iter().zip(values).enumerate() {
            if at % BLOCK == 0 {
                starts.push(*time);
                sums.push(sum);
            }
            let next = times.get(at + 1).copied().unwrap_or(end);
            sum += value * (next - time).max(0) as f64;
            most = most.max(*value);
        }
        (out.starts, out.sums, out.most) = (starts, sums, most);
        out
    }

    fn sample_columns<'a>(&'a self, profile: &'a Profile) -> (&'a [i64], &'a [f64]) {
        match &self.samples {
            Samples::Counter(track) => profile.counters.get(*track).map_or((&[], &[]), |c| (&c.times, &c.values)),
            Samples::Own { times, values } => (times, values),
        }
    }

    pub fn len(&self, profile: &Profile) -> usize {
        self.sample_columns(profile).0.len()
    }

    pub fn is_empty(&self, profile: &Profile) -> bool {
        self.len(profile) == 0
    }

    /// Time of the first sample, ns.
    pub fn start_time(&self) -> i64 {
        self.starts.first().copied().unwrap_or(i64::MAX)
    }

    /// Returns the value at a time; `None` outside the samples.
    pub fn value_at(&self, profile: &Profile, time: i64) -> Option<f64> {
        let (times, values) = self.sample_columns(profile);
        if time >= self.end {
            return None;
        }
        values.get(times.partition_point(|&t| t <= time).checked_sub(1)?).copied()
    }

    /// Integral from the first sample to a time, and number of samples before it.
    fn integral_before(&self, profile: &Profile, time: i64) -> (f64, usize) {
        let (times, values) = self.sample_columns(profile);
        let block = self.starts.partition_point(|&s| s < time);
        let Some(block) = block.checked_sub(1) else { return (0.0, 0) };
        let (mut sum, mut at) = (self.sums[block], block * BLOCK);
        while let (Some(&start), Some(value)) = (times.get(at).filter(|&&t| t < time), values.get(at)) {
            let next = times.get(at + 1).copied().unwrap_or(self.end);
            sum += value * (next.min(time) - start).max(0) as f64;
            at += 1;
        }
        (sum, at)
    }

    /// Values in the columns of a window; `None` before the first and after the last sample.
    pub fn column_levels(&self, profile: &Profile, window: Window) -> Vec<Option<Level>> {
        let mut before = self.integral_before(profile, window.start);
        (0..window.columns)
            .map(|column| {
                let (start, end) = (window.column_start(column).max(self.start_time()), window.column_start(column + 1).min(self.end));
                let after = self.integral_before(profile, window.column_start(column + 1));
                let level = (start < end).then(|| Level { mean: (after.0 - before.0) / (end - start) as f64, samples: after.1 - before.1 });
                before = after;
                level
            })
            .collect()
    }

    /// Memory usage in addition to the profile, bytes.
    pub fn bytes(&self) -> usize {
        let own = match &self.samples {
            Samples::Own { times, values } => (times.capacity() + values.capacity()) * 8,
            Samples::Counter(_) => 0,
        };
        own + (self.starts.capacity() + self.sums.capacity()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    #[test]
    fn a_value_holds_until_the_next_and_means_are_over_time() {
        let profile = Profile::new(Source::default());
        let plot = Plot::from_steps(vec![10, 20, 40], vec![1.0, 3.0, 0.0], 60, "%", &profile).unwrap();
        let mean = |from, to| plot.column_levels(&profile, Window::new(from, to, 1))[0].map(|l| l.mean);
        assert_eq!((mean(10, 20), mean(10, 40), mean(0, 10)), (Some(1.0), Some(70.0 / 30.0), None));
        assert_eq!(mean(0, 20), Some(1.0), "nothing is known before the first sample");
        assert_eq!((plot.value_at(&profile, 25), plot.value_at(&profile, 5), plot.value_at(&profile, 60)), (Some(3.0), None, None));
        assert!((plot.most - 3.0).abs() < 1e-9);
    }
}
