//! Detects calls whose GPU work has no record, by process, kind of work, thread and time.

use crate::model::coverage::{Stretch, Unrecorded, Work};
use crate::model::{CallKind, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Maximum number of launches queued on a stream before a call blocks. Up to this many launches may not have run by
/// the time the recording stops.
const QUEUE: usize = 1024;
/// A queue that is not empty at the end of the recording is waiting for a running kernel. That kernel is assumed to
/// take at most `LONGER` times as long as the longest recorded kernel, or `LONG_NS`.
const LONGER: i64 = 10;
const LONG_NS: i64 = 10_000_000;
/// Maximum number of preceding launches to search for an enclosing call.
const BACK: usize = 64;
/// Calls in the first 1/EDGE of the time that a snapshot covers may have no kernels.
const EDGE: i64 = 10;
/// Maximum number of threads to store.
const MOST_THREADS: usize = 64;

/// A call without a GPU record.
#[derive(Clone, Copy)]
struct Lost {
    start: i64,
    tid: u32,
    /// Index into the names of calls.
    name: u32,
}

/// Calls made by one process.
#[derive(Default)]
struct Process {
    lost: [Vec<Lost>; Work::ALL.len()],
    /// Number of distinct calls that have records.
    found: [u64; Work::ALL.len()],
    /// Threads that made calls with records.
    threads: FxHashSet<u32>,
    /// Start of the first call with a record.
    first_call: Option<i64>,
    /// Start of the last call of each kind of work.
    last: [Option<i64>; Work::ALL.len()],
    last_call: Option<i64>,
    last_end: Option<i64>,
    longest: i64,
    /// Start times of kernels whose call is unknown.
    uncalled: Vec<i64>,
    /// Periods of stream capture. Captured work runs later, if at all.
    captures: Vec<(i64, i64)>,
    captured: bool,
    instantiated: bool,
    syncs: Vec<i64>,
}

/// Adds calls without records to the profile's coverage. `copies` is false if copies have not been read.
pub fn find_unrecorded(profile: &mut Profile, copies: bool) {
    let calls = &profile.calls;
    let of = |kind: CallKind| calls.names.iter().any(|n| n.kind == kind);
    profile.coverage.calls = !calls.names.is_empty();
    // An importer may know it from the numbers of the launches.
    let known = !profile.coverage.unrecorded.is_empty();
    if !(of(CallKind::Launch) || of(CallKind::GraphLaunch)) || profile.metrics.is_some() || known {
        return;
    }
    let mut processes = find_unmatched(profile);
    if processes.values().all(|p| p.lost[Work::Kernels as usize].is_empty() && p.lost[Work::Graphs as usize].is_empty()) {
        return;
    }
    count_recorded(profile, &mut processes);
    let end = last_time(profile);
    let mut started = [0_u64; Work::ALL.len()];
    let mut out = Vec::new();
    for (pid, mut process) in processes {
        process.remove_explained(profile, pid, end);
        if !copies {
            process.lost[Work::Copies as usize].clear();
            // If other graphs contain kernels, graphs that contain only copies look as if they were lost.
            if process.found[Work::Graphs as usize] > 0 {
                process.lost[Work::Graphs as usize].clear();
            }
        }
        for work in Work::ALL {
            let lost = &process.lost[work as usize];
            started[work as usize] += process.found[work as usize] + lost.len() as u64;
            out.extend(process.to_unrecorded(profile, pid, work));
        }
    }
    out.sort_by_key(|u| (u.work, u.pid));
    profile.coverage.unrecorded = out;
    profile.coverage.started = started;
}

/// Time of the last event of any kind, ns.
fn last_time(profile: &Profile) -> i64 {
    let calls = &profile.calls;
    let host = calls.start.iter().zip(&calls.duration).map(|(s, d)| s.saturating_add(*d)).max();
    let device = (0..profile.launches.len()).map(|r| profile.launches.end(r)).max();
    host.max(device).unwrap_or_default()
}

/// Finds calls that start work, but could not be matched to a record.
fn find_unmatched(profile: &Profile) -> FxHashMap<u32, Process> {
    let calls = &profile.calls;
    let whole: FxHashSet<(u32, i64)> = profile
        .graphs
        .iter()
        .filter_map(|g| Some((profile.places.get(g.place as usize).and_then(|p| p.pid).unwrap_or_default(), g.call?)))
        .collect();
    let moved: FxHashSet<u32> = profile.memops.iter().filter_map(|op| op.call).collect();
    let mut out: FxHashMap<u32, Process> = FxHashMap::default();
    let mut open: FxHashMap<u32, Vec<(i64, bool)>> = FxHashMap::default();
    for row in 0..calls.len() {
        let (pid, tid) = calls.thread_of(row);
        let process = out.entry(pid).or_default();
        let start = calls.start[row];
        let lost = Lost { start, tid, name: calls.name[row] };
        match calls.kind(row) {
            CallKind::Launch => process.lost[Work::Kernels as usize].push(lost),
            CallKind::GraphLaunch if whole.contains(&(pid, start)) => process.found[Work::Graphs as usize] += 1,
            // A launch of a graph that contains only copies.
            CallKind::GraphLaunch if moved.contains(&u32::try_from(row).unwrap_or(u32::MAX)) => process.found[Work::Graphs as usize] += 1,
            CallKind::GraphLaunch => process.lost[Work::Graphs as usize].push(lost),
            CallKind::Copy | CallKind::Set if moved.contains(&u32::try_from(row).unwrap_or(u32::MAX)) => {
                process.found[Work::Copies as usize] += 1;
            }
            CallKind::Copy | CallKind::Set => process.lost[Work::Copies as usize].push(lost),
            CallKind::Sync => process.syncs.push(start),
            CallKind::Graph => {
                let name = calls.call_name(row).map_or("", |n| &n.name);
                process.instantiated |= name.contains("GraphInstantiate");
                if name.contains("StreamBeginCapture") || name.contains("StreamEndCapture") {
                    process.captured = true;
                    open.entry(pid).or_default().push((start, name.contains("Begin")));
                }
            }
            _ => {}
        }
    }
    for (pid, list) in open {
        if let Some(process) = out.get_mut(&pid) {
            process.captures = merge_captures(list);
        }
    }
    out
}

/// Merges captures into periods in which at least one capture was active. A capture may begin before the report, or
/// end after it.
fn merge_captures(mut ends: Vec<(i64, bool)>) -> Vec<(i64, i64)> {
    ends.sort_unstable();
    let (mut out, mut depth, mut since) = (Vec::new(), 0_u32, i64::MIN);
    for (time, begins) in ends {
        match (begins, depth) {
            (true, 0) => (depth, since) = (1, time),
            (true, _) => depth += 1,
            (false, 0) => out.push((i64::MIN, time)),
            (false, 1) => {
                depth = 0;
                out.push((since, time));
            }
            (false, _) => depth -= 1,
        }
    }
    if depth > 0 {
        out.push((since, i64::MAX));
    }
    out
}

/// Counts the calls that have records, and updates the first and last times.
fn count_recorded(profile: &Profile, processes: &mut FxHashMap<u32, Process>) {
    let launches = &profile.launches;
    let mut last: FxHashMap<u32, i64> = FxHashMap::default();
    let mut nowhere = Vec::new();
    for row in 0..launches.len() {
        let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        let Some(pid) = place.and_then(|p| p.pid) else {
            nowhere.extend(launches.call(row).is_none().then(|| launches.start(row)));
            continue;
        };
        let process = processes.entry(pid).or_default();
        process.last_end = process.last_end.max(Some(launches.end(row)));
        process.longest = process.longest.max(launches.duration(row));
        let Some((call, _)) = launches.call(row) else {
            process.uncalled.push(launches.start(row));
            continue;
        };
        process.last_call = process.last_call.max(Some(call));
        process.first_call = Some(process.first_call.map_or(call, |first| first.min(call)));
        process.threads.extend(place.and_then(|p| p.thread));
        let node = launches.graph_node(row).is_some();
        let of = if node { Work::Graphs } else { Work::Kernels } as usize;
        process.last[of] = process.last[of].max(Some(call));
        // Nodes of one graph launch are adjacent and share a call, so count the call once.
        if !node || last.insert(pid, call) != Some(call) {
            process.found[of] += 1;
        }
    }
    for graph in &profile.graphs {
        let pid = profile.places.get(graph.place as usize).and_then(|p| p.pid).unwrap_or_default();
        let process = processes.entry(pid).or_default();
        process.last_call = process.last_call.max(graph.call);
        process.last[Work::Graphs as usize] = process.last[Work::Graphs as usize].max(graph.call);
        process.last_end = process.last_end.max(Some(graph.start.0.saturating_add(graph.duration.0)));
        process.longest = process.longest.max(graph.duration.0);
    }
    for process in processes.values_mut() {
        process.uncalled.extend(&nowhere);
        process.uncalled.sort_unstable();
    }
}

impl Process {
    /// Removes calls that have a legitimate reason for not having a record.
    fn remove_explained(&mut self, profile: &Profile, pid: u32, end: i64) {
        // Graphs were instantiated, but it is unknown when their streams were captured.
        if self.instantiated && !self.captured {
            self.lost[Work::Kernels as usize].clear();
        }
        let mut captures = std::mem::take(&mut self.captures);
        captures.sort_unstable();
        for lost in &mut self.lost {
            // A thread captures one stream at a time, so check only the last capture that began before the call.
            lost.retain(|l| captures[..captures.partition_point(|c| c.0 <= l.start)].last().is_none_or(|c| c.1 < l.start));
            lost.sort_unstable_by_key(|l| l.start);
        }
        let nested = |l: &Lost| inside_another(profile, pid, l);
        self.lost[Work::Kernels as usize].retain(|l| !nested(l));
        self.lost[Work::Graphs as usize].retain(|l| !nested(l));
        for work in [Work::Graphs, Work::Kernels] {
            let lost = &mut self.lost[work as usize];
            // Kernels whose call is unknown may belong to the lost calls. If they outnumber the remaining lost calls,
            // the result is uncertain.
            let uncalled = lost.first().map_or(0, |l| self.uncalled.len() - self.uncalled.partition_point(|&u| u < l.start));
            let left = lost.len().saturating_sub(uncalled);
            if work == Work::Graphs && uncalled > 0 || uncalled > left {
                lost.clear();
            }
            self.found[work as usize] += lost.len().saturating_sub(left) as u64;
            lost.truncate(left);
        }
        // In a snapshot, recorded calls begin slightly before recorded kernels.
        if profile.source.tool == "trace" && profile.capture.gate.is_some() {
            let calls = [self.first_call, self.last_call].into_iter().flatten().chain(self.lost.iter().flatten().map(|l| l.start));
            let (first, last) = calls.fold((i64::MAX, i64::MIN), |(a, b), t| (a.min(t), b.max(t)));
            let edge = first.saturating_add(last.saturating_sub(first) / EDGE);
            if self.lost[..Work::Copies as usize].iter().flatten().all(|l| l.start <= edge) {
                self.lost.iter_mut().for_each(Vec::clear);
            }
        }
        if self.in_flight(end) {
            for work in Work::ALL {
                let last = self.last_call;
                self.lost[work as usize].retain(|l| Some(l.start) <= last);
            }
        }
    }

    /// Returns true if the last calls may have started work that was still queued when the recording stopped: the
    /// calls fit into a queue, no synchronization waited for them, and the duration of the running kernel would be
    /// plausible.
    fn in_flight(&self, end: i64) -> bool {
        let (Some(last_call), Some(last_end)) = (self.last_call, self.last_end) else { return false };
        let after = |lost: &[Lost]| lost.len() - lost.partition_point(|l| l.start <= last_call);
        let [kernels, graphs, _] = &self.lost;
        let first = [kernels, graphs].iter().filter_map(|l| l.get(l.partition_point(|l| l.start <= last_call))).map(|l| l.start).min();
        let Some(first) = first else { return false };
        let runs = end.saturating_sub(last_end.max(first));
        after(kernels) + after(graphs) <= QUEUE
            && !self.syncs.iter().any(|&s| s > first)
            && runs <= self.longest.saturating_mul(LONGER).max(LONG_NS)
    }

    fn to_unrecorded(&self, profile: &Profile, pid: u32, work: Work) -> Option<Unrecorded> {
        let lost = &self.lost[work as usize];
        let (first, last) = (lost.first()?.start, lost.last()?.start);
        let mut names: FxHashMap<u32, u64> = FxHashMap::default();
        let mut threads: Vec<u32> = Vec::new();
        for l in lost {
            *names.entry(l.name).or_default() += 1;
            if threads.len() < MOST_THREADS && !threads.contains(&l.tid) {
                threads.push(l.tid);
            }
        }
        let name = names.into_iter().max_by_key(|&(name, n)| (n, std::cmp::Reverse(name))).map(|n| n.0)?;
        let name = profile.calls.names.get(name as usize).map_or_else(|| Arc::from("(unnamed call)"), |n| n.name.clone());
        threads.sort_unstable();
        let found = self.found[work as usize];
        Some(Unrecorded {
            pid,
            work,
            name,
            calls: found + lost.len() as u64,
            lost: lost.len() as u64,
            other_threads: self.threads.iter().any(|t| !threads.contains(t)),
            threads,
            stretch: match self.last[work as usize] {
                _ if found == 0 => Stretch::All,
                Some(call) if call < first => Stretch::End,
                _ => Stretch::Parts,
            },
            first,
            last,
        })
    }
}

/// Returns true if a call is nested in another call that does have a record, such as a driver call in a runtime call.
fn inside_another(profile: &Profile, pid: u32, lost: &Lost) -> bool {
    let launches = &profile.launches;
    let (mut low, mut high) = (0, launches.len());
    while low < high {
        let middle = low.midpoint(high);
        if launches.order_key(middle).0 <= lost.start { low = middle + 1 } else { high = middle }
    }
    (low.saturating_sub(BACK)..low).rev().any(|row| {
        let Some((start, cost)) = launches.call(row) else { return false };
        let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        place.is_some_and(|p| p.pid == Some(pid) && p.thread == Some(lost.tid))
            && (start..=start.saturating_add(cost)).contains(&lost.start)
    })
}
