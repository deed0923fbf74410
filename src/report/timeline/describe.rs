//! Details of one event, as labeled values.

use crate::analysis::host_frames::{attributed_frame, frame_label};
use crate::analysis::timeline::{Category, Event, Events, Timeline, link};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, MemOpKind, MemoryKind, Nanos, NcclCall, Payload, Profile, Sample, units};
use crate::report::host_lines::thread_label;
use std::fmt::Write as _;

/// A label and its value.
pub type Fact = (&'static str, String);

/// Formats the start and end of a window.
pub fn format_window((from, to): (i64, i64)) -> String {
    let step = to.saturating_sub(from) / 100;
    format!("{} to {}", format_time(from, step), format_time(to, step))
}

/// Formats a session time in seconds, with as many digits as a `step` in ns requires.
pub fn format_time(ns: i64, step: i64) -> String {
    let digits = match step {
        ..=9 => 9,
        10..=99 => 8,
        100..=999 => 7,
        1_000..=9_999 => 6,
        10_000..=99_999 => 5,
        100_000..=999_999 => 4,
        1_000_000..=99_999_999 => 3,
        _ => 1,
    };
    let text = format!("{:.digits$} s", ns as f64 / 1e9);
    // A time just before 0 is 0 at this precision.
    match text.strip_prefix('-') {
        Some(rest) if !rest.contains(|c: char| ('1'..='9').contains(&c)) => rest.to_owned(),
        _ => text,
    }
}

fn memory_kind_word(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Pageable => "pageable",
        MemoryKind::Pinned => "pinned",
        MemoryKind::Device => "device",
        MemoryKind::Array => "array",
        MemoryKind::Managed => "managed",
    }
}

/// Formats a rate; 1 GB/s is 10⁹ bytes per second, as in data sheets.
pub fn format_rate(bytes: u64, ns: i64) -> Option<String> {
    (ns > 0 && bytes > 0).then(|| {
        let rate = bytes as f64 / ns as f64;
        if rate >= 99.95 {
            format!("{rate:.0} GB/s")
        } else if rate >= 0.1 {
            format!("{rate:.1} GB/s")
        } else {
            format!("{:.1} MB/s", rate * 1e3)
        }
    })
}

/// Full name of an event: the demangled name of a kernel, otherwise the name on the timeline.
pub fn full_name(of: &Events<'_>, event: Event) -> String {
    let p = of.profile;
    match event {
        Event::Launch(row) => p
            .kernels
            .get(p.launches.kernel(row as usize).0 as usize)
            .map_or_else(String::new, |k| escape_unsafe(k.demangled()).into_owned()),
        Event::Mem(_) if of.category(event) == Category::Copy => format!("memcpy {}", of.event_name(event)),
        _ => of.event_name(event).into_owned(),
    }
}

fn push(out: &mut Vec<Fact>, label: &'static str, value: String) {
    if !value.is_empty() {
        out.push((label, value));
    }
}

/// Device, stream and process of a place.
fn place_text(profile: &Profile, place: Option<u32>) -> String {
    let Some(place) = place.and_then(|p| profile.places.get(p as usize)) else { return String::new() };
    let device = profile.device_of(place).map(|d| d.id).or(place.ordinal).map(|d| format!("GPU {d}"));
    let stream = place.stream.map(|s| format!("stream {s}"));
    let pid = place.pid.filter(|_| profile.processes.len() > 1).map(|p| format!("process {p}"));
    device.into_iter().chain(stream).chain(pid).collect::<Vec<_>>().join(" · ")
}

/// Adds the call that started a device operation, and the delay from the end of the call.
fn push_call_facts(out: &mut Vec<Fact>, of: &Events<'_>, event: Event) {
    let Some(call) = link::originating_call(of.profile, event) else { return };
    let ((start, _), (from, to)) = (of.span(event), of.span(call));
    let name = match call {
        Event::Call(_) => of.event_name(call).into_owned(),
        _ => "launch call".to_owned(),
    };
    let thread = link::event_thread(of.profile, call).map_or_else(String::new, |(_, tid)| format!(" on thread {tid}"));
    push(out, "called by", format!("{name}{thread}, {} before it began, {} long", Nanos(start - from), Nanos(to - from)));
    let queued = start - to;
    push(
        out,
        "queued",
        if queued > 0 {
            format!("{} from the end of the call", Nanos(queued))
        } else {
            "not at all: it began before the call returned".to_owned()
        },
    );
}

/// Program line at which a graph node was captured or added.
fn captured_at(profile: &Profile, row: usize, node: u64) -> Option<String> {
    let pid = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize))?.pid.unwrap_or_default();
    let origin = profile.graph_nodes.origin(pid, node)?;
    attributed_frame(&profile.samples, origin.stack?).map(frame_label)
}

/// Maximum distance from a sample, ns, at which the sample still indicates what the thread was doing.
const NEAR_NS: i64 = 20_000_000;

/// Facts about the threads that were sampled closest to a time, at most two threads; only samples between two given
/// times count.
pub fn sampled_activities(profile: &Profile, time: i64, (start, end): (i64, i64)) -> Vec<String> {
    let samples = &profile.samples.samples;
    let from = samples.partition_point(|s| s.time < start.max(time.saturating_sub(NEAR_NS)));
    let until = samples.partition_point(|s| s.time <= end.min(time.saturating_add(NEAR_NS)));
    let mut near: Vec<&Sample> = samples.get(from..until).unwrap_or_default().iter().collect();
    near.sort_by_key(|s| s.time.abs_diff(time));
    let mut seen: Vec<u32> = Vec::new();
    near.retain(|s| {
        !seen.contains(&s.thread) && {
            seen.push(s.thread);
            true
        }
    });
    // A thread with a stack is more informative.
    near.sort_by_key(|s| s.stack.is_none());
    near.into_iter()
        .take(2)
        .map(|s| {
            let at = s
                .stack
                .and_then(|stack| attributed_frame(&profile.samples, stack))
                .map_or_else(String::new, |f| format!(" in {}", frame_label(f)));
            format!("{} {}{at}", thread_label(profile, s.thread), s.activity.as_str())
        })
        .collect()
}

fn graph_launch(of: &Events<'_>, row: u32) -> Option<String> {
    let kernels = units::format_count(of.graph_kernels(row)?, "kernel");
    // CUDA's and HIP's programming guides: an executable graph that was not uploaded is uploaded by its first launch.
    let first = "the first launch of it here; a graph that was not uploaded before is uploaded now";
    Some(if of.is_first_of_graph(row) { format!("{kernels}; {first}") } else { kernels })
}

/// All data in the report about an event, except its name.
pub fn event_facts(timeline: &Timeline, of: &Events<'_>, event: Event, step: i64) -> Vec<Fact> {
    let p = of.profile;
    let mut out = Vec::new();
    let (start, end) = of.span(event);
    push(&mut out, "start", format_time(start, step.min(1_000)));
    push(&mut out, "duration", Nanos(end - start).to_string());
    match event {
        Event::Launch(row) => {
            push(&mut out, "ran on", place_text(p, p.launches.place(row as usize).map(|p| p.0)));
            let config = p.launches.config(row as usize).and_then(|c| p.configs.get(c.0 as usize));
            push(&mut out, "grid × block", config.map_or_else(String::new, |c| c.label_for(p.is_amd())));
            let node = p.launches.graph_node(row as usize);
            push(&mut out, "graph node", node.map_or_else(String::new, |n| n.to_string()));
            push(&mut out, "captured at", node.and_then(|n| captured_at(p, row as usize, n)).unwrap_or_default());
            push_collective_facts(&mut out, p, row);
            push_call_facts(&mut out, of, event);
        }
        Event::Mem(row) => {
            if let Some(op) = p.memops.get(row as usize) {
                push(&mut out, "ran on", place_text(p, Some(op.place.0)));
                if let Some(Bytes(bytes)) = op.bytes {
                    let rate = format_rate(bytes, op.duration.0).map_or_else(String::new, |r| format!(", {r}"));
                    push(&mut out, "size", format!("{}{rate}", Bytes(bytes)));
                }
                if let MemOpKind::Copy { from, to, .. } = op.kind {
                    let word = |k: Option<MemoryKind>| k.map_or("?", memory_kind_word);
                    if from.is_some() || to.is_some() {
                        push(&mut out, "memory", format!("{} → {}", word(from), word(to)));
                    }
                }
            }
            push_call_facts(&mut out, of, event);
        }
        Event::Graph(row) => {
            push(&mut out, "ran on", place_text(p, p.graphs.get(row as usize).map(|g| g.place)));
            push(&mut out, "kernels", "not recorded: the graph was traced as a whole".to_owned());
            push_call_facts(&mut out, of, event);
        }
        Event::LaunchCall(_) | Event::Call(_) => {
            push(&mut out, "kind", of.category(event).display_name().to_owned());
            let graph = if let Event::LaunchCall(row) = event { graph_launch(of, row) } else { None };
            push(&mut out, "graph", graph.unwrap_or_default());
            if let Some(thing) = link::started_operation(p, event) {
                let (from, to) = of.span(thing);
                let name = escape_unsafe(&of.event_name(thing)).into_owned();
                push(&mut out, "started", format!("{name}, {} long, {} after the call began", Nanos(to - from), Nanos(from - start)));
            }
        }
        Event::Range(row) => {
            let at = row as usize;
            push(&mut out, "category", p.ranges.category(at).map_or_else(String::new, |c| escape_unsafe(c).into_owned()));
            push(&mut out, "payload", p.ranges.payloads.get(&row).map_or_else(String::new, format_payload));
            push(&mut out, "shapes", p.ranges.operator_shapes(at).map_or_else(String::new, |s| escape_unsafe(s).into_owned()));
        }
        Event::Os(_) | Event::Overhead(_) => push(&mut out, "kind", of.category(event).display_name().to_owned()),
    }
    // For a device operation, use the range around its call.
    let at = link::originating_call(p, event).unwrap_or(event);
    if let Some(thread) = link::event_thread(p, at) {
        out.extend(enclosing_facts(timeline, of, thread, of.span(at).0, Some(event)));
    }
    out
}

/// Ranges and Python functions that are open on a thread at a time, except `event` itself.
pub fn enclosing_facts(timeline: &Timeline, of: &Events<'_>, thread: (u32, u32), time: i64, event: Option<Event>) -> Vec<Fact> {
    let mut out = Vec::new();
    let path = link::open_ranges(timeline, of, thread, time);
    let (python, ranges): (Vec<_>, Vec<_>) =
        path.iter().map(|id| id.to_event()).filter(|e| Some(*e) != event).partition(|e| of.category(*e) == Category::Python);
    let names = |events: &[Event]| events.iter().map(|e| escape_unsafe(&of.event_name(*e)).into_owned()).collect::<Vec<_>>();
    push(&mut out, "inside", names(&ranges).join(" › "));
    // Keep the innermost functions: the outermost ones belong to the interpreter and the launcher.
    let from = python.len().saturating_sub(FRAMES);
    let more = if from > 0 { "… › " } else { "" };
    push(&mut out, "Python", names(&python[from..]).join(" › "));
    if let Some(frames) = out.last_mut().filter(|f| f.0 == "Python") {
        frames.1.insert_str(0, more);
    }
    out
}

/// Maximum number of Python functions named around an event.
const FRAMES: usize = 4;

fn format_payload(payload: &Payload) -> String {
    match payload {
        Payload::Integer(n) => n.to_string(),
        Payload::Unsigned(n) => n.to_string(),
        Payload::Real(x) => x.to_string(),
        Payload::Json(text) => escape_unsafe(text).into_owned(),
        Payload::Nccl(call) => describe_nccl_call(call),
    }
}

/// Describes an NCCL call.
fn describe_nccl_call(call: &NcclCall) -> String {
    match *call {
        NcclCall::Init { communicator, ranks, rank } => format!("rank {rank} of {ranks} joins communicator {communicator:016x}"),
        NcclCall::Message { communicator, bytes, peer } => {
            let mut out = Bytes(bytes).to_string();
            if let Some(peer) = peer {
                let _ = write!(out, ", with rank {peer}");
            }
            if let Some(communicator) = communicator {
                let _ = write!(out, ", communicator {communicator:016x}");
            }
            out
        }
    }
}

/// Adds the size and bandwidth of a collective, if known.
fn push_collective_facts(out: &mut Vec<Fact>, p: &Profile, row: u32) {
    let Some(c) = p.collectives.iter().find(|c| c.launch == Some(row)) else { return };
    let elements = c.elements_out.max(c.elements_in);
    let size = elements
        .map_or_else(String::new, |n| format!(", {} {}", units::format_count(i64::try_from(n).unwrap_or(i64::MAX), "element"), c.dtype));
    let ranks = c.group_size.map_or_else(String::new, |n| format!(" over {}", units::format_count(n, "rank")));
    push(out, "collective", format!("{}{ranks}{size}", c.kind));
    if elements.is_none() {
        push(out, "message", c.bytes.map_or_else(String::new, |b| Bytes(b).to_string()));
    }
    push(out, "with", c.peer.map_or_else(String::new, |p| format!("rank {p} of the group")));
    let bytes = c.bytes;
    if let Some(rate) = bytes.and_then(|b| format_rate(b, p.launches.duration(row as usize))) {
        push(out, "bandwidth", format!("{rate} of {} (size over duration)", Bytes(bytes.unwrap_or_default())));
    }
}
