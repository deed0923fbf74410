//! Finds the start of a run without steps, which lasts until the end of the last first use and is not analyzed.

use super::attribution::{Gap, SweepListener, sweep_windows};
use super::device_ops::{DeviceOp, DeviceOps, OperationRow};
use super::first::FIRST_USE_LAUNCH_NS;
use super::host::Host;
use super::idle_causes::{Gaps, Piece};
use super::phase::{LeftOut, Phase};
use super::time_category::Cause;
use rustc_hash::FxHashMap;

/// Share of the devices' work after which an event no longer belongs to the start.
pub const START: f64 = 0.1;
/// The same for a run in which there are no later first uses: a warm-up of one step in four may take so much of it.
const LONG_START: f64 = 0.25;
/// Minimum share of the report that the start must cost to be excluded.
pub const WORTH_IT: f64 = 0.03;
/// Minimum number of operations that must remain.
pub const LEFT: usize = 30;
/// Minimum number of times that the longest-running operation must run after the start.
const AGAIN: usize = 5;
/// Minimum share of a gap that first uses must account for.
const MOSTLY: f64 = 0.5;

struct Listen<'g> {
    gaps: Gaps<'g>,
    ops: &'g DeviceOps<'g>,
    pieces: Vec<Piece>,
    /// Idle time in first uses so far, ns.
    idle: i64,
    /// End and description of the last first use.
    until: Option<(i64, String)>,
}

/// First uses in the part of a run before `limit` of the devices' work.
fn first_uses<'a>(ops: &'a DeviceOps<'a>, host: &'a Host<'a>, span: (i64, i64), limit: f64) -> Listen<'a> {
    let mut listen = Listen { gaps: Gaps::new(ops, host), ops, pieces: Vec::new(), idle: 0, until: None };
    sweep_windows(early_ops(ops, limit), ops.units.len(), &[span], &mut listen);
    listen
}

/// Operations that start before `limit` of the devices' work, in ns, is done.
pub fn early_ops<'a>(ops: &'a DeviceOps<'_>, limit: f64) -> impl Iterator<Item = DeviceOp> + 'a {
    let mut done = 0.0;
    ops.iter().take_while(move |op| {
        let go = done <= limit;
        done += (op.end - op.start) as f64;
        go
    })
}

impl Listen<'_> {
    fn describe_first_use(&self, gap: &Gap, longest: &Piece) -> String {
        let profile = self.ops.profile();
        match gap.next.map(|op| op.row) {
            Some(OperationRow::Launch(row)) if longest.cause == Cause::Compile && longest.name.is_none() => {
                let kernel = profile.kernels.get(profile.launches.kernel(row as usize).0 as usize);
                format!("the first launch of {}", kernel.map_or("a kernel".into(), crate::analysis::readable::readable_name))
            }
            _ => longest
                .name
                .and_then(|n| profile.calls.names.get(n as usize))
                .map_or_else(|| "a load of code".to_owned(), |n| format!("a load of code ({})", n.name)),
        }
    }
}

impl SweepListener for Listen<'_> {
    fn gap(&mut self, gap: &Gap) {
        let mut pieces = std::mem::take(&mut self.pieces);
        self.gaps.explain_gap(gap, &mut pieces);
        let first = |p: &&Piece| p.cause == Cause::Compile || self.gaps.first_uses().slow_call(p);
        let ns: i64 = pieces.iter().filter(first).map(|p| p.end - p.start).sum();
        if gap.next.is_some() && ns as f64 >= MOSTLY * (gap.end - gap.start) as f64 {
            let longest = pieces.iter().filter(first).max_by_key(|p| p.end - p.start).copied();
            self.idle += ns;
            if let Some(longest) = longest.filter(|l| l.end - l.start >= FIRST_USE_LAUNCH_NS) {
                self.until = Some((gap.end, self.describe_first_use(gap, &longest)));
            }
        }
        self.pieces = pieces;
    }

    fn copy(&mut self, _: &DeviceOp, _: i64, _: i64) {}

    fn op(&mut self, op: &DeviceOp) {
        self.gaps.record_op(op);
    }
}

/// Returns the start of a run without steps, up to the end of the last first use. `None` if first uses take almost no
/// time, or if nothing repeats in the rest. `work` is the total duration of all operations.
pub fn left_out(ops: &DeviceOps<'_>, host: &Host<'_>, span: (i64, i64), work: i64) -> Option<LeftOut> {
    let up_to = |part: f64| first_uses(ops, host, span, part * work as f64);
    let mut listen = up_to(START);
    let longer = up_to(LONG_START);
    // Those that come later do not belong to the start if more of them follow.
    if longer.until != listen.until && up_to(f64::INFINITY).until == longer.until {
        listen = longer;
    }
    let (until, what) = listen.until?;
    if (listen.idle as f64) < WORTH_IT * (span.1 - span.0) as f64 || until >= span.1 || !repeats_after(ops, until) {
        return None;
    }
    Some(LeftOut { phase: Phase::StartUp, what: format!("the start, up to {what}"), start: span.0, end: until, unrecorded: false })
}

/// Returns true if enough remains after a time, and the longest-running operation of the run repeats there.
fn repeats_after(ops: &DeviceOps<'_>, after: i64) -> bool {
    let launches = &ops.profile().launches;
    let mut sums: FxHashMap<(u32, Option<u32>), (i64, usize)> = FxHashMap::default();
    let mut left = 0;
    for op in ops.iter() {
        let late = usize::from(op.start >= after);
        left += late;
        let what = match op.row {
            OperationRow::Launch(row) => (launches.kernel(row as usize).0, launches.config(row as usize).map(|c| c.0)),
            OperationRow::Mem(_) => (u32::MAX, None),
            OperationRow::Graph(_) => (u32::MAX, Some(u32::MAX)),
        };
        let sum = sums.entry(what).or_default();
        *sum = (sum.0.saturating_add(op.end - op.start), sum.1 + late);
    }
    left >= LEFT && sums.values().max().is_some_and(|most| most.1 >= AGAIN)
}
