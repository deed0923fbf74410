//! Launches and host time by line of the program, for loops that wait for the host to launch.
//!
//! A sample represents the launch that its thread was preparing. Launches are microseconds apart and samples are
//! milliseconds apart, so long preparations are sampled more often. To compensate, each sample is weighted by the
//! inverse of the length of its preparation, and the weights are scaled to the total number of launches.

use super::host::{CLOSE_NS, Host, Outer, Walk};
use super::host_samples::ENOUGH;
use super::intervals::Intervals;
use crate::model::{Activity, CallKind, Profile};
use rustc_hash::FxHashMap;

/// Number of sampling intervals for which a sample is assumed to represent its thread's activity at most.
const LATE: i64 = 4;

/// Launches and host time of a line or function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchSum {
    /// Number of launches, estimated unless each call was recorded.
    launches: f64,
    /// Sum of the squared sample weights, from which the effective sample size follows.
    squares: f64,
    /// Host time, ns.
    host: f64,
    /// Number of samples from which the host time is estimated.
    samples: u64,
    /// True if calls were recorded instead of samples.
    exact: bool,
}

impl LaunchSum {
    /// Creates the sum of recorded launches and their host time, ns.
    pub fn recorded(launches: u64, host: i64) -> Self {
        Self { launches: launches as f64, host: host as f64, exact: true, ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.launches += other.launches;
        self.squares += other.squares;
        self.host += other.host;
        self.samples += other.samples;
        self.exact |= other.exact;
    }

    /// Effective sample size: the number of equally weighted samples that would be as reliable as these.
    fn evidence(&self) -> f64 {
        if self.squares > 0.0 { self.launches * self.launches / self.squares } else { 0.0 }
    }

    /// Number of launches; `None` if there are too few samples.
    pub fn launches(&self) -> Option<u64> {
        (self.exact || self.evidence() >= ENOUGH as f64).then_some(self.launches.round() as u64)
    }

    /// Host time of the launching threads, ns; `None` if there are too few samples.
    pub fn host_ns(&self) -> Option<i64> {
        (self.exact || self.samples >= ENOUGH).then_some(self.host.round() as i64)
    }

    /// Sort key for the lines of a function; adds up host time and launches, so it has no unit.
    pub fn weight(&self) -> f64 {
        self.host + self.launches
    }

    /// Returns true if this line clearly has more launches than `other`: if both are estimated, the difference of their
    /// shares must exceed two standard deviations. `all` is the sum over all lines.
    pub fn clearly_more(&self, other: &Self, all: &Self) -> bool {
        if self.exact {
            return self.launches > other.launches;
        }
        let share = |sum: &Self| sum.launches / all.launches.max(1.0);
        let (a, b, n) = (share(self), share(other), all.evidence());
        n >= ENOUGH as f64 && a - b > 2.0 * ((a + b - (a - b).powi(2)).max(0.0) / n).sqrt()
    }
}

/// Launches and host time at one stack of a launching thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchStack {
    pub stack: Option<u32>,
    pub sum: LaunchSum,
    /// Time of a sample or call, ns.
    pub time: i64,
    /// Frame to which the launches are attributed; set by [`HostTime::attribute`](super::HostTime::attribute).
    pub at: Option<u32>,
}

/// Returns true if a call launched a kernel or a graph that was recorded.
fn is_launch(call: &Outer) -> bool {
    call.kind == CallKind::GraphLaunch || call.kind == CallKind::Launch && call.name.is_none()
}

/// Adds up the samples of launching threads in these windows, by stack.
pub fn sum_samples(profile: &Profile, host: &Host<'_>, windows: &[(i64, i64)]) -> Vec<LaunchStack> {
    let mut sums: FxHashMap<Option<u32>, LaunchStack> = FxHashMap::default();
    for (lane, samples) in host.lanes.iter().zip(&host.samples).filter(|(_, s)| !s.is_empty()) {
        let inside = |time: i64| windows[..windows.partition_point(|w| w.0 <= time)].last().is_some_and(|w| time < w.1);
        let interval = samples.interval().max(1);
        let rows = samples.rows_within(i64::MIN, i64::MAX);
        // A sample represents the time until the next one, up to a limit: if only running threads are sampled, a thread
        // has no samples while it waits.
        let longest = if profile.samples.running_only { interval } else { interval.saturating_mul(LATE) };
        let length = |at: usize| rows.get(at + 1).map_or(interval, |next| next.0.saturating_sub(rows[at].0).min(longest)) as f64;
        let interval = interval as f64;
        let mut found: Vec<(Option<u32>, LaunchSum, i64)> = Vec::new();
        let mut add = |at: usize, weight: f64, works: bool| {
            let Some(&(time, row)) = rows.get(at) else { return };
            let Some(sample) = profile.samples.samples.get(row as usize).filter(|_| inside(time)) else { return };
            let waits = sample.activity == Activity::InterpreterLock || sample.activity.waits() == Some(true);
            let works = works && !waits;
            let host = if works { length(at) } else { 0.0 };
            let sum = LaunchSum { launches: weight, squares: weight * weight, host, samples: u64::from(works), exact: false };
            found.push((sample.stack, sum, time));
        };
        let (mut walk, mut next, mut launches) = (Walk::default(), 0, 0_u64);
        while let Some(call) = walk.peek_call(host, lane) {
            let before = walk.end.unwrap_or(i64::MIN);
            walk.pass_call(host, lane, &call);
            let end = call.end.max(call.start.saturating_add(1));
            let is_launch = is_launch(&call) && !walk.capturing;
            // The time between closely spaced launches is spent preparing them; a longer interval is separate work.
            let from = if is_launch { before.max(call.start.saturating_sub(CLOSE_NS)) } else { call.start };
            launches += u64::from(is_launch && inside(call.start));
            while let Some(&row) = rows.get(next).filter(|r| r.0 < end) {
                let at = next;
                next += 1;
                let within = row.0 >= from;
                let weight = if is_launch && within { interval / end.saturating_sub(from).max(1) as f64 } else { 0.0 };
                // A launch call that takes long is waiting for space in the queue.
                let waits = row.0 >= call.start && (call.blocks || is_launch && end.saturating_sub(call.start) > CLOSE_NS);
                add(at, weight, !waits);
            }
        }
        for at in next..rows.len() {
            add(at, 0.0, true);
        }
        let all: f64 = found.iter().map(|f| f.1.launches).sum();
        let scale = if all > 0.0 { launches as f64 / all } else { 0.0 };
        for (stack, mut sum, time) in found {
            sum.launches *= scale;
            sum.squares *= scale * scale;
            sums.entry(stack).or_insert(LaunchStack { stack, sum: LaunchSum::default(), time, at: None }).sum.add(&sum);
        }
    }
    let mut out: Vec<LaunchStack> = sums.into_values().collect();
    out.sort_by_key(|s| s.stack);
    out
}

/// Periods in which a thread worked (excluding waits, for the GPU or anything else), and the start times of its
/// launches.
pub fn working_times(host: &Host<'_>, lane: usize, windows: &[(i64, i64)]) -> (Intervals, Vec<i64>) {
    let Some(of) = host.lanes.get(lane) else { return (Intervals::default(), Vec::new()) };
    let (mut walk, mut waits, mut launches) = (Walk::default(), Intervals::default(), Vec::new());
    let windows: Intervals = windows.iter().copied().collect();
    while let Some(call) = walk.peek_call(host, of) {
        walk.pass_call(host, of, &call);
        let is_launch = is_launch(&call) && !walk.capturing;
        if call.blocks || is_launch && call.end.saturating_sub(call.start) > CLOSE_NS {
            waits.push(call.start, call.end);
        }
        if is_launch && windows.covered_length(call.start, call.start.saturating_add(1)) > 0 {
            launches.push(call.start);
        }
    }
    (windows.subtract(&waits.union(&of.waits)), launches)
}
