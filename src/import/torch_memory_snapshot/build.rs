//! Converts a parsed snapshot to a profile.

use super::parts::{BLOCK, EVENT, Parts, RawBlock, UNTIMED, pool_of};
use super::sizes::{self, HistoryEntry, What};
use super::value::{Pickle, Value, to_natural};
use crate::model::{
    Block, BlockState, Clock, Device, LaunchOrder, MemoryEvent, MemoryKind, MemoryLevel, MemoryState, Note, NoteKind, Profile, Range,
    RangeKind, RangeOrigin, Refused, Segment, Severity, api_call::NONE, units,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Builds the profile; `None` if the pickle is not a snapshot.
pub fn build_profile(pickle: Pickle, whole: Value, parts: Parts, mut profile: Profile) -> Option<Profile> {
    let traces = pickle.get(whole, "device_traces").and_then(|t| pickle.items(t));
    // `torch.cuda.memory_snapshot()` returns nothing but the segments.
    let segments = pickle.get(whole, "segments").and_then(|s| pickle.items(s)).or_else(|| pickle.items(whole));
    if traces.is_none() && segments.is_none() {
        return None;
    }
    let (segments, traces) = (segments.unwrap_or_default(), own_lists(&pickle, traces.unwrap_or_default()));
    let annotations = read_annotations(&pickle, whole);
    let entry = |v: &Value| pickle.taken_as(*v).filter(|t| t.0 == EVENT).and_then(|t| parts.events.get(t.1 as usize));
    let mut begin = traces.iter().flat_map(|t| t.1).filter_map(entry).map(|e| e.time).filter(|&t| t != UNTIMED).min();
    begin = annotations.iter().map(|a| a.0).chain(begin).min();

    profile.order = LaunchOrder::Host;
    profile.clock = Clock { epoch_ns: begin.and_then(|us| us.checked_mul(1_000)), uncertainty_ns: None };
    let begin = begin.unwrap_or(0);
    let mut devices = Devices::default();
    let mut state = memory_state(&pickle, whole, segments, &parts.blocks, &mut devices);
    if !segments.is_empty() && state.segments.is_empty() && traces.is_empty() {
        return None;
    }
    // Parse actions once per distinct string: there are few of these, but many events.
    let actions: Vec<Option<What>> = pickle.texts.iter().map(|t| parse_action(t)).collect();
    let mut rows: Vec<HistoryEntry> = Vec::new();
    for (ordinal, entries) in traces.into_iter().filter(|t| !t.1.is_empty()) {
        if !pickle.pace.count_steps(entries.len()) {
            return None;
        }
        // Reject lists that many devices share, which would multiply the number of rows.
        if rows.len() + entries.len() > parts.events.len() {
            continue;
        }
        let Some(device) = devices.device_index(ordinal) else { continue };
        let mut last = 0_i64;
        rows.reserve(entries.len());
        for (index, event) in entries.iter().filter_map(|e| entry(e).zip(pickle.taken_as(*e))).map(|(event, taken)| (taken.1, event)) {
            // If there are no times, number the events in order.
            last = if event.time == UNTIMED { last.saturating_add(1) } else { event.time.saturating_sub(begin).saturating_mul(1_000) };
            rows.extend(actions.get(event.action as usize).copied().flatten().map(|what| HistoryEntry {
                time: last,
                event: index,
                device,
                what,
            }));
        }
    }
    // Free the memory used by the pickle before allocating as much again.
    drop(pickle);
    if !rows.is_sorted_by_key(|r| r.time) {
        rows.sort_by_key(|r| r.time);
    }
    let untimed = !rows.is_empty() && rows.iter().all(|r| parts.events.get(r.event as usize).is_some_and(|e| e.time == UNTIMED));
    profile.memory.untimed = untimed;
    state.former = former_segments(&rows, &parts, &state);
    let sizes = sizes::block_sizes(&rows, &parts.events, &state);
    profile.memory.events.reserve(rows.len());
    profile.memory.stack_of.reserve(rows.len());
    for (row, size) in rows.iter().zip(sizes) {
        let Some(event) = parts.events.get(row.event as usize) else { continue };
        let bytes = i64::try_from(size).unwrap_or(i64::MAX);
        let (level, bytes) = match row.what {
            What::Refused => {
                let after = profile.memory.events.len();
                let (asked, free, stack) = (event.size, Some(event.address), event.stack);
                let (stream, pool) = parts.owners.get(event.owner as usize).copied().unwrap_or_default();
                let (time, device) = (row.time, Some(row.device));
                profile.memory.refused.push(Refused { time, device, asked, free, stream, pool, stack, after });
                continue;
            }
            What::Change(level, true) => (level, bytes),
            What::Change(level, false) => (level, -bytes),
        };
        let kind = Some(MemoryKind::Device);
        profile.memory.stack_of.push(event.stack);
        let (time, device) = (row.time, Some(row.device));
        profile.memory.events.push(MemoryEvent { time, address: event.address, bytes, device, pid: 0, tid: 0, kind, level });
    }
    let mut names: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    for (start, end, name) in annotations {
        let (start, end) = (start.saturating_sub(begin).saturating_mul(1_000), end.map(|e| e.saturating_sub(begin).saturating_mul(1_000)));
        let ranges = &mut profile.ranges;
        if ranges.threads.is_empty() {
            ranges.threads.push((0, 0));
        }
        let next = u32::try_from(ranges.names.len()).unwrap_or(NONE);
        let index = *names.entry(Arc::clone(&name)).or_insert(next);
        if index == next {
            ranges.names.push((None, name));
        }
        let (name, end) = (index, end.unwrap_or(i64::MAX));
        ranges.push(Range { start, end, name, thread: 0, kind: RangeKind::Annotation, origin: RangeOrigin::Annotation });
    }
    profile.memory.stacks = parts.stacks;
    if profile.memory.stacks.is_empty() {
        profile.memory.stack_of = Vec::new();
    }
    profile.memory.state = Some(state);
    profile.devices = devices.list;
    if devices.more {
        let text = format!("The snapshot names more than {DEVICES} devices: those beyond are left out.");
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    add_notes(&mut profile);
    Some(profile)
}

/// Returns the distinct lists within a list, with their positions. A pickle may refer to the same list more than once.
fn own_lists<'p>(pickle: &'p Pickle, lists: &[Value]) -> Vec<(u32, &'p [Value])> {
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    let mut own = |list: &Value| matches!(list, Value::List(at) if seen.insert(*at));
    (0..).zip(lists).filter(|(_, list)| own(list)).filter_map(|(at, list)| Some((at, pickle.items(*list)?))).collect()
}

/// Maximum number of devices in a process; more than any real machine has.
const DEVICES: usize = 256;

#[derive(Default)]
struct Devices {
    list: Vec<Device>,
    known: FxHashMap<u32, u32>,
    /// True if there are more devices than [`DEVICES`].
    more: bool,
}

impl Devices {
    /// Returns the index of a device, adding it if needed; `None` if there are too many.
    fn device_index(&mut self, ordinal: u32) -> Option<u32> {
        if let Some(&known) = self.known.get(&ordinal) {
            return Some(known);
        }
        if self.list.len() >= DEVICES {
            self.more = true;
            return None;
        }
        let at = u32::try_from(self.list.len()).ok()?;
        self.list.push(Device { id: ordinal, ..Device::default() });
        self.known.insert(ordinal, at);
        Some(at)
    }
}

/// Parses the action of a trace entry (`TraceEntry::Action` in `c10/cuda/CUDACachingAllocator.h`); `None` for actions
/// that do not change memory.
fn parse_action(text: &str) -> Option<What> {
    let change = |level, more| Some(What::Change(level, more));
    match text {
        "alloc" => change(MemoryLevel::Allocator, true),
        "free_requested" | "free" => change(MemoryLevel::Allocator, false),
        "free_completed" => change(MemoryLevel::Reusable, false),
        "segment_alloc" | "segment_map" => change(MemoryLevel::Driver, true),
        "segment_free" | "segment_unmap" => change(MemoryLevel::Driver, false),
        "oom" => Some(What::Refused),
        _ => None,
    }
}

fn memory_state(pickle: &Pickle, whole: Value, segments: &[Value], raw: &[RawBlock], devices: &mut Devices) -> MemoryState {
    let mut out = MemoryState::default();
    let mut seen: FxHashSet<u32> = FxHashSet::default();
    for &segment in segments {
        if !pickle.pace.count_steps(1) {
            break;
        }
        let get = |key| pickle.get(segment, key);
        let (Some(size), Some(blocks)) = (to_natural(get("total_size")), get("blocks").and_then(|b| pickle.items(b))) else { continue };
        // Skip lists that many segments share, which would multiply the number of blocks.
        let shared = matches!(get("blocks"), Some(Value::List(at)) if !blocks.is_empty() && !seen.insert(at));
        if shared || !pickle.pace.count_steps(blocks.len()) || out.blocks.len() + blocks.len() > raw.len() {
            continue;
        }
        let ordinal = to_natural(get("device")).and_then(|d| u32::try_from(d).ok()).unwrap_or(0);
        let Some(device) = devices.device_index(ordinal) else { continue };
        let address = to_natural(get("address")).unwrap_or(0);
        let first = out.blocks.len();
        let mut at = address;
        for block in blocks.iter().filter_map(|b| pickle.taken_as(*b)).filter(|t| t.0 == BLOCK).filter_map(|t| raw.get(t.1 as usize)) {
            let state = match pickle.texts.get(block.state as usize).map(|t| &**t) {
                Some("active_allocated") => BlockState::Allocated,
                Some("active_awaiting_free" | "active_pending_free") => BlockState::Awaiting,
                _ => BlockState::Free,
            };
            let address = block.address.unwrap_or(at);
            at = address.saturating_add(block.size);
            let requested = block.requested.unwrap_or(block.size).min(block.size);
            out.blocks.push(Block { address, size: block.size, requested, state, stack: block.stack });
        }
        let pool = get("segment_pool_id").and_then(|p| pool_of(p, pickle)).unwrap_or_default();
        out.segments.push(Segment {
            device: Some(device),
            address,
            size,
            stream: to_natural(get("stream")).unwrap_or(0),
            small: get("segment_type").and_then(|t| pickle.text(t)).is_some_and(|t| &**t == "small"),
            expandable: get("is_expandable") == Some(Value::Bool(true)),
            pool,
            blocks: (first, out.blocks.len()),
        });
    }
    out.settings = changed_settings(pickle, whole);
    out
}

/// Returns the segments that were returned to the driver, with the stream and pool taken from the history.
fn former_segments(rows: &[HistoryEntry], parts: &Parts, state: &MemoryState) -> Vec<Segment> {
    let there: FxHashSet<(Option<u32>, u64)> = state.segments.iter().map(|s| (s.device, s.address)).collect();
    let mut seen: FxHashSet<(Option<u32>, u64, u64)> = FxHashSet::default();
    let mut out = Vec::new();
    for row in rows.iter().filter(|r| matches!(r.what, What::Change(MemoryLevel::Driver, _))) {
        let Some(event) = parts.events.get(row.event as usize) else { continue };
        let device = Some(row.device);
        if there.contains(&(device, event.address)) || !seen.insert((device, event.address, event.size)) {
            continue;
        }
        let (stream, pool) = parts.owners.get(event.owner as usize).copied().unwrap_or_default();
        out.push(Segment {
            device,
            address: event.address,
            size: event.size,
            stream: stream.unwrap_or(0),
            small: event.size <= sizes::SMALL_SEGMENT,
            expandable: false,
            pool: pool.unwrap_or_default(),
            blocks: (0, 0),
        });
    }
    out
}

/// Reads those allocator settings that differ from the defaults.
fn changed_settings(pickle: &Pickle, whole: Value) -> Vec<(Arc<str>, Arc<str>)> {
    let Some(all) = pickle.get(whole, "allocator_settings") else { return Vec::new() };
    let mut out = Vec::new();
    for (key, value) in pickle.pairs_of(all) {
        let Some(key) = pickle.text(key) else { continue };
        let value: Option<Arc<str>> = match value {
            Value::Text(_) => pickle.text(value).filter(|t| !t.is_empty()).cloned(),
            Value::Bool(true) => Some(Arc::from("True")),
            // The default number of threads is one.
            Value::Integer(n) if n > 1 => Some(Arc::from(n.to_string())),
            Value::Real(x) if x > 0.0 => Some(Arc::from(x.to_string())),
            _ => None,
        };
        out.extend(value.map(|v| (Arc::clone(key), v)));
    }
    out
}

/// Reads the ranges marked by the program as start, end and name; times are in µs.
fn read_annotations(pickle: &Pickle, whole: Value) -> Vec<(i64, Option<i64>, Arc<str>)> {
    let mut out: Vec<(i64, Option<i64>, Arc<str>)> = Vec::new();
    // Open ranges by name.
    let mut open: FxHashMap<(Arc<str>, u64), Vec<usize>> = FxHashMap::default();
    for &entry in pickle.get(whole, "external_annotations").and_then(|a| pickle.items(a)).unwrap_or_default() {
        if !pickle.pace.count_steps(1) {
            break;
        }
        let get = |key| pickle.get(entry, key);
        let (Some(name), Some(Value::Integer(time))) = (get("name").and_then(|n| pickle.text(n)), get("time_us")) else { continue };
        let key = (Arc::clone(name), to_natural(get("device")).unwrap_or(0));
        if get("stage").and_then(|s| pickle.text(s)).is_some_and(|s| &**s == "START") {
            open.entry(key).or_default().push(out.len());
            out.push((time, None, Arc::clone(name)));
        } else if let Some(at) = open.get_mut(&key).and_then(Vec::pop) {
            out[at].1 = Some(time);
        }
    }
    // The snapshot repeats all annotations for each device.
    out.sort();
    out.dedup();
    out
}

fn add_notes(profile: &mut Profile) {
    let memory = &profile.memory;
    let mut add = |kind, text: String, fix: &str| profile.notes.push(Note::new(Severity::Info, kind, text).with_fix(fix));
    if memory.events.is_empty() && memory.refused.is_empty() {
        let text = "The snapshot has no history: only what was held when it was written.".to_owned();
        add(NoteKind::Empty, text, "call torch.cuda.memory._record_memory_history() before the part that matters");
    } else if memory.stacks.is_empty() {
        let text = "The snapshot has no stacks: who allocated is not known.".to_owned();
        add(NoteKind::Empty, text, "record with torch.cuda.memory._record_memory_history(stacks=\"all\")");
    }
    if profile.memory.untimed {
        let text =
            "The snapshot has no times (PyTorch before 2.1): where something happened is said as the number of its event.".to_owned();
        profile.notes.push(Note::new(Severity::Info, NoteKind::Tool, text).with_fix("record it with PyTorch 2.1 or later to have times"));
    }
    if let Some(state) = profile.memory.state.as_ref().filter(|s| !s.settings.is_empty()) {
        let list: Vec<String> = state.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let what = units::format_count(list.len() as u64, "setting");
        profile.notes.push(Note::new(Severity::Info, NoteKind::Tool, format!("The allocator had {what}: {}.", list.join(", "))));
    }
}
