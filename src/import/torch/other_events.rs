//! Other trace events: allocations, waits, collectives, thread names and profiler overhead.

use super::event::{At, Event, EventKind, parse_integer, parse_u32, unquote_text};
use crate::model::api_call::NONE;
use crate::model::{
    Collective, LaunchSite, MemoryEvent, MemoryKind, MemoryLevel, Overhead, PlaceId, Profile, Thread, WaitKind, element_bytes,
};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// A stream on a device, by the ids in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    pub device: Option<u32>,
    pub stream: Option<u32>,
}

/// Bytes allocated and reserved by an allocator.
type Totals = Option<(u64, u64)>;

#[derive(Debug)]
struct Wait {
    at: At,
    start: i64,
    duration: i64,
    kind: WaitKind,
    queue: Queue,
    correlation: u32,
    event: u32,
}

/// Rows in arbitrary order; `At` is their position in the trace.
#[derive(Debug, Default)]
pub struct OtherEvents {
    /// Allocations and frees, with the allocator's totals; the device field holds the ordinal.
    memory: Vec<(At, MemoryEvent, Totals)>,
    waits: Vec<Wait>,
    /// Collectives, each with the stream of its kernel.
    collectives: Vec<(At, Collective, Queue)>,
    overhead: Vec<(At, Overhead, (u32, u32))>,
    threads: Vec<(u32, u32, Arc<str>)>,
}

/// The host in PyTorch's `DeviceType`.
const CPU: u32 = 0;

fn raw_text(raw: Option<&RawValue>) -> Arc<str> {
    raw.map_or_else(|| Arc::from(""), |r| Arc::from(&*unquote_text(r)))
}

fn parse_u64(raw: Option<&RawValue>) -> Option<u64> {
    raw.and_then(parse_integer).and_then(|n| u64::try_from(n).ok())
}

impl OtherEvents {
    /// Adds an event that is not a kernel, memcpy, memset, call or range.
    pub fn add_event(&mut self, at: At, event: &Event<'_>, thread: (u32, u32)) {
        match event.kind {
            EventKind::Memory => self.add_allocation(at, event, thread),
            EventKind::Wait => self.add_wait(at, event),
            EventKind::Overhead => {
                let overhead = Overhead { start: event.start, duration: event.duration, thread: 0, name: Arc::from(&*event.name) };
                self.overhead.push((at, overhead, thread));
            }
            EventKind::Thread => self.threads.extend(event.given_name().map(|name| (thread.0, thread.1, Arc::from(name)))),
            _ => {}
        }
    }

    fn add_allocation(&mut self, at: At, event: &Event<'_>, (pid, tid): (u32, u32)) {
        let [address, bytes, device, kind, allocated, reserved] =
            event.pick_args(["Addr", "Bytes", "Device Id", "Device Type", "Total Allocated", "Total Reserved"]);
        let host = parse_u32(kind) == Some(CPU);
        let row = MemoryEvent {
            time: event.start,
            address: address.and_then(parse_integer).unwrap_or_default().cast_unsigned(),
            bytes: bytes.and_then(parse_integer).unwrap_or_default(),
            // The ordinal is replaced once the devices are known.
            device: parse_u32(device).filter(|_| !host),
            pid,
            tid,
            kind: Some(if host { MemoryKind::Pageable } else { MemoryKind::Device }),
            level: MemoryLevel::Allocator,
        };
        let totals = parse_u64(reserved).map(|reserved| (parse_u64(allocated).unwrap_or_default(), reserved));
        self.memory.push((at, row, totals.filter(|_| !host)));
    }

    fn add_wait(&mut self, at: At, event: &Event<'_>) {
        let [device, stream, correlation, source] = event.pick_args(["device", "stream", "correlation", "wait_on_cuda_event_id"]);
        let name: Cow<'_, str> = event.name.to_lowercase().into();
        let kind = match &*name {
            n if n.contains("stream wait") => WaitKind::StreamForEvent,
            n if n.contains("event") => WaitKind::Event,
            n if n.contains("stream") => WaitKind::Stream,
            n if n.contains("context") || n.contains("device") => WaitKind::Context,
            _ => WaitKind::Other,
        };
        // kineto writes -1 if there is no stream.
        self.waits.push(Wait {
            at,
            start: event.start,
            duration: event.duration,
            kind,
            queue: Queue { device: parse_u32(device), stream: parse_u32(stream) },
            correlation: parse_u32(correlation).unwrap_or(NONE),
            event: parse_u32(source).unwrap_or(NONE),
        });
    }

    /// Adds the collective that a kernel event describes, if any.
    pub fn add_collective(&mut self, at: At, event: &Event<'_>) {
        if !event.args_contain(b"\"Collective name\"") {
            return;
        }
        let [kind, elements_in, elements_out, dtype, group, size, ranks, sequence, device, stream, from, to] = event.pick_args([
            "Collective name",
            "In msg nelems",
            "Out msg nelems",
            "dtype",
            "Process Group Name",
            "Group size",
            "Process Group Ranks",
            "Seq",
            "device",
            "stream",
            "Src Rank",
            "Dst Rank",
        ]);
        let (kind, dtype) = (raw_text(kind), raw_text(dtype));
        let (elements_in, elements_out) = (parse_u64(elements_in), parse_u64(elements_out));
        let peer = match &*kind {
            "send" => parse_u32(to),
            "recv" => parse_u32(from),
            _ => None,
        };
        let collective = Collective {
            bytes: element_bytes(&dtype).zip(elements_in.max(elements_out)).and_then(|(of, n)| n.checked_mul(of)),
            peer,
            member: None,
            kind,
            elements_in,
            elements_out,
            dtype,
            group: raw_text(group),
            group_size: parse_u32(size),
            ranks: raw_text(ranks),
            sequence: parse_u64(sequence),
            start: event.start,
            duration: event.duration,
            launch: None,
        };
        self.collectives.push((at, collective, Queue { device: parse_u32(device), stream: parse_u32(stream) }));
    }

    /// Appends the rows read by another thread.
    pub fn append_rows(&mut self, other: Self) {
        self.memory.extend(other.memory);
        self.waits.extend(other.waits);
        self.collectives.extend(other.collectives);
        self.overhead.extend(other.overhead);
        self.threads.extend(other.threads);
    }

    /// Moves all rows into the profile, which must already have its places and launches. Times become relative to
    /// `begin`; `devices` maps ordinals to indices.
    pub fn fill_profile(mut self, begin: i64, devices: &FxHashMap<u32, u32>, profile: &mut Profile) {
        self.memory.sort_by_key(|(at, row, _)| (row.time, *at));
        for (_, row, totals) in self.memory {
            let device = row.device.and_then(|id| devices.get(&id)).copied();
            if let (Some((allocated, reserved)), Ok(at)) = (totals, u32::try_from(profile.memory.events.len())) {
                profile.memory.totals.push((at, allocated, reserved));
            }
            profile.memory.events.push(MemoryEvent { time: row.time - begin, device, ..row });
        }
        self.waits.sort_by_key(|w| (w.start, w.at));
        // A wait belongs to a stream, no matter which thread launched work on it.
        let mut queues: FxHashMap<Queue, u32> = FxHashMap::default();
        for wait in self.waits {
            let place = *queues.entry(wait.queue).or_insert_with(|| {
                let Queue { device, stream } = wait.queue;
                let index = device.and_then(|id| devices.get(&id)).copied();
                profile.places.push(LaunchSite { device: index, ordinal: device, stream, ..LaunchSite::default() });
                u32::try_from(profile.places.len() - 1).unwrap_or(NONE)
            });
            profile.waits.start.push(wait.start - begin);
            profile.waits.duration.push(wait.duration);
            profile.waits.kind.push(wait.kind);
            profile.waits.place.push(PlaceId(place));
            profile.waits.correlation.push(wait.correlation);
            profile.waits.event.push(wait.event);
        }
        self.collectives.sort_by_key(|(at, c, _)| (c.start, *at));
        // Launches are already in call order, so find a collective's launch by start and stream.
        let mut rows: FxHashMap<(i64, Queue), u32> = FxHashMap::default();
        let starts: FxHashSet<i64> = self.collectives.iter().map(|(_, c, _)| c.start - begin).collect();
        if !starts.is_empty() {
            for row in 0..profile.launches.len() {
                let start = profile.launches.start(row);
                if starts.contains(&start)
                    && let Some(place) = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize))
                {
                    let queue = Queue { device: place.ordinal, stream: place.stream };
                    rows.insert((start, queue), u32::try_from(row).unwrap_or(NONE));
                }
            }
        }
        for (_, mut collective, queue) in self.collectives {
            collective.start -= begin;
            collective.launch = rows.get(&(collective.start, queue)).copied();
            profile.collectives.push(collective);
        }
        let mut threads = crate::model::Threads::default();
        let worked: FxHashSet<(u32, u32)> = profile.calls.threads.iter().chain(&profile.ranges.threads).copied().collect();
        // Kineto also gives GPU streams thread names.
        self.threads.sort();
        for (pid, tid, name) in self.threads.into_iter().filter(|t| worked.contains(&(t.0, t.1))) {
            threads.set_name(pid, tid, name);
        }
        self.overhead.sort_by_key(|(at, o, _)| (o.start, *at));
        for (_, overhead, (pid, tid)) in self.overhead {
            profile.overhead.push(Overhead { start: overhead.start - begin, thread: threads.get_or_insert(pid, tid).0, ..overhead });
        }
        let list: Vec<Thread> = threads.into_threads();
        profile.threads = list;
    }
}
