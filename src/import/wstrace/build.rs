//! Builds a profile from the rows of a trace: launches in host order with their calls, memcpys, memsets, API calls
//! and ranges.

use super::graph_nodes;
use super::host_samples;
use super::kernels;
use super::key_values::Facts;
use super::names::{Names, Places, merge_devices};
use super::range_profiler_results;
use super::ranges;
use super::rows::{MemOpKind as Raw, Rows, What};
use crate::import::nsys::copy_kind;
use crate::import::{Job, Parts};
use crate::model::api_call::{NONE, strip_version_suffix};
use crate::model::os_runtime::MEASURING;
use crate::model::{
    Bytes, CallName, Clock, GraphLaunch, HostCalls, LaunchOrder, MemOp, MemOpKind, MemoryEvent, MemoryKind, MemoryLevel, Nanos, Overhead,
    Process, Profile, RunSample, StateChange, ThreadState, Threads,
};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

fn memory_kind(kind: u32) -> Option<MemoryKind> {
    // CUpti_ActivityMemoryKind.
    match kind {
        1 => Some(MemoryKind::Pageable),
        2 => Some(MemoryKind::Pinned),
        3 | 6 => Some(MemoryKind::Device),
        4 => Some(MemoryKind::Array),
        5 | 7 => Some(MemoryKind::Managed),
        _ => None,
    }
}

/// Returns the name of a `CUpti_ActivityOverheadKind`.
fn overhead_name(kind: u32) -> &'static str {
    match kind {
        1 => "driver compiler",
        65_536 => "CUPTI buffer flush",
        131_072 => "CUPTI instrumentation",
        196_608 => "CUPTI resources",
        262_144 => "runtime triggered module loading",
        327_680 => "lazy function loading",
        393_216 => "command buffer full",
        458_752 => "activity buffer request",
        524_288 => "UVM activity init",
        0x4000_0000 => MEASURING,
        _ => "CUPTI overhead",
    }
}

/// Contents of a trace that belong to a single process.
pub struct Section {
    pub rows: Rows,
    pub facts: Facts,
}

pub fn build_profile(sections: Vec<Section>, job: &Job<'_>, mut profile: Profile) -> Profile {
    let wants = |parts| job.wants.has_parts(parts);
    let zero = sections.iter().filter_map(|s| s.facts.number("started")).filter(|&z: &i64| z > 0).min().unwrap_or(0);
    // The process that started first is the profiled program, and later ones are its children. However, if processes
    // share a parent, they were started by a launcher.
    let first = sections.iter().min_by_key(|s| s.facts.number::<i64>("started").unwrap_or(i64::MAX));
    let parent = first.and_then(|s| s.facts.number::<u32>("parent"));
    let siblings = parent.is_some() && sections.iter().filter(|s| s.facts.number::<u32>("parent") == parent).count() > 1;
    profile.capture = first.map(|s| s.facts.capture_info(siblings)).unwrap_or_default();
    profile.rank = first.map(|s| s.facts.rank()).unwrap_or_default();
    profile.clock = Clock { epoch_ns: (zero > 0).then_some(zero), uncertainty_ns: None };
    profile.processes = sections.iter().map(|s| build_process(&s.facts)).collect();
    let sampled: Vec<Option<RunSample>> = sections.iter().map(|s| sampled_process(s, zero)).collect();
    let (mut of, mut all) = (Vec::new(), Vec::new());
    for Section { mut rows, facts } in sections {
        of.push((Names::new(&mut rows, &facts, zero), rows.devices.iter().filter_map(Facts::device).collect()));
        rows.calls.sort_by_key(|c| c.start);
        all.push(rows);
    }
    profile.devices = merge_devices(&mut of);
    let mut processes: Vec<(Names, Rows)> = of.into_iter().map(|(names, _)| names).zip(all).collect();
    for (names, rows) in &mut processes {
        range_profiler_results::take_out_waits(names, rows);
    }
    let mut places = Places::default();
    let mut built = kernels::build_launches(&mut processes, &mut places, wants(Parts::DETAILS));
    profile.launches = std::mem::take(&mut built.launches);
    profile.kernels = std::mem::take(&mut built.kernels);
    profile.configs = std::mem::take(&mut built.configs);
    profile.order = if wants(Parts::CALLS) || wants(Parts::DETAILS) { LaunchOrder::Host } else { LaunchOrder::Unread };
    let mut of_call: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    if wants(Parts::CALLS) {
        profile.calls = host_calls(&processes, &built.launching, &mut of_call);
    }
    let mut threads = Threads::default();
    let graphs = profile.launches.by_call(places.so_far(), |row| profile.launches.graph_node(row).is_some());
    for (names, rows) in &processes {
        add_work(names, rows, &mut places, &Started { calls: &of_call, graphs: &graphs }, &mut profile);
        add_other_rows(names, rows, &mut threads, &mut profile);
    }
    profile.memops.sort_by_start();
    profile.measured = range_profiler_results::build_report(&processes, &profile).map(Arc::new);
    if let Some(metrics) = profile.measured.as_deref().and_then(|m| m.metrics.as_deref()) {
        profile.notes.push(range_profiler_results::measured_note(metrics));
    }
    profile.recorded = recorded_windows(&processes, &profile);
    profile.run_samples =
        sampled.into_iter().zip(&processes).filter_map(|(s, (names, rows))| s.map(|s| add_moments(s, names, rows))).collect();
    profile.graphs.sort_by_key(|g| (g.call, g.start));
    profile.overhead.sort_by_key(|o| o.start);
    profile.states.sort_by_key(|s| s.time);
    profile.samples.samples.sort_by_key(|s| s.time);
    profile.memory.events.sort_by_key(|m| m.time);
    profile.threads = threads.into_threads();
    if wants(Parts::RANGES) {
        let events = |(names, mut rows): (Names, Rows)| {
            // Blocks of different threads are in the order in which they were written, so sort by time.
            rows.events.sort_by_key(|e| e.time);
            (names, rows.events)
        };
        let events: Vec<_> = processes.into_iter().map(events).collect();
        profile.ranges = ranges::build_ranges(&events, wants(Parts::RANGE_DETAILS));
    }
    profile.places = places.into_list();
    profile
}

/// Describes a process in which only short periods were recorded (`--overhead`).
fn sampled_process(section: &Section, zero: i64) -> Option<RunSample> {
    let facts = &section.facts;
    facts.get("gate").filter(|g| g.starts_with("overhead:"))?;
    let last = section.rows.end.as_ref().or(section.rows.state.as_ref())?;
    let (from, until) = (facts.number::<i64>("sampled_from")?, last.number::<i64>("time")?);
    let stopped = last.get("not_left").map(str::to_owned);
    Some(RunSample { pid: facts.number("pid").unwrap_or(0), span: (from - zero, until.max(from) - zero), moments: Vec::new(), stopped })
}

/// Times at which the capture range of a process opened (true) and closed, in order.
fn gate_turns(names: &Names, rows: &Rows) -> Vec<(i64, bool)> {
    let mut gate: Vec<(i64, bool)> = rows
        .events
        .iter()
        .filter_map(|e| if let What::Gate { open, .. } = e.what { Some((names.session_time(e.time), open)) } else { None })
        .collect();
    gate.sort_by_key(|g| g.0);
    gate
}

fn add_moments(mut sample: RunSample, names: &Names, rows: &Rows) -> RunSample {
    let mut since = None;
    for (time, opens) in gate_turns(names, rows) {
        match since {
            Some(from) if !opens => {
                sample.moments.push((from, time));
                since = None;
            }
            None if opens => since = Some(time),
            _ => {}
        }
    }
    sample
}

/// Returns the periods in which the capture range of any process was open, each extended to the end of the kernels
/// and copies that started in it. Empty if a process has no capture range.
fn recorded_windows(processes: &[(Names, Rows)], profile: &Profile) -> Vec<(i64, i64)> {
    let mut open: Vec<(i64, i64)> = Vec::new();
    for (names, rows) in processes {
        let gate = gate_turns(names, rows);
        // If the first event closes the range, the range was open from the start.
        let Some(&(_, first)) = gate.first() else { return Vec::new() };
        let mut since = (!first).then_some(0);
        for (time, opens) in gate {
            match (since, opens) {
                (None, true) => since = Some(time),
                (Some(from), false) => {
                    open.push((from, time));
                    since = None;
                }
                _ => {}
            }
        }
        open.extend(since.map(|from| (from, i64::MAX)));
    }
    open.sort_unstable();
    let mut windows: Vec<(i64, i64)> = Vec::new();
    for (from, to) in open {
        match windows.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => windows.push((from, to)),
        }
    }
    let kernels =
        (0..if windows.is_empty() { 0 } else { profile.launches.len() }).map(|i| (profile.launches.start(i), profile.launches.end(i)));
    for (start, end) in kernels.chain(profile.memops.iter().map(|m| (m.start.0, m.start.0 + m.duration.0))) {
        let at = windows.partition_point(|w| w.0 <= start);
        if let Some(window) = at.checked_sub(1).and_then(|i| windows.get_mut(i)) {
            window.1 = window.1.max(end);
        }
    }
    windows
}

fn build_process(facts: &Facts) -> Process {
    let name = facts.get("executable").and_then(|e| Path::new(e).file_name()).map(|n| n.to_string_lossy().into_owned());
    Process { pid: facts.number("pid").unwrap_or(0), name, rank: facts.rank().rank }
}

/// Calls that started GPU work.
struct Started<'a> {
    /// Calls that did not launch a kernel, by process and correlation id.
    calls: &'a FxHashMap<(u32, u32), u32>,
    /// First kernel launched by each graph launch call, by process and start.
    graphs: &'a FxHashMap<(u32, i64), u32>,
}

/// Adds memcpys, memsets, and graphs recorded as a whole.
fn add_work(names: &Names, rows: &Rows, places: &mut Places, of: &Started<'_>, profile: &mut Profile) {
    let with_graphs = !rows.graphs.is_empty() || !of.graphs.is_empty();
    let started: FxHashMap<u32, i64> =
        rows.calls.iter().filter(|_| with_graphs).map(|c| (c.correlation, names.session_time(c.start))).collect();
    for op in &rows.memops {
        let call = of.calls.get(&(names.pid, op.correlation)).copied();
        profile.memops.push(MemOp {
            start: Nanos(names.session_time(op.start)),
            duration: Nanos(op.duration.max(0)),
            kind: match op.kind {
                Raw::Copy { kind, from, to } => {
                    MemOpKind::Copy { kind: copy_kind(i64::from(kind)), from: memory_kind(from), to: memory_kind(to) }
                }
                Raw::Set(_) => MemOpKind::Set,
            },
            bytes: Some(Bytes(op.bytes)),
            place: places.place_id(names, [op.device, op.context, op.stream, 0]),
            call,
            launch: started.get(&op.correlation).filter(|_| call.is_none()).and_then(|&start| of.graphs.get(&(names.pid, start))).copied(),
            graph_node: (op.node != 0).then_some(op.node),
        });
    }
    profile.graphs.extend(rows.graphs.iter().map(|g| GraphLaunch {
        start: Nanos(names.session_time(g.start)),
        duration: Nanos(g.duration.max(0)),
        graph: u64::from(g.id),
        place: places.place_id(names, [g.device, g.context, g.stream, 0]).0,
        call: started.get(&g.correlation).copied(),
    }));
}

fn add_other_rows(names: &Names, rows: &Rows, threads: &mut Threads, profile: &mut Profile) {
    // Thread names set by the program take precedence over those of the system.
    for (tid, text) in &rows.named_threads {
        names.get(*text).into_iter().for_each(|name| threads.set_name(names.pid, *tid, name));
    }
    for (tid, name) in &rows.threads {
        threads.set_name(names.pid, *tid, Arc::from(String::from_utf8_lossy(name)));
    }
    profile.states.extend(rows.states.iter().filter_map(|&(tid, time, state)| {
        let state = [ThreadState::Off, ThreadState::Running, ThreadState::Partly].get(usize::from(state)).copied()?;
        Some(StateChange { time: names.session_time(time), thread: threads.get_or_insert(names.pid, tid).0, state, cpu: None })
    }));
    let stacks = host_samples::add_samples(names, rows, threads, &mut profile.samples);
    graph_nodes::add_nodes(names, rows, &stacks, &mut profile.graph_nodes);
    let words: FxHashMap<u32, Arc<str>> = rows.overhead.iter().map(|o| (o.kind, Arc::from(overhead_name(o.kind)))).collect();
    profile.overhead.extend(rows.overhead.iter().filter_map(|o| {
        Some(Overhead {
            start: names.session_time(o.start),
            duration: o.duration,
            thread: threads.get_or_insert(names.pid, o.thread).0,
            name: words.get(&o.kind)?.clone(),
        })
    }));
    profile.memory.events.extend(rows.memory.iter().map(|m| {
        let bytes = i64::try_from(m.bytes).unwrap_or(i64::MAX);
        MemoryEvent {
            time: names.session_time(m.time),
            address: m.address,
            bytes: if m.operation == 2 { -bytes } else { bytes },
            device: names.device_index(m.device),
            pid: names.pid,
            tid: 0,
            kind: memory_kind(m.kind),
            level: MemoryLevel::Driver,
        }
    }));
}

/// Builds the totals of all calls, and a row for each call that did not launch a kernel. Adds the indices of these
/// rows to `of_call`, by process and correlation id.
fn host_calls(processes: &[(Names, Rows)], launching: &[Vec<bool>], of_call: &mut FxHashMap<(u32, u32), u32>) -> HostCalls {
    // All versions of a function, such as `_v2`, share one name.
    let mut totals: FxHashMap<Arc<str>, (u64, i64)> = FxHashMap::default();
    let mut bare: Vec<FxHashMap<u32, Arc<str>>> = Vec::new();
    for (names, rows) in processes {
        let mut of: FxHashMap<u32, Arc<str>> = FxHashMap::default();
        for call in &rows.calls {
            let name = of.entry(call.name).or_insert_with(|| match names.get(call.name) {
                Some(name) => Arc::from(strip_version_suffix(&name)),
                None => Arc::from("(unnamed call)"),
            });
            let total = match totals.get_mut(&**name) {
                Some(total) => total,
                None => totals.entry(name.clone()).or_default(),
            };
            total.0 += 1;
            total.1 = total.1.saturating_add(call.duration);
        }
        bare.push(of);
    }
    let mut list: Vec<_> = totals.into_iter().collect();
    list.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
    let mut index: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    let mut out = HostCalls::default();
    for (at, (name, (count, total))) in (0..).zip(list) {
        index.insert(name.clone(), at);
        out.names.push(CallName::new(name, count, Nanos(total)));
    }
    let mut threads: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (((names, rows), launching), bare) in processes.iter().zip(launching).zip(&bare) {
        for (call, _) in rows.calls.iter().zip(launching).filter(|(_, launching)| !**launching) {
            let name = bare.get(&call.name).and_then(|n| index.get(n)).copied().unwrap_or(NONE);
            if out.names.get(name as usize).is_some_and(|n| !n.kind.is_kept()) {
                continue;
            }
            of_call.insert((names.pid, call.correlation), u32::try_from(out.len()).unwrap_or(NONE));
            out.start.push(names.session_time(call.start));
            out.duration.push(call.duration);
            out.name.push(name);
            out.correlation.push(call.correlation);
            out.thread.push(*threads.entry((names.pid, call.thread)).or_insert_with(|| {
                out.threads.push((names.pid, call.thread));
                u32::try_from(out.threads.len() - 1).unwrap_or(NONE)
            }));
        }
    }
    out
}
