//! Builds the rows of a timeline in parts, so that devices can be shown while threads are still being sorted.

use super::event::{Event, EventId, Events};
use super::group::{Built, Content, Group, GroupKey, RowKey, RowKind, TimelinePart, TimelineRow};
use super::lane::assign_lanes;
use super::plot::Plot;
use super::union::Union;
use crate::analysis::memory::Ledger;
use crate::analysis::triage::device_ops::clamp_time;
use crate::model::{Cancel, CopyKind, MemOpKind, MemoryLevel, Profile, RangeOrigin, ThreadState};
use std::collections::BTreeMap;
use std::sync::Arc;

struct Builder<'a> {
    profile: &'a Profile,
    events: Events<'a>,
    cancel: &'a Cancel,
    groups: BTreeMap<GroupKey, Group>,
    span: Option<(i64, i64)>,
}

/// Builds a part; `None` if cancelled.
pub fn build_part(profile: &Profile, part: TimelinePart, cancel: &Cancel) -> Option<Built> {
    let mut builder = Builder { profile, events: Events::from_profile(profile), cancel, groups: BTreeMap::new(), span: None };
    match part {
        TimelinePart::Devices => builder.add_devices()?,
        TimelinePart::Calls => builder.add_calls()?,
        TimelinePart::Ranges => builder.add_ranges()?,
        TimelinePart::Others => {
            builder.add_os_calls()?;
            builder.add_states();
            builder.add_counters();
            builder.add_memory();
        }
    }
    Some(Built { part, groups: builder.groups.into_values().collect(), span: builder.span, known: builder.events.known_names() })
}

/// Numbers of the table rows that fit into an event id; rows beyond the limit are not shown.
fn row_ids(count: usize) -> std::ops::Range<u32> {
    0..u32::try_from(count.min(EventId::MOST)).unwrap_or(u32::MAX)
}

impl Builder<'_> {
    fn sort_key(&self, id: EventId) -> (i64, std::cmp::Reverse<i64>) {
        let (start, end) = self.events.span(id.to_event());
        (start, std::cmp::Reverse(end))
    }

    /// Sorts events by start, longer ones before shorter ones.
    fn sort_events(&self, mut events: Vec<EventId>) -> Vec<EventId> {
        if !events.is_sorted_by_key(|&id| self.sort_key(id)) {
            events.sort_by_cached_key(|&id| self.sort_key(id));
        }
        events
    }

    /// Merges two sorted lists.
    fn merge_pair(&self, a: Vec<EventId>, b: Vec<EventId>) -> Vec<EventId> {
        if a.is_empty() || b.is_empty() {
            return if a.is_empty() { b } else { a };
        }
        let mut out = Vec::with_capacity(a.len() + b.len());
        let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
        let (mut first, mut second) = (a.peek().map(|&id| self.sort_key(id)), b.peek().map(|&id| self.sort_key(id)));
        loop {
            let next = match (first, second) {
                (Some(x), Some(y)) if y < x => false,
                (None, Some(_)) => false,
                (None, None) => return out,
                _ => true,
            };
            if next {
                out.extend(a.next());
                first = a.peek().map(|&id| self.sort_key(id));
            } else {
                out.extend(b.next());
                second = b.peek().map(|&id| self.sort_key(id));
            }
        }
    }

    /// Merges sorted lists pairwise. Merging them one after the other would copy the first lists again for every
    /// stream.
    fn all_merged(&self, mut lists: Vec<Vec<EventId>>) -> Vec<EventId> {
        while lists.len() > 1 {
            let mut left = lists.into_iter();
            let mut merged = Vec::with_capacity(left.len().div_ceil(2));
            while let Some(a) = left.next() {
                merged.push(self.merge_pair(a, left.next().unwrap_or_default()));
            }
            lists = merged;
        }
        lists.pop().unwrap_or_default()
    }

    fn group_mut(&mut self, key: GroupKey) -> &mut Group {
        let profile = self.profile;
        self.groups.entry(key).or_insert_with(|| {
            let (name, about) = match key {
                GroupKey::Device(n) => {
                    let device = profile.devices.iter().find(|d| d.id == n);
                    (format!("GPU {n}"), device.filter(|d| d.name.is_some()).map(crate::model::Device::short_name).unwrap_or_default())
                }
                GroupKey::Thread(pid, tid) => {
                    let thread = profile.threads.iter().find(|t| (t.pid, t.tid) == (pid, tid));
                    let own = thread.and_then(|t| t.name.as_deref()).map(str::to_owned);
                    let process = profile.processes.iter().find(|p| p.pid == pid).and_then(|p| p.name.as_deref());
                    let process = process.map(|n| n.rsplit('/').next().unwrap_or(n).to_owned());
                    let several = profile.processes.len() > 1;
                    let about = match (several, &process) {
                        (true, Some(name)) if Some(name) != own.as_ref() => format!("{name} {pid}"),
                        (true, _) => format!("pid {pid}"),
                        _ => String::new(),
                    };
                    let number = tid.to_string();
                    let name = match own.or(process.filter(|_| pid == tid)) {
                        Some(name) if pid == 0 || name.contains(&number) => name,
                        Some(name) => format!("{name} {tid}"),
                        None => format!("thread {tid}"),
                    };
                    (name, about)
                }
                GroupKey::Metrics(n) => (format!("GPU {n} metrics"), String::new()),
                GroupKey::Machine => ("machine".to_owned(), String::new()),
            };
            Group { key, name, about, rows: Vec::new(), union: None }
        })
    }

    /// Adds a row, unless it is empty.
    fn add_row(&mut self, key: RowKey, name: String, events: Vec<EventId>) {
        let Some(first) = events.first() else { return };
        let start = self.events.span(first.to_event()).0;
        let (lanes, left_out) = assign_lanes(events, &self.events);
        // Events in a lane do not overlap, so the last one also ends last.
        let last = lanes.iter().filter_map(|l| l.get(l.len().checked_sub(1)?)).map(|id| self.events.span(id.to_event()).1).max();
        self.extend_span(start, last.unwrap_or(start));
        self.group_mut(key.group).rows.push(Arc::new(TimelineRow { key, name, content: Content::Lanes(lanes), left_out }));
    }

    fn add_plot(&mut self, key: RowKey, name: String, plot: Plot) {
        self.extend_span(clamp_time(plot.start_time()), clamp_time(plot.end));
        self.group_mut(key.group).rows.push(Arc::new(TimelineRow { key, name, content: Content::Plot(plot), left_out: 0 }));
    }

    fn extend_span(&mut self, start: i64, end: i64) {
        let (from, to) = self.span.unwrap_or((start, end));
        self.span = Some((from.min(start), to.max(end)));
    }

    /// Returns the device of a place, and the key of its queue within the device.
    fn find_queue(&self, place: Option<u32>) -> (GroupKey, QueueKey) {
        let place = place.and_then(|p| self.profile.places.get(p as usize));
        let Some(place) = place else { return (GroupKey::Device(0), QueueKey::default()) };
        let number = self.profile.device_of(place).map(|d| d.id).or(place.ordinal).unwrap_or_default();
        let queue = QueueKey { stream: place.stream, context: place.context, pid: place.pid };
        (GroupKey::Device(number), queue)
    }

    /// Adds the streams of the devices: kernels, copies and memsets, and graphs that were traced as a whole.
    fn add_devices(&mut self) -> Option<()> {
        let profile = self.profile;
        let of_place: Vec<(GroupKey, QueueKey)> =
            row_ids(profile.places.len()).map(|p| self.find_queue(Some(p))).chain([self.find_queue(None)]).collect();
        let at = |place: Option<u32>| place.map_or(of_place.len() - 1, |p| (p as usize).min(of_place.len() - 1));
        let mut lists: Vec<[Vec<EventId>; 3]> = vec![<[Vec<EventId>; 3]>::default(); of_place.len()];
        if profile.launches.has_start_times() {
            for row in row_ids(profile.launches.len()) {
                lists[at(profile.launches.place(row as usize).map(|p| p.0))][0].push(Event::Launch(row).into());
            }
        }
        for row in row_ids(profile.memops.len()) {
            let Some(op) = profile.memops.get(row as usize) else { break };
            if !matches!(op.kind, MemOpKind::Copy { kind: CopyKind::HostToHost, .. }) {
                lists[at(Some(op.place.0))][1].push(Event::Mem(row).into());
            }
        }
        for (row, graph) in row_ids(profile.graphs.len()).zip(&profile.graphs) {
            lists[at(Some(graph.place))][2].push(Event::Graph(row).into());
        }
        // Each place has a list of its own, but several threads may launch into the same queue.
        let mut queues: BTreeMap<(GroupKey, QueueKey), Vec<Vec<EventId>>> = BTreeMap::new();
        for (key, lists) in of_place.into_iter().zip(lists) {
            for list in lists.into_iter().filter(|l| !l.is_empty()) {
                if self.cancel.is_cancelled() {
                    return None;
                }
                queues.entry(key).or_default().push(self.sort_events(list));
            }
        }
        let mut by_group: BTreeMap<GroupKey, Vec<(QueueKey, Vec<EventId>)>> = BTreeMap::new();
        for ((group, queue), lists) in queues {
            by_group.entry(group).or_default().push((queue, self.all_merged(lists)));
        }
        for (group, mut queues) in by_group {
            // The queue with the most events comes first.
            queues.sort_by_key(|q| std::cmp::Reverse(q.1.len()));
            let differs = |of: fn(&QueueKey) -> Option<u32>| queues.iter().any(|q| of(&q.0) != of(&queues[0].0));
            let (processes, contexts) = (differs(|q| q.pid), differs(|q| q.context));
            let mut together = Vec::new();
            let several = queues.len() > 1;
            for (number, (queue, events)) in (0..).zip(queues) {
                if self.cancel.is_cancelled() {
                    return None;
                }
                let mut name = queue.stream.map_or_else(|| "kernels".to_owned(), |s| format!("stream {s}"));
                match (processes, contexts) {
                    (true, _) => name.push_str(&queue.pid.map_or_else(String::new, |p| format!(" · {p}"))),
                    (false, true) => name.push_str(&queue.context.map_or_else(String::new, |c| format!(" · ctx {c}"))),
                    _ => {}
                }
                if several {
                    together.push(events.clone());
                }
                self.add_row(RowKey { group, kind: RowKind::Queue, number }, name, events);
            }
            let lanes: usize = self.group_mut(group).rows.iter().map(|r| r.lanes().len()).sum();
            if lanes > 1 {
                if !several {
                    let rows = self.group_mut(group).rows.clone();
                    for lane in rows.iter().flat_map(|r| r.lanes()) {
                        let events = (0..lane.len()).filter_map(|at| lane.get(at)).collect();
                        together.push(events);
                    }
                }
                let union = Union::new(self.all_merged(together), &self.events);
                self.group_mut(group).union = Some(Arc::new(union));
            }
        }
        Some(())
    }

    /// Adds host calls by thread. All launches of a graph's nodes have the same call, which is added only once.
    fn add_calls(&mut self) -> Option<()> {
        let profile = self.profile;
        let mut launches: BTreeMap<(u32, u32), Vec<Vec<EventId>>> = BTreeMap::new();
        let threads: Vec<Option<(u32, u32)>> = profile.places.iter().map(|p| Some((p.pid.unwrap_or_default(), p.thread?))).collect();
        let mut of_place: Vec<Vec<EventId>> = vec![Vec::new(); threads.len()];
        let mut last: Vec<i64> = vec![i64::MIN; threads.len()];
        for row in row_ids(profile.launches.len()) {
            let (Some((start, _)), Some(place)) = (profile.launches.call(row as usize), profile.launches.place(row as usize)) else {
                continue;
            };
            let place = place.0 as usize;
            if threads.get(place).copied().flatten().is_some() && last[place] != start {
                last[place] = start;
                of_place[place].push(Event::LaunchCall(row).into());
            }
        }
        for (thread, list) in threads.iter().zip(of_place) {
            if self.cancel.is_cancelled() {
                return None;
            }
            let Some(thread) = thread.filter(|_| !list.is_empty()) else { continue };
            launches.entry(thread).or_default().push(self.sort_events(list));
        }
        let of_thread = |lists| {
            let mut list = self.all_merged(lists);
            // A graph's nodes may run on several streams, so the same call may be in several lists.
            list.dedup_by_key(|id| self.events.span(id.to_event()).0);
            list
        };
        let mut others: Vec<Vec<EventId>> = vec![Vec::new(); profile.calls.threads.len()];
        for row in row_ids(profile.calls.len()) {
            if let Some(list) = profile.calls.thread.get(row as usize).and_then(|&t| others.get_mut(t as usize)) {
                list.push(Event::Call(row).into());
            }
        }
        let mut all: BTreeMap<(u32, u32), Vec<EventId>> = launches.into_iter().map(|(thread, lists)| (thread, of_thread(lists))).collect();
        for (thread, list) in profile.calls.threads.iter().zip(others) {
            let list = self.sort_events(list);
            let known = all.remove(thread).unwrap_or_default();
            all.insert(*thread, self.merge_pair(known, list));
        }
        let api = profile.devices.first().map(|d| d.maker).unwrap_or_default().vendor_terms().api;
        for ((pid, tid), events) in all {
            if self.cancel.is_cancelled() {
                return None;
            }
            let group = GroupKey::Thread(pid, tid);
            self.add_row(RowKey { group, kind: RowKind::Api, number: 0 }, format!("{api} calls"), events);
        }
        Some(())
    }

    fn add_ranges(&mut self) -> Option<()> {
        let ranges = &self.profile.ranges;
        let mut lists: Vec<[Vec<EventId>; 3]> = vec![<[Vec<EventId>; 3]>::default(); ranges.threads.len()];
        for row in row_ids(ranges.len()) {
            let range = ranges.get(row as usize);
            let kind = match range.origin {
                RangeOrigin::Nvtx | RangeOrigin::Annotation | RangeOrigin::Roctx | RangeOrigin::Wave => 0,
                RangeOrigin::Operator | RangeOrigin::Instruction => 1,
                RangeOrigin::Python => 2,
            };
            if let Some(lists) = lists.get_mut(range.thread as usize) {
                lists[kind].push(Event::Range(row).into());
            }
        }
        let named = if ranges.iter().any(|r| r.origin == RangeOrigin::Roctx) {
            "roctx"
        } else if ranges.iter().any(|r| r.origin == RangeOrigin::Nvtx) {
            "NVTX"
        } else {
            "annotations"
        };
        let hardware = ranges.is_hardware();
        let (named, operators) = if hardware { ("states", "instructions") } else { (named, "operators") };
        let rows = [(RowKind::Ranges, named), (RowKind::Operators, operators), (RowKind::Python, "Python")];
        for (&(pid, tid), lists) in ranges.threads.iter().zip(lists) {
            for ((kind, name), list) in rows.into_iter().zip(lists) {
                if self.cancel.is_cancelled() {
                    return None;
                }
                let list = self.sort_events(list);
                self.add_row(RowKey { group: GroupKey::Thread(pid, tid), kind, number: 0 }, name.to_owned(), list);
            }
        }
        Some(())
    }

    fn thread_group(&self, thread: u32) -> Option<GroupKey> {
        self.profile.threads.get(thread as usize).map(|t| GroupKey::Thread(t.pid, t.tid))
    }

    /// Adds OS calls, and the profiler's own time.
    fn add_os_calls(&mut self) -> Option<()> {
        let profile = self.profile;
        let mut lists: BTreeMap<(GroupKey, RowKind), Vec<EventId>> = BTreeMap::new();
        for row in row_ids(profile.os_calls.start.len()) {
            let Some(group) = profile.os_calls.thread.get(row as usize).and_then(|&t| self.thread_group(t)) else { continue };
            lists.entry((group, RowKind::Os)).or_default().push(Event::Os(row).into());
        }
        for (row, overhead) in row_ids(profile.overhead.len()).zip(&profile.overhead) {
            let group = self.thread_group(overhead.thread).unwrap_or(GroupKey::Machine);
            lists.entry((group, RowKind::Profiler)).or_default().push(Event::Overhead(row).into());
        }
        for ((group, kind), list) in lists {
            if self.cancel.is_cancelled() {
                return None;
            }
            let list = self.sort_events(list);
            let name = if kind == RowKind::Os { "OS calls" } else { "profiler" };
            self.add_row(RowKey { group, kind, number: 0 }, name.to_owned(), list);
        }
        Some(())
    }

    /// Adds plots of the share of time during which each thread was running on a CPU, in percent.
    fn add_states(&mut self) {
        let profile = self.profile;
        let Some(end) = profile.states.last().map(|s| s.time.max(self.events.last_end())) else { return };
        let mut by_thread: BTreeMap<u32, (Vec<i64>, Vec<f64>)> = BTreeMap::new();
        for change in &profile.states {
            let (times, values) = by_thread.entry(change.thread).or_default();
            times.push(clamp_time(change.time));
            values.push(match change.state {
                ThreadState::Running => 100.0,
                ThreadState::Partly => 50.0,
                ThreadState::Off => 0.0,
            });
        }
        for (thread, (times, values)) in by_thread {
            let (Some(group), Some(plot)) = (self.thread_group(thread), Plot::from_steps(times, values, end, "%", profile)) else {
                continue;
            };
            self.add_plot(RowKey { group, kind: RowKind::State, number: 0 }, "running".to_owned(), plot);
        }
    }

    fn of_device(&self, device: Option<u32>) -> GroupKey {
        let device = device.and_then(|d| self.profile.devices.get(d as usize));
        device.map_or(GroupKey::Machine, |d| GroupKey::Device(d.id))
    }

    fn add_counters(&mut self) {
        let profile = self.profile;
        for (number, track) in profile.counters.iter().enumerate() {
            let Some(plot) = Plot::from_counter(profile, number) else { continue };
            // A counter that never exceeds zero has nothing to show.
            if plot.most <= 0.0 {
                continue;
            }
            let group = match self.of_device(track.device) {
                GroupKey::Device(n) => GroupKey::Metrics(n),
                other => other,
            };
            let key = RowKey { group, kind: RowKind::Counter, number: number as u64 };
            self.add_plot(key, track.name.to_string(), plot);
        }
    }

    /// Adds memory in use by device: allocations minus frees.
    fn add_memory(&mut self) {
        let profile = self.profile;
        // Memory that was never freed is in use until the end.
        let Some(end) = profile.memory.events.last().map(|e| e.time.max(self.events.last_end())) else { return };
        for ledger in Ledger::all_devices(profile, &[]) {
            // Include memory that was in use before the report began.
            let own = (ledger.times.iter().map(|&t| clamp_time(t)).collect(), ledger.bytes.iter().map(|&b| b as f64).collect());
            let held = ledger.reserved.iter().map(|&(t, b)| (clamp_time(t), b as f64)).unzip();
            self.memory_row(ledger.device, ledger.level, own, end);
            if ledger.level == MemoryLevel::Allocator && !ledger.reserved.is_empty() {
                self.memory_row(ledger.device, MemoryLevel::Driver, held, end);
            }
        }
    }

    fn memory_row(&mut self, device: Option<u32>, level: MemoryLevel, (times, values): Values, end: i64) {
        let Some(plot) = Plot::from_steps(times, values, end, "B", self.profile) else { return };
        let group = self.of_device(device);
        let name = if level == MemoryLevel::Allocator { "memory (framework)" } else { "memory allocated" };
        self.add_plot(RowKey { group, kind: RowKind::Memory, number: level as u64 }, name.to_owned(), plot);
    }
}

/// Times in ns, and the number of bytes in use from each time on.
type Values = (Vec<i64>, Vec<f64>);

/// Identity of a queue within a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct QueueKey {
    stream: Option<u32>,
    context: Option<u32>,
    pid: Option<u32>,
}
