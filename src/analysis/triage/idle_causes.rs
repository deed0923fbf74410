//! Causes of idle gaps, derived from the activity of the thread that launched the next operation.

use super::attribution::Gap;
use super::copy_class::CopyClass;
use super::device_ops::DeviceOps;
use super::first::{FIRST_USE_LAUNCH_NS, Firsts};
use super::host::{CLOSE_NS, Host, Lane, Walk};
use super::host_samples::Wait;
use super::intervals::Intervals;
pub use super::piece::Piece;
use super::time_category::Cause;
use crate::model::{CallKind, Profile, times_without_requests};
use rustc_hash::FxHashMap;

/// Maximum launch latency, ns: a launch whose call ended at most this long before the device became idle may still have
/// been in flight. An H200 under nsys takes 2 to 10 µs from the end of the call to the start of the kernel.
const ON_ITS_WAY_NS: i64 = 10_000;

/// Maximum delay between the call and the start of an operation that did not have to wait, ns. Launches of large graphs
/// and first launches take tens of µs.
const UNDER_WAY_NS: i64 = 100_000;

/// Minimum length of a gap that may lie between two requests, ns. A server's metrics lag behind, so shorter gaps may
/// occur while a request is being processed even if the metrics show none.
const BETWEEN_REQUESTS_NS: i64 = 100_000_000;

/// Finds the causes of gaps, which must arrive in chronological order per device.
pub struct Gaps<'a> {
    ops: &'a DeviceOps<'a>,
    host: &'a Host<'a>,
    /// Position in a thread's calls, by unit and lane.
    walks: FxHashMap<(usize, usize), Walk>,
    /// Thread that launched the last operation on each device.
    last: Vec<Option<usize>>,
    firsts: Firsts<'a>,
    /// First launches that loaded code: kernel index, and idle time during the launch, ns.
    pub loaded: Vec<(u32, i64)>,
    /// Time during which a server had no requests.
    no_requests: Intervals,
    /// Start of the first call of each process, by process id; empty if a single process launches work.
    first_calls: FxHashMap<u32, i64>,
    /// Process of the last operation on each device.
    processes: Vec<Option<u32>>,
    /// Time during which a process captures or instantiates graphs, by process id.
    capturing: FxHashMap<u32, Captures>,
}

/// Times in which a process captures or instantiates graphs, and the thread that does, if it is the only one.
struct Captures {
    times: Intervals,
    thread: Option<u32>,
}

/// Thread and time of a capture or an instantiation.
type Capture = (u32, (i64, i64));

/// Time from the first call of a capture to its last one, and that of instantiations, by process id.
fn capturing_times(profile: &Profile) -> FxHashMap<u32, Captures> {
    let named = |word: &str| -> Vec<bool> { profile.calls.names.iter().map(|n| n.name.contains(word)).collect() };
    let (begins, ends, builds) = (named("StreamBeginCapture"), named("StreamEndCapture"), named("GraphInstantiate"));
    let mut out: FxHashMap<u32, Vec<Capture>> = FxHashMap::default();
    if !begins.contains(&true) && !builds.contains(&true) {
        return FxHashMap::default();
    }
    let mut open: FxHashMap<(u32, u32), i64> = FxHashMap::default();
    for row in 0..profile.calls.len() {
        let name = profile.calls.name[row] as usize;
        let is = |of: &[bool]| of.get(name).copied().unwrap_or_default();
        let thread = profile.calls.thread_of(row);
        let (start, end) = (profile.calls.start[row], profile.calls.start[row].saturating_add(profile.calls.duration[row]));
        if is(&begins) {
            open.entry(thread).or_insert(start);
        } else if is(&ends) {
            out.entry(thread.0).or_default().extend(open.remove(&thread).map(|began| (thread.1, (began, end))));
        } else if is(&builds) {
            out.entry(thread.0).or_default().push((thread.1, (start, end)));
        }
    }
    let captures = |list: Vec<Capture>| Captures {
        thread: list.first().map(|c| c.0).filter(|first| list.iter().all(|c| c.0 == *first)),
        times: list.into_iter().map(|c| c.1).collect(),
    };
    out.into_iter().map(|(pid, list)| (pid, captures(list))).collect()
}

/// Returns the start of the first call of each process that launches work, if there are several.
fn first_calls(profile: &Profile, host: &Host<'_>) -> FxHashMap<u32, i64> {
    let mut out: FxHashMap<u32, i64> = host.lanes.iter().map(|lane| (lane.pid, i64::MAX)).collect();
    if out.len() < 2 {
        return FxHashMap::default();
    }
    for row in 0..profile.calls.len() {
        if let Some(first) = out.get_mut(&profile.calls.thread_of(row).0) {
            *first = (*first).min(profile.calls.start[row]);
        }
    }
    for row in 0..profile.launches.len() {
        if let (Some(call), Some(first)) = (profile.launches.call(row), out.get_mut(&profile.launch_pid(row))) {
            *first = (*first).min(call.0);
        }
    }
    out
}

/// Context for classifying a thread's time during a gap.
struct Look<'a> {
    host: &'a Host<'a>,
    lane_id: usize,
    /// Thread that launched the previous operation, if it is another one: the current thread may have waited for it.
    other: Option<usize>,
}

impl<'a> Gaps<'a> {
    pub fn new(ops: &'a DeviceOps<'a>, host: &'a Host<'a>) -> Self {
        Self {
            ops,
            host,
            walks: FxHashMap::default(),
            last: vec![None; ops.units.len()],
            first_calls: first_calls(ops.profile(), host),
            processes: vec![None; ops.units.len()],
            firsts: Firsts::from_profile(ops.profile()),
            loaded: Vec::new(),
            capturing: capturing_times(ops.profile()),
            no_requests: times_without_requests(&ops.profile().server).into_iter().collect(),
        }
    }

    pub fn first_uses(&self) -> &Firsts<'a> {
        &self.firsts
    }

    /// Records the thread that launched an operation.
    pub fn record_op(&mut self, op: &super::device_ops::DeviceOp) {
        // Only threads of one process take turns; with one process per device, there is almost always a single
        // launching thread.
        if self.host.lanes.len() > 1
            && let Some(call) = self.ops.find_call(op)
            && let (Some(last), Some(process)) = (self.last.get_mut(op.unit), self.processes.get_mut(op.unit))
        {
            *last = self.host.lane_index(call.pid, call.tid);
            *process = Some(call.pid);
        }
    }

    /// Fills `out` with pieces that cover the gap in chronological order, each with one cause.
    pub fn explain_gap(&mut self, gap: &Gap, out: &mut Vec<Piece>) {
        let (start, end) = gap.whole;
        self.classify_gap(&Gap { start, end, ..*gap }, out);
        if !self.no_requests.is_empty() && gap.end - gap.start >= BETWEEN_REQUESTS_NS {
            self.split_by_requests(out);
        }
        for piece in &mut *out {
            piece.gap = (gap.start, gap.end);
            (piece.start, piece.end) = (piece.start.max(gap.start), piece.end.min(gap.end));
            piece.between = piece.between.min(piece.end - piece.start);
        }
        out.retain(|p| p.start < p.end);
    }

    /// Reassigns idle time on the host side to [`Cause::NoRequests`] where the server had no requests: it was waiting
    /// for one, even if its thread was active.
    fn split_by_requests(&self, out: &mut Vec<Piece>) {
        let mut split = Vec::with_capacity(out.len());
        for piece in out.drain(..) {
            if !matches!(piece.cause, Cause::Compute | Cause::Wait | Cause::Unknown | Cause::Ended) {
                split.push(piece);
                continue;
            }
            let mut at = piece.start;
            for (start, end) in self.no_requests.clipped_to(piece.start, piece.end) {
                split.extend((at < start).then_some(Piece { start: at, end: start, ..piece }));
                split.push(Piece { start, end, cause: Cause::NoRequests, name: None, ..piece });
                at = end;
            }
            split.extend((at < piece.end).then_some(Piece { start: at, ..piece }));
        }
        *out = split;
    }

    fn classify_gap(&mut self, gap: &Gap, out: &mut Vec<Piece>) {
        out.clear();
        let whole = |cause, lane| Piece { start: gap.start, end: gap.end, cause, at: gap.start, lane, name: None, between: 0, gap: (0, 0) };
        // A migration has no call: it is triggered by touching a page.
        if gap.next.and_then(|op| self.ops.mem_of(&op)).is_some_and(|m| CopyClass::from_mem_op(&m) == CopyClass::Unified) {
            out.push(whole(Cause::Paging, None));
            return;
        }
        if gap.next.is_none() {
            // Captured launches do not run on the device.
            let pid = self.ops.units.get(gap.unit).and_then(|u| u.pid);
            let mut at = gap.start;
            let captures = pid.and_then(|pid| self.capturing.get(&pid));
            let lane = pid.zip(captures.and_then(|c| c.thread)).and_then(|(pid, tid)| self.host.lane_index(pid, tid));
            for (start, end) in captures.into_iter().flat_map(|c| c.times.clipped_to(gap.start, gap.end)) {
                out.extend((at < start).then_some(Piece { start: at, end: start, ..whole(Cause::Ended, None) }));
                out.push(Piece { start, end, at: start, ..whole(Cause::Graph, lane) });
                at = end;
            }
            out.extend((at < gap.end).then_some(Piece { start: at, ..whole(Cause::Ended, None) }));
            return;
        }
        let Some((op, call)) = gap.next.and_then(|op| Some((op, self.ops.find_call(&op)?))) else {
            out.push(whole(Cause::NoCall, None));
            return;
        };
        let Some(lane_id) = self.host.lane_index(call.pid, call.tid) else {
            out.push(whole(Cause::NoCall, None));
            return;
        };
        // The call ended before the gap: its work was queued and waited for something other than the host.
        if call.end.saturating_add(ON_ITS_WAY_NS) < gap.start {
            out.push(Piece { at: call.start, ..whole(Cause::Queued, Some(lane_id)) });
            return;
        }
        let lane = &self.host.lanes[lane_id];
        // A copy that is part of a graph does not count: the graph was launched for its kernels as well.
        let copy = self.ops.mem_of(&op).is_some_and(|m| m.launch.is_none() && CopyClass::from_mem_op(&m).of_host());
        let last = self.last.get(gap.unit).copied().flatten();
        let other = last.filter(|&l| l != lane_id && self.host.lanes[l].pid == lane.pid);
        let look = Look { host: self.host, lane_id, other };
        let walk = self.walks.entry((gap.unit, lane_id)).or_default();
        // Skip the calls that end before the gap. `walk` keeps the state that they leave behind, such as an open
        // capture.
        while let Some(outer) = walk.peek_call(self.host, lane).filter(|o| o.end <= gap.start && o.start < call.start) {
            walk.pass_call(self.host, lane, &outer);
        }
        let until = call.start.clamp(gap.start, gap.end);
        let mut walk = walk.clone();
        let after_another = self.processes.get(gap.unit).copied().flatten().is_some_and(|pid| pid != call.pid);
        let first_call = self.first_calls.get(&call.pid).filter(|_| after_another).map_or(gap.start, |&t| t.clamp(gap.start, until));
        push(out, Piece { end: first_call, ..whole(Cause::Absent, None) });
        look.classify_span(lane, &mut walk, (first_call, until), call.start, out);
        if until < gap.end {
            // From the start of the call on, the launch is in flight.
            let sync = walk.blocked.filter(|b| call.start.saturating_sub(b.0) <= CLOSE_NS);
            // The first launch of a kernel loads its code during the call.
            let loads = gap.end - until >= FIRST_USE_LAUNCH_NS && self.firsts.slow_launch(&op);
            if let (true, super::device_ops::OperationRow::Launch(row)) = (loads, op.row) {
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
            push(out, Piece { start: until, end: begun, cause, at: call.start, lane: Some(lane_id), name, between: 0, gap: (0, 0) });
            push(out, Piece { start: begun, at: call.start, ..whole(Cause::Queued, Some(lane_id)) });
        }
        look.reclassify_loads(gap, out);
        if copy {
            // The time to launch a copy is a cost of the copy, not of a kernel.
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
        Some(last) if last.cause == piece.cause && last.lane == piece.lane && last.name == piece.name && last.end == piece.start => {
            last.end = piece.end;
            last.between += piece.between;
        }
        _ => out.push(piece),
    }
}

impl Look<'_> {
    /// Classifies what the thread did between `from` and `until`. `until` is no later than `call`, the start of the
    /// call that ends the gap.
    fn classify_span(&self, lane: &Lane, walk: &mut Walk, (from, until): (i64, i64), call: i64, out: &mut Vec<Piece>) {
        let mut at = from;
        while at < until {
            let next = walk.peek_call(self.host, lane).filter(|o| o.start < call);
            let begins = next.map_or(call, |o| o.start);
            if begins > at {
                let end = begins.min(until);
                self.classify_between_calls(lane, walk, (at, end), begins, out);
                at = end;
                continue;
            }
            let Some(outer) = next else { break };
            let end = outer.end.min(until);
            let cause = match outer.kind {
                _ if walk.capturing => Cause::Graph,
                CallKind::Launch | CallKind::GraphLaunch => Cause::Launch,
                CallKind::Sync => Cause::Sync,
                _ if walk.polls > 0 && self.host.is_poll(&outer) => Cause::Sync,
                CallKind::Copy if outer.blocks => Cause::Sync,
                CallKind::Copy | CallKind::Set => Cause::CopyCall,
                CallKind::Alloc | CallKind::Free => Cause::Alloc,
                CallKind::Module => Cause::Compile,
                CallKind::Graph => Cause::Graph,
                _ if outer.end.saturating_sub(outer.start) <= CLOSE_NS => Cause::Launch,
                _ => Cause::OtherCall,
            };
            push(
                out,
                Piece { start: at, end, cause, at: outer.start, lane: Some(self.lane_id), name: outer.name, between: 0, gap: (0, 0) },
            );
            at = at.max(end);
            // Do not pass a call that extends beyond the gap; otherwise, its nested calls would be walked again for
            // every gap.
            if at < until {
                walk.pass_call(self.host, lane, &outer);
            } else if outer.blocks {
                walk.blocked = Some((outer.end, outer.name));
            }
        }
    }

    /// Classifies the time between two calls; `begins` is the start of the next call.
    fn classify_between_calls(&self, lane: &Lane, walk: &Walk, (from, to): (i64, i64), begins: i64, out: &mut Vec<Piece>) {
        let piece =
            |start, end, cause, name| Piece { start, end, cause, at: start, lane: Some(self.lane_id), name, between: 0, gap: (0, 0) };
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
            push(out, Piece { between: to - from, ..piece(from, to, Cause::Launch, None) });
            return;
        }
        // The thread worked or waited, perhaps for another thread that launches work in the meantime.
        let other = self.other.and_then(|o| self.host.lanes.get(o));
        let (samples, profile) = (self.host.samples.get(self.lane_id), self.host.profile());
        let wait = |from, to| samples.and_then(|s| s.wait_outside(from, to, self.other.and_then(|o| self.host.samples.get(o))));
        let mut at = from;
        let marks = |t: i64| {
            let edge = |i: &super::intervals::Intervals| i.clipped_to(t, to).next().map(|(a, b)| if a > t { a } else { b });
            let edges = [edge(&lane.waits), edge(&lane.works), other.and_then(|o| edge(&o.waits)), other.and_then(|o| edge(&o.works))];
            edges.into_iter().flatten().min().unwrap_or(to)
        };
        while at < to {
            let end = marks(at).clamp(at + 1, to);
            let is = |set: &super::intervals::Intervals| set.covered_length(at, end) > 0;
            let (cause, by_other) = if is(&lane.waits) {
                // If the thread waits for another one that is working, the time counts as computing.
                match other {
                    Some(o) if is(&o.works) || o.certain && at < o.seen_until && !is(&o.waits) => (Cause::Compute, true),
                    Some(o) if !is(&o.waits) && wait(at, end) == Some(Wait::ForOther) => (Cause::Compute, true),
                    // It waits for the interpreter lock, held by another thread that computes.
                    _ if samples.is_some_and(|s| s.waits_for_interpreter(profile, at, end)) => (Cause::Compute, false),
                    _ => (Cause::Wait, false),
                }
            } else if lane.certain || is(&lane.works) {
                (Cause::Compute, false)
            } else if other.is_some_and(|o| is(&o.works)) {
                (Cause::Compute, true)
            } else {
                match wait(at, end) {
                    Some(Wait::Alone) => (Cause::Wait, false),
                    Some(Wait::None) => (Cause::Compute, false),
                    Some(Wait::ForOther) => (Cause::Compute, true),
                    None => (Cause::Unknown, false),
                }
            };
            // Attribute the piece to the thread that works, whose line is to be shown.
            let working = self.other.filter(|_| by_other).unwrap_or(self.lane_id);
            push(out, Piece { lane: Some(working), ..piece(at, end, cause, None) });
            at = end;
        }
    }

    /// Reclassifies the host's time before a code load as compilation, on the assumption that the code was being
    /// compiled or read.
    fn reclassify_loads(&self, gap: &Gap, out: &mut [Piece]) {
        let call = out.iter().rfind(|p| p.cause == Cause::Compile).map(|p| p.start);
        let pid = self.host.lanes.get(self.lane_id).map(|l| l.pid);
        let at = self.host.loads.partition_point(|&(t, _)| t < gap.start);
        let lazy = self.host.loads[at..].iter().take_while(|l| l.0 < gap.end).find(|l| l.1.is_none() || l.1 == pid).map(|l| l.0);
        let Some(load) = call.max(lazy) else { return };
        for piece in out.iter_mut().filter(|p| p.start < load) {
            if matches!(piece.cause, Cause::Compute | Cause::Wait | Cause::Unknown) {
                (piece.cause, piece.between) = (Cause::Compile, piece.end - piece.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallName, Nanos, Source};

    #[test]
    fn captures_last_from_their_first_call_to_their_last_one() {
        let mut profile = Profile::new(Source::default());
        assert!(capturing_times(&profile).is_empty());
        profile.calls.names = ["hipStreamBeginCapture", "hipStreamEndCapture", "hipGraphInstantiateWithFlags", "hipLaunchKernel"]
            .map(|name| CallName::new(name.into(), 4, Nanos(20)))
            .to_vec();
        profile.calls.threads = vec![(7, 1), (7, 2), (8, 1)];
        // A launch, a capture with an instantiation after it, one that does not end, and another process.
        for (name, thread, start) in [(3, 0, 10), (0, 0, 100), (3, 0, 150), (0, 1, 160), (1, 0, 200), (2, 0, 300), (2, 2, 400)] {
            profile.calls.start.push(start);
            profile.calls.duration.push(5);
            profile.calls.name.push(name);
            profile.calls.thread.push(thread);
        }
        let found = capturing_times(&profile);
        let of = |pid: u32| found[&pid].times.as_slice().to_vec();
        assert_eq!((of(7), of(8)), (vec![(100, 205), (300, 305)], vec![(400, 405)]));
        assert_eq!((found[&7].thread, found[&8].thread), (Some(1), Some(1)), "a capture that does not end is none");
    }
}
