//! Builds a profile from the rows: dispatches in launch order with their calls, plus copies, API calls and ranges.

use super::counters;
use super::rocpd_durations::Durations;
use super::rows::{Call, Dispatch, Rows};
use crate::import::{Job, Parts};
use crate::model::api_call::NONE;
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::{
    Bytes, CallKind, CallName, Clock, CopyKind, Device, HostCalls, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, MemOp,
    MemOpKind, MemoryEvent, MemoryKind, MemoryLevel, Nanos, PlaceId, Process, Profile, Range, RangeKind, RangeOrigin, Ranges, Rank,
    Threads, Vendor,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Maximum number of streams shown as lanes. Beyond that, lanes are queues, since some programs create hundreds of
/// streams.
const STREAMS: usize = 16;

/// Places, numbered in order of first appearance.
#[derive(Default)]
struct Places {
    ids: FxHashMap<LaunchSite, u32>,
    list: Vec<LaunchSite>,
}

impl Places {
    fn place_id(&mut self, place: LaunchSite) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        *self.ids.entry(place).or_insert_with_key(|place| {
            self.list.push(place.clone());
            next
        })
    }
}

/// Input data, and values derived from it that all build functions share.
struct Context<'a> {
    rows: &'a Rows,
    /// Device index of each agent.
    devices: Vec<Option<u32>>,
    /// Earliest time in the report, which becomes time 0 of the session.
    zero: i64,
    /// True if lanes are streams, false if they are queues.
    streams: bool,
    /// True if at least one dispatch has a time.
    timed: bool,
}

impl Context<'_> {
    fn pid(&self, process: u32) -> u32 {
        self.rows.processes.get(process as usize).map_or(0, |p| p.pid)
    }

    fn device_index(&self, agent: u32) -> Option<u32> {
        self.devices.get(agent as usize).copied().flatten()
    }

    fn session_time(&self, ns: i64) -> i64 {
        ns.saturating_sub(self.zero)
    }
}

/// Builds the profile; `profile` initially contains nothing but the source.
pub fn build_profile(mut rows: Rows, job: &Job<'_>, mut profile: Profile) -> Profile {
    let wants = |part| job.wants.has_parts(part);
    let mut devices = vec![None; rows.agents.len()];
    let mut known: FxHashMap<&Device, u32> = FxHashMap::default();
    for (agent, found) in rows.agents.iter().zip(&mut devices) {
        let Some(device) = &agent.device else { continue };
        // Every process lists all GPUs of the machine, so add each GPU only once.
        *found = Some(*known.entry(device).or_insert_with(|| {
            profile.devices.push(device.clone());
            u32::try_from(profile.devices.len() - 1).unwrap_or(u32::MAX)
        }));
    }
    if profile.devices.is_empty() && !rows.dispatches.is_empty() {
        // The report does not describe the GPU, but it must be one from AMD.
        profile.devices.push(Device { maker: Vendor::Amd, ..Device::default() });
    }
    only_dispatched(&mut rows);
    let durations = rows.durations.take();
    let starts =
        rows.dispatches.iter().map(|d| d.start).chain(rows.calls.iter().map(|c| c.start)).chain(rows.copies.iter().map(|c| c.start));
    // Without calls, an allocation may be the first event.
    let starts = starts.chain(rows.allocations.iter().filter(|_| rows.calls.is_empty()).map(|a| a.time));
    let zero = starts.filter(|&s| s > 0).min().unwrap_or(0);
    let mut lanes: Vec<u32> = rows.dispatches.iter().filter_map(|d| d.stream).collect();
    lanes.sort_unstable();
    lanes.dedup();
    // A single stream tells nothing, so use queues instead.
    let streams = (2..=STREAMS).contains(&lanes.len());
    rows.sort_dispatches();
    rows.calls.sort_by_key(|c| c.start);
    let rows = rows;
    let context = Context { rows: &rows, devices, zero, streams, timed: rows.dispatches.iter().any(|d| d.start > 0) };
    profile.clock = Clock { epoch_ns: None, uncertainty_ns: None };
    profile.processes =
        rows.processes.iter().map(|p| Process { pid: p.pid, name: p.command.as_deref().and_then(program_name), rank: p.rank }).collect();
    if let Some(first) = rows.processes.first() {
        profile.capture.argv = first.command.iter().flat_map(|c| c.split_whitespace()).map(str::to_owned).collect();
        profile.rank = Rank { rank: first.rank, world: first.world, host: first.host.clone() };
    }
    profile.kernels = rows.symbols.iter().map(counters::symbol_kernel).collect();
    if let Some(Durations { symbols, times, .. }) = durations {
        profile.launches = Launches::new(LaunchColumns { start: Vec::new(), duration: times, kernel: symbols });
        profile.order = LaunchOrder::Unread;
        return profile;
    }
    let mut places = Places::default();
    let launching = build_launches(&context, &mut places, wants(Parts::DETAILS), &mut profile);
    let mut of_call = FxHashMap::default();
    if wants(Parts::CALLS) {
        profile.calls = build_calls(&context, &launching, &mut of_call);
    }
    if wants(Parts::MEMOPS) {
        add_copies(&context, &of_call, &launching, &mut places, &mut profile);
    }
    if wants(Parts::RANGES) {
        profile.ranges = build_ranges(&context);
    }
    if wants(Parts::MEMORY) {
        profile.memory.events = context.rows.allocations.iter().map(|a| memory_event(&context, a)).collect();
        profile.memory.events.sort_by_key(|e| e.time);
    }
    if wants(Parts::THREADS) {
        let mut threads = Threads::default();
        for (process, tid, name) in &rows.threads {
            threads.set_name(context.pid(*process), *tid, name.clone());
        }
        profile.threads = threads.into_threads();
    }
    profile.places = places.list;
    profile
}

/// Removes symbols that were loaded but never dispatched: a code object contains hundreds of them.
fn only_dispatched(rows: &mut Rows) {
    let mut used = vec![false; rows.symbols.len()];
    let of_durations = rows.durations.iter().flat_map(|d| d.symbols.iter().copied());
    for symbol in rows.dispatches.iter().map(|d| d.symbol).chain(of_durations) {
        if let Some(used) = used.get_mut(symbol as usize) {
            *used = true;
        }
    }
    let mut next = 0;
    let places: Vec<u32> = used
        .iter()
        .map(|used| {
            next += u32::from(*used);
            next.saturating_sub(1)
        })
        .collect();
    let mut used = used.into_iter();
    rows.symbols.retain(|_| used.next().unwrap_or(true));
    let of_durations = rows.durations.iter_mut().flat_map(|d| &mut d.symbols);
    for symbol in rows.dispatches.iter_mut().map(|d| &mut d.symbol).chain(of_durations) {
        *symbol = places.get(*symbol as usize).copied().unwrap_or(u32::MAX);
    }
}

/// Extracts the program name from a command line.
fn program_name(command: &str) -> Option<String> {
    let first = command.split_whitespace().next()?;
    Some(first.rsplit('/').next().unwrap_or(first).to_owned())
}

/// Builds the launches. Returns one flag per call, true if the call launched a kernel.
fn build_launches(context: &Context<'_>, places: &mut Places, details: bool, profile: &mut Profile) -> Vec<bool> {
    let rows = context.rows;
    let mut launching = vec![false; rows.calls.len()];
    // Nested calls share an id, since HIP calls contain HSA calls: keep the outermost, which starts first.
    let mut by_id: FxHashMap<(u32, u64), usize> = FxHashMap::default();
    for (i, call) in rows.calls.iter().enumerate().filter(|(_, c)| !c.marker && c.correlation != 0) {
        by_id.entry((call.process, call.correlation)).or_insert(i);
    }
    let call_of = |d: &Dispatch| by_id.get(&(d.process, d.correlation)).copied();
    let mut order: Vec<u32> = (0..u32::try_from(rows.dispatches.len()).unwrap_or(u32::MAX)).collect();
    if rows.processes.len() > 1 {
        // Keep the dispatch order within a process; merge processes by time.
        let mut at = Vec::with_capacity(order.len());
        let mut last = (u32::MAX, i64::MIN);
        for d in &rows.dispatches {
            let time = call_of(d).and_then(|i| rows.calls.get(i)).map_or(d.start, |c| c.start);
            last = (d.process, if last.0 == d.process { last.1.max(time) } else { time });
            at.push(last.1);
        }
        order.sort_by_key(|&i| at[i as usize]);
    }
    let mut columns =
        LaunchColumns { start: Vec::with_capacity(order.len()), duration: TimesBuilder::with_capacity(order.len()), kernel: Vec::new() };
    let (mut configs, mut known): (Vec<u32>, FxHashMap<LaunchConfig, u32>) = (Vec::new(), FxHashMap::default());
    let (mut place, mut since, mut cost) = (Vec::new(), TimesBuilder::default(), TimesBuilder::default());
    for d in order.iter().filter_map(|&i| rows.dispatches.get(i as usize)) {
        let timed = d.start > 0 && d.end >= d.start;
        if context.timed {
            columns.start.push(if d.start > 0 { context.session_time(d.start) } else { 0 });
        }
        columns.duration.push(timed.then(|| d.end - d.start));
        columns.kernel.push(d.symbol);
        if !details {
            continue;
        }
        let config = d.launch_config(rows.symbols.get(d.symbol as usize));
        let next = u32::try_from(profile.configs.len()).unwrap_or(u32::MAX);
        configs.push(*known.entry(config).or_insert_with_key(|config| {
            profile.configs.push(config.clone());
            next
        }));
        let call = call_of(d).and_then(|i| {
            if let Some(l) = launching.get_mut(i) {
                *l = true;
            }
            rows.calls.get(i)
        });
        since.push(call.map(|c| d.start.saturating_sub(c.start)));
        cost.push(call.map(|c| c.end.saturating_sub(c.start).max(0)));
        place.push(places.place_id(LaunchSite {
            pid: Some(context.pid(d.process)),
            device: context.device_index(d.agent),
            ordinal: context.device_index(d.agent).and_then(|i| profile.devices.get(i as usize)).map(|d| d.id),
            context: None,
            stream: if context.streams { d.stream } else { Some(d.queue) },
            thread: Some(call.map_or(d.thread, |c| c.thread)),
        }));
    }
    let n = columns.kernel.len();
    let twice = rows.dispatches.windows(2).any(|d| (d[0].process, d[0].id) == (d[1].process, d[1].id));
    let numbered = !twice && rows.dispatches.iter().all(|d| d.id > 0);
    profile.launches = Launches::new(columns);
    if details {
        let (node, nodes) = graph_nodes(rows, &order, n);
        profile.launches.set_details(configs, place, node, nodes);
        if !rows.calls.is_empty() {
            profile.launches.set_calls(since, cost);
        }
    }
    profile.metrics = counters::build_metrics(rows, &order, profile);
    profile.order = match details {
        false => LaunchOrder::Unread,
        true if rows.chosen => LaunchOrder::Chosen,
        true if numbered => LaunchOrder::Host,
        true => LaunchOrder::Device,
    };
    launching
}

/// Graph node of each launch, as an index into the second list or [`NO_NODE`].
fn graph_nodes(rows: &Rows, order: &[u32], launches: usize) -> (Vec<u32>, Vec<u64>) {
    let (mut list, mut ids): (Vec<u64>, FxHashMap<u64, u32>) = (Vec::new(), FxHashMap::default());
    if rows.graph_nodes.is_empty() {
        return (vec![NO_NODE; launches], list);
    }
    let dispatches = order.iter().filter_map(|&i| rows.dispatches.get(i as usize));
    let of = dispatches
        .map(|d| {
            let Some(&node) = rows.graph_nodes.get(&(d.process, d.id)) else { return NO_NODE };
            *ids.entry(node).or_insert_with(|| {
                list.push(node);
                u32::try_from(list.len() - 1).unwrap_or(NO_NODE)
            })
        })
        .collect();
    (of, list)
}

/// Builds the totals of all calls, and a row for each call that did not launch a kernel. Adds the indices of these
/// rows to `of_call`, by process and correlation id.
fn build_calls(context: &Context<'_>, launching: &[bool], of_call: &mut FxHashMap<(u32, u64), u32>) -> HostCalls {
    let rows = context.rows;
    let mut totals: FxHashMap<u32, (u64, i64)> = FxHashMap::default();
    for call in rows.calls.iter().filter(|c| !c.marker) {
        let total = totals.entry(call.name).or_default();
        total.0 += 1;
        total.1 = total.1.saturating_add(call.end.saturating_sub(call.start).max(0));
    }
    let text = |name: u32| rows.texts.get(name as usize).cloned().unwrap_or_else(|| Arc::from("(unnamed call)"));
    let mut list: Vec<_> = totals.into_iter().collect();
    list.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| text(a.0).cmp(&text(b.0))));
    let mut out = HostCalls::default();
    let mut index: FxHashMap<u32, u32> = FxHashMap::default();
    for (at, (name, (count, total))) in (0..).zip(list) {
        index.insert(name, at);
        out.names.push(CallName::new(text(name), count, Nanos(total)));
    }
    let mut threads: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (call, _) in rows.calls.iter().zip(launching).filter(|(c, launching)| !c.marker && !**launching) {
        let name = index.get(&call.name).copied().unwrap_or(NONE);
        if out.names.get(name as usize).is_some_and(|n| !n.kind.is_kept()) {
            continue;
        }
        of_call.entry((call.process, call.correlation)).or_insert(u32::try_from(out.len()).unwrap_or(NONE));
        out.start.push(context.session_time(call.start));
        out.duration.push(call.end.saturating_sub(call.start).max(0));
        out.name.push(name);
        out.correlation.push(u32::try_from(call.correlation).unwrap_or(NONE));
        let key = (context.pid(call.process), call.thread);
        out.thread.push(*threads.entry(key).or_insert_with(|| {
            out.threads.push(key);
            u32::try_from(out.threads.len() - 1).unwrap_or(NONE)
        }));
    }
    out
}

/// Parses `MEMORY_COPY_HOST_TO_DEVICE`, and the spellings of older profilers.
fn copy_kind(name: &str) -> CopyKind {
    // rocprof: `CopyHostToDevice`; HIP: `hipMemcpyHostToDevice`.
    let name = name
        .strip_prefix("Copy")
        .or_else(|| name.strip_prefix("hipMemcpy"))
        .and_then(|n| n.split_once("To"))
        .map_or_else(|| name.to_owned(), |(a, b)| format!("{a}_TO_{b}"));
    let name = name.to_ascii_uppercase();
    let (from, to) = name.rsplit_once("_TO_").map_or((name.as_str(), ""), |(a, b)| (a, b));
    match (from.ends_with("DEVICE"), from.ends_with("HOST"), to) {
        (_, true, "DEVICE") => CopyKind::HostToDevice,
        (true, _, "HOST") => CopyKind::DeviceToHost,
        (true, _, "DEVICE") => CopyKind::DeviceToDevice,
        (_, true, "HOST") => CopyKind::HostToHost,
        _ => CopyKind::Other,
    }
}

/// Returns the first kernel launch of each graph launch call, by process and correlation id.
fn find_graphs(context: &Context<'_>, launching: &[bool], places: &Places, profile: &Profile) -> FxHashMap<(u32, u64), u32> {
    let rows = context.rows;
    let graph = |name: u32| rows.texts.get(name as usize).is_some_and(|t| CallKind::from_name(t) == CallKind::GraphLaunch);
    let calls = || rows.calls.iter().zip(launching).filter(|(c, launching)| **launching && graph(c.name)).map(|(c, _)| c);
    let starts: FxHashSet<i64> = calls().map(|c| context.session_time(c.start)).collect();
    if starts.is_empty() {
        return FxHashMap::default();
    }
    let launches = &profile.launches;
    let known = launches.by_call(&places.list, |row| launches.call(row).is_some_and(|c| starts.contains(&c.0)));
    let launch = |c: &Call| known.get(&(context.pid(c.process), context.session_time(c.start))).copied();
    calls().filter_map(|c| Some(((c.process, c.correlation), launch(c)?))).collect()
}

fn add_copies(context: &Context<'_>, of_call: &FxHashMap<(u32, u64), u32>, launching: &[bool], places: &mut Places, profile: &mut Profile) {
    let graph_of = find_graphs(context, launching, places, profile);
    for copy in &context.rows.copies {
        let call = of_call.get(&(copy.process, copy.correlation)).copied();
        let name = context.rows.texts.get(copy.name as usize).map_or("", |t| t);
        let [from, to] = [copy.from, copy.to].map(|agent| agent.and_then(|a| context.device_index(a)));
        let kind = match (copy_kind(name), from, to) {
            (CopyKind::DeviceToDevice, Some(a), Some(b)) if a != b => CopyKind::PeerToPeer,
            (kind, ..) => kind,
        };
        let device = to.or(from);
        profile.memops.push(MemOp {
            start: Nanos(context.session_time(copy.start)),
            duration: Nanos(copy.end.saturating_sub(copy.start).max(0)),
            kind: if name == "FillBuffer" { MemOpKind::Set } else { MemOpKind::Copy { kind, from: None, to: None } },
            bytes: copy.bytes.map(Bytes),
            place: PlaceId(places.place_id(LaunchSite {
                pid: Some(context.pid(copy.process)),
                device,
                ordinal: device.and_then(|i| profile.devices.get(i as usize)).map(|d| d.id),
                context: None,
                stream: copy.stream.filter(|_| context.streams),
                thread: Some(copy.thread),
            })),
            call,
            launch: graph_of.get(&(copy.process, copy.correlation)).filter(|_| call.is_none()).copied(),
            graph_node: None,
        });
    }
    profile.memops.sort_by_start();
}

fn memory_event(context: &Context<'_>, a: &super::rows::Allocation) -> MemoryEvent {
    let device = a.agent.and_then(|agent| context.device_index(agent));
    MemoryEvent {
        time: context.session_time(a.time),
        address: a.address,
        bytes: a.bytes,
        device,
        pid: context.pid(a.process),
        tid: 0,
        kind: device.map(|_| MemoryKind::Device),
        level: MemoryLevel::Driver,
    }
}

fn build_ranges(context: &Context<'_>) -> Ranges {
    let mut out = Ranges::default();
    let (mut names, mut threads): (FxHashMap<u32, u32>, FxHashMap<(u32, u32), u32>) = (FxHashMap::default(), FxHashMap::default());
    // Skip marks, which have no length. Of two ranges with the same start, the longer one encloses the other.
    let mut markers: Vec<_> = context.rows.calls.iter().filter(|c| c.marker && c.end > c.start).collect();
    markers.sort_by_key(|c| (c.start, std::cmp::Reverse(c.end)));
    for call in markers {
        let name = *names.entry(call.name).or_insert_with(|| {
            out.names.push((None, context.rows.texts.get(call.name as usize).cloned().unwrap_or_default()));
            u32::try_from(out.names.len() - 1).unwrap_or(u32::MAX)
        });
        let key = (context.pid(call.process), call.thread);
        let thread = *threads.entry(key).or_insert_with(|| {
            out.threads.push(key);
            u32::try_from(out.threads.len() - 1).unwrap_or(u32::MAX)
        });
        let (start, end) = (context.session_time(call.start), context.session_time(call.end));
        let kind = if call.of_process { RangeKind::StartEnd } else { RangeKind::PushPop };
        out.push(Range { start, end, name, thread, kind, origin: RangeOrigin::Roctx });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_by_what_amd_calls_them() {
        for (name, kind) in [
            ("MEMORY_COPY_HOST_TO_DEVICE", CopyKind::HostToDevice),
            ("DEVICE_TO_HOST", CopyKind::DeviceToHost),
            ("MEMORY_COPY_DEVICE_TO_DEVICE", CopyKind::DeviceToDevice),
            ("CopyHostToDevice", CopyKind::HostToDevice),
            ("CopyDeviceToHost", CopyKind::DeviceToHost),
            ("hipMemcpyHostToDevice", CopyKind::HostToDevice),
            ("hipMemcpyDefault", CopyKind::Other),
            ("hostToHost", CopyKind::Other),
            ("", CopyKind::Other),
        ] {
            assert_eq!(copy_kind(name), kind, "{name}");
        }
    }
}
