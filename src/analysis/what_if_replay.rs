//! Replay of a recorded run with one kernel's launches scaled, to predict how much shorter the run would be.
//!
//! An operation starts after its call and after the operation that ended last on its device. A kernel that fills the
//! device also waits for the last blocks of its predecessor, if that filled the device, too. A process blocked in a
//! call waits for the operation that ended last during the call. All other delays keep their recorded length. Time that
//! a kernel saves is lost again where the host is not ready in time or where other work runs concurrently. With a
//! factor of 1, the replay reproduces the recorded times.

use super::Family;
use super::triage::device_ops::{Class, DeviceOp, DeviceOps, OperationRow};
use super::worth::Worth;
use crate::model::{CallKind, Device, Kernel, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of kernels that a GPU runs concurrently (CUDA Programming Guide, resident grids per device).
const CONCURRENT: usize = 128;
/// Maximum number of operations in a run to replay. Each takes 64 bytes, plus 80 during preparation.
const MOST: usize = 3_000_000;
/// Maximum number of operations summed over all replays, so that they take no more than a few seconds.
const PASSED: usize = 30_000_000;
/// Maximum time from the end of an operation to the return of a call that it blocked, ns. On an H200's host under a
/// profiler, a synchronizing call returns 5 to 20 µs after the end of the kernel.
const RETURNS_NS: i64 = 50_000;
/// Fraction of the saved time that may be saved in addition because the remaining operations share caches and run
/// faster.
const VARIES: f64 = 0.1;
/// Fraction of the saved time by which the remaining operations may get slower if power limits the clocks, because they
/// draw more power on average. Clocks follow power with an exponent of about 0.4; a kernel that draws a third of the
/// limit gives 0.4 · 2/3. On an H100, matrix products took 8% longer in a loop without pauses for the GPU, and removing
/// kernels of 18.6% and 11.9% gained 14.3% and 8.4%.
const POWER: f64 = 0.3;
/// Maximum device time of a queued or graph launch beyond its recorded time, ns. An H200 takes 1 to 2 µs to switch from
/// one kernel to the next.
const PAUSE_NS: i64 = 3_000;
/// Slowdown that device-filling kernels inflict on each other while they run concurrently, as a fraction of their time.
const SHARED: f64 = 0.5;
/// Number of operations in a queue from which the next launch waits for one of them to end. The driver's queue holds 1,024;
/// some of what it holds has no record.
const QUEUE: usize = 900;
/// Maximum host time counted as preparation of a launch, as a multiple of the median gap before a call.
const PREPARES: i64 = 2;

/// Divisor of a kernel's duration. If two device-filling kernels overlap by no more than a tenth of either, the later
/// one still counts as having waited for the other: a kernel starts while the last blocks of its predecessor are still
/// running.
const TAIL: i64 = 10;

/// An operation on a device; times are in ns.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: i64,
    end: i64,
    /// Start of its call, or its own start if the call is unknown.
    call: i64,
    /// Kernel; `u32::MAX` for copies and graphs.
    kernel: u32,
    unit: u32,
    process: u32,
    /// Stream, as an index into the profile's places; `u32::MAX` for copies and graph nodes, which may run side by side.
    stream: u32,
    /// Time in which the operation was alone on the device, ns.
    alone: i64,
    /// True if the operation has enough blocks for at least half of the SMs.
    fills: bool,
    /// Time saved by omitting the launch, beyond its duration, ns: its call, the host's preparation, the device's
    /// launch overhead if the launch was queued, and refilling the cache.
    cost: i64,
}

/// A call that blocked its thread; times are in ns.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: i64,
    end: i64,
    process: u32,
    /// True for a call that only waits.
    waits: bool,
}

/// A run prepared for replay.
#[derive(Debug, Default)]
pub struct Run {
    steps: Vec<Step>,
    blocks: Vec<Block>,
    units: usize,
    processes: usize,
    /// Total duration of graphs with unknown kernels, ns.
    whole: i64,
}

/// Finds the kernel in a profile that matches one recorded by another profiler, by name. `None` for collectives: they
/// wait for other ranks, which the replay does not include.
pub fn kernel_of(profile: &Profile, kernel: &Kernel) -> Option<u32> {
    if Family::guess(kernel.function(), kernel.demangled()) == Family::Nccl {
        return None;
    }
    let same = |k: &Kernel| match (k.demangled.as_deref(), kernel.demangled.as_deref()) {
        (Some(a), Some(b)) => a == b,
        _ => k.function() == kernel.function(),
    };
    profile.kernels.iter().position(same).and_then(|at| u32::try_from(at).ok())
}

impl Run {
    /// Prepares a profile for replay. `None` if launches have no times or calls, or if there are too many.
    pub fn from_profile(profile: &Profile) -> Option<Self> {
        let count = profile.launches.len();
        if !profile.launches.has_start_times() || count == 0 || count.saturating_add(profile.memops.len()) > MOST {
            return None;
        }
        let ops = DeviceOps::from_profile(profile);
        let mut processes: Vec<u32> = Vec::new();
        let mut process = |pid: u32| {
            let known = processes.iter().position(|p| *p == pid).unwrap_or_else(|| {
                processes.push(pid);
                processes.len() - 1
            });
            u32::try_from(known).unwrap_or(0)
        };
        let mut steps: Vec<Step> = Vec::with_capacity(count);
        let mut called = 0_usize;
        let mut calls_of = Vec::new();
        for op in ops.iter() {
            let call = ops.find_call(&op);
            called += usize::from(call.is_some());
            let kernel = match (op.row, op.class) {
                (OperationRow::Launch(row), Class::Kernel) => profile.launches.kernel(row as usize).0,
                _ => u32::MAX,
            };
            let pid = call.map_or_else(|| ops.units.get(op.unit).and_then(|u| u.pid).unwrap_or_default(), |c| c.pid);
            let began = call.map_or(op.start, |c| c.start.min(op.start));
            if let (Some(call), None) = (call, ops.in_graph(&op)) {
                calls_of.push((call.pid, call.tid, call.start, call.end, steps.len()));
            }
            let unit = u32::try_from(op.unit).unwrap_or(0);
            let stream = match op.row {
                OperationRow::Launch(row) if ops.in_graph(&op).is_none() => profile.launches.place(row as usize).map_or(u32::MAX, |p| p.0),
                _ => u32::MAX,
            };
            steps.push(Step {
                stream,
                start: op.start,
                end: op.end.max(op.start),
                call: began,
                kernel,
                unit,
                process: process(pid),
                alone: 0,
                fills: fills_device(profile, &op),
                cost: if kernel == u32::MAX { 0 } else { cache_refill_time(profile, &op).min(op.end - op.start).max(0) },
            });
        }
        compute_alone_times(&mut steps, ops.units.len());
        let calls = &profile.calls;
        let waits = |c: usize| matches!(calls.kind(c), CallKind::Sync | CallKind::Copy | CallKind::Free | CallKind::Alloc);
        // A waiting thread does not prepare a launch.
        calls_of.extend((0..calls.len()).filter(|&c| waits(c)).map(|c| {
            let ((pid, tid), start) = (calls.thread_of(c), super::triage::device_ops::clamp_time(calls.start[c]));
            (pid, tid, start, start.saturating_add(calls.duration[c].max(0)), usize::MAX)
        }));
        let queued: Vec<(usize, i64, i64)> = calls_of.iter().filter(|c| c.4 != usize::MAX).map(|c| (c.4, c.2, c.3)).collect();
        compute_launch_costs(&mut steps, ops.units.len(), calls_of);
        // If most calls are missing, we cannot tell which operations waited for the host.
        if called * 2 < steps.len() {
            return None;
        }
        let mut blocks: Vec<Block> = (0..calls.len())
            .filter(|&c| waits(c))
            .map(|c| {
                let start = super::triage::device_ops::clamp_time(calls.start[c]);
                let end = start.saturating_add(calls.duration[c].max(0));
                Block { start, end, process: process(calls.thread_of(c).0), waits: calls.kind(c) == CallKind::Sync }
            })
            .collect();
        blocks.extend(full_queue_blocks(&steps, &queued));
        blocks.sort_by_key(|b| b.end);
        let whole = profile.graphs.iter().fold(0_i64, |sum, g| sum.saturating_add(g.duration.0.max(0)));
        Some(Self { steps, blocks, units: ops.units.len(), processes: processes.len(), whole })
    }

    /// Merges kernels: `kernels` contains the new index of each kernel.
    pub fn merge_kernels(&mut self, kernels: &[u32]) {
        for step in &mut self.steps {
            step.kernel = kernels.get(step.kernel as usize).copied().unwrap_or(u32::MAX);
        }
    }

    /// Returns true if evaluating this many kernels stays within `PASSED` operations: each kernel takes three replays.
    pub fn can_afford(&self, kernels: usize) -> bool {
        kernels < PASSED / (3 * self.steps.len().max(1)) + 1
    }

    /// First start and last end, ns.
    pub fn span(&self) -> (i64, i64) {
        let start = self.steps.iter().map(|s| s.start.min(s.call)).min().unwrap_or(0);
        (start, self.steps.iter().map(|s| s.end).max().unwrap_or(start))
    }

    /// Effect on the run of a gain in a kernel, given as lower and upper shares of the kernel's time. `None` for a run
    /// of zero length.
    pub fn evaluate_gain(&self, kernel: u32, gain: Option<(f64, f64)>) -> Option<Worth> {
        let (start, end) = self.span();
        let length = (end - start) as f64;
        if length <= 0.0 {
            return None;
        }
        let total: i64 = self.steps.iter().filter(|s| s.kernel == kernel).map(|s| s.end - s.start).sum();
        let share = |ns: i64| (ns as f64 / length).clamp(0.0, 1.0);
        let saved = |gain: f64| share(self.time_saved(kernel, 1.0 - gain));
        Some(Worth {
            share: total as f64 / length,
            critical: saved(1.0),
            overlapped: share(self.overlapped_time(kernel)),
            saves: gain.map(|(least, most)| (saved(least), saved(most))),
            launches: None,
        })
    }

    /// Time during which other operations ran beside a kernel's launches, ns.
    pub fn overlapped_time(&self, kernel: u32) -> i64 {
        self.steps.iter().filter(|s| s.kernel == kernel).map(|s| (s.end - s.start - s.alone).max(0)).sum()
    }

    /// Lower and upper bound on the time saved, ns, if a kernel took no time. The lower bound counts only time in which
    /// nothing else ran, and assumes that only waiting calls block the host. The upper bound is the time in which the
    /// kernel ran, or may have run in a graph recorded as a whole, plus the savings from not launching it: its calls,
    /// the host's time before each call, and the device's launch overhead.
    fn removal_bounds(&self, kernel: u32, beside: &[i64]) -> (i64, i64) {
        let predicted = self.replay_scaled(kernel, 0.0, beside, false);
        let mut until = vec![i64::MIN; self.units];
        let mut ran = 0_i64;
        for step in self.steps.iter().filter(|s| s.kernel == kernel) {
            let until = &mut until[step.unit as usize];
            ran = ran.saturating_add((step.end - step.start.max(*until)).max(0)).saturating_add(step.cost);
            *until = step.end.max(*until);
        }
        let least = self.replay_scaled(kernel, 0.0, beside, true).min(predicted);
        let most = ran.saturating_add(self.whole).max(predicted);
        ((least as f64 * (1.0 - POWER)) as i64, (most as f64 * (1.0 + VARIES)) as i64)
    }

    /// Overlap of each operation with a kernel's launches, ns, counted if both fill the device; empty if there is none.
    fn kernel_overlap(&self, kernel: u32) -> Vec<i64> {
        let mine = |step: &Step| step.kernel == kernel && step.fills;
        if self.steps.iter().all(|s| !mine(s) || s.alone >= s.end - s.start) {
            return Vec::new();
        }
        let mut out = vec![0; self.steps.len()];
        let mut running: Vec<Vec<usize>> = vec![Vec::new(); self.units];
        for (at, step) in self.steps.iter().enumerate().filter(|(_, s)| s.fills) {
            let running = &mut running[step.unit as usize];
            running.retain(|&r| self.steps[r].end > step.start);
            for &other in running.iter() {
                let both = step.end.min(self.steps[other].end) - step.start;
                match (mine(step), mine(&self.steps[other])) {
                    (true, false) => out[other] += both,
                    (false, true) => out[at] += both,
                    _ => {}
                }
            }
            // A device runs at most `CONCURRENT` kernels at once: drop the oldest.
            if running.len() == CONCURRENT {
                running.remove(0);
            }
            running.push(at);
        }
        for (ns, step) in out.iter_mut().zip(&self.steps) {
            *ns = (*ns).min(step.end - step.start);
        }
        out
    }

    /// Time saved, ns, if each launch of a kernel took `factor` times its duration.
    pub fn time_saved(&self, kernel: u32, factor: f64) -> i64 {
        self.replay_scaled(kernel, factor, &self.kernel_overlap(kernel), false)
    }

    /// Returns the time saved for each of `gains` (shares of the kernel's time), and bounds on the time saved if the
    /// kernel took no time, ns.
    pub fn savings_curve(&self, kernel: u32, gains: &[f64]) -> (Vec<i64>, (i64, i64)) {
        let beside = self.kernel_overlap(kernel);
        let saved = gains.iter().map(|gain| self.replay_scaled(kernel, 1.0 - gain, &beside, false)).collect();
        (saved, self.removal_bounds(kernel, &beside))
    }

    /// Replays the run and returns the time saved, ns. If `least`, only time in which nothing else ran counts, and only
    /// waiting calls block the host.
    fn replay_scaled(&self, kernel: u32, factor: f64, beside: &[i64], least: bool) -> i64 {
        // Running operations by device (recorded end, new end, and the tail in which a successor may already start),
        // and the operation that ended last.
        let mut running: Vec<BinaryHeap<Reverse<(i64, i64, i64)>>> = vec![BinaryHeap::new(); self.units];
        let mut ended: Vec<Option<(i64, i64)>> = vec![None; self.units];
        // Last operation on each stream: recorded end, new end, and new start.
        let mut latest: FxHashMap<u32, (i64, i64, i64)> = FxHashMap::default();
        // For each process, the time by which it is ahead of the recording, ns, and the time from which that applies.
        let mut early: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.processes];
        let mut unit_of: Vec<Vec<usize>> = vec![Vec::new(); self.processes];
        let mut blocks = self.blocks.iter().peekable();
        let (mut last, mut new_last) = (i64::MIN, i64::MIN);
        let beside = if least { &[] } else { beside };
        // Operations count as ended up to `tail` before their end, and at most a tenth of their own duration before it.
        let retire = |running: &mut BinaryHeap<Reverse<(i64, i64, i64)>>, ended: &mut Option<(i64, i64)>, until: i64, tail: i64| {
            while let Some(&Reverse(op)) = running.peek().filter(|op| op.0.0 - op.0.2.min(tail) <= until) {
                running.pop();
                *ended = Some((op.0, ended.map_or(op.1, |e| op.1.max(e.1))));
            }
        };
        let shift = |early: &[(i64, i64)], at: i64| {
            let after = early.partition_point(|e| e.0 <= at);
            early.get(after.wrapping_sub(1)).map_or(0, |e| e.1)
        };
        for (at, step) in self.steps.iter().enumerate() {
            while let Some(block) = blocks.next_if(|b| b.end <= step.start) {
                let process = block.process as usize;
                let mut by: Option<(i64, i64)> = None;
                for &unit in &unit_of[process] {
                    retire(&mut running[unit], &mut ended[unit], block.end, 0);
                    by = ended[unit].into_iter().chain(by).max_by_key(|e| e.0);
                }
                let before = shift(&early[process], block.start);
                // If the process was blocked until an operation ended, it continues after the same delay as in the
                // recording.
                let until = by.filter(|(end, _)| *end > block.start && block.end - end <= RETURNS_NS);
                let now = match until {
                    Some((end, new)) => {
                        let began = block.start - before;
                        let now = block.end - (new.max(began) + (block.end - end));
                        if least && !block.waits { now.min(before) } else { now }
                    }
                    None => before,
                };
                if early[process].last().is_none_or(|e| e.1 != now) {
                    early[process].push((block.end, now));
                }
            }
            let (unit, process) = (step.unit as usize, step.process as usize);
            if !unit_of[process].contains(&unit) {
                unit_of[process].push(unit);
            }
            let tail = if step.fills { (step.end - step.start) / TAIL } else { 0 };
            retire(&mut running[unit], &mut ended[unit], step.start, tail);
            let call = step.call - shift(&early[process], step.call);
            let (was, is) = match ended[unit] {
                Some((end, new)) if end > step.call => (end, new.max(call)),
                Some((_, new)) => (step.call, call.max(new)),
                None => (step.call, call),
            };
            // A kernel that starts before its predecessor in the stream has ended was launched to do so (programmatic
            // dependent launch): it starts that much before the new end.
            let start = match latest.get(&step.stream).filter(|before| step.stream != u32::MAX && before.0 > step.start) {
                Some(&(end, new_end, new_start)) => (new_end.max(call) + (step.start - end)).max(new_start),
                None => is + (step.start - was),
            };
            let long = step.end - step.start;
            let goes = if least { step.alone } else { long };
            let goes = if step.kernel == kernel { goes as f64 } else { beside.get(at).map_or(0.0, |b| *b as f64 * SHARED) };
            let long = long - (goes * (1.0 - factor)).round() as i64;
            let tail = if step.fills { (step.end - step.start) / TAIL } else { 0 };
            running[unit].push(Reverse((step.end, start + long, tail)));
            latest.insert(step.stream, (step.end, start + long, start));
            last = last.max(step.end);
            new_last = new_last.max(start + long);
        }
        (last - new_last).max(0)
    }
}

fn device_of<'a>(profile: &'a Profile, op: &DeviceOp) -> Option<&'a Device> {
    let OperationRow::Launch(row) = op.row else { return None };
    let place = profile.launches.place(row as usize).and_then(|p| profile.places.get(p.0 as usize))?;
    profile.devices.get(place.device? as usize)
}

/// Returns true if a launch has enough blocks for at least half of its device's SMs, if both numbers are known.
/// Libraries launch large matrix products with one block fewer than there are SMs.
fn fills_device(profile: &Profile, op: &DeviceOp) -> bool {
    let OperationRow::Launch(row) = op.row else { return false };
    let launches = &profile.launches;
    let grid = launches.config(row as usize).and_then(|c| profile.configs.get(c.0 as usize)).and_then(|c| c.grid);
    let sms = device_of(profile, op).and_then(|d| d.sm_count);
    grid.zip(sms).is_some_and(|(grid, sms)| grid.iter().map(|&n| u64::from(n)).fold(2, u64::saturating_mul) >= u64::from(sms))
}

/// Time to refill the L2 cache of a launch's device from memory, ns. Later operations miss at most the data that the
/// kernel can touch in its time. Omitting a kernel of 5 µs between products of 32 MiB saved 7 to 11 µs on an H200 and
/// an H100.
fn cache_refill_time(profile: &Profile, op: &DeviceOp) -> i64 {
    let device = device_of(profile, op).and_then(|d| d.l2.zip(d.memory_bandwidth));
    device.map_or(0, |(l2, per_second)| (l2.0 as f64 / per_second.max(1) as f64 * 1e9) as i64)
}

/// Launch calls that may have waited for room in a full queue: those at whose start about as many operations of the process
/// had been launched and had not ended as a queue holds. `calls` are operation, start and end of each call, ns.
fn full_queue_blocks(steps: &[Step], calls: &[(usize, i64, i64)]) -> Vec<Block> {
    let mut ends: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    for &(at, ..) in calls {
        ends.entry(steps[at].process).or_default().push(steps[at].end);
    }
    for ends in ends.values_mut() {
        ends.sort_unstable();
    }
    let mut in_order: Vec<&(usize, i64, i64)> = calls.iter().collect();
    in_order.sort_unstable_by_key(|c| c.2);
    let mut launched: FxHashMap<u32, usize> = FxHashMap::default();
    let blocked = in_order.into_iter().filter_map(|&(at, start, end)| {
        let process = steps[at].process;
        let count = launched.entry(process).or_default();
        *count += 1;
        let ended = ends.get(&process).map_or(0, |ends| ends.partition_point(|e| *e <= start));
        (count.saturating_sub(ended) >= QUEUE).then_some(Block { start, end, process, waits: false })
    });
    blocked.collect()
}

/// Computes the time that omitting each launch saves. `calls`: process, thread, start, end and operation of all calls
/// outside graphs, and of waiting calls, which have no operation.
fn compute_launch_costs(steps: &mut [Step], units: usize, mut calls: Vec<(u32, u32, i64, i64, usize)>) {
    let mut ended = vec![i64::MIN; units];
    for step in steps.iter_mut() {
        let before = std::mem::replace(&mut ended[step.unit as usize], i64::MIN);
        // Only a queued launch has a pause before it; otherwise, the idle device waited for the call.
        if before >= step.call {
            step.cost += PAUSE_NS;
        }
        ended[step.unit as usize] = before.max(step.end);
    }
    // A waiting call may be listed twice if it also has an operation.
    calls.sort_unstable();
    calls.dedup_by(|next, first| (first.0, first.1, first.2, first.3) == (next.0, next.1, next.2, next.3) && next.4 == usize::MAX);
    // Some tools do not mark graph nodes, but the nodes of a graph share a call.
    let shared = |a: &(u32, u32, i64, i64, usize), b: &(u32, u32, i64, i64, usize)| (a.0, a.1, a.2) == (b.0, b.1, b.2);
    let before = |w: &[(u32, u32, i64, i64, usize)]| (w[0].0, w[0].1) == (w[1].0, w[1].1) && !shared(&w[0], &w[1]);
    let mut gaps: Vec<i64> = calls.windows(2).filter(|w| before(w) && w[1].4 != usize::MAX).map(|w| (w[1].2 - w[0].3).max(0)).collect();
    let middle = gaps.len() / 2;
    let usual = if gaps.is_empty() { 0 } else { *gaps.select_nth_unstable(middle).1 };
    for (at, call) in calls.iter().enumerate() {
        let next = calls.get(at + 1).is_some_and(|next| shared(call, next));
        let last = at.checked_sub(1).and_then(|before| calls.get(before));
        if next || last.is_some_and(|last| shared(last, call)) {
            continue;
        }
        let prepares = last.filter(|last| (last.0, last.1) == (call.0, call.1)).map_or(0, |last| (call.2 - last.3).max(0));
        if let Some(step) = steps.get_mut(call.4) {
            step.cost += call.3 - call.2 + prepares.min(usual.saturating_mul(PREPARES));
        }
    }
}

/// Computes for each operation, in order of start, the time in which nothing else ran on its device.
fn compute_alone_times(steps: &mut [Step], units: usize) {
    // By device: the operation that ends last so far, and the time at which all others had ended.
    let mut last: Vec<Option<(usize, i64)>> = vec![None; units];
    for at in 0..=steps.len() {
        let next = steps.get(at).map(|s| (s.unit as usize, s.start, s.end));
        let units = next.map_or(0..units, |n| n.0..n.0 + 1);
        for unit in units {
            let Some((running, others)) = last[unit] else { continue };
            let until = next.map_or(i64::MAX, |n| n.1);
            let step = &mut steps[running];
            step.alone += (step.end.min(until) - others).max(0);
        }
        let Some((unit, start, end)) = next else { break };
        last[unit] = Some(match last[unit] {
            Some((running, others)) if steps[running].end > end => (running, others.max(end).max(start)),
            Some((running, others)) => (at, others.max(steps[running].end).max(start)),
            None => (at, start),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `many` launches of kernel 0, 100 ns each. The host launches one every `every` ns and waits after every `block`
    /// launches.
    fn run(many: i64, every: i64, block: i64) -> Run {
        let (mut steps, mut blocks, mut host, mut device) = (Vec::new(), Vec::new(), 0, 0);
        for at in 1..=many {
            let start = device.max(host + 5);
            device = start + 100;
            steps.push(Step {
                start,
                end: device,
                call: host,
                kernel: 0,
                unit: 0,
                process: 0,
                stream: u32::MAX,
                alone: 100,
                fills: true,
                cost: 0,
            });
            host += every;
            if at % block == 0 {
                let end = device.max(host) + 10;
                blocks.push(Block { start: host, end, process: 0, waits: true });
                host = end;
            }
        }
        Run { steps, blocks, units: 1, processes: 1, whole: 0 }
    }

    #[test]
    fn nothing_changed_saves_nothing() {
        for run in [run(50, 10, 10), run(50, 300, 10), run(50, 90, 7)] {
            assert_eq!((run.time_saved(0, 1.0), run.time_saved(7, 0.0)), (0, 0));
        }
    }

    #[test]
    fn a_busy_device_gives_all_a_waiting_one_nothing() {
        // The host is far ahead: half of the time of all 50 launches is saved.
        let ahead = run(50, 10, 50);
        assert_eq!(ahead.time_saved(0, 0.5), 50 * 50);
        // The host launches every 300 ns: only the last launch's time is saved.
        assert_eq!(run(50, 300, 50).time_saved(0, 0.5), 50);
        // In between: launches of 100 ns, called every 90 ns, can only be 10 ns shorter each in the long run.
        let between = run(50, 90, 50).time_saved(0, 0.5);
        assert!((450..=600).contains(&between), "{between}");
    }

    /// Pairs of kernels, of which the second starts 3 ns before the first ends: without the first, the second starts
    /// earlier, too.
    #[test]
    fn a_programmatic_dependent_launch_follows_its_predecessor() {
        let step = |start, end, kernel| Step {
            start,
            end,
            call: 0,
            kernel,
            unit: 0,
            process: 0,
            stream: 7,
            alone: end - start,
            fills: kernel == 0,
            cost: 0,
        };
        let pair = |at: i64| [step(at * 320, at * 320 + 300, 0), step(at * 320 + 297, at * 320 + 310, 1)];
        let steps: Vec<Step> = (0..10).flat_map(pair).collect();
        let run = Run { steps, blocks: Vec::new(), units: 1, processes: 1, whole: 0 };
        assert_eq!((run.time_saved(0, 1.0), run.time_saved(1, 1.0)), (0, 0));
        let saved = run.time_saved(0, 0.0);
        assert!((2_900..=3_000).contains(&saved), "{saved}");
    }

    #[test]
    fn time_alone_is_told_from_time_beside_others() {
        let step =
            |start, end| Step { start, end, call: start, kernel: 0, unit: 0, process: 0, stream: u32::MAX, alone: 0, fills: true, cost: 0 };
        for (spans, want) in [
            (vec![(0, 10), (10, 20)], vec![10, 10]),
            (vec![(0, 10), (5, 20)], vec![5, 10]),
            (vec![(0, 30), (5, 10), (15, 20)], vec![20, 0, 0]),
            (vec![(0, 30), (5, 10), (8, 40)], vec![5, 0, 10]),
            (vec![(0, 10), (0, 10)], vec![0, 0]),
        ] {
            let mut steps: Vec<Step> = spans.iter().map(|s| step(s.0, s.1)).collect();
            compute_alone_times(&mut steps, 1);
            assert_eq!(steps.iter().map(|s| s.alone).collect::<Vec<_>>(), want, "{spans:?}");
        }
    }

    #[test]
    fn a_launch_costs_its_call_what_prepares_it_and_the_pause_before_it() {
        let step =
            |call, start, end| Step { start, end, call, kernel: 0, unit: 0, process: 0, stream: u32::MAX, alone: 0, fills: true, cost: 0 };
        // The third has a long preparation, the fourth and fifth are nodes of one graph, and the device waits for the
        // last call.
        let mut steps = vec![
            step(10, 100, 200),
            step(20, 201, 300),
            step(90, 302, 400),
            step(95, 9_000, 9_100),
            step(95, 9_101, 9_200),
            step(9_900, 9_950, 9_990),
        ];
        let calls = [(10, 12), (20, 23), (90, 92), (95, 97), (95, 97), (9_900, 9_910)];
        let calls = calls.iter().enumerate().map(|(at, c)| (1, 1, c.0, c.1, at)).collect();
        compute_launch_costs(&mut steps, 1, calls);
        // Gaps before the calls: 8, 67, 3 and 9,803 ns, with 67 as the median.
        let queued = PAUSE_NS;
        assert_eq!(steps.iter().map(|s| s.cost).collect::<Vec<_>>(), [2, 3 + 8 + queued, 2 + 67 + queued, queued, queued, 10 + 134]);
    }

    #[test]
    fn what_is_predicted_lies_within_its_bounds() {
        for (every, block) in [(10, 50), (300, 50), (90, 50), (10, 1), (120, 7)] {
            let run = run(50, every, block);
            let ((least, most), predicted) = (run.savings_curve(0, &[]).1, run.time_saved(0, 0.0));
            assert!(least <= predicted && predicted <= most && most == 5_500, "{every} {block}: {least} {predicted} {most}");
        }
        // A thread in a copy may wait for something other than the copy.
        let mut copies = run(50, 10, 1);
        copies.blocks.iter_mut().for_each(|b| b.waits = false);
        // If the kernel takes no time, the host's own 5 ns from launch to wait remain.
        assert_eq!((copies.savings_curve(0, &[]).1.0, copies.time_saved(0, 0.0)), (70, 49 * 95 + 100));
        // A graph recorded as a whole may also contain the kernel.
        copies.whole = 700;
        assert_eq!(copies.savings_curve(0, &[]).1.1, 6_270);
    }

    #[test]
    fn who_waits_for_the_device_gains_with_it() {
        // The host waits after each launch, so it gets ahead by the time that the kernel saves.
        assert_eq!(run(50, 10, 1).time_saved(0, 0.5), 50 * 50);
    }

    #[test]
    fn what_runs_beside_it_stays() {
        let mut both = run(10, 10, 10);
        let long = Step { start: 6, end: 1_500, call: 1, kernel: 1, unit: 0, process: 0, stream: u32::MAX, alone: 0, fills: true, cost: 0 };
        both.steps.insert(1, long);
        both.blocks.clear();
        // The other kernel has few blocks, so it does not slow down.
        both.steps[1].fills = false;
        assert_eq!(both.time_saved(0, 0.5), 0);
        // With one block per SM, the other kernel had half of the device for 1,000 ns.
        both.steps.iter_mut().for_each(|s| (s.alone, s.fills) = (0, true));
        compute_alone_times(&mut both.steps, 1);
        assert_eq!((both.time_saved(0, 0.5), both.time_saved(0, 0.0)), (250, 500));
        assert_eq!((both.savings_curve(0, &[]).1.0, both.savings_curve(0, &[]).1.1), (0, 1_100));
    }
}
