//! Reasons for idle time before an operation that had already been launched: an event, a host function, another device.

use super::gather::PAUSE_NS;
use super::piece::Piece;
use super::run_context::RunContext;
use super::time_category::Cause;
use crate::model::CallKind;
use crate::model::units::format_share;

/// Maximum latency between the end of work on one device and the start of dependent work on another, ns; an assumption,
/// well above the few µs that an event between two GPUs of one host takes.
const HAND_OVER_NS: i64 = 50_000;
/// Maximum number of gaps to examine, longest first.
const LOOKED_AT: usize = 10_000;
/// Minimum share of the time for a reason to be named.
const NAMED: f64 = 0.1;

/// Reason why an operation waits in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A host function in the stream (`cudaLaunchHostFunc`).
    HostFunction,
    /// Work on another device that had just ended.
    OtherDevice,
    /// An event (`cudaStreamWaitEvent`) without recorded work that explains the wait: the work belongs to another
    /// process or was recorded late.
    Event,
    Unknown,
}

impl Reason {
    const ALL: [Self; 4] = [Self::HostFunction, Self::OtherDevice, Self::Event, Self::Unknown];

    fn words(self) -> &'static str {
        match self {
            Self::HostFunction => "a host function that was launched before it",
            Self::OtherDevice => "work of another device, which ended just before",
            Self::Event => "an event that its stream was told to wait for",
            Self::Unknown => "something that was not recorded",
        }
    }
}

/// Reasons with the total time that operations waited for them, ns, longest first.
pub fn find_reasons(case: &RunContext<'_>) -> Vec<(Reason, i64)> {
    let gaps = || case.pieces.get(&Cause::Queued).into_iter().flatten().filter(|p| p.end - p.start > PAUSE_NS).take(LOOKED_AT);
    let times = if case.devices.len() > 1 { Times::from_ops(case) } else { Times::default() };
    let calls = calls_in_order(case);
    let mut sums = [0_i64; Reason::ALL.len()];
    for gap in gaps() {
        sums[reason(case, gap, &times, &calls) as usize] += gap.end - gap.start;
    }
    let mut out: Vec<(Reason, i64)> = Reason::ALL.into_iter().zip(sums).filter(|r| r.1 > 0).collect();
    out.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    out
}

/// Tests whether a recorded reason accounts for most of the time.
pub fn is_known(reasons: &[(Reason, i64)]) -> bool {
    let all: i64 = reasons.iter().map(|r| r.1).sum();
    let known: i64 = reasons.iter().filter(|r| r.0 != Reason::Unknown).map(|r| r.1).sum();
    known * 2 > all
}

/// Describes the reasons, in order of time: `it may have waited for a host function that was launched before it (80%)`.
pub fn describe_reasons(reasons: &[(Reason, i64)]) -> String {
    let all = reasons.iter().map(|r| r.1).sum::<i64>().max(1) as f64;
    let named: Vec<(Reason, f64)> = reasons.iter().map(|&(r, ns)| (r, ns as f64 / all)).filter(|r| r.1 >= NAMED).collect();
    match named.as_slice() {
        [] | [(Reason::Unknown, _)] => "it waited for another stream, device or host function, which was not recorded".to_owned(),
        some => {
            let each: Vec<String> = some.iter().map(|(r, share)| format!("{} ({})", r.words(), format_share(*share))).collect();
            format!("it may have waited for {}", each.join(" or "))
        }
    }
}

/// Times of operations with their devices, in order.
#[derive(Default)]
struct Times {
    starts: Vec<(i64, usize)>,
    ends: Vec<(i64, usize)>,
}

impl Times {
    fn from_ops(case: &RunContext<'_>) -> Self {
        let mut ends: Vec<(i64, usize)> = case.ops.iter().map(|op| (op.end, op.unit)).collect();
        ends.sort_unstable();
        Self { starts: case.ops.iter().map(|op| (op.start, op.unit)).collect(), ends }
    }

    /// Returns true if work on another device ended just before the operation that ends this gap.
    fn ended_elsewhere(&self, gap: &Piece) -> bool {
        let next = self.starts.partition_point(|s| s.0 < gap.end);
        let Some((_, own)) = self.starts.get(next).filter(|s| s.0 == gap.end) else { return false };
        let last = self.ends.partition_point(|e| e.0 <= gap.end);
        let recent = self.ends[..last].iter().rev().take_while(|e| e.0 >= gap.end - HAND_OVER_NS && e.0 > gap.start);
        recent.filter(|e| e.1 != *own).count() > 0
    }
}

/// Calls that enqueue a host function or an event wait, as (thread, start, reason), sorted by thread and start.
fn calls_in_order(case: &RunContext<'_>) -> Vec<((u32, u32), i64, Reason)> {
    let calls = &case.profile.calls;
    let mut out: Vec<((u32, u32), i64, Reason)> = (0..calls.len())
        .filter_map(|row| {
            let name = calls.call_name(row)?;
            let reason = match name.kind {
                CallKind::HostFunction => Reason::HostFunction,
                CallKind::Event if name.name.contains("StreamWaitEvent") => Reason::Event,
                _ => return None,
            };
            Some((calls.thread_of(row), calls.start[row], reason))
        })
        .collect();
    out.sort_unstable_by_key(|c| (c.0, c.1));
    out
}

fn reason(case: &RunContext<'_>, gap: &Piece, times: &Times, calls: &[((u32, u32), i64, Reason)]) -> Reason {
    let Some(lane) = gap.lane.and_then(|l| case.host.lanes.get(l)) else { return Reason::Unknown };
    // Only the call directly before the launch counts, because an earlier one may concern another stream.
    let until = calls.partition_point(|c| (c.0, c.1) < ((lane.pid, lane.tid), gap.at));
    let call = until.checked_sub(1).and_then(|at| calls.get(at)).filter(|c| c.0 == (lane.pid, lane.tid));
    let call = call.filter(|c| !case.host.launches_between(lane, c.1, gap.at));
    if let Some((_, _, Reason::HostFunction)) = call {
        return Reason::HostFunction;
    }
    if times.ended_elsewhere(gap) {
        return Reason::OtherDevice;
    }
    call.map_or(Reason::Unknown, |c| c.2)
}
