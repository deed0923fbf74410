//! Steps of a loop in which the host waits once per step for a result of the GPU, as a server does for each token.

use super::device_ops::{Class, DeviceOps, Row};
use super::period::{SHORTEST_NS, find_period};
use super::step::{EXPLAINS, Starts, Step, StepSource, lower_median};
use super::step_sketch::{Sketch, group_steps};
use crate::model::{CallKind, CopyKind, MemOpKind, Profile};
use rustc_hash::FxHashMap;

/// Minimum number of waits in a loop: fewer may be part of start-up or shutdown.
const LEAST_WAITS: usize = 20;
/// Minimum share of steps that resemble more than [`ALIKE`] others: a loop repeats a few kinds of work.
const REPEATED: f64 = 0.8;
const ALIKE: usize = 5;
/// Minimum share of kernel time launched by one thread.
const ONE_THREAD: f64 = 0.8;

/// A kernel of the busiest thread: start of its call, start, end, kernel index.
type Launched = (i64, i64, i64, u64);

/// Finds the steps between the waits of the busiest thread: each starts with the first kernel launched after a wait.
/// Returns `None` if that thread does not wait regularly, or launches different work after each wait.
pub fn by_waits(profile: &Profile, ops: &DeviceOps<'_>) -> Option<Starts> {
    let (thread, mut launched) = busiest_thread(profile, ops)?;
    launched.sort_unstable_by_key(|l| (l.0, l.1));
    let mut best: Option<(i64, Starts)> = None;
    for (name, ends) in waits(profile, thread) {
        let Some(starts) = steps_between(&launched, &ends) else { continue };
        let end = launched.iter().map(|l| l.2).max()?;
        let covered = end - starts.first()?;
        if best.as_ref().is_none_or(|(most, (_, list, _))| (covered, starts.len()) > (*most, list.len())) {
            best = Some((covered, (StepSource::Waits(name), starts, end)));
        }
    }
    best.map(|b| b.1)
}

/// Returns process and thread id of the thread that launched most of the kernel time, and its kernels; `None` if several
/// threads share the work.
fn busiest_thread(profile: &Profile, ops: &DeviceOps<'_>) -> Option<((u32, u32), Vec<Launched>)> {
    let mut threads: FxHashMap<(u32, u32), (i64, Vec<Launched>)> = FxHashMap::default();
    let mut total = 0_i64;
    for op in ops.iter().filter(|op| op.class != Class::Copy) {
        let length = op.end.saturating_sub(op.start);
        total = total.saturating_add(length);
        let Some(call) = ops.find_call(&op) else { continue };
        let identity = match op.row {
            Row::Launch(row) => u64::from(profile.launches.kernel(row as usize).0),
            Row::Graph(_) | Row::Mem(_) => u64::MAX,
        };
        let (time, list) = threads.entry((call.pid, call.tid)).or_default();
        *time = time.saturating_add(length);
        list.push((call.start, op.start, op.end, identity));
    }
    let (thread, (time, list)) = threads.into_iter().max_by_key(|(thread, (time, _))| (*time, std::cmp::Reverse(*thread)))?;
    (time as f64 >= ONE_THREAD * total as f64).then_some((thread, list))
}

/// Ends of a thread's waits, ns, by call name: synchronization calls, and copies to the host that return when done.
fn waits(profile: &Profile, thread: (u32, u32)) -> Vec<(String, Vec<i64>)> {
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

/// Returns the starts of the steps that these waits end. `launched` is ordered by call.
fn steps_between(launched: &[Launched], waits: &[i64]) -> Option<Vec<i64>> {
    let (mut steps, mut sketches): (Vec<Step>, Vec<Sketch>) = (Vec::new(), Vec::new());
    let (mut wait, mut latest) = (0, None);
    let mut inside = 0_usize;
    for &(call, start, _, identity) in launched {
        while waits.get(wait).is_some_and(|&end| end <= call) {
            wait += 1;
        }
        // Work before the first wait or after the last may not be a complete step.
        if wait == 0 || wait == waits.len() {
            continue;
        }
        inside += 1;
        if latest != Some(wait) {
            latest = Some(wait);
            let number = u32::try_from(steps.len()).ok()?;
            // A kernel on another stream may start before one launched earlier.
            let start = start.max(steps.last().map_or(i64::MIN, |s: &Step| s.start));
            steps.push(Step { start, end: start, number });
            sketches.push(Sketch::default());
        }
        if let Some(sketch) = sketches.last_mut() {
            sketch.add_launch((identity, 0));
        }
    }
    for at in 1..steps.len() {
        steps[at - 1].end = steps[at].start;
    }
    if steps.len() < LEAST_WAITS || (inside as f64) < EXPLAINS * launched.len() as f64 {
        return None;
    }
    let kinds = group_steps(&sketches, &steps);
    let repeated: usize = kinds.iter().map(Vec::len).filter(|&n| n > ALIKE).sum();
    if (repeated as f64) < REPEATED * steps.len() as f64 {
        return None;
    }
    // Alternating waits belong to one step.
    let mut kind_of = vec![u32::MAX; steps.len()];
    for (kind, list) in (0..).zip(&kinds) {
        for &at in list {
            kind_of[at] = kind;
        }
    }
    let each = find_period(&kind_of).unwrap_or(1);
    let starts: Vec<i64> = steps.iter().step_by(each).map(|s| s.start).collect();
    let usual = lower_median(starts.windows(2).map(|w| w[1] - w[0]).collect())?;
    (starts.len() >= LEAST_WAITS && usual >= SHORTEST_NS).then_some(starts)
}
