//! Accumulates the totals of a run while its operations are swept: idle time by cause, step and slice, and statistics
//! of kernels and copies.

use super::attribution::{Gap, SweepListener};
use super::copy_class::{Copies, CopyClass};
use super::device_ops::{Class, DeviceOp, DeviceOps, OperationRow};
use super::host::Host;
use super::host_lines::LineGather;
use super::idle_causes::{Gaps, Piece};
use super::judged_time::JudgedTime;
use super::kernels::Kernels;
use super::spread::Spreads;
use super::step_sketch::Sketch;
use super::steps::Steps;
use super::time_category::{ByCause, Cause, TimeCategory};
use crate::model::{Cancel, MemOpKind, Profile};
use rustc_hash::FxHashMap;

/// Maximum number of pieces to keep per cause, longest first, for locating the idle time in the program.
pub const LONGEST: usize = 1 << 16;

/// Maximum number of steps to evaluate individually.
pub const MOST_STEPS: usize = 200_000;
/// Number of slices in the busy-over-time strip.
pub const STRIP: usize = 240;

/// Categories in which the device is busy. Their order must match the enum, whose discriminants index the strip.
pub const RUNNING: [TimeCategory; 3] = [TimeCategory::Kernels, TimeCategory::Collectives, TimeCategory::Copies];

/// Maximum pause between two queued operations that the device itself accounts for, ns. Such pauses usually take 1 to
/// 2 µs on an H200; a longer one has another reason.
pub const PAUSE_NS: i64 = 5_000;

/// Device time in one step, ns, summed over devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepTime {
    pub idle: ByCause,
    /// Time of exposed copies.
    pub copies: i64,
    /// Launches in the step, by kernel.
    pub kernels: Sketch,
    /// Launches in the step, by kernel and launch configuration.
    pub launches: Sketch,
    /// Graph launches, kernels in graphs, and kernels launched individually. A graph recorded as a whole counts as one
    /// kernel.
    pub graphs: u32,
    pub graph_kernels: u32,
    pub single_kernels: u32,
}

/// Idle time attributed to calls with the same name, for one cause: total in ns, and number of gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct AfterCall {
    pub ns: i64,
    pub gaps: u64,
}

/// Accumulates the results of a sweep.
pub struct Gather<'a, 'g> {
    pub case_ops: &'g DeviceOps<'a>,
    pub host: &'g Host<'a>,
    pub gaps: Gaps<'g>,
    pub steps: &'g Steps,
    pub idle: Vec<ByCause>,
    pub per_step: Vec<StepTime>,
    pub kernels: Kernels,
    pub copies: Copies,
    pub after: FxHashMap<(Cause, u32), AfterCall>,
    pub pieces: Vec<Vec<Piece>>,
    pub copy_pieces: FxHashMap<CopyClass, Vec<Piece>>,
    /// Longest piece of time in which only collectives ran.
    pub exposed_collective: Option<(i64, i64)>,
    pub pauses: i64,
    /// Per device: the latest end of any operation so far, and true if that operation is a copy from or to pageable
    /// memory.
    pub ended: Vec<(i64, bool)>,
    /// Idle time at synchronizations after copies from or to pageable memory, ns.
    pub after_pageable: i64,
    pub spreads: Spreads,
    pub lines: LineGather,
    /// Start of the first and the last call that launched an operation; only collected if `shapes` is set.
    pub called: Option<(i64, i64)>,
    pub shapes: bool,
    pub buffer: Vec<Piece>,
    /// Time in each slice by running category, summed over devices, as a share of the slice.
    pub strip: Vec<[f64; RUNNING.len()]>,
    pub why: Vec<ByCause>,
    pub window: (i64, i64),
    /// Analyzed parts of the window.
    pub judged: JudgedTime,
    /// Start of the call that launched the last kernel's graph.
    pub last_graph: Option<i64>,
    pub cancel: &'g Cancel,
}

impl<'a, 'g> Gather<'a, 'g> {
    /// Starts with empty totals.
    pub fn new(
        profile: &Profile,
        ops: &'g DeviceOps<'a>,
        host: &'g Host<'a>,
        steps: &'g Steps,
        (window, windows): ((i64, i64), &[(i64, i64)]),
        cancel: &'g Cancel,
    ) -> Self {
        Self {
            case_ops: ops,
            host,
            gaps: Gaps::new(ops, host),
            steps,
            idle: vec![ByCause::default(); ops.units.len()],
            per_step: if steps.list.len() <= MOST_STEPS { vec![StepTime::default(); steps.list.len()] } else { Vec::new() },
            kernels: Kernels::new(profile),
            copies: Copies::default(),
            after: FxHashMap::default(),
            pieces: vec![Vec::new(); Cause::ALL.len()],
            copy_pieces: FxHashMap::default(),
            exposed_collective: None,
            pauses: 0,
            ended: vec![(i64::MIN, false); ops.units.len()],
            after_pageable: 0,
            spreads: Spreads::default(),
            lines: LineGather::from_profile(profile),
            called: None,
            shapes: !profile.ranges.texts.is_empty(),
            buffer: Vec::new(),
            strip: vec![[0.0; RUNNING.len()]; STRIP],
            why: vec![ByCause::default(); STRIP],
            window,
            judged: JudgedTime::from_windows(windows),
            last_graph: None,
            cancel,
        }
    }
}

impl SweepListener for Gather<'_, '_> {
    fn gap(&mut self, gap: &Gap) {
        if self.cancel.is_cancelled() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.gaps.explain_gap(gap, &mut buffer);
        self.spreads.add_gap(gap.unit, &buffer);
        let copy = gap.next.and_then(|op| self.case_ops.mem_of(&op)).filter(|mem| mem.launch.is_none());
        for piece in &buffer {
            self.add_cause_slices(piece);
            self.lines.add_piece(self.case_ops.profile(), self.host, piece);
            if piece.cause == Cause::Queued {
                self.pauses += (piece.end - piece.start).min(PAUSE_NS);
            }
            let ns = piece.end - piece.start;
            if piece.cause == Cause::Sync && self.ended.get(gap.unit).is_some_and(|e| e.1) {
                self.after_pageable += ns;
            }
            if let Some(idle) = self.idle.get_mut(gap.unit) {
                idle.add(piece.cause, ns);
            }
            if !self.per_step.is_empty() {
                // Steps that are marked by ranges begin and end within idle time.
                for (step, ns) in self.steps.parts_of(piece.start, piece.end) {
                    self.per_step[step].idle.add(piece.cause, ns);
                }
            }
            if let Some(name) = piece.name {
                let after = self.after.entry((piece.cause, name)).or_default();
                after.ns += ns;
                after.gaps += 1;
            }
            if let (Cause::CopyCall, Some(mem)) = (piece.cause, &copy)
                && let MemOpKind::Copy { .. } = mem.kind
            {
                let class = CopyClass::from_mem_op(mem);
                self.copies.add_idle(class, ns);
                self.copy_piece(class, *piece);
            }
            let kept = &mut self.pieces[piece.cause as usize];
            kept.push(*piece);
            if kept.len() >= LONGEST * 2 {
                keep_longest(kept);
            }
        }
        self.buffer = buffer;
    }

    fn busy(&mut self, category: TimeCategory, start: i64, end: i64) {
        if category == TimeCategory::Collectives && self.exposed_collective.is_none_or(|(from, to)| to - from < end - start) {
            self.exposed_collective = Some((start, end));
        }
        self.add_busy_slices(category, start, end);
    }

    fn copy(&mut self, op: &DeviceOp, start: i64, end: i64) {
        if let Some(class) = self.case_ops.copy_class(op) {
            self.copies.add_exposed(class, end - start, (start, end));
            if let Some(call) = self.case_ops.find_call(op) {
                let lane = self.host.lane_index(call.pid, call.tid);
                self.copy_piece(
                    class,
                    Piece { start, end, cause: Cause::CopyCall, at: call.start, lane, name: None, between: 0, gap: (start, end) },
                );
            }
        }
        if let Some(step) = self.steps.step_at(start).and_then(|s| self.per_step.get_mut(s)) {
            step.copies += end - start;
        }
    }

    fn op(&mut self, op: &DeviceOp) {
        self.gaps.record_op(op);
        if self.shapes
            && let Some(call) = self.case_ops.find_call(op)
        {
            let (first, last) = self.called.unwrap_or((call.start, call.start));
            self.called = Some((first.min(call.start), last.max(call.start)));
        }
        match op.class {
            Class::Copy => match self.case_ops.mem_of(op) {
                Some(mem) => {
                    let class = CopyClass::from_mem_op(&mem);
                    self.copies.add_copy(class, &mem);
                    self.record_end(op, class == CopyClass::Pageable);
                }
                None => {
                    self.copies.add_blit(self.case_ops.copy_class(op).unwrap_or(CopyClass::Device), op.end - op.start);
                    self.record_end(op, false);
                }
            },
            _ => {
                self.record_end(op, false);
                self.kernels.add_kernel(op, self.case_ops, self.window);
                self.add_step_work(op);
            }
        }
    }
}

impl Gather<'_, '_> {
    fn record_end(&mut self, op: &DeviceOp, pageable: bool) {
        if let Some(last) = self.ended.get_mut(op.unit).filter(|last| last.0 <= op.end) {
            *last = (op.end, pageable);
        }
    }

    /// Counts a kernel or graph toward the sketches and launch counts of its step.
    fn add_step_work(&mut self, op: &DeviceOp) {
        if self.per_step.is_empty() {
            return;
        }
        let (kernel, launch) = match op.row {
            OperationRow::Launch(row) => {
                let launches = &self.case_ops.profile().launches;
                let (kernel, row) = (launches.kernel(row as usize).0, row as usize);
                (u64::from(kernel), launches.config(row).map_or(u64::MAX, |c| u64::from(c.0)))
            }
            OperationRow::Graph(g) => (u64::MAX, self.case_ops.profile().graphs.get(g as usize).map_or(0, |g| g.graph)),
            OperationRow::Mem(_) => return,
        };
        let graph = match op.row {
            OperationRow::Graph(_) => Some(op.start),
            _ => self.case_ops.in_graph(op).and_then(|_| self.case_ops.find_call(op)).map(|call| call.start),
        };
        let another = graph.is_some() && std::mem::replace(&mut self.last_graph, graph) != graph;
        if let Some(step) = self.steps.step_at(op.start).and_then(|s| self.per_step.get_mut(s)) {
            step.kernels.add_launch((kernel, 0));
            step.launches.add_launch((kernel, launch));
            step.graphs += u32::from(another);
            step.graph_kernels += u32::from(graph.is_some());
            step.single_kernels += u32::from(graph.is_none());
        }
    }

    fn copy_piece(&mut self, class: CopyClass, piece: Piece) {
        let kept = self.copy_pieces.entry(class).or_default();
        kept.push(piece);
        if kept.len() >= LONGEST * 2 {
            keep_longest(kept);
        }
    }

    /// Spreads a piece of idle time evenly over the slices that it overlaps.
    fn add_cause_slices(&mut self, piece: &Piece) {
        let width = self.judged.length() as f64 / STRIP as f64;
        let slice = |t: i64| ((self.judged.position(t) as f64 / width) as usize).min(STRIP - 1);
        let (from, to) = (slice(piece.start), slice(piece.end));
        let each = (piece.end - piece.start) / i64::try_from(to - from + 1).unwrap_or(1);
        for causes in &mut self.why[from..=to] {
            causes.add(piece.cause, each);
        }
    }

    /// Adds time in a running category to the slices of the strip.
    fn add_busy_slices(&mut self, category: TimeCategory, start: i64, end: i64) {
        let width = self.judged.length() as f64 / STRIP as f64;
        let (from, to) = (self.judged.position(start) as f64 / width, self.judged.position(end) as f64 / width);
        for slice in (from as usize)..=(to as usize).min(STRIP - 1) {
            let covered = to.min(slice as f64 + 1.0) - from.max(slice as f64);
            self.strip[slice][category as usize] += covered.max(0.0);
        }
    }
}

/// Keeps the [`LONGEST`] longest pieces.
pub fn keep_longest(pieces: &mut Vec<Piece>) {
    if pieces.len() > LONGEST {
        pieces.select_nth_unstable_by_key(LONGEST, |p| (std::cmp::Reverse(p.end - p.start), p.start));
        pieces.truncate(LONGEST);
    }
}
