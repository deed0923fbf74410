//! Walks through a report track by track and passes its events to a sink.

use super::trace_writer::{Arg, Event, Flow, Sink, Under};
use crate::analysis::memory::Ledger;
use crate::analysis::table::ranges::origin_word;
use crate::analysis::triage::Triage;
use crate::model::api_call::NONE;
use crate::model::config::format_dim3;
use crate::model::{MemOpKind, MemoryLevel, Profile};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io;

/// A report to export, alone or together with reports of other ranks.
#[derive(Clone, Copy)]
pub struct ExportedReport<'a> {
    pub profile: &'a Profile,
    /// Triage of the run, if anything ran.
    pub triage: Option<&'a Triage>,
    /// Offset of the report's times, ns, so that all reports use one clock and no time is negative.
    pub shift: i64,
    /// Prefix of the report's process names: `rank 3`.
    pub name: &'a str,
    /// Offset of the report's process ids, so that ids are unique across all reports.
    pub pids: u32,
    /// Offset of the report's flow ids.
    pub flows: u64,
}

/// A process and the GPU that it uses; for streams, also the context and stream.
type QueueKey = (u32, Option<u32>, Option<u32>, Option<u32>);

/// An event on a track, before its lane is known: start, end, and kind.
type Item = (i64, i64, What);

#[derive(Clone, Copy)]
enum What {
    Launch(u32),
    Copy(u32),
    Graph(u32),
    Call(u32),
    LaunchCall(u32),
    Range(u32),
    Os(u32),
}

struct Walk<'a, S> {
    sink: &'a mut S,
    part: ExportedReport<'a>,
    window: (i64, i64),
    keys: Keys,
    /// String ids of kernels, configurations, calls and ranges, by their index.
    kernels: Vec<u32>,
    demangled: Vec<u32>,
    configs: Vec<Option<u32>>,
    calls: Vec<u32>,
    ranges: Vec<u32>,
    /// Calls that started a memcpy or memset in the window.
    starting: FxHashSet<u32>,
    /// Number of events written.
    written: u64,
}

/// String ids that all events share.
struct Keys {
    kernel: u32,
    copy: u32,
    call: u32,
    range: u32,
    os: u32,
    finding: u32,
    demangled: u32,
    config: u32,
    bytes: u32,
    launch: u32,
    launch_call: u32,
    graph: u32,
    domain: u32,
    headline: u32,
    share: u32,
    sure: u32,
}

/// Writes the events of a report that overlap a window (ns, on the report's own clock), without clipping, and returns
/// their number.
pub fn write_trace<S: Sink>(sink: &mut S, part: ExportedReport<'_>, window: (i64, i64)) -> io::Result<u64> {
    let p = part.profile;
    let keys = Keys {
        kernel: sink.text("kernel"),
        copy: sink.text("memcpy"),
        call: sink.text("api"),
        range: sink.text("range"),
        os: sink.text("os"),
        finding: sink.text("finding"),
        demangled: sink.text("demangled"),
        config: sink.text("config"),
        bytes: sink.text("bytes"),
        launch: sink.text("launch"),
        launch_call: sink.text("launch call"),
        graph: sink.text("CUDA graph"),
        domain: sink.text("domain"),
        headline: sink.text("headline"),
        share: sink.text("share_percent"),
        sure: sink.text("sure"),
    };
    let kernels = p.kernels.iter().map(|k| sink.text(k.function())).collect();
    let demangled = p.kernels.iter().map(|k| sink.text(k.demangled())).collect();
    let config = |c: &crate::model::LaunchConfig| -> Option<String> {
        let mut text = format!("grid {} block {}", format_dim3(c.grid?), format_dim3(c.block?));
        if let Some(registers) = c.registers {
            text = format!("{text}, {registers} registers");
        }
        if let Some(shared) = c.shared_memory().filter(|s| s.0 > 0) {
            text = format!("{text}, {} B shared memory", shared.0);
        }
        Some(text)
    };
    let configs = p.configs.iter().map(|c| config(c).map(|t| sink.text(&t))).collect();
    let calls = p.calls.names.iter().map(|n| sink.text(&n.name)).collect();
    let ranges = p.ranges.names.iter().map(|n| sink.text(&n.1)).collect();
    let within = |start: i64, long: i64| start.saturating_add(long) >= window.0 && start <= window.1;
    let starting = p.memops.iter().filter(|m| within(m.start.0, m.duration.0)).filter_map(|m| m.call).collect();
    let mut walk = Walk { sink, part, window, keys, kernels, demangled, configs, calls, ranges, starting, written: 0 };
    walk.write_report()?;
    Ok(walk.written)
}

impl<S: Sink> Walk<'_, S> {
    fn write_report(&mut self) -> io::Result<()> {
        let p = self.part.profile;
        let (threads, queues) = (self.host_items(), self.device_items());
        let mut pids: Vec<u32> = threads.keys().map(|t| t.0).chain(queues.keys().map(|q| q.0)).collect();
        pids.extend(p.processes.iter().map(|p| p.pid));
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            pids.push(0);
        }
        for &pid in &pids {
            let known = p.processes.iter().find(|k| k.pid == pid);
            let rank = known.and_then(|k| k.rank).map(|r| format!("rank {r}"));
            let name = known.and_then(|k| k.name.as_deref()).map(|n| n.rsplit('/').next().unwrap_or(n).to_owned());
            let own = (!self.part.name.is_empty()).then(|| self.part.name.to_owned());
            let parts: Vec<String> = [rank.or(own), name].into_iter().flatten().collect();
            let name = if parts.is_empty() { format!("process {pid}") } else { parts.join(" · ") };
            self.sink.process(self.shifted_pid(pid), &name)?;
        }
        self.write_findings(pids[0])?;
        // Track of each GPU under each process, which is the parent of its streams.
        let mut gpus: BTreeMap<(u32, Option<u32>), u32> = BTreeMap::new();
        for (key, items) in queues {
            let (pid, device, context, stream) = key;
            let gpu = self.gpu_track(&mut gpus, pid, device)?;
            let mut name = stream.map_or_else(|| "stream".to_owned(), |s| format!("stream {s}"));
            if let Some(context) = context.filter(|_| {
                p.places.iter().any(|o| o.device == device && o.pid == Some(pid) && o.context.is_some() && o.context != context)
            }) {
                name = format!("{name} of context {context}");
            }
            self.write_lanes(pid, Under::Track(gpu), &name, items)?;
        }
        for ((pid, tid), items) in threads {
            let name = p.threads.iter().find(|t| (t.pid, t.tid) == (pid, tid)).and_then(|t| t.name.as_deref());
            let name = name.map_or_else(|| format!("thread {tid}"), |n| format!("{n} {tid}"));
            self.write_lanes(pid, Under::Thread(tid), &name, items)?;
        }
        self.write_counters(&mut gpus, pids[0])?;
        self.write_memory(&mut gpus, pids[0])
    }

    fn shifted_pid(&self, pid: u32) -> u32 {
        pid.saturating_add(self.part.pids)
    }

    fn shifted_time(&self, ns: i64) -> i64 {
        ns.saturating_add(self.part.shift).max(0)
    }

    fn is_within(&self, start: i64, end: i64) -> bool {
        end >= self.window.0 && start <= self.window.1
    }

    fn gpu_track(&mut self, gpus: &mut BTreeMap<(u32, Option<u32>), u32>, pid: u32, device: Option<u32>) -> io::Result<u32> {
        if let Some(&known) = gpus.get(&(pid, device)) {
            return Ok(known);
        }
        let known = device.and_then(|d| self.part.profile.devices.get(d as usize));
        let name = match known {
            Some(d) => d.name.as_ref().map_or_else(|| format!("GPU {}", d.id), |name| format!("GPU {} · {name}", d.id)),
            None => "GPU".to_owned(),
        };
        let track = self.sink.track(self.shifted_pid(pid), Under::Process, &name)?;
        gpus.insert((pid, device), track);
        Ok(track)
    }

    /// Device operations by queue.
    fn device_items(&self) -> BTreeMap<QueueKey, Vec<Item>> {
        let p = self.part.profile;
        let mut out: BTreeMap<QueueKey, Vec<Item>> = BTreeMap::new();
        let keys: Vec<QueueKey> = p.places.iter().map(|o| (o.pid.unwrap_or(0), o.device, o.context, o.stream)).collect();
        let none: QueueKey = (p.processes.first().map_or(0, |k| k.pid), None, None, None);
        let mut put = |place: Option<u32>, start: i64, end: i64, what: What| {
            if self.is_within(start, end) {
                let key = place.and_then(|at| keys.get(at as usize)).copied().unwrap_or(none);
                out.entry(key).or_default().push((start, end, what));
            }
        };
        if p.launches.has_start_times() {
            for row in 0..p.launches.len() {
                let at = u32::try_from(row).unwrap_or(NONE);
                put(p.launches.place(row).map(|p| p.0), p.launches.start(row), p.launches.end(row), What::Launch(at));
            }
        }
        for (at, op) in (0..).zip(p.memops.iter()) {
            put(Some(op.place.0), op.start.0, op.start.0.saturating_add(op.duration.0), What::Copy(at));
        }
        for (at, graph) in (0..).zip(&p.graphs) {
            put(Some(graph.place), graph.start.0, graph.start.0.saturating_add(graph.duration.0), What::Graph(at));
        }
        out
    }

    /// Host events by process and thread.
    fn host_items(&self) -> BTreeMap<(u32, u32), Vec<Item>> {
        let p = self.part.profile;
        let mut out: BTreeMap<(u32, u32), Vec<Item>> = BTreeMap::new();
        let mut put = |thread: (u32, u32), start: i64, end: i64, what: What| {
            if self.is_within(start, end) {
                out.entry(thread).or_default().push((start, end, what));
            }
        };
        for row in 0..p.calls.len() {
            let (start, long) = (p.calls.start[row], p.calls.duration[row]);
            put(p.calls.thread_of(row), start, start.saturating_add(long), What::Call(u32::try_from(row).unwrap_or(NONE)));
        }
        // Launches from the same call, such as a graph launch, share one event.
        let mut last = None;
        for row in 0..p.launches.len() {
            let Some((start, long)) = p.launches.call(row) else { continue };
            let place = p.launches.place(row).and_then(|o| p.places.get(o.0 as usize));
            let Some(thread) = place.and_then(|o| Some((o.pid.unwrap_or(0), o.thread?))) else { continue };
            if last != Some((thread, start)) {
                put(thread, start, start.saturating_add(long), What::LaunchCall(u32::try_from(row).unwrap_or(NONE)));
                last = Some((thread, start));
            }
        }
        for (row, range) in (0..).zip(p.ranges.iter()) {
            if let Some(&thread) = p.ranges.threads.get(range.thread as usize) {
                put(thread, range.start, range.end, What::Range(row));
            }
        }
        for row in 0..p.os_calls.start.len() {
            let (start, long) = (p.os_calls.start[row], p.os_calls.duration[row]);
            if let Some(thread) = p.threads.get(p.os_calls.thread[row] as usize) {
                put((thread.pid, thread.tid), start, start.saturating_add(long), What::Os(u32::try_from(row).unwrap_or(NONE)));
            }
        }
        out
    }

    /// Writes the events of a track; events that overlap without nesting go to additional tracks.
    fn write_lanes(&mut self, pid: u32, under: Under, name: &str, mut items: Vec<Item>) -> io::Result<()> {
        items.sort_by_key(|i| (i.0, std::cmp::Reverse(i.1)));
        // Track of each lane, and the ends of the lane's open events.
        let mut lanes: Vec<(u32, Vec<i64>)> = Vec::new();
        // A range that is still open ends with the window or with the last known event.
        let last = items.iter().map(|i| i.1).filter(|&e| e != i64::MAX).max().unwrap_or(0).min(self.window.1);
        for (start, end, what) in items {
            let end = if end == i64::MAX { last.max(start) } else { end.max(start) };
            let fits = |open: &mut Vec<i64>| {
                while open.pop_if(|e| *e <= start).is_some() {}
                open.last().is_none_or(|&e| e >= end)
            };
            let lane = match lanes.iter_mut().position(|l| fits(&mut l.1)) {
                Some(lane) => lane,
                None => {
                    let first = lanes.is_empty();
                    let name = if first { name.to_owned() } else { format!("{name} (overlapping {})", lanes.len()) };
                    let under = match (first, under, lanes.first()) {
                        (false, Under::Thread(_), Some(_)) => Under::Process,
                        _ => under,
                    };
                    lanes.push((self.sink.track(self.shifted_pid(pid), under, &name)?, Vec::new()));
                    lanes.len() - 1
                }
            };
            lanes[lane].1.push(end);
            let track = lanes[lane].0;
            self.write_item(track, (start, end), what)?;
        }
        lanes.into_iter().try_for_each(|l| self.sink.close(l.0))
    }

    fn write_item(&mut self, track: u32, (start, end): (i64, i64), what: What) -> io::Result<()> {
        let p = self.part.profile;
        let keys = &self.keys;
        let (start, end) = (self.shifted_time(start), self.shifted_time(end));
        let mut event = Event { track, start, category: keys.kernel, name: keys.kernel, args: &[], flow: None };
        let mut args = [Arg::Int(0, 0); 3];
        let mut count = 0;
        let mut put = |arg| {
            args[count] = arg;
            count += 1;
        };
        let flow = |n: u32| self.part.flows + u64::from(n) + 1;
        let copies = self.part.flows + (1 << 33);
        match what {
            What::Launch(row) => {
                let kernel = p.launches.kernel(row as usize).0 as usize;
                event.name = self.kernels.get(kernel).copied().unwrap_or(keys.kernel);
                put(Arg::Int(keys.launch, row.into()));
                put(Arg::Text(keys.demangled, self.demangled.get(kernel).copied().unwrap_or(event.name)));
                let config = p.launches.config(row as usize).and_then(|c| self.configs.get(c.0 as usize).copied().flatten());
                if let Some(config) = config {
                    put(Arg::Text(keys.config, config));
                }
                // A flow needs both ends.
                let call = p.launches.call(row as usize).filter(|(at, long)| self.is_within(*at, at.saturating_add(*long)));
                event.flow = call.filter(|_| self.has_thread(row)).map(|_| Flow::To(flow(self.first_of_call(row))));
            }
            What::LaunchCall(row) => {
                (event.category, event.name) = (keys.call, keys.launch_call);
                let own = self.is_within(p.launches.start(row as usize), p.launches.end(row as usize));
                event.flow = own.then(|| Flow::From(flow(row)));
            }
            What::Copy(row) => {
                let Some(op) = p.memops.get(row as usize) else { return Ok(()) };
                let name = match op.kind {
                    MemOpKind::Copy { kind, .. } => self.sink.text(&format!("memcpy {}", kind.as_str())),
                    MemOpKind::Set => self.sink.text("memset"),
                };
                (event.category, event.name) = (self.keys.copy, name);
                if let Some(bytes) = op.bytes {
                    put(Arg::Int(self.keys.bytes, i64::try_from(bytes.0).unwrap_or(i64::MAX)));
                }
                let call = op.call.filter(|&call| self.call_within(call));
                // Graph nodes share the call of the graph's kernels.
                let launched = |l: &u32| p.launches.call(*l as usize).is_some_and(|(at, long)| self.is_within(at, at.saturating_add(long)));
                let graph = op.launch.filter(|l| launched(l) && self.has_thread(*l)).map(|l| Flow::To(flow(self.first_of_call(l))));
                event.flow = call.map(|call| Flow::To(copies + u64::from(call))).or(graph);
            }
            What::Graph(row) => {
                event.name = keys.graph;
                if let Some(graph) = p.graphs.get(row as usize) {
                    put(Arg::Int(keys.graph, i64::try_from(graph.graph).unwrap_or(i64::MAX)));
                }
            }
            What::Call(row) => {
                let name = p.calls.name.get(row as usize).and_then(|&n| self.calls.get(n as usize));
                (event.category, event.name) = (keys.call, name.copied().unwrap_or(keys.call));
                event.flow = self.starting.contains(&row).then(|| Flow::From(copies + u64::from(row)));
            }
            What::Range(row) => {
                let range = p.ranges.get(row as usize);
                let category = self.sink.text(origin_word(range.origin));
                (event.category, event.name) = (category, self.ranges.get(range.name as usize).copied().unwrap_or(self.keys.range));
                if let Some((Some(domain), _)) = p.ranges.names.get(range.name as usize) {
                    put(Arg::Text(self.keys.domain, self.sink.text(domain)));
                }
            }
            What::Os(row) => {
                let name = p.os_calls.name.get(row as usize).and_then(|&n| p.os_calls.names.get(n as usize));
                let name = name.map_or(self.keys.os, |n| self.sink.text(n));
                (event.category, event.name) = (self.keys.os, name);
            }
        }
        event.args = &args[..count];
        self.written += 1;
        self.sink.slice(&event, end)
    }

    /// Returns true if the launching thread is known; only then is the call on a track.
    fn has_thread(&self, row: u32) -> bool {
        let p = self.part.profile;
        p.launches.place(row as usize).and_then(|o| p.places.get(o.0 as usize)).is_some_and(|o| o.thread.is_some())
    }

    fn call_within(&self, call: u32) -> bool {
        let calls = &self.part.profile.calls;
        let at = call as usize;
        calls.start.get(at).zip(calls.duration.get(at)).is_some_and(|(start, long)| self.is_within(*start, start.saturating_add(*long)))
    }

    /// First launch of the same call; launches of one call are consecutive.
    fn first_of_call(&self, row: u32) -> u32 {
        let launches = &self.part.profile.launches;
        let call = launches.call(row as usize).map(|c| c.0);
        let thread =
            |r: u32| launches.place(r as usize).and_then(|p| self.part.profile.places.get(p.0 as usize)).map(|p| (p.pid, p.thread));
        let mut first = row;
        while first > 0 && launches.call(first as usize - 1).map(|c| c.0) == call && thread(first - 1) == thread(row) {
            first -= 1;
        }
        first
    }

    fn write_findings(&mut self, pid: u32) -> io::Result<()> {
        let Some(triage) = self.part.triage.filter(|t| !t.findings.is_empty()) else { return Ok(()) };
        let track = self.sink.track(self.shifted_pid(pid), Under::Process, "findings of warpscope")?;
        for finding in &triage.findings {
            let at = finding.places.first().map_or(triage.window.0, |p| p.start);
            if !self.is_within(at, at) {
                continue;
            }
            let (name, headline) = (self.sink.text(finding.id.id()), self.sink.text(&finding.headline));
            let sure = self.sink.text(finding.sure.as_str());
            let keys = &self.keys;
            let args = [Arg::Text(keys.headline, headline), Arg::Real(keys.share, finding.gain_percent()), Arg::Text(keys.sure, sure)];
            let event = Event { track, start: self.shifted_time(at), category: keys.finding, name, args: &args, flow: None };
            self.sink.instant(&event)?;
        }
        self.sink.close(track)
    }

    fn write_counters(&mut self, gpus: &mut BTreeMap<(u32, Option<u32>), u32>, pid: u32) -> io::Result<()> {
        for counter in &self.part.profile.counters {
            let owner = gpus.keys().find(|k| counter.device.is_some() && k.1 == counter.device).map_or(pid, |k| k.0);
            let gpu = self.gpu_track(gpus, owner, counter.device)?;
            let track = self.sink.counter(self.shifted_pid(owner), Under::Track(gpu), &counter.name, &counter.unit)?;
            for (&time, &value) in counter.times.iter().zip(&counter.values) {
                if self.is_within(time, time) {
                    self.written += 1;
                    self.sink.value(track, self.shifted_time(time), value)?;
                }
            }
        }
        Ok(())
    }

    fn write_memory(&mut self, gpus: &mut BTreeMap<(u32, Option<u32>), u32>, pid: u32) -> io::Result<()> {
        for ledger in Ledger::all_devices(self.part.profile, &[]) {
            let device = ledger.device;
            let own = ledger.times.iter().copied().zip(ledger.bytes.iter().copied());
            let level = ledger.level;
            self.write_memory_curve(gpus, pid, (device, level), ledger.before, own)?;
            if let (MemoryLevel::Allocator, Some(first)) = (level, ledger.reserved.first()) {
                self.write_memory_curve(gpus, pid, (device, MemoryLevel::Driver), first.1, ledger.reserved.iter().copied())?;
            }
        }
        Ok(())
    }

    /// Writes the bytes in use on a device over time, starting with the bytes in use before the window.
    fn write_memory_curve(
        &mut self,
        gpus: &mut BTreeMap<(u32, Option<u32>), u32>,
        pid: u32,
        (device, level): (Option<u32>, MemoryLevel),
        before: u64,
        points: impl Iterator<Item = (i64, u64)>,
    ) -> io::Result<()> {
        let owner = gpus.keys().find(|k| k.1 == device).map_or(pid, |k| k.0);
        let gpu = self.gpu_track(gpus, owner, device)?;
        let name = if level == MemoryLevel::Allocator { "memory (framework)" } else { "memory allocated" };
        let track = self.sink.counter(self.shifted_pid(owner), Under::Track(gpu), name, "B")?;
        // Bytes in use at the beginning of the window.
        let mut last = Some(before);
        for (time, bytes) in points {
            if self.is_within(time, time) {
                if let Some(before) = last.take() {
                    let begin = if self.window.0 == i64::MIN { time } else { self.window.0 };
                    self.sink.value(track, self.shifted_time(begin), before as f64)?;
                }
                self.written += 1;
                self.sink.value(track, self.shifted_time(time), bytes as f64)?;
            } else if last.is_some() {
                last = Some(bytes);
            }
        }
        Ok(())
    }
}
