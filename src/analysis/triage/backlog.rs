//! Work that was launched before the recording began, and that may still have run at its beginning.

use super::attribution::{Gap, SweepListener, sweep_windows};
use super::device_ops::{DeviceOp, DeviceOps, Stream};
use super::host::Host;
use super::idle_causes::{Gaps, Piece};
use super::phase::{LeftOut, Phase};
use super::start::{LEFT, START, WORTH_IT, early_ops};
use super::time_category::Cause;
use rustc_hash::FxHashSet;

/// Minimum share of a gap during which the next operation must already have been launched.
const MOSTLY: f64 = 0.9;

struct Listen<'g> {
    gaps: Gaps<'g>,
    ops: &'g DeviceOps<'g>,
    pieces: Vec<Piece>,
    /// Streams on which an operation has started.
    started: FxHashSet<Stream>,
    /// Latest end of the operations on all devices so far, ns.
    latest: i64,
    /// Time in such gaps, ns, and the end of the last of them.
    idle: i64,
    until: Option<i64>,
}

impl SweepListener for Listen<'_> {
    fn gap(&mut self, gap: &Gap) {
        // If the first recorded operation of a stream waits although nothing recorded is running, it may wait for earlier
        // work that was not recorded: in its own stream, or in one that it depends on.
        let first_of_stream = gap.next.is_some_and(|op| !self.started.contains(&self.ops.stream_of(&op)));
        if !first_of_stream || self.latest > gap.start {
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        self.gaps.explain_gap(gap, &mut pieces);
        let queued: i64 = pieces.iter().filter(|p| p.cause == Cause::Queued).map(|p| p.end - p.start).sum();
        if queued as f64 >= MOSTLY * (gap.end - gap.start) as f64 {
            self.idle += queued;
            self.until = Some(gap.end);
        }
        self.pieces = pieces;
    }

    fn copy(&mut self, _: &DeviceOp, _: i64, _: i64) {}

    fn op(&mut self, op: &DeviceOp) {
        self.gaps.record_op(op);
        self.started.insert(self.ops.stream_of(op));
        self.latest = self.latest.max(op.end);
    }
}

/// Returns the beginning of a recording that began while the program ran, if operations wait there for work that must
/// have been launched before. The devices may have been busy then. `span` is the time from the first to the last
/// operation, `work` the total duration of all operations, ns.
pub fn left_out(ops: &DeviceOps<'_>, host: &Host<'_>, span: (i64, i64), work: i64) -> Option<LeftOut> {
    ops.profile().capture.gate.as_ref()?;
    let gaps = Gaps::new(ops, host);
    let mut listen = Listen { gaps, ops, pieces: Vec::new(), started: FxHashSet::default(), latest: i64::MIN, idle: 0, until: None };
    sweep_windows(early_ops(ops, START * work as f64), ops.units.len(), &[span], &mut listen);
    let until = listen.until?;
    if (listen.idle as f64) < WORTH_IT * (span.1 - span.0) as f64 || ops.iter().filter(|op| op.start >= until).nth(LEFT - 1).is_none() {
        return None;
    }
    let what = "the beginning: work that was launched before the recording may have run then".to_owned();
    Some(LeftOut { phase: Phase::StartUp, what, start: span.0, end: until, unrecorded: true })
}
