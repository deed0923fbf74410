//! Finds steps in loops whose host thread waits for a result from the GPU once per step, as a server does for each
//! token.

use super::device_ops::{Class, DeviceOps, OperationRow};
use super::period::{SHORTEST_NS, find_period};
use super::step::{EXPLAINS, Starts, Step, StepSource, lower_median};
use super::step_sketch::{Sketch, group_steps};
use crate::model::{CallKind, CopyKind, MemOpKind, Profile};
use rustc_hash::FxHashMap;

/// Minimum number of waits in a loop; fewer may be part of start-up or shutdown.
const LEAST_WAITS: usize = 20;
/// Minimum share of steps whose kind occurs more than [`ALIKE`] times; a loop repeats only a few kinds of work.
const REPEATED: f64 = 0.8;
const ALIKE: usize = 5;
/// Minimum share of a process's kernel time that one thread must launch.
const ONE_THREAD: f64 = 0.8;
/// Maximum number of waits; runs with more steps than this do not keep steps individually anyway.
const MOST_WAITS: usize = 200_000;

/// Work launched between two waits.
#[derive(Clone, Copy)]
struct Interval {
    /// Start of the first kernel and end of the last one, ns; `i64::MAX` and `i64::MIN` without kernels.
    start: i64,
    end: i64,
    kernels: u32,
    sketch: Sketch,
}

/// Finds the steps between the waits of the busiest thread: each starts with the first kernel launched after a wait.
/// Returns `None` if that thread does not wait regularly, or launches different work after each wait.
pub fn by_waits(profile: &Profile, ops: &DeviceOps<'_>) -> Option<Starts> {
    let thread = busiest_thread(ops)?;
    let mut candidates: Vec<(String, Vec<i64>, Vec<Interval>)> = waits_of_thread(profile, thread)
        .into_iter()
        .filter(|(_, ends)| (LEAST_WAITS..=MOST_WAITS).contains(&ends.len()))
        .map(|(name, ends)| {
            let empty = Interval { start: i64::MAX, end: i64::MIN, kernels: 0, sketch: Sketch::default() };
            let intervals = vec![empty; ends.len() + 1];
            (name, ends, intervals)
        })
        .collect();
    if candidates.is_empty() {
        return None;
    }
    let mut kernels = 0;
    for op in ops.iter().filter(|op| op.class != Class::Copy) {
        let Some(call) = ops.find_call(&op).filter(|c| (c.pid, c.tid) == thread) else { continue };
        kernels += 1;
        let identity = match op.row {
            OperationRow::Launch(row) => u64::from(profile.launches.kernel(row as usize).0),
            OperationRow::Graph(_) | OperationRow::Mem(_) => u64::MAX,
        };
        for (_, ends, intervals) in &mut candidates {
            let interval = &mut intervals[ends.partition_point(|end| *end <= call.start)];
            interval.start = interval.start.min(op.start);
            interval.end = interval.end.max(op.end);
            interval.kernels = interval.kernels.saturating_add(1);
            interval.sketch.add_launch((identity, 0));
        }
    }
    // Choose the candidate that covers the most time; of several, the one with the most steps.
    let found = candidates.into_iter().filter_map(|(name, _, intervals)| Some((name, steps_between(&intervals, kernels)?)));
    let (name, (starts, end)) = found.max_by_key(|(_, (starts, end))| (starts.first().map(|first| end - first), starts.len()))?;
    Some((StepSource::Waits(name), starts, end))
}

/// Returns the process and thread id of the thread that launched most of the kernel time; `None` if several threads of
/// its process share the work. Ranks of one job all do the same, each in its own process.
fn busiest_thread(ops: &DeviceOps<'_>) -> Option<(u32, u32)> {
    let (mut threads, mut processes): (FxHashMap<(u32, u32), i64>, FxHashMap<u32, i64>) = (FxHashMap::default(), FxHashMap::default());
    for op in ops.iter().filter(|op| op.class != Class::Copy) {
        let length = op.end.saturating_sub(op.start);
        let Some(call) = ops.find_call(&op) else { continue };
        let total = processes.entry(call.pid).or_default();
        *total = total.saturating_add(length);
        let time = threads.entry((call.pid, call.tid)).or_default();
        *time = time.saturating_add(length);
    }
    let (thread, time) = threads.into_iter().max_by_key(|(thread, time)| (*time, std::cmp::Reverse(*thread)))?;
    let total = processes.get(&thread.0).copied().unwrap_or_default();
    (time as f64 >= ONE_THREAD * total as f64).then_some(thread)
}

/// Ends of a thread's waits, ns, by call name. Waits are synchronization calls, and copies to the host by functions
/// that return only when the copy is done.
fn waits_of_thread(profile: &Profile, thread: (u32, u32)) -> Vec<(String, Vec<i64>)> {
    let calls = &profile.calls;
    let mut found: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    let to_host = |kind: MemOpKind| matches!(kind, MemOpKind::Copy { kind: CopyKind::DeviceToHost, .. });
    let copies = profile.memops.iter().filter(|m| to_host(m.kind)).filter_map(|m| m.call);
    let blocking = |row: &usize| calls.call_name(*row).is_some_and(|n| n.kind == CallKind::Copy && !n.name.contains("Async"));
    let copies = copies.map(|call| call as usize).filter(blocking);
    let syncs = (0..calls.len()).filter(|&row| calls.kind(row) == CallKind::Sync);
    for row in syncs.chain(copies).filter(|&row| calls.thread_of(row) == thread) {
        found.entry(calls.name[row]).or_default().push(calls.start[row].saturating_add(calls.duration[row]));
    }
    let mut out: Vec<(String, Vec<i64>)> = found
        .into_iter()
        .filter(|(_, ends)| ends.len() >= LEAST_WAITS)
        .map(|(name, mut ends)| {
            ends.sort_unstable();
            (calls.names.get(name as usize).map_or_else(String::new, |n| n.name.to_string()), ends)
        })
        .collect();
    out.sort_unstable();
    out
}

/// Returns the starts of the steps between waits, and the end of the last step. Ignores the first and the last
/// interval, which may not be complete steps. `kernels` is the number of kernels launched by the thread.
fn steps_between(intervals: &[Interval], kernels: u64) -> Option<(Vec<i64>, i64)> {
    let between = intervals.get(1..intervals.len() - 1)?.iter().filter(|i| i.kernels > 0);
    let (mut steps, mut sketches, mut inside): (Vec<Step>, Vec<Sketch>, u64) = (Vec::new(), Vec::new(), 0);
    let end = between.clone().map(|i| i.end).max()?;
    for interval in between {
        // Starts must not decrease, but a kernel on another stream may start before one that was launched earlier.
        let start = interval.start.max(steps.last().map_or(i64::MIN, |s: &Step| s.start));
        if let Some(last) = steps.last_mut() {
            last.end = start;
        }
        steps.push(Step { start, end: end.max(start), number: u32::try_from(steps.len()).ok()? });
        sketches.push(interval.sketch);
        inside += u64::from(interval.kernels);
    }
    if steps.len() < LEAST_WAITS || (inside as f64) < EXPLAINS * kernels as f64 {
        return None;
    }
    let kinds = group_steps(&sketches, &steps);
    let repeated: usize = kinds.iter().map(Vec::len).filter(|&n| n > ALIKE).sum();
    if (repeated as f64) < REPEATED * steps.len() as f64 {
        return None;
    }
    // If the kinds of work alternate regularly, one round of waits is one step. A server that processes a single
    // request also has several kinds of steps, but they do not alternate.
    let mut kind_of = vec![u32::MAX; steps.len()];
    for (kind, list) in (0..).zip(&kinds) {
        for &at in list {
            kind_of[at] = kind;
        }
    }
    let each = find_period(&kind_of).filter(|period| *period == kinds.len()).unwrap_or(1);
    let starts: Vec<i64> = steps.iter().step_by(each).map(|s| s.start).collect();
    let usual = lower_median(starts.windows(2).map(|w| w[1] - w[0]).collect())?;
    (starts.len() >= LEAST_WAITS && usual >= SHORTEST_NS).then_some((starts, end))
}
