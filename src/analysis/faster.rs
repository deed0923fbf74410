//! How much shorter a run would be if a kernel were faster: the recorded run once more, with that kernel's launches scaled, each operation as soon
//! after what it waited for as it was in the recording.
//!
//! An operation waits for the one that ended last before it on its device, and for its call; a process that is blocked in a call waits for the
//! operation that ended last in it. All other distances stay as they were. Time that a kernel saves is lost again where the host is not ready, or
//! where other work runs beside it. With nothing scaled every time is the recorded one.

use super::triage::ops::{Class, Ops, Row};
use crate::model::{CallKind, Kernel, Profile};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Operations beyond which a run is not gone through again: 56 bytes each.
const MOST: usize = 3_000_000;
/// Operations that are passed in all, a few seconds' work.
const PASSED: usize = 30_000_000;
/// A call that returned no later than this after an operation's end, ns, was blocked by it: from the end of a kernel to the return of a synchronising
/// call an H200's host takes 5 to 20 µs under a profiler.
const RETURNS_NS: i64 = 50_000;
/// Share of the time that goes by which the rest may take more or less: power, clocks and caches are shared. On an H100 the same matrix products took
/// 8% longer in a loop that leaves the GPU no pause.
const VARIES: f64 = 0.1;

/// An operation of a device, ns.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: i64,
    end: i64,
    /// When its call began; its own start where that is not known.
    call: i64,
    /// Kernel; `u32::MAX` for copies and graphs.
    kernel: u32,
    unit: u32,
    process: u32,
    /// Time in which nothing else ran on the device, ns.
    alone: i64,
    /// Time in its call, where nothing else was launched by it, ns.
    cost: i64,
}

/// A call that blocked its thread, ns.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: i64,
    end: i64,
    process: u32,
    /// A call that does nothing but wait.
    waits: bool,
}

/// A run that can be gone through again.
#[derive(Debug, Default)]
pub struct Run {
    steps: Vec<Step>,
    blocks: Vec<Block>,
    units: usize,
    processes: usize,
    /// Summed durations of graphs whose kernels are not known, ns.
    whole: i64,
}

/// What a kernel's gain means for the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Summed durations of the kernel over the run's length.
    pub share: f64,
    /// Share of the run that would go if the kernel took no time: its part of the critical path.
    pub critical: f64,
    /// Shares of the run that its gain saves, at least and at most; `None` without a gain.
    pub saves: Option<(f64, f64)>,
}

impl Worth {
    /// As people read it.
    #[must_use]
    pub fn words(&self) -> String {
        let run = format!(
            "the kernel runs for {:.0}% of the run, which would be {:.0}% shorter without it",
            self.share * 100.0,
            self.critical * 100.0
        );
        match self.saves.map(|(least, most)| (least * 100.0, most * 100.0)) {
            None => run,
            Some((least, most)) if least < 0.5 && most >= 1.0 => format!("{run}; this change saves at most {most:.0}% of the run"),
            Some((least, most)) if most - least < 1.0 => format!("{run}; this change saves {most:.0}% of the run"),
            Some((least, most)) => format!("{run}; this change saves {least:.0}–{most:.0}% of the run"),
        }
    }
}

/// The kernel of a profile that has the names of another profiler's.
#[must_use]
pub fn kernel_of(profile: &Profile, kernel: &Kernel) -> Option<u32> {
    let same = |k: &Kernel| match (k.demangled.as_deref(), kernel.demangled.as_deref()) {
        (Some(a), Some(b)) => a == b,
        _ => k.function() == kernel.function(),
    };
    profile.kernels.iter().position(same).and_then(|at| u32::try_from(at).ok())
}

impl Run {
    /// `None` where launches have no times or calls, or are too many.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let count = profile.launches.len();
        if !profile.launches.timed() || count == 0 || count.saturating_add(profile.memops.len()) > MOST {
            return None;
        }
        let ops = Ops::of(profile);
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
        for op in ops.iter() {
            let call = ops.call(&op);
            called += usize::from(call.is_some());
            let kernel = match (op.row, op.class) {
                (Row::Launch(row), Class::Kernel) => profile.launches.kernel(row as usize).0,
                _ => u32::MAX,
            };
            let pid = call.map_or_else(|| ops.units.get(op.unit).and_then(|u| u.pid).unwrap_or_default(), |c| c.pid);
            let began = call.map_or(op.start, |c| c.start.min(op.start));
            let cost = call.filter(|_| ops.in_graph(&op).is_none()).map_or(0, |c| c.end - c.start);
            let unit = u32::try_from(op.unit).unwrap_or(0);
            steps.push(Step {
                start: op.start,
                end: op.end.max(op.start),
                call: began,
                kernel,
                unit,
                process: process(pid),
                alone: 0,
                cost,
            });
        }
        alone(&mut steps, ops.units.len());
        // Some tools do not tell nodes of graphs; they share a call.
        for at in 1..steps.len() {
            let (before, this) = (steps[at - 1], steps[at]);
            if (before.call, before.process) == (this.call, this.process) {
                (steps[at - 1].cost, steps[at].cost) = (0, 0);
            }
        }
        // Nobody knows what waited for the host where most calls are missing.
        if called * 2 < steps.len() {
            return None;
        }
        let calls = &profile.calls;
        let waits = |c: usize| matches!(calls.kind(c), CallKind::Sync | CallKind::Copy | CallKind::Free | CallKind::Alloc);
        let mut blocks: Vec<Block> = (0..calls.len())
            .filter(|&c| waits(c))
            .map(|c| {
                let start = super::triage::ops::sane(calls.start[c]);
                let end = start.saturating_add(calls.duration[c].max(0));
                Block { start, end, process: process(calls.thread_of(c).0), waits: calls.kind(c) == CallKind::Sync }
            })
            .collect();
        blocks.sort_by_key(|b| b.end);
        let whole = profile.graphs.iter().fold(0_i64, |sum, g| sum.saturating_add(g.duration.0.max(0)));
        Some(Self { steps, blocks, units: ops.units.len(), processes: processes.len(), whole })
    }

    /// Takes kernels for one: each is renamed to the number that stands at its own.
    pub fn together(&mut self, kernels: &[u32]) {
        for step in &mut self.steps {
            step.kernel = kernels.get(step.kernel as usize).copied().unwrap_or(u32::MAX);
        }
    }

    /// Whether so many kernels can be asked about without a long wait: each takes three passes.
    #[must_use]
    pub fn affords(&self, kernels: usize) -> bool {
        kernels < PASSED / (3 * self.steps.len().max(1)) + 1
    }

    /// First start and last end, ns.
    #[must_use]
    pub fn span(&self) -> (i64, i64) {
        let start = self.steps.iter().map(|s| s.start.min(s.call)).min().unwrap_or(0);
        (start, self.steps.iter().map(|s| s.end).max().unwrap_or(start))
    }

    /// What a gain of a kernel, at least and at most, shares of its time, means for the run. `None` for a run without length.
    #[must_use]
    pub fn worth(&self, kernel: u32, gain: Option<(f64, f64)>) -> Option<Worth> {
        let (start, end) = self.span();
        let length = (end - start) as f64;
        if length <= 0.0 {
            return None;
        }
        let total: i64 = self.steps.iter().filter(|s| s.kernel == kernel).map(|s| s.end - s.start).sum();
        let share = |ns: i64| (ns as f64 / length).clamp(0.0, 1.0);
        let saved = |gain: f64| share(self.saved(kernel, 1.0 - gain));
        Some(Worth { share: total as f64 / length, critical: saved(1.0), saves: gain.map(|(least, most)| (saved(least), saved(most))) })
    }

    /// Bounds of how much earlier the run would end, ns, if a kernel took no time. At least what goes where nothing else ran meanwhile
    /// and the host is held by nothing but calls that wait; at most the time in which the kernel ran, or may have run in a graph that was recorded as
    /// a whole, and that of its calls, which go if it is not launched at all.
    #[must_use]
    pub fn bounds(&self, kernel: u32) -> (i64, i64) {
        let predicted = self.saved(kernel, 0.0);
        let mut until = vec![i64::MIN; self.units];
        let mut ran = 0_i64;
        for step in self.steps.iter().filter(|s| s.kernel == kernel) {
            let until = &mut until[step.unit as usize];
            ran = ran.saturating_add((step.end - step.start.max(*until)).max(0)).saturating_add(step.cost);
            *until = step.end.max(*until);
        }
        let least = self.shorter(kernel, 0.0, true).min(predicted);
        let most = ran.saturating_add(self.whole).max(predicted);
        ((least as f64 * (1.0 - VARIES)) as i64, (most as f64 * (1.0 + VARIES)) as i64)
    }

    /// How much earlier the run would end, ns, if each launch of a kernel took `factor` of its time.
    #[must_use]
    pub fn saved(&self, kernel: u32, factor: f64) -> i64 {
        self.shorter(kernel, factor, false)
    }

    /// The same; `least`, where only time counts in which nothing else ran, and only calls that wait hold the host.
    fn shorter(&self, kernel: u32, factor: f64, least: bool) -> i64 {
        // Of each device what runs: recorded end and new end; and what ended last.
        let mut running: Vec<BinaryHeap<Reverse<(i64, i64)>>> = vec![BinaryHeap::new(); self.units];
        let mut ended: Vec<Option<(i64, i64)>> = vec![None; self.units];
        // Of each process how much earlier it is from when on.
        let mut early: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.processes];
        let mut unit_of: Vec<Vec<usize>> = vec![Vec::new(); self.processes];
        let mut blocks = self.blocks.iter().peekable();
        let (mut last, mut new_last) = (i64::MIN, i64::MIN);
        let retire = |running: &mut BinaryHeap<Reverse<(i64, i64)>>, ended: &mut Option<(i64, i64)>, until: i64| {
            while let Some(&Reverse(op)) = running.peek().filter(|op| op.0.0 <= until) {
                running.pop();
                *ended = Some((op.0, ended.map_or(op.1, |e| op.1.max(e.1))));
            }
        };
        let shift = |early: &[(i64, i64)], at: i64| {
            let after = early.partition_point(|e| e.0 <= at);
            early.get(after.wrapping_sub(1)).map_or(0, |e| e.1)
        };
        for step in &self.steps {
            while let Some(block) = blocks.next_if(|b| b.end <= step.start) {
                let process = block.process as usize;
                let mut by: Option<(i64, i64)> = None;
                for &unit in &unit_of[process] {
                    retire(&mut running[unit], &mut ended[unit], block.end);
                    by = ended[unit].into_iter().chain(by).max_by_key(|e| e.0);
                }
                let before = shift(&early[process], block.start);
                // Blocked until an operation was done: then the process goes on as long after it as it did.
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
            retire(&mut running[unit], &mut ended[unit], step.start);
            let call = step.call - shift(&early[process], step.call);
            let (was, is) = match ended[unit] {
                Some((end, new)) if end > step.call => (end, new.max(call)),
                Some((_, new)) => (step.call, call.max(new)),
                None => (step.call, call),
            };
            let start = is + (step.start - was);
            let long = step.end - step.start;
            let goes = if least { step.alone } else { long };
            let long = if step.kernel == kernel { long - (goes as f64 * (1.0 - factor)).round() as i64 } else { long };
            running[unit].push(Reverse((step.end, start + long)));
            last = last.max(step.end);
            new_last = new_last.max(start + long);
        }
        (last - new_last).max(0)
    }
}

/// Finds of each operation, in order of start, how long nothing else ran on its device.
fn alone(steps: &mut [Step], units: usize) {
    // On each device the operation that ends last so far, and when all others had ended.
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

    /// Launches of kernel 0 of 100 ns each; the host calls every `every` ns, and waits at the end of each `block` launches.
    fn run(many: i64, every: i64, block: i64) -> Run {
        let (mut steps, mut blocks, mut host, mut device) = (Vec::new(), Vec::new(), 0, 0);
        for at in 1..=many {
            let start = device.max(host + 5);
            device = start + 100;
            steps.push(Step { start, end: device, call: host, kernel: 0, unit: 0, process: 0, alone: 100, cost: 0 });
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
            assert_eq!((run.saved(0, 1.0), run.saved(7, 0.0)), (0, 0));
        }
    }

    #[test]
    fn a_busy_device_gives_all_a_waiting_one_nothing() {
        // The host is far ahead: half the time of 50 launches.
        let ahead = run(50, 10, 50);
        assert_eq!(ahead.saved(0, 0.5), 50 * 50);
        // The host calls every 300 ns: only the last launch's time shows.
        assert_eq!(run(50, 300, 50).saved(0, 0.5), 50);
        // Between them: each launch of 100 ns, called every 90 ns, can only be 10 ns shorter in the long run.
        let between = run(50, 90, 50).saved(0, 0.5);
        assert!((450..=600).contains(&between), "{between}");
    }

    #[test]
    fn time_alone_is_told_from_time_beside_others() {
        let step = |start, end| Step { start, end, call: start, kernel: 0, unit: 0, process: 0, alone: 0, cost: 0 };
        for (spans, want) in [
            (vec![(0, 10), (10, 20)], vec![10, 10]),
            (vec![(0, 10), (5, 20)], vec![5, 10]),
            (vec![(0, 30), (5, 10), (15, 20)], vec![20, 0, 0]),
            (vec![(0, 30), (5, 10), (8, 40)], vec![5, 0, 10]),
            (vec![(0, 10), (0, 10)], vec![0, 0]),
        ] {
            let mut steps: Vec<Step> = spans.iter().map(|s| step(s.0, s.1)).collect();
            alone(&mut steps, 1);
            assert_eq!(steps.iter().map(|s| s.alone).collect::<Vec<_>>(), want, "{spans:?}");
        }
    }

    #[test]
    fn what_is_predicted_lies_within_its_bounds() {
        for (every, block) in [(10, 50), (300, 50), (90, 50), (10, 1), (120, 7)] {
            let run = run(50, every, block);
            let ((least, most), predicted) = (run.bounds(0), run.saved(0, 0.0));
            assert!(least <= predicted && predicted <= most && most == 5_500, "{every} {block}: {least} {predicted} {most}");
        }
        // A thread that waits in a copy may have been held by something else.
        let mut copies = run(50, 10, 1);
        copies.blocks.iter_mut().for_each(|b| b.waits = false);
        // With no time left for the kernel, the host's own 5 ns from its launch to the wait count.
        assert_eq!((copies.bounds(0).0, copies.saved(0, 0.0)), (90, 49 * 95 + 100));
        // A graph that was recorded as a whole may hold the kernel, too.
        copies.whole = 700;
        assert_eq!(copies.bounds(0).1, 6_270);
    }

    #[test]
    fn who_waits_for_the_device_gains_with_it() {
        // A wait after each launch: the host is late, and would be earlier by what the kernel saves.
        assert_eq!(run(50, 10, 1).saved(0, 0.5), 50 * 50);
    }

    #[test]
    fn what_runs_beside_it_stays() {
        let mut both = run(10, 10, 10);
        let long = Step { start: 6, end: 1_500, call: 1, kernel: 1, unit: 0, process: 0, alone: 0, cost: 0 };
        both.steps.insert(1, long);
        both.blocks.clear();
        assert_eq!(both.saved(0, 0.5), 0);
        alone(&mut both.steps, 1);
        assert_eq!((both.bounds(0).0, both.bounds(0).1), (0, 1_100));
    }
}
