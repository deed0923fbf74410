//! Finds the steps of a run, i.e. its repeated work: from numbered ranges or graph launches, otherwise from the
//! sequence of operations or the waits of the launching thread.

use super::device_ops::{Class, DeviceOps, OperationRow};
use super::intervals::Intervals;
use super::marked::by_ranges;
pub use super::marked::device_range_start;
use super::period::{by_period, find_period};
pub use super::phase::LeftOut;
use super::phase::{Phase, before_first_step};
pub use super::step::{Counts, Step, StepSource, lower_median};
use super::step::{EXPLAINS, LEAST_STEPS, Starts};
use super::waits::by_waits;
use crate::model::{CallKind, Profile};
use rustc_hash::FxHashMap;

/// Analyzed steps of a run, and the time that was excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub found: Option<StepSource>,
    /// In chronological order.
    pub list: Vec<Step>,
    pub left_out: Vec<LeftOut>,
}

/// Steps at the beginning of the run are warm-up if they take more than this multiple of the median.
const WARM_UP: f64 = 1.5;
/// Minimum share of the run for fewer than `LEAST_STEPS` steps.
const FEW_STEPS: f64 = 0.5;
/// Repetitions with more than this multiple of the median kernel count may contain several steps.
const MANY: i64 = 8;
/// Minimum share of the kernels in repetitions above `MANY` for the detected steps to be rejected.
const HIDDEN: f64 = 0.1;

impl Steps {
    /// Finds the steps of a run; `span` is the time from its first to its last operation. With `warm`, the steps of the
    /// warm-up are kept.
    pub fn from_profile(profile: &Profile, ops: &DeviceOps<'_>, span: (i64, i64), counts: &[Counts], warm: bool) -> Self {
        let found = by_ranges(profile, ops).or_else(|| by_graphs(profile, ops)).or_else(|| by_sequence(profile, ops, counts));
        let Some((found, starts, end)) = found else { return Self::default() };
        let mut steps: Vec<Step> = (0..)
            .zip(&starts)
            .map(|(number, &start)| Step { start, end: starts.get(number as usize + 1).copied().unwrap_or(end), number })
            .collect();
        steps.retain(|s| s.end > s.start);
        // A step or two do not stand for a run of which they are a small part.
        let length: i64 = steps.iter().map(Step::length).sum();
        if steps.len() < LEAST_STEPS && (length as f64) < FEW_STEPS * (span.1 - span.0) as f64 {
            return Self::default();
        }
        let mut left_out = Vec::new();
        if let Some(first) = steps.first() {
            left_out.extend(before_first_step(profile, span.0, first.start));
        }
        let mut out = |phase: Phase, what: String, start: i64, end: i64| {
            if end > start {
                left_out.push(LeftOut { phase, what, start, end, unrecorded: false });
            }
        };
        let warm = if warm { 0 } else { warm_up(&steps) };
        if warm > 0 {
            let what = if warm == 1 { "the first step: warm-up".to_owned() } else { format!("the first {warm} steps: warm-up") };
            out(Phase::WarmUp, what, steps[0].start, steps[warm - 1].end);
            steps.drain(..warm);
        }
        if let Some(last) = steps.last() {
            out(Phase::Ending, "after the last step".to_owned(), last.end, span.1);
        }
        Self { found: Some(found), list: steps, left_out }
    }

    /// Keeps only the steps in a window chosen by the user. `span` is the time from the first operation to the last: a
    /// window that holds the first one holds the step around it, too, which may begin before it; likewise at the end.
    pub fn keep_in_window(&mut self, window: (i64, i64), span: (i64, i64)) {
        let (from, to) = (window.0 <= span.0, window.1 >= span.1);
        self.list.retain(|s| (from || s.start >= window.0) && (to || s.end <= window.1));
        self.left_out = Vec::new();
    }

    /// Removes steps in which the profiler collected counters, because such steps include waits for the profiler.
    pub fn remove_measured(&mut self, measuring: &Intervals) {
        let spans = measuring.as_slice();
        self.list.retain(|s| {
            let next = spans.partition_point(|m| m.1 <= s.start);
            spans.get(next).is_none_or(|m| m.0 >= s.end)
        });
    }

    /// Removes steps that were not recorded completely, because their length is unknown.
    pub fn keep_recorded(&mut self, recorded: &[(i64, i64)]) {
        let inside = |s: &Step| {
            let at = recorded.partition_point(|r| r.1 < s.end);
            recorded.get(at).is_some_and(|r| r.0 <= s.start)
        };
        // If the capture gate opens separately for each step, no step is recorded completely, so keep all of them.
        if recorded.len() > 1 && self.list.iter().filter(|s| inside(s)).count() * 2 >= self.list.len() {
            self.list.retain(inside);
        }
    }

    /// Start of the first and end of the last step, ns.
    pub fn window(&self) -> Option<(i64, i64)> {
        Some((self.list.first()?.start, self.list.last()?.end))
    }

    /// Index of the step that contains a time, if any.
    pub fn step_at(&self, time: i64) -> Option<usize> {
        let at = self.list.partition_point(|s| s.start <= time).checked_sub(1)?;
        (time < self.list[at].end).then_some(at)
    }

    /// Parts of a time that lie in steps: index of the step, and ns.
    pub fn parts_of(&self, start: i64, end: i64) -> impl Iterator<Item = (usize, i64)> {
        let first = self.list.partition_point(|s| s.end <= start);
        let inside = self.list[first..].iter().take_while(move |s| s.start < end);
        inside.enumerate().map(move |(i, s)| (first + i, s.end.min(end) - s.start.max(start)))
    }

    /// Median length, ns.
    pub fn median_length(&self) -> Option<i64> {
        lower_median(self.list.iter().map(Step::length).collect())
    }
}

/// Finds steps from a repeating kernel sequence, otherwise from the host's waits. The waits are also tried if a few
/// repetitions are many times as long as the others, as in a server that occasionally runs mixed batches: they separate
/// the steps in a long repetition.
fn by_sequence(profile: &Profile, ops: &DeviceOps<'_>, counts: &[Counts]) -> Option<Starts> {
    let repeated = by_period(profile, ops, counts, false).or_else(|| by_period(profile, ops, counts, true));
    match repeated {
        Some(found) if !hides_steps(ops, &found) => Some(found),
        found => by_waits(profile, ops).or(found),
    }
}

/// Returns true if at least `HIDDEN` of the kernels are in repetitions with more than `MANY` times the usual number of
/// kernels.
fn hides_steps(ops: &DeviceOps<'_>, (_, starts, end): &Starts) -> bool {
    let mut kernels = vec![0_i64; starts.len()];
    for op in ops.iter().filter(|op| op.class != Class::Copy && op.start < *end) {
        if let Some(at) = starts.partition_point(|start| *start <= op.start).checked_sub(1) {
            kernels[at] += 1;
        }
    }
    let Some(usual) = lower_median(kernels.clone()) else { return false };
    let long: i64 = kernels.iter().filter(|n| **n > usual.max(1).saturating_mul(MANY)).sum();
    long as f64 >= HIDDEN * kernels.iter().sum::<i64>().max(1) as f64
}

/// Returns the number of steps at the beginning that take much longer than the rest, at most a third of all steps.
fn warm_up(steps: &[Step]) -> usize {
    if steps.len() < LEAST_STEPS + 1 {
        return 0;
    }
    let most = steps.len() / 3;
    // Compare with the second half of the steps: if any part of the run is warmed up, it is that one.
    let Some(usual) = lower_median(steps[steps.len() / 2..].iter().map(Step::length).collect()) else { return 0 };
    steps.iter().take(most).take_while(|s| s.length() as f64 > usual as f64 * WARM_UP).count()
}

/// A graph launch: start of the call, start of its first and end of its last operation (all in ns), number of nodes,
/// and id of the graph.
type Launched = (i64, i64, i64, usize, u64);

/// Finds steps from graph launches that are all alike and make up most of the run; if several graphs take turns, a step
/// is one round.
fn by_graphs(profile: &Profile, ops: &DeviceOps<'_>) -> Option<Starts> {
    let launches = &profile.launches;
    if !launches.has_graph_nodes() && profile.graphs.is_empty() {
        return None;
    }
    let mut of: Vec<Vec<Launched>> = vec![Vec::new(); ops.units.len()];
    let (mut inside, mut total) = (vec![0_i64; ops.units.len()], 0_i64);
    for op in ops.iter() {
        let length = op.end.saturating_sub(op.start);
        total = total.saturating_add(length);
        let (call, nodes, graph) = match op.row {
            // The first node may be a copy or a memset.
            OperationRow::Launch(_) | OperationRow::Mem(_) => match ops.in_graph(&op) {
                Some(row) => (launches.call(row as usize).map(|c| c.0), 1, launches.graph_node(row as usize).unwrap_or_default()),
                None => continue,
            },
            OperationRow::Graph(g) => {
                let graph = profile.graphs.get(g as usize);
                (graph.and_then(|g| g.call).or(Some(op.start)), 0, graph.map_or(0, |g| g.graph))
            }
        };
        let Some(call) = call else { continue };
        inside[op.unit] = inside[op.unit].saturating_add(length);
        match of[op.unit].last_mut() {
            Some(last) if nodes > 0 && last.0 == call => {
                last.2 = last.2.max(op.end);
                last.3 += 1;
            }
            _ => of[op.unit].push((call, op.start, op.end, nodes, graph)),
        }
    }
    let unit = (0..of.len()).max_by_key(|&u| inside[u])?;
    let (mut calls, inside) = (std::mem::take(&mut of[unit]), inside.iter().sum::<i64>());
    if (inside as f64) < EXPLAINS * total as f64 {
        return None;
    }
    calls.sort_unstable_by_key(|c| c.1);
    let end = calls.iter().map(|c| c.2).max()?;
    if let Some(starts) = find_rounds(&calls) {
        return Some((StepSource::Graphs, starts, end));
    }
    let usual = lower_median(calls.iter().map(|c| i64::try_from(c.3).unwrap_or(i64::MAX)).collect())?;
    let alike = calls.iter().filter(|c| i64::try_from(c.3).is_ok_and(|n| n == usual)).count();
    if calls.len() < LEAST_STEPS || alike * 10 < calls.len() * 9 {
        return None;
    }
    // The pieces of a model may be graphs with the same number of nodes. If the report does not say which graph was
    // launched, they are steps only if the host waits between them.
    if launches.graphs_unidentified() && !waits_between(profile, &calls) {
        return None;
    }
    Some((StepSource::Graphs, calls.iter().map(|c| c.1).collect(), end))
}

/// Returns true if the host synchronizes with the device between most launches of graphs and the next ones.
fn waits_between(profile: &Profile, launched: &[Launched]) -> bool {
    let calls = &profile.calls;
    let mut waits: Vec<i64> = (0..calls.len()).filter(|&row| calls.kind(row) == CallKind::Sync).map(|row| calls.start[row]).collect();
    waits.sort_unstable();
    let mut starts: Vec<i64> = launched.iter().map(|l| l.0).collect();
    starts.sort_unstable();
    let waited = starts.windows(2).filter(|w| waits.partition_point(|t| *t < w[0]) < waits.partition_point(|t| *t < w[1])).count();
    (waited + 1) * 10 >= starts.len() * 9
}

/// Returns the starts of rounds, in which several graphs, such as the pieces of a model, are launched in turn. A round
/// starts with the graph before which the device waits longest.
fn find_rounds(calls: &[Launched]) -> Option<Vec<i64>> {
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    let ids: Vec<u32> = calls
        .iter()
        .map(|c| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(c.4).or_insert(next)
        })
        .collect();
    let period = find_period(&ids)?;
    let rounds = calls.len() / period;
    // Per graph: number of launches, and total time before them in which no other graph ran.
    let mut before: FxHashMap<u32, (usize, i64)> = FxHashMap::default();
    let mut until = calls.first()?.1;
    for (id, call) in ids.iter().zip(calls) {
        let sum = before.entry(*id).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add((call.1 - until).max(0)));
        until = until.max(call.2);
    }
    let once = before.iter().filter(|(_, sum)| sum.0.abs_diff(rounds) <= 1 + rounds / 20);
    let first = *once.max_by_key(|(id, sum)| (sum.1, std::cmp::Reverse(**id)))?.0;
    let starts: Vec<i64> = ids.iter().zip(calls).filter(|(id, _)| **id == first).map(|(_, c)| c.1).collect();
    (starts.len() >= LEAST_STEPS).then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_that_come_in_turn_are_one_step() {
        // Four graphs of 10, 5 apart; before the third of them, the host takes 100.
        let mut at = 0;
        let mut calls: Vec<Launched> = Vec::new();
        for n in 0..40_u64 {
            at += if n % 4 == 2 { 100 } else { 5 };
            calls.push((at - 2, at, at + 10, 3, 70 + n % 4));
            at += 10;
        }
        let want: Vec<i64> = calls.iter().filter(|c| c.4 == 72).map(|c| c.1).collect();
        assert_eq!(find_rounds(&calls), Some(want));
        for call in &mut calls {
            call.4 = 70;
        }
        assert_eq!(find_rounds(&calls), None, "one graph over and over is a step each time");
    }

    #[test]
    fn slow_steps_at_the_beginning_are_warm_up() {
        let steps = |lengths: &[i64]| -> Vec<Step> {
            let mut at = 0;
            (0..)
                .zip(lengths)
                .map(|(number, l)| {
                    at += l;
                    Step { start: at - l, end: at, number }
                })
                .collect()
        };
        assert_eq!(warm_up(&steps(&[90, 30, 10, 10, 11, 10, 9, 10])), 2);
        assert_eq!(warm_up(&steps(&[10, 10, 10, 40, 10, 10])), 0);
        assert_eq!(warm_up(&steps(&[90, 10, 10])), 0);
    }
}
