//! Times that cannot be, told by the report as a whole: what has none, what lies outside of the run, and kernels that run over later ones of their
//! own stream. It is decided here, so that all screens agree; what was decided stands in the ledger.

use crate::model::memop::MemOps;
use crate::model::{Launches, Profile};
use rustc_hash::FxHashMap;

/// The clocks of host and GPU differ by less: a kernel that starts earlier than this before its launch has no valid time, ns.
const SKEW_NS: i64 = 1_000_000_000;
/// A time is outside the run if it is this far from all others, and farther than the run is long (to the end: ten times that, as queues are long), ns.
const AWAY_NS: i64 = 60_000_000_000;
/// Kernels of one stream follow each other; in real traces they overlapped by 13 µs at most.
const OVERLAP_NS: i64 = 100_000;
/// Share of the launches above which something is no damage of single records, but means something else.
const MOST_UNTIMED: f64 = 0.5;
const MOST_OVERRUN: f64 = 0.05;

/// Puts right what can be, and counts it in the ledger.
pub fn mend(profile: &mut Profile) {
    if profile.metrics.is_some() || profile.ranges.hardware() {
        return;
    }
    if !profile.launches.timed() {
        let n = profile.launches.len();
        let without =
            if profile.launches.short_durations().is_some() { 0 } else { (0..n).filter(|&r| !profile.launches.has_duration(r)).count() };
        profile.coverage.untimed = if without < n { without as u64 } else { 0 };
        return;
    }
    let run = run(profile);
    untimed(profile, run);
    untimed_copies(profile, run);
    overrun(profile);
}

/// The time in which the program ran, generously: around its calls, or around all but the outermost kernels.
fn run(profile: &Profile) -> (i64, i64) {
    let launches = &profile.launches;
    let called = (0..launches.len()).filter_map(|row| launches.call(row)).map(|c| c.0);
    let calls = called.chain(profile.calls.start.iter().copied()).fold((i64::MAX, i64::MIN), |(a, b), t| (a.min(t), b.max(t)));
    let (first, last) = if calls.0 <= calls.1 { calls } else { middle(launches) };
    let length = last.saturating_sub(first).max(AWAY_NS);
    (first.saturating_sub(length), last.saturating_add(length.saturating_mul(10)))
}

/// From the 20th to the 80th of a hundred starts.
fn middle(launches: &Launches) -> (i64, i64) {
    let mut starts: Vec<i64> = (0..launches.len()).filter(|&r| launches.has_duration(r)).map(|r| launches.start(r)).collect();
    let n = starts.len();
    if n == 0 {
        return (0, 0);
    }
    let (low, high) = (n / 5, n - 1 - n / 5);
    let first = *starts.select_nth_unstable(low).1;
    (first, *starts.select_nth_unstable(high).1)
}

fn untimed(profile: &mut Profile, run: (i64, i64)) {
    let launches = &profile.launches;
    let without = |row: usize| !launches.has_duration(row) || (launches.start(row), launches.duration(row)) == (0, 0);
    let away = |row: usize| {
        let start = launches.start(row);
        !(run.0..=run.1).contains(&start) || launches.call(row).is_some_and(|(call, _)| start < call.saturating_sub(SKEW_NS))
    };
    let mut bad: Vec<usize> = (0..launches.len()).filter(|&row| without(row) || away(row)).collect();
    if bad.len() as f64 > launches.len() as f64 * MOST_UNTIMED {
        // Where it is most of them, the clocks do not agree.
        bad.retain(|&row| without(row));
    }
    if bad.is_empty() || bad.len() == launches.len() {
        return;
    }
    // They stand where they were launched, or at the first time that is one: nothing stretches to reach them.
    let mut sound = bad.iter().copied().peekable();
    let first = (0..launches.len()).filter(|row| sound.next_if_eq(row).is_none()).map(|row| launches.start(row)).min().unwrap_or_default();
    let at = |row: usize| launches.call(row).map_or(first, |(call, cost)| call.saturating_add(cost).max(first));
    let rows: Vec<(u32, i64, Option<i64>)> = bad.iter().filter_map(|&row| Some((u32::try_from(row).ok()?, at(row), None))).collect();
    profile.coverage.untimed = rows.len() as u64;
    profile.launches.retime(&rows);
}

fn untimed_copies(profile: &mut Profile, run: (i64, i64)) {
    let n = profile.memops.len();
    let sound = |op: &crate::model::MemOp| (op.start.0, op.duration.0) != (0, 0) && (run.0..=run.1).contains(&op.start.0);
    let kept = profile.memops.iter().filter(sound).count();
    if kept == n || ((n - kept) as f64) > n as f64 * MOST_UNTIMED {
        return;
    }
    profile.memops = profile.memops.iter().filter(sound).collect::<MemOps>();
    profile.coverage.untimed_copies = (n - kept) as u64;
}

/// Process, device, context and stream.
type Lane = (Option<u32>, Option<u32>, Option<u32>, u32);

/// The kernel of a stream that ends last so far, and when the one after it began.
#[derive(Clone, Copy)]
struct Open {
    row: usize,
    end: i64,
    next: Option<i64>,
}

/// Cuts kernels that still run when a later one of their stream has long ended. Nodes of graphs run in branches, whatever stream they are said to be of,
/// and a kernel that was launched early (programmatic dependent launch) ends after the one that it waits for.
fn overrun(profile: &mut Profile) {
    let launches = &profile.launches;
    // Tracks of other tools hold slices in each other.
    if !matches!(profile.source.tool.as_str(), "nsys" | "torch" | "trace" | "rocprofv3" | "rpd") {
        return;
    }
    let mut lanes: FxHashMap<Lane, usize> = FxHashMap::default();
    let of_place: Vec<Option<usize>> = profile
        .places
        .iter()
        .map(|p| {
            let next = lanes.len();
            Some(*lanes.entry((p.pid, p.device.or(p.ordinal), p.context, p.stream?)).or_insert(next))
        })
        .collect();
    let mut open: Vec<Option<Open>> = vec![None; lanes.len()];
    let mut cut: FxHashMap<usize, i64> = FxHashMap::default();
    for row in (0..launches.len()).filter(|&r| launches.graph_node(r).is_none() && launches.has_duration(r)) {
        let Some(lane) = launches.place(row).and_then(|p| *of_place.get(p.0 as usize)?) else { continue };
        let (start, end) = (launches.start(row), launches.end(row));
        let Some(before) = &mut open[lane] else {
            open[lane] = Some(Open { row, end, next: None });
            continue;
        };
        if start >= launches.start(before.row) {
            let next = *before.next.get_or_insert(start);
            if end.saturating_add(OVERLAP_NS) < before.end && next > launches.start(before.row) {
                cut.insert(before.row, next);
            }
        }
        if end > before.end {
            *before = Open { row, end, next: None };
        }
    }
    if cut.is_empty() || cut.len() as f64 > (launches.len() as f64 * MOST_OVERRUN).max(1.0) {
        return;
    }
    let mut rows: Vec<(u32, i64, Option<i64>)> = cut
        .into_iter()
        .filter_map(|(row, next)| Some((u32::try_from(row).ok()?, launches.start(row), Some(next.saturating_sub(launches.start(row))))))
        .collect();
    rows.sort_unstable();
    profile.coverage.overrun = rows.len() as u64;
    profile.coverage.overrun_ns =
        rows.iter().map(|r| launches.duration(r.0 as usize).saturating_sub(r.2.unwrap_or_default())).fold(0, i64::saturating_add);
    profile.launches.retime(&rows);
}
