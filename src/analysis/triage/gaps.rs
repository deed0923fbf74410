//! Why a device had nothing to do: what the thread that launched the next operation did in the meantime.

use super::copies::CopyClass;
use super::first::{Firsts, SLOW_LAUNCH_NS};
use super::host::{CLOSE_NS, Host, Lane, Walk};
use super::ops::Ops;
use super::part::Cause;
pub use super::piece::Piece;
use super::sweep::Gap;
use crate::model::CallKind;
use rustc_hash::FxHashMap;

/// A launch whose call ended no longer than this before the device ran dry was on its way: from the end of the call to the start of the kernel
/// an H200 takes 2 to 10 µs under nsys.
const ON_ITS_WAY_NS: i64 = 10_000;

/// How long after its call an operation may begin without having waited for anything: launches of large graphs and first launches take tens of µs.
const UNDER_WAY_NS: i64 = 100_000;

/// Looks into gaps, which must come in order for each device.
pub struct Gaps<'a> {
    ops: &'a Ops<'a>,
    host: &'a Host<'a>,
    /// How far each thread was followed for each device.
    walks: FxHashMap<(usize, usize), Walk>,
    /// The thread that launched the last operation of each device.
    last: Vec<Option<usize>>,
    firsts: Firsts<'a>,
    /// First launches that loaded code: kernel, idle time in them, ns.
    pub loaded: Vec<(u32, i64)>,
}

/// How a thread's time is told apart.
struct Look<'a> {
    host: &'a Host<'a>,
    lane_id: usize,
    /// The thread that launched before, where it is another: this one may have waited for it.
    other: Option<usize>,
}

impl<'a> Gaps<'a> {
    #[must_use]
    pub fn new(ops: &'a Ops<'a>, host: &'a Host<'a>) -> Self {
        Self {
            ops,
            host,
            walks: FxHashMap::default(),
            last: vec![None; ops.units.len()],
            firsts: Firsts::of(ops.profile()),
            loaded: Vec::new(),
        }
    }

    /// What was used for the first time.
    #[must_use]
    pub fn firsts(&self) -> &Firsts<'a> {
        &self.firsts
    }

    /// Hears that an operation began, so that the thread that launches is known.
    pub fn op(&mut self, op: &super::ops::Op) {
        // Only threads of the same process hand over to each other; one process per device has one launching thread nearly always.
        if self.host.lanes.len() > 1
            && let Some(call) = self.ops.call(op)
            && let Some(last) = self.last.get_mut(op.unit)
        {
            *last = self.host.lane(call.pid, call.tid);
        }
    }

    /// The causes of a gap, in order of time; together they are as long as the gap.
    pub fn look(&mut self, gap: &Gap, out: &mut Vec<Piece>) {
        let (start, end) = gap.whole;
        self.causes(&Gap { start, end, ..*gap }, out);
        if (start, end) == (gap.start, gap.end) {
            return;
        }
        for piece in &mut *out {
            (piece.start, piece.end) = (piece.start.max(gap.start), piece.end.min(gap.end));
        }
        out.retain(|p| p.start < p.end);
    }

    fn causes(&mut self, gap: &Gap, out: &mut Vec<Piece>) {
        out.clear();
        let whole = |cause, lane| Piece { start: gap.start, end: gap.end, cause, at: gap.start, lane, name: None };
        // Nobody calls for a migration: a page is touched.
        if gap.next.and_then(|op| self.ops.mem_of(&op)).is_some_and(|m| CopyClass::of(&m) == CopyClass::Unified) {
            out.push(whole(Cause::Paging, None));
            return;
        }
        if gap.next.is_none() {
            out.push(whole(Cause::Ended, None));
            return;
        }
        let Some((op, call)) = gap.next.and_then(|op| Some((op, self.ops.call(&op)?))) else {
            out.push(whole(Cause::NoCall, None));
            return;
        };
        let Some(lane_id) = self.host.lane(call.pid, call.tid) else {
            out.push(whole(Cause::NoCall, None));
            return;
        };
        // A call whose end lies before the gap: its work was queued, and waited for something else than the host.
        if call.end.saturating_add(ON_ITS_WAY_NS) < gap.start {
            out.push(Piece { at: call.start, ..whole(Cause::Queued, Some(lane_id)) });
            return;
        }
        let lane = &self.host.lanes[lane_id];
        // A graph that begins with a copy is launched for its kernels, too.
        let copy = self.ops.mem_of(&op).is_some_and(|m| m.launch.is_none() && CopyClass::of(&m).of_host());
        let last = self.last.get(gap.unit).copied().flatten();
        let other = last.filter(|&l| l != lane_id && self.host.lanes[l].pid == lane.pid);
        let look = Look { host: self.host, lane_id, other };
        let walk = self.walks.entry((gap.unit, lane_id)).or_default();
        // Up to the calls that reach into the gap; what they were is kept.
        while let Some(outer) = walk.peek(self.host, lane).filter(|o| o.end <= gap.start && o.start < call.start) {
            walk.pass(self.host, lane, &outer);
        }
        let until = call.start.clamp(gap.start, gap.end);
        let mut walk = walk.clone();
        look.pieces(lane, &mut walk, (gap.start, until), call.start, out);
        if until < gap.end {
            // From the call on the operation is on its way.
            let sync = walk.blocked.filter(|b| call.start.saturating_sub(b.0) <= CLOSE_NS);
            // A kernel's first launch loads its code in the call.
            let loads = gap.end - until >= SLOW_LAUNCH_NS && self.firsts.slow_launch(&op);
            if let (true, super::ops::Row::Launch(row)) = (loads, op.row) {
                self.loaded.push((self.ops.profile().launches.kernel(row as usize).0, gap.end - until));
            }
            let cause = match (sync, copy) {
                _ if walk.capturing => Cause::Graph,
                _ if loads => Cause::Compile,
                (Some(_), _) => Cause::Sync,
                (None, true) => Cause::CopyCall,
                (None, false) => Cause::Launch,
            };
            let begun = call.end.max(until).saturating_add(UNDER_WAY_NS).min(gap.end);
            let name = sync.filter(|_| cause == Cause::Sync).and_then(|s| s.1);
            push(out, Piece { start: until, end: begun, cause, at: call.start, lane: Some(lane_id), name });
            push(out, Piece { start: begun, end: gap.end, cause: Cause::Queued, at: call.start, lane: Some(lane_id), name: None });
        }
        look.loads(gap, out);
        if copy {
            // What leads to a copy is its cost, not a kernel's.
            for piece in out.iter_mut().filter(|p| p.cause == Cause::Launch) {
                piece.cause = Cause::CopyCall;
            }
        }
    }
}

fn push(out: &mut Vec<Piece>, piece: Piece) {
    if piece.end <= piece.start {
        return;
    }
    match out.last_mut() {
        Some(last) if last.cause == piece.cause && last.name == piece.name && last.end == piece.start => last.end = piece.end,
        _ => out.push(piece),
    }
}

impl Look<'_> {
    /// What the thread did between two times, the second no later than the start of the call that ends the gap.
    fn pieces(&self, lane: &Lane, walk: &mut Walk, (from, until): (i64, i64), call: i64, out: &mut Vec<Piece>) {
        let mut at = from;
        while at < until {
            let next = walk.peek(self.host, lane).filter(|o| o.start < call);
            let begins = next.map_or(call, |o| o.start);
            if begins > at {
                let end = begins.min(until);
                self.between(lane, walk, (at, end), begins, out);
                at = end;
                continue;
            }
            let Some(outer) = next else { break };
            let end = outer.end.min(until);
            let cause = match outer.kind {
                _ if walk.capturing => Cause::Graph,
                CallKind::Launch | CallKind::GraphLaunch => Cause::Launch,
                CallKind::Sync => Cause::Sync,
                CallKind::Copy if outer.blocks => Cause::Sync,
                CallKind::Copy | CallKind::Set => Cause::CopyCall,
                CallKind::Alloc | CallKind::Free => Cause::Alloc,
                CallKind::Module => Cause::Compile,
                CallKind::Graph => Cause::Graph,
                _ if outer.end.saturating_sub(outer.start) <= CLOSE_NS => Cause::Launch,
                _ => Cause::OtherCall,
            };
            push(out, Piece { start: at, end, cause, at: outer.start, lane: Some(self.lane_id), name: outer.name });
            at = at.max(end);
            // A call that reaches beyond the gap is not passed: what it encloses would be gone through again for every gap.
            if at < until {
                walk.pass(self.host, lane, &outer);
            } else if outer.blocks {
                walk.blocked = Some((outer.end, outer.name));
            }
        }
    }

    /// What it did between two calls: `begins` is when the next one starts.
    fn between(&self, lane: &Lane, walk: &Walk, (from, to): (i64, i64), begins: i64, out: &mut Vec<Piece>) {
        let piece = |start, end, cause, name| Piece { start, end, cause, at: start, lane: Some(self.lane_id), name };
        if walk.capturing {
            push(out, piece(from, to, Cause::Graph, None));
            return;
        }
        if let Some((end, name)) = walk.blocked
            && begins.saturating_sub(end) <= CLOSE_NS
        {
            push(out, piece(from, to, Cause::Sync, name));
            return;
        }
        if walk.end.is_some_and(|end| begins.saturating_sub(end) <= CLOSE_NS) {
            push(out, piece(from, to, Cause::Launch, None));
            return;
        }
        // Work of its own, or a wait: for another thread, perhaps, that launches in the meantime.
        let other = self.other.and_then(|o| self.host.lanes.get(o));
        let mut at = from;
        let marks = |t: i64| {
            let edge = |i: &super::intervals::Intervals| i.within(t, to).next().map(|(a, b)| if a > t { a } else { b });
            let edges = [edge(&lane.waits), edge(&lane.works), other.and_then(|o| edge(&o.waits)), other.and_then(|o| edge(&o.works))];
            edges.into_iter().flatten().min().unwrap_or(to)
        };
        while at < to {
            let end = marks(at).clamp(at + 1, to);
            let is = |set: &super::intervals::Intervals| set.covered(at, end) > 0;
            let cause = if is(&lane.waits) {
                // It waits; if the one that it waits for works, that is what takes the time.
                match other {
                    Some(o) if is(&o.works) || o.certain && !is(&o.waits) => Cause::Compute,
                    _ => Cause::Wait,
                }
            } else if lane.certain || is(&lane.works) || other.is_some_and(|o| is(&o.works)) {
                Cause::Compute
            } else {
                Cause::Unknown
            };
            push(out, piece(at, end, cause, None));
            at = end;
        }
    }

    /// Code that is loaded in a gap was compiled, or read, before: what the thread did until then belongs to it.
    fn loads(&self, gap: &Gap, out: &mut [Piece]) {
        let call = out.iter().rfind(|p| p.cause == Cause::Compile).map(|p| p.start);
        let pid = self.host.lanes.get(self.lane_id).map(|l| l.pid);
        let at = self.host.loads.partition_point(|&(t, _)| t < gap.start);
        let lazy = self.host.loads[at..].iter().take_while(|l| l.0 < gap.end).find(|l| l.1.is_none() || l.1 == pid).map(|l| l.0);
        let Some(load) = call.max(lazy) else { return };
        for piece in out.iter_mut().filter(|p| p.start < load) {
            if matches!(piece.cause, Cause::Compute | Cause::Wait | Cause::Unknown) {
                piece.cause = Cause::Compile;
            }
        }
    }
}
