//! Samples of the launching threads, split into those inside a host call and those outside.

use crate::model::{Activity, Profile, Sample};
use rustc_hash::FxHashMap;

/// Minimum number of samples for a line to be named. With ten samples, a measured share of one half has a 95 % error of
/// ±31 percentage points, which suffices to find a function that takes most of the time.
pub const ENOUGH: u64 = 10;

/// A host call in which a thread was sampled.
#[derive(Clone, Copy, Debug)]
pub struct SampledCall {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Last sample in the call, as an index into [`Samples::samples`](crate::model::Samples::samples).
    pub sample: u32,
}

/// Samples of one thread, in order.
#[derive(Debug, Default)]
pub struct LaneSamples {
    /// Time, and index into [`Samples::samples`](crate::model::Samples::samples).
    rows: Vec<(i64, u32)>,
    /// Median time between samples, ns.
    interval: i64,
    calls: Vec<SampledCall>,
    /// Samples outside of calls as (time, waited); samples for which it is unknown if the thread waited are omitted.
    outside: Vec<(i64, bool)>,
    /// Times of the samples in which the thread was running or inside a launch call.
    works: Vec<i64>,
}

/// Maximum distance at which a sample may classify a pause that contains no sample, ns. Such a pause is assumed to be
/// of the same kind as the nearest sampled one on its thread.
const NEAR_NS: i64 = 100_000_000;

impl LaneSamples {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the samples between two times.
    pub fn rows_within(&self, start: i64, end: i64) -> &[(i64, u32)] {
        let from = self.rows.partition_point(|r| r.0 < start);
        let until = self.rows.partition_point(|r| r.0 < end).max(from);
        &self.rows[from..until]
    }

    /// Returns the sampled call that contains a time, or that ended at most `within` ns before it.
    pub fn call_before(&self, time: i64, within: i64) -> Option<SampledCall> {
        let next = self.calls.partition_point(|c| c.start <= time);
        self.calls[..next].last().filter(|c| c.end >= time.saturating_sub(within)).copied()
    }

    /// Returns true if the thread waited for the interpreter lock in most of the samples between two times, extended by
    /// one sampling interval on both sides.
    pub fn waits_for_interpreter(&self, profile: &Profile, start: i64, end: i64) -> bool {
        let rows = self.rows_within(start.saturating_sub(self.interval), end.saturating_add(self.interval));
        let waiting =
            |&&(_, row): &&(i64, u32)| profile.samples.samples.get(row as usize).is_some_and(|s| s.activity == Activity::InterpreterLock);
        rows.iter().filter(waiting).count() * 2 > rows.len()
    }

    /// Median time between samples, ns.
    pub fn interval(&self) -> i64 {
        self.interval
    }

    /// Returns the kind of wait between two times, outside of calls, according to the samples there or else the nearest
    /// one; `None` if there is none. A thread that waits while `other` works is assumed to wait for that thread.
    pub fn wait_outside(&self, start: i64, end: i64, other: Option<&Self>) -> Option<Wait> {
        let from = self.outside.partition_point(|s| s.0 < start);
        let inside: Vec<(i64, bool)> = self.outside[from..].iter().take_while(|s| s.0 < end).copied().collect();
        let distance = |s: &(i64, bool)| if s.0 < start { start - s.0 } else { s.0 - end };
        let near = || {
            let both = [from.checked_sub(1).and_then(|i| self.outside.get(i)), self.outside.get(from)];
            both.into_iter().flatten().min_by_key(|s| distance(s)).filter(|s| distance(s) <= NEAR_NS).copied()
        };
        let samples = if inside.is_empty() { vec![near()?] } else { inside };
        let waiting: Vec<i64> = samples.iter().filter(|s| s.1).map(|s| s.0).collect();
        // All threads are sampled at the same times, so times can be compared exactly.
        let for_other = waiting.iter().filter(|t| other.is_some_and(|o| o.works.binary_search(t).is_ok())).count();
        Some(match (waiting.len() * 2 > samples.len(), for_other * 2 > waiting.len()) {
            (false, _) => Wait::None,
            (true, true) => Wait::ForOther,
            (true, false) => Wait::Alone,
        })
    }
}

/// State of a thread outside of CUDA calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It ran.
    None,
    /// It waited while another thread that launches work ran.
    ForOther,
    Alone,
}

/// Collects the samples of each lane. `calls` contains the outermost calls of each lane as (start, end, is launch), in
/// order. Launches return at once, so a sample in a launch counts toward the surrounding code rather than the call.
pub fn collect_samples(
    profile: &Profile,
    lane_of_thread: impl Fn(u32) -> Option<usize>,
    mut calls: Vec<impl Iterator<Item = (i64, i64, bool)>>,
) -> Vec<LaneSamples> {
    let mut out: Vec<LaneSamples> = calls.iter().map(|_| LaneSamples::default()).collect();
    for (row, sample) in (0..).zip(&profile.samples.samples) {
        if let Some(lane) = lane_of_thread(sample.thread).and_then(|l| out.get_mut(l)) {
            // A second sample with the same time only marks the thread as the holder of the interpreter lock.
            if lane.rows.last().is_none_or(|last| last.0 != sample.time) {
                lane.rows.push((sample.time, row));
            }
        }
    }
    for (lane, calls) in out.iter_mut().zip(&mut calls) {
        let mut between: Vec<i64> = lane.rows.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
        let middle = between.len() / 2;
        lane.interval = if between.is_empty() { 0 } else { *between.select_nth_unstable(middle).1 };
        let mut call = calls.next();
        for &(time, row) in &lane.rows {
            while call.is_some_and(|c| c.1 <= time) {
                call = calls.next();
            }
            match call.filter(|c| c.0 <= time) {
                Some((start, end, false)) => match lane.calls.last_mut() {
                    Some(last) if last.start == start => last.sample = row,
                    _ => lane.calls.push(SampledCall { start, end, sample: row }),
                },
                Some(_) => lane.works.push(time),
                // If only running threads are sampled, time without a sample may be a wait or not: nothing can be
                // concluded.
                None if profile.samples.running_only => {}
                None => {
                    let waits = profile.samples.samples.get(row as usize).and_then(|s| s.activity.waits());
                    lane.outside.extend(waits.map(|waits| (time, waits)));
                    lane.works.extend((waits == Some(false)).then_some(time));
                }
            }
        }
    }
    out
}

/// Samples of threads that held the interpreter lock while others waited for it, by process and time.
#[derive(Debug, Default)]
pub struct LockHolders(FxHashMap<(u32, i64), u32>);

impl LockHolders {
    pub fn from_profile(profile: &Profile) -> Self {
        let samples = &profile.samples.samples;
        let pid = |s: &Sample| profile.threads.get(s.thread as usize).map_or(0, |t| t.pid);
        let holders = (0..).zip(samples).filter(|(_, s)| s.holds && s.stack.is_some());
        Self(holders.map(|(row, s)| ((pid(s), s.time), row)).collect())
    }

    /// If this sample's thread waits for the interpreter lock, returns the sample of the thread that held it.
    pub fn holder_of(&self, profile: &Profile, sample: &Sample) -> Option<u32> {
        let pid = profile.threads.get(sample.thread as usize).map_or(0, |t| t.pid);
        (sample.activity == Activity::InterpreterLock).then(|| self.0.get(&(pid, sample.time)).copied()).flatten()
    }
}
