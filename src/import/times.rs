//! Corrects implausible times: launches that have no time or lie outside of the run, and kernels that overlap a later
//! kernel on the same stream. This is done once per report, so that all screens agree; `Coverage` holds the counts.

use crate::model::memop::MemOps;
use crate::model::{Launches, MemOp, Nanos, Profile};
use rustc_hash::FxHashMap;

/// Maximum clock difference between host and GPU, ns. If a kernel starts before its launch by more than this, its
/// time is invalid.
const SKEW_NS: i64 = 1_000_000_000;
/// Minimum distance between an invalid time and the run, ns. The length of the run is used instead if it is greater;
/// after the end, ten times that length, because queues may be long.
const AWAY_NS: i64 = 60_000_000_000;
/// Tolerated overlap between two kernels on one stream, ns; real traces have at most 13 µs.
const OVERLAP_NS: i64 = 100_000;
/// Shares of affected launches above which the cause is systematic rather than individual damaged records.
const MOST_UNTIMED: f64 = 0.5;
const MOST_OVERRUN: f64 = 0.05;

/// Corrects implausible times, and counts them in the profile's coverage.
pub fn fix_times(profile: &mut Profile) {
    // AMD's counters may lie beside a timeline, and have no times of their own.
    if profile.metrics.is_some() && !profile.is_amd() || profile.ranges.is_hardware() {
        return;
    }
    if !profile.launches.has_start_times() {
        let n = profile.launches.len();
        let without =
            if profile.launches.short_durations().is_some() { 0 } else { (0..n).filter(|&r| !profile.launches.has_duration(r)).count() };
        profile.coverage.untimed = if without < n { without as u64 } else { 0 };
        return;
    }
    let run = run_span(profile);
    fix_untimed(profile, run);
    untimed_copies(profile, run);
    cut_overrun(profile);
    cut_overrun_copies(profile);
}

/// Generous time span of the run, extended from its calls or, if there are none, from the middle of its kernels.
fn run_span(profile: &Profile) -> (i64, i64) {
    let launches = &profile.launches;
    let called = (0..launches.len()).filter_map(|row| launches.call(row)).map(|c| c.0);
    let calls = called.chain(profile.calls.start.iter().copied()).fold((i64::MAX, i64::MIN), |(a, b), t| (a.min(t), b.max(t)));
    let (first, last) = if calls.0 <= calls.1 { calls } else { middle_starts(launches) };
    let length = last.saturating_sub(first).max(AWAY_NS);
    (first.saturating_sub(length), last.saturating_add(length.saturating_mul(10)))
}

/// Returns the 20th and 80th percentile of the start times.
fn middle_starts(launches: &Launches) -> (i64, i64) {
    let mut starts: Vec<i64> = (0..launches.len()).filter(|&r| launches.has_duration(r)).map(|r| launches.start(r)).collect();
    let n = starts.len();
    if n == 0 {
        return (0, 0);
    }
    let (low, high) = (n / 5, n - 1 - n / 5);
    let first = *starts.select_nth_unstable(low).1;
    (first, *starts.select_nth_unstable(high).1)
}

fn fix_untimed(profile: &mut Profile, run: (i64, i64)) {
    let launches = &profile.launches;
    let without = |row: usize| !launches.has_duration(row) || (launches.start(row), launches.duration(row)) == (0, 0);
    let away = |row: usize| {
        let start = launches.start(row);
        !(run.0..=run.1).contains(&start) || launches.call(row).is_some_and(|(call, _)| start < call.saturating_sub(SKEW_NS))
    };
    let mut bad: Vec<usize> = (0..launches.len()).filter(|&row| without(row) || away(row)).collect();
    if bad.len() as f64 > launches.len() as f64 * MOST_UNTIMED {
        // If most launches are affected, the clocks disagree: keep these times.
        bad.retain(|&row| without(row));
    }
    if bad.is_empty() || bad.len() == launches.len() {
        return;
    }
    // Move invalid starts to the end of the call, or to the first valid time, so that they do not extend the run.
    let mut sound = bad.iter().copied().peekable();
    let first = (0..launches.len()).filter(|row| sound.next_if_eq(row).is_none()).map(|row| launches.start(row)).min().unwrap_or_default();
    let at = |row: usize| launches.call(row).map_or(first, |(call, cost)| call.saturating_add(cost).max(first));
    let rows: Vec<(u32, i64, Option<i64>)> = bad.iter().filter_map(|&row| Some((u32::try_from(row).ok()?, at(row), None))).collect();
    profile.coverage.untimed = rows.len() as u64;
    profile.launches.set_times(&rows);
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

/// Truncates copies and memsets that end after a later kernel on the same stream has ended, as kernels are.
fn cut_overrun_copies(profile: &mut Profile) {
    if profile.memops.is_empty() || !has_serial_streams(profile) {
        return;
    }
    let (lanes, of_place) = lanes_of_places(profile);
    // Copies by stream, in order of start.
    let mut copies: Vec<Vec<(i64, usize)>> = vec![Vec::new(); lanes];
    for (row, op) in profile.memops.iter().enumerate().filter(|(_, op)| op.graph_node.is_none() && op.launch.is_none()) {
        if let Some(lane) = of_place.get(op.place.0 as usize).copied().flatten() {
            copies[lane].push((op.start.0, row));
        }
    }
    for list in &mut copies {
        list.sort_unstable();
    }
    let mut next = vec![0; lanes];
    let mut cut: FxHashMap<usize, i64> = FxHashMap::default();
    let launches = &profile.launches;
    for row in (0..launches.len()).filter(|&r| launches.graph_node(r).is_none() && launches.has_duration(r)) {
        let Some(lane) = launches.place(row).and_then(|p| *of_place.get(p.0 as usize)?) else { continue };
        let (start, end) = (launches.start(row), launches.end(row));
        // The first kernel after each copy.
        while let Some(&(began, copy)) = copies[lane].get(next[lane]).filter(|c| c.0 <= start) {
            next[lane] += 1;
            let ended = profile.memops.get(copy).map_or(began, |op| began.saturating_add(op.duration.0));
            if end.saturating_add(OVERLAP_NS) < ended && start > began {
                cut.insert(copy, start - began);
            }
        }
    }
    if cut.is_empty() || cut.len() as f64 > (profile.memops.len() as f64 * MOST_OVERRUN).max(1.0) {
        return;
    }
    let mut lost = 0_i64;
    let shortened = |(row, mut op): (usize, MemOp)| {
        if let Some(&ns) = cut.get(&row) {
            lost = lost.saturating_add(op.duration.0.saturating_sub(ns));
            op.duration = Nanos(ns);
        }
        op
    };
    profile.memops = profile.memops.iter().enumerate().map(shortened).collect::<MemOps>();
    profile.coverage.overrun_copies = cut.len() as u64;
    profile.coverage.overrun_ns = profile.coverage.overrun_ns.saturating_add(lost);
}

/// Tracks from other tools contain nested slices.
fn has_serial_streams(profile: &Profile) -> bool {
    matches!(profile.source.tool.as_str(), "nsys" | "torch" | "trace" | "rocprofv3" | "rpd")
}

/// Number of streams, and the stream of each place.
fn lanes_of_places(profile: &Profile) -> (usize, Vec<Option<usize>>) {
    let mut lanes: FxHashMap<Lane, usize> = FxHashMap::default();
    let of_place = profile
        .places
        .iter()
        .map(|p| {
            let next = lanes.len();
            Some(*lanes.entry((p.pid, p.device.or(p.ordinal), p.context, p.stream?)).or_insert(next))
        })
        .collect();
    (lanes.len(), of_place)
}

/// Process, device, context and stream.
type Lane = (Option<u32>, Option<u32>, Option<u32>, u32);

/// The kernel with the latest end so far on a stream, and the start of the kernel that follows it.
#[derive(Clone, Copy)]
struct Open {
    row: usize,
    end: i64,
    next: Option<i64>,
}

/// Truncates kernels that end after a later kernel on the same stream has ended. Graph nodes are exempt, because they
/// run in branches regardless of the recorded stream. Programmatic dependent launch needs no exemption, because a
/// kernel that is launched early ends after the kernel that it waits for.
fn cut_overrun(profile: &mut Profile) {
    let launches = &profile.launches;
    if !has_serial_streams(profile) {
        return;
    }
    let (lanes, of_place) = lanes_of_places(profile);
    let mut open: Vec<Option<Open>> = vec![None; lanes];
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
    profile.launches.set_times(&rows);
}
