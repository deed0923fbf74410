//! Makes a profile of a trace's rows: launches in the host's order with their calls, memcpys and memsets, calls, ranges.

use super::facts::Facts;
use super::kernels;
use super::names::{Names, Places};
use super::ranges;
use super::rows::{self, MemOpKind as Raw, Rows};
use crate::import::{Job, Parts};
use crate::model::host_call::{NONE, plain_name};
use crate::model::{
    Bytes, CallName, Clock, CopyKind, GraphLaunch, HostCalls, LaunchOrder, MemOp, MemOpKind, MemoryEvent, MemoryKind, Nanos, Overhead,
    Process, Profile, Threads,
};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

fn copy_kind(kind: u32) -> CopyKind {
    // CUpti_ActivityMemcpyKind.
    match kind {
        1 => CopyKind::HostToDevice,
        2 => CopyKind::DeviceToHost,
        3..=7 => CopyKind::Array,
        8 => CopyKind::DeviceToDevice,
        9 => CopyKind::HostToHost,
        10 => CopyKind::PeerToPeer,
        _ => CopyKind::Other,
    }
}

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

/// CUPTI's `CUpti_ActivityOverheadKind`: multiples of 65,536 but for the compiler's.
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
        _ => "CUPTI overhead",
    }
}

pub fn build(mut rows: Rows, facts: &Facts, job: &Job<'_>, mut profile: Profile) -> Profile {
    let names = Names::new(&mut rows, facts);
    let wants = |parts| job.wants.has(parts);
    profile.capture = facts.capture();
    profile.clock = Clock { epoch_ns: (names.zero > 0).then_some(names.zero), uncertainty_ns: None };
    profile.rank = facts.rank();
    profile.devices = rows.devices.iter().filter_map(Facts::device).collect();
    let name = facts.get("executable").and_then(|e| Path::new(e).file_name()).map(|n| n.to_string_lossy().into_owned());
    profile.processes = vec![Process { pid: names.pid, name }];
    let ordinals: Vec<u32> = profile.devices.iter().map(|d| d.id).collect();
    let mut places = Places::default();
    // Calls in the order of their ids, which wrap: those of a trace are less than half of all apart.
    let mut calls = std::mem::take(&mut rows.calls);
    calls.sort_by_key(|c| c.start);
    let mut built = kernels::build(&mut rows, &calls, &names, &ordinals, &mut places, wants(Parts::DETAILS));
    profile.launches = std::mem::take(&mut built.launches);
    profile.kernels = std::mem::take(&mut built.kernels);
    profile.configs = std::mem::take(&mut built.configs);
    profile.order = if wants(Parts::CALLS) || wants(Parts::DETAILS) { LaunchOrder::Host } else { LaunchOrder::Unread };
    let mut of_call: FxHashMap<u32, u32> = FxHashMap::default();
    if wants(Parts::CALLS) {
        profile.calls = host_calls(&calls, &built.launching, &names, &mut of_call);
    }
    for op in &rows.memops {
        let place = places.id(&names, &ordinals, [op.device, op.context, op.stream, 0]);
        profile.memops.push(MemOp {
            start: Nanos(names.time(op.start)),
            duration: Nanos(op.duration.max(0)),
            kind: match op.kind {
                Raw::Copy { kind, from, to } => MemOpKind::Copy { kind: copy_kind(kind), from: memory_kind(from), to: memory_kind(to) },
                Raw::Set(_) => MemOpKind::Set,
            },
            bytes: Some(Bytes(op.bytes)),
            place,
            call: of_call.get(&op.correlation).copied(),
            graph_node: (op.node != 0).then_some(op.node),
        });
    }
    profile.memops.sort();
    let started: FxHashMap<u32, i64> = calls.iter().filter(|_| !rows.graphs.is_empty()).map(|c| (c.correlation, c.start)).collect();
    profile.graphs = rows
        .graphs
        .iter()
        .map(|g| GraphLaunch {
            start: Nanos(names.time(g.start)),
            duration: Nanos(g.duration.max(0)),
            graph: u64::from(g.graph),
            place: places.id(&names, &ordinals, [g.device, g.context, g.stream, 0]).0,
            call: started.get(&g.correlation).map(|&s| names.time(s)),
        })
        .collect();
    profile.graphs.sort_by_key(|g| (g.call, g.start));
    if wants(Parts::RANGES) {
        // Blocks of different threads are in the order in which they were written.
        rows.events.sort_by_key(|e| e.time);
        profile.ranges = ranges::build(&rows.events, names.pid, names.zero, wants(Parts::RANGE_DETAILS), &|id| names.get(id));
    }
    beside(&rows, &names, &ordinals, &mut profile);
    profile.places = places.list();
    profile
}

fn beside(rows: &Rows, names: &Names, ordinals: &[u32], profile: &mut Profile) {
    let mut threads = Threads::default();
    for (tid, name) in &rows.threads {
        threads.name(names.pid, *tid, Arc::from(String::from_utf8_lossy(name)));
    }
    let words: FxHashMap<u32, Arc<str>> = rows.overhead.iter().map(|o| (o.kind, Arc::from(overhead_name(o.kind)))).collect();
    profile.overhead = rows
        .overhead
        .iter()
        .filter_map(|o| {
            Some(Overhead {
                start: names.time(o.start),
                duration: o.duration,
                thread: threads.id(names.pid, o.thread).0,
                name: words.get(&o.kind)?.clone(),
            })
        })
        .collect();
    profile.threads = threads.list();
    profile.memory.events = rows
        .memory
        .iter()
        .map(|m| {
            let bytes = i64::try_from(m.bytes).unwrap_or(i64::MAX);
            MemoryEvent {
                time: names.time(m.time),
                address: m.address,
                bytes: if m.operation == 2 { -bytes } else { bytes },
                device: ordinals.iter().position(|&d| d == m.device).and_then(|i| u32::try_from(i).ok()),
                pid: names.pid,
                kind: memory_kind(m.kind),
                cached: false,
            }
        })
        .collect();
    profile.memory.events.sort_by_key(|m| m.time);
}

/// Totals of all calls, and those one by one that launched no kernel. `of_call` gets their rows by correlation id.
fn host_calls(calls: &[rows::Call], launching: &[bool], names: &Names, of_call: &mut FxHashMap<u32, u32>) -> HostCalls {
    let mut totals: FxHashMap<u32, (u64, i64)> = FxHashMap::default();
    for call in calls {
        let total = totals.entry(call.name).or_default();
        total.0 += 1;
        total.1 = total.1.saturating_add(call.duration);
    }
    // Functions of several versions have one name.
    let mut by_name: FxHashMap<Arc<str>, (u64, i64, Vec<u32>)> = FxHashMap::default();
    for (id, (count, total)) in totals {
        let name = names.get(id).map_or_else(|| Arc::from("(unnamed call)"), |n| Arc::from(plain_name(&n)));
        let row = by_name.entry(name).or_default();
        row.0 += count;
        row.1 = row.1.saturating_add(total);
        row.2.push(id);
    }
    let mut list: Vec<_> = by_name.into_iter().collect();
    list.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
    let mut index: FxHashMap<u32, u32> = FxHashMap::default();
    let mut out = HostCalls::default();
    for (at, (name, (count, total, ids))) in (0..).zip(list) {
        index.extend(ids.into_iter().map(|id| (id, at)));
        out.names.push(CallName::new(name, count, Nanos(total)));
    }
    let mut threads: FxHashMap<u32, u32> = FxHashMap::default();
    for (call, _) in calls.iter().zip(launching).filter(|(_, launching)| !**launching) {
        let name = index.get(&call.name).copied().unwrap_or(NONE);
        if out.names.get(name as usize).is_some_and(|n| !n.kind.matters()) {
            continue;
        }
        of_call.insert(call.correlation, u32::try_from(out.len()).unwrap_or(NONE));
        out.start.push(names.time(call.start));
        out.duration.push(call.duration);
        out.name.push(name);
        out.correlation.push(call.correlation);
        out.thread.push(*threads.entry(call.thread).or_insert_with(|| {
            out.threads.push((names.pid, call.thread));
            u32::try_from(out.threads.len() - 1).unwrap_or(NONE)
        }));
    }
    out
}
