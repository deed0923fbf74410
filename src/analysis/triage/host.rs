//! Host activity of the launching threads: their CUDA calls in order, and their state between calls.

use super::device_ops::clamp_time;
use super::host_samples::{LaneSamples, collect_samples};
use super::intervals::Intervals;
use crate::model::{CallKind, HostCalls, MemOpKind, MemoryKind, Profile, RangeOrigin, ThreadState};
use rustc_hash::{FxHashMap, FxHashSet};

/// Longest pause between calls that belong to one activity, ns. A framework's launch takes 5 to 100 µs on the host,
/// including Python and operators; anything longer is separate work.
pub const CLOSE_NS: i64 = 200_000;

/// Prefixes of OS runtime calls in which a thread waits.
const WAITS: &[&str] = &[
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_",
    "read",
    "pread",
    "fread",
    "fgets",
    "getc",
    "recv",
    "accept",
    "connect",
    "futex",
    "pthread_cond_",
    "pthread_mutex_",
    "pthread_rwlock_",
    "pthread_join",
    "pthread_barrier_",
    "sem_",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "wait",
    "sigwait",
    "msgrcv",
    "mq_",
    "flock",
    "lockf",
    "fsync",
    "fdatasync",
    "write",
    "pwrite",
    "fwrite",
    "fflush",
    "send",
    "io_getevents",
    "io_uring",
    "aio_suspend",
    "process_vm_",
];

/// Substrings of built-in Python functions in which a thread waits.
const PYTHON_WAITS: &[&str] = &[
    "built-in function sleep",
    "built-in method sleep",
    "method 'acquire'",
    "built-in method acquire",
    "method acquire",
    "built-in method poll",
    "method 'poll'",
    "method 'recv",
    "built-in method recv",
    "built-in method read",
    "method 'read",
    "built-in function read",
    "built-in method select",
    "built-in function select",
    "built-in function wait",
    "built-in method wait",
];

/// Range in which PyTorch's main thread waits for `DataLoader` processes.
const LOADER_WAITS: &str = "_MultiProcessingDataLoaderIter.__next__";

/// Prefixes of MPI and NCCL functions in which a thread waits for other ranks, as named in ranges. Nonblocking
/// functions (`MPI_Isend`, `ncclAllReduce`) are not included.
const RANK_WAITS: &[&str] = &[
    "MPI_Recv",
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Bsend",
    "MPI_Mrecv",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Wait",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Gather",
    "MPI_Allgather",
    "MPI_Scatter",
    "MPI_Alltoall",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Neighbor_",
    "MPI_Win_fence",
    "MPI_Win_lock",
    "MPI_Win_wait",
    "MPI_Win_flush",
    "MPI_File_",
    "MPI_Init",
    "MPI_Finalize",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "ncclCommInit",
    "ncclCommSplit",
    "ncclCommFinalize",
    "ncclCommDestroy",
    "ncclCommAbort",
];

/// Returns true if a range's name is that of a function that waits for other ranks; a `P` prefix (`PMPI_Recv`) is
/// ignored.
pub fn waits_for_ranks(name: &str) -> bool {
    let name = name.trim_start_matches('P');
    RANK_WAITS.iter().any(|w| name.starts_with(w)) && !name.starts_with("MPI_File_i")
}

/// Kinds of host data in a report besides CUDA calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "what a report has is independent of what else it has")]
pub struct Known {
    pub os: bool,
    /// Thread states: on or off a CPU.
    pub states: bool,
    pub python: bool,
    pub operators: bool,
}

/// An outermost call of a thread, i.e. one that is not nested in another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    pub kind: CallKind,
    /// True if the call blocked the thread until work on the device was done.
    pub blocks: bool,
    /// Index into [`HostCalls::names`]; `None` for a launch, whose name the report may not record.
    pub name: Option<u32>,
}

/// A thread that launches work.
#[derive(Debug, Default)]
pub struct Lane {
    pub pid: u32,
    pub tid: u32,
    /// One launch per launching call, sorted by the call's start.
    launches: Vec<u32>,
    /// Other calls, sorted by start.
    calls: Vec<u32>,
    /// Time spent waiting for something outside of CUDA.
    pub waits: Intervals,
    /// Time known to be spent working: on a CPU, or in an operator.
    pub works: Intervals,
    /// True if functions or operators of the thread were recorded.
    functions: bool,
    /// True if waits are recorded reliably, so that the remaining time is work.
    pub certain: bool,
    /// End of the thread's last recorded call, ns. What it did afterwards is not known: a wait that lasts until the end
    /// of the recording has no record.
    pub seen_until: i64,
}

/// All threads that launch work.
pub struct Host<'a> {
    profile: &'a Profile,
    pub lanes: Vec<Lane>,
    /// Samples by lane; empty if no thread was sampled.
    pub samples: Vec<LaneSamples>,
    by_thread: FxHashMap<(u32, u32), usize>,
    pub known: Known,
    /// Copy calls that blocked their thread until the copy was done: copies of pageable memory, and synchronous
    /// functions.
    pub(super) blocking: FxHashSet<u32>,
    /// Effect of each call name on stream capture: 1 begins a capture, 2 ends it.
    capture: Vec<u8>,
    /// True for names of calls that only ask if work is done and return at once, such as `cudaEventQuery`.
    polls: Vec<bool>,
    /// Start of each implicit code load, ns, and its process if the report contains it.
    pub loads: Vec<(i64, Option<u32>)>,
    /// Periods in which the profiler flushed its buffers.
    pub flushes: Intervals,
}

impl<'a> Host<'a> {
    /// Finds the launching threads and collects their calls, waits and working times.
    pub fn from_profile(profile: &'a Profile) -> Self {
        let mut host = Self {
            profile,
            lanes: Vec::new(),
            samples: Vec::new(),
            by_thread: FxHashMap::default(),
            known: Known { os: !profile.os_calls.start.is_empty(), states: !profile.states.is_empty(), ..Known::default() },
            blocking: blocking_copy_calls(profile),
            capture: profile
                .calls
                .names
                .iter()
                .map(|n| if n.name.contains("StreamBeginCapture") { 1 } else { u8::from(n.name.contains("StreamEndCapture")) * 2 })
                .collect(),
            polls: profile.calls.names.iter().map(|n| is_poll(&n.name)).collect(),
            loads: Vec::new(),
            flushes: find_flushes(profile),
        };
        host.collect_launches();
        host.collect_calls();
        host.collect_loads();
        host.collect_os_waits();
        host.collect_states();
        host.collect_ranges();
        // `Partly` occurs only if thread states were sampled; then the states between two samples are unknown.
        let sampled = profile.states.iter().any(|s| s.state == ThreadState::Partly);
        for lane in &mut host.lanes {
            let other = host.known.states && !sampled || host.known.python && lane.functions;
            lane.certain = host.known.os || other;
            // States and functions last until something else is recorded.
            if other {
                lane.seen_until = i64::MAX;
            }
        }
        host.collect_thread_samples();
        host
    }

    fn lane_id(&mut self, pid: u32, tid: u32) -> usize {
        let next = self.lanes.len();
        let id = *self.by_thread.entry((pid, tid)).or_insert(next);
        if id == next {
            self.lanes.push(Lane { pid, tid, ..Lane::default() });
        }
        id
    }

    fn collect_launches(&mut self) {
        let launches = &self.profile.launches;
        let threads: Vec<Option<(u32, u32)>> = self.profile.places.iter().map(|p| Some((p.pid.unwrap_or_default(), p.thread?))).collect();
        let lanes: Vec<Option<usize>> = threads.into_iter().map(|t| t.map(|(pid, tid)| self.lane_id(pid, tid))).collect();
        for row in 0..launches.len() {
            let Some(lane) = launches.place(row).and_then(|p| lanes.get(p.0 as usize).copied().flatten()) else { continue };
            let Some((call, _)) = launches.call(row) else { continue };
            let list = &mut self.lanes[lane].launches;
            // Nodes of a graph share the call that launched it.
            if list.last().and_then(|&r| launches.call(r as usize)).is_none_or(|(last, _)| last != call) {
                list.push(u32::try_from(row).unwrap_or(u32::MAX));
            }
        }
        for lane in &mut self.lanes {
            let key = |&r: &u32| launches.call(r as usize).map(|c| c.0);
            if !lane.launches.is_sorted_by_key(key) {
                lane.launches.sort_by_key(key);
                lane.launches.dedup_by_key(|r| key(r));
            }
        }
    }

    fn collect_calls(&mut self) {
        let calls = &self.profile.calls;
        // Threads that only copy also launch work.
        let mut starters: FxHashSet<u32> = self.profile.memops.iter().filter_map(|m| calls.thread.get(m.call? as usize).copied()).collect();
        if !self.profile.graphs.is_empty() {
            starters.extend((0..calls.len()).filter(|&c| calls.kind(c) == CallKind::GraphLaunch).map(|c| calls.thread[c]));
        }
        let lanes: Vec<Option<usize>> = (0..)
            .zip(&calls.threads)
            .map(|(i, &(pid, tid))| {
                let known = self.by_thread.get(&(pid, tid)).copied();
                known.or_else(|| starters.contains(&i).then(|| self.lane_id(pid, tid)))
            })
            .collect();
        for (row, thread) in (0..).zip(&calls.thread) {
            if let Some(lane) = lanes.get(*thread as usize).copied().flatten() {
                self.lanes[lane].calls.push(row);
            }
        }
        for lane in &mut self.lanes {
            let key = |&r: &u32| calls.start[r as usize];
            if !lane.calls.is_sorted_by_key(key) {
                lane.calls.sort_by_key(key);
            }
        }
    }

    fn collect_loads(&mut self) {
        // CUPTI's overhead records identify the loading of a kernel at its first launch ("Lazy Function Loading",
        // `LAZY_FUNCTION_LOADING`).
        let lazy = |name: &str| {
            let name = name.to_ascii_lowercase().replace('_', " ");
            name.contains("lazy") && name.contains("load")
        };
        let pid =
            |thread: u32| self.profile.threads.get(thread as usize).map(|t| t.pid).filter(|pid| self.lanes.iter().any(|l| l.pid == *pid));
        self.loads = self.profile.overhead.iter().filter(|o| lazy(&o.name)).map(|o| (o.start, pid(o.thread))).collect();
        self.loads.sort_unstable();
    }

    fn collect_thread_samples(&mut self) {
        if self.profile.samples.samples.is_empty() {
            return;
        }
        let host = &*self;
        let calls = |lane| {
            let mut walk = Walk::default();
            std::iter::from_fn(move || {
                let outer = walk.peek_call(host, lane)?;
                walk.pass_call(host, lane, &outer);
                Some((outer.start, outer.end, matches!(outer.kind, CallKind::Launch | CallKind::GraphLaunch)))
            })
        };
        self.samples = collect_samples(self.profile, |thread| host.lane_of_thread(thread), host.lanes.iter().map(calls).collect());
    }

    fn lane_of_thread(&self, thread: u32) -> Option<usize> {
        let thread = self.profile.threads.get(thread as usize)?;
        self.by_thread.get(&(thread.pid, thread.tid)).copied()
    }

    fn collect_os_waits(&mut self) {
        let os = &self.profile.os_calls;
        let waits: Vec<bool> = os.names.iter().map(|n| WAITS.iter().any(|w| n.starts_with(w))).collect();
        let lanes: Vec<Option<usize>> =
            (0..u32::try_from(self.profile.threads.len()).unwrap_or(u32::MAX)).map(|t| self.lane_of_thread(t)).collect();
        let mut found: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.lanes.len()];
        for row in 0..os.start.len() {
            let Some(lane) = lanes.get(os.thread[row] as usize).copied().flatten() else { continue };
            let end = os.start[row].saturating_add(os.duration[row]);
            self.lanes[lane].seen_until = self.lanes[lane].seen_until.max(end);
            if waits.get(os.name[row] as usize).copied().unwrap_or_default() {
                found[lane].push((os.start[row], end));
            }
        }
        let calls = &self.profile.calls;
        for row in 0..calls.len() {
            if let Some(&lane) = self.by_thread.get(&calls.thread_of(row)) {
                let end = calls.start[row].saturating_add(calls.duration[row]);
                self.lanes[lane].seen_until = self.lanes[lane].seen_until.max(end);
            }
        }
        for (lane, waits) in self.lanes.iter_mut().zip(found) {
            lane.waits = waits.into_iter().collect();
        }
    }

    fn collect_states(&mut self) {
        if self.profile.states.is_empty() {
            return;
        }
        let mut since: Vec<Option<(i64, ThreadState)>> = vec![None; self.lanes.len()];
        let mut on: Vec<Vec<(i64, i64)>> = vec![Vec::new(); since.len()];
        let mut off = on.clone();
        for change in &self.profile.states {
            let Some(lane) = self.lane_of_thread(change.thread) else { continue };
            if let Some((from, state)) = since[lane].replace((change.time, change.state)) {
                match state {
                    ThreadState::Running => on[lane].push((from, change.time)),
                    ThreadState::Off => off[lane].push((from, change.time)),
                    ThreadState::Partly => {}
                }
            }
        }
        // A thread's last state lasts until the end of the recording.
        let launches = &self.profile.launches;
        let end = (0..launches.len()).map(|row| launches.end(row)).chain(self.profile.states.last().map(|s| s.time)).max().unwrap_or(0);
        for (lane, since) in since.into_iter().enumerate() {
            match since {
                Some((from, ThreadState::Running)) if from < end => on[lane].push((from, end)),
                Some((from, ThreadState::Off)) if from < end => off[lane].push((from, end)),
                _ => {}
            }
        }
        for (lane, (on, off)) in self.lanes.iter_mut().zip(on.into_iter().zip(off)) {
            lane.works = on.into_iter().collect();
            lane.waits = lane.waits.union(&off.into_iter().collect());
        }
    }

    fn collect_ranges(&mut self) {
        let ranges = &self.profile.ranges;
        if ranges.is_empty() {
            return;
        }
        let named = |words: &[&str], name: &str| words.iter().any(|w| name.contains(w));
        let loader: Vec<bool> = ranges.names.iter().map(|(_, n)| n.contains(LOADER_WAITS)).collect();
        let python: Vec<bool> = ranges.names.iter().map(|(_, n)| named(PYTHON_WAITS, n)).collect();
        let ranks: Vec<bool> = ranges.names.iter().map(|(_, n)| waits_for_ranks(n)).collect();
        let lanes: Vec<Option<usize>> = ranges.threads.iter().map(|t| self.by_thread.get(t).copied()).collect();
        let mut waits: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.lanes.len()];
        let mut works: Vec<Vec<(i64, i64)>> = vec![Vec::new(); self.lanes.len()];
        for range in ranges.iter() {
            let at = range.name as usize;
            match range.origin {
                RangeOrigin::Python => self.known.python = true,
                RangeOrigin::Operator => self.known.operators = true,
                RangeOrigin::Nvtx | RangeOrigin::Roctx | RangeOrigin::Annotation | RangeOrigin::Wave | RangeOrigin::Instruction => {}
            }
            let Some(lane) = lanes.get(range.thread as usize).copied().flatten() else { continue };
            self.lanes[lane].functions |= matches!(range.origin, RangeOrigin::Python | RangeOrigin::Operator);
            let span = (range.start, range.end);
            let marked = matches!(range.origin, RangeOrigin::Nvtx | RangeOrigin::Roctx | RangeOrigin::Annotation);
            if range.origin == RangeOrigin::Python && python[at]
                || range.origin == RangeOrigin::Annotation && loader[at]
                || marked && ranks[at] && range.end < i64::MAX
            {
                waits[lane].push(span);
            } else if range.origin == RangeOrigin::Operator {
                // Operators nest: extend the last interval instead of adding one inside it.
                match works[lane].last_mut() {
                    Some(last) if span.0 >= last.0 && span.0 <= last.1 => last.1 = last.1.max(span.1),
                    _ => works[lane].push(span),
                }
            }
        }
        for (lane, (waits, works)) in self.lanes.iter_mut().zip(waits.into_iter().zip(works)) {
            lane.waits = lane.waits.union(&waits.into_iter().collect());
            lane.works = lane.works.union(&works.into_iter().collect());
        }
    }

    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    pub fn lane_index(&self, pid: u32, tid: u32) -> Option<usize> {
        self.by_thread.get(&(pid, tid)).copied()
    }

    /// Returns true if the thread launched a kernel or graph between two times.
    pub fn launches_between(&self, lane: &Lane, from: i64, until: i64) -> bool {
        let start = |row: &u32| self.profile.launches.call(*row as usize).map_or(i64::MIN, |c| c.0);
        let next = lane.launches.partition_point(|row| start(row) <= from);
        lane.launches.get(next).is_some_and(|row| start(row) < until)
    }

    fn launch_call(&self, lane: &Lane, at: usize) -> Option<Outer> {
        let (start, cost) = self.profile.launches.call(*lane.launches.get(at)? as usize)?;
        Some(Outer {
            start: clamp_time(start),
            end: clamp_time(start.saturating_add(cost.max(0))),
            kind: CallKind::Launch,
            blocks: false,
            name: None,
        })
    }

    /// Row of the launch whose call overlaps a time interval on the thread the most.
    pub fn longest_launch(&self, lane: usize, start: i64, end: i64) -> Option<usize> {
        let lane = self.lanes.get(lane)?;
        let calls = &self.profile.launches;
        let span = |&row: &u32| calls.call(row as usize).map_or((i64::MAX, i64::MAX), |(s, cost)| (s, s.saturating_add(cost)));
        let until = lane.launches.partition_point(|row| span(row).0 < end);
        let near = lane.launches[..until].iter().rev().take_while(|row| span(row).1 > start);
        near.max_by_key(|row| span(row).1.min(end) - span(row).0.max(start)).map(|&row| row as usize)
    }

    pub fn is_poll(&self, outer: &Outer) -> bool {
        outer.name.is_some_and(|n| self.polls.get(n as usize).copied().unwrap_or_default())
    }

    fn other_call(&self, lane: &Lane, at: usize) -> Option<Outer> {
        let row = *lane.calls.get(at)?;
        let calls: &HostCalls = &self.profile.calls;
        let (start, kind) = (*calls.start.get(row as usize)?, calls.kind(row as usize));
        let blocks = kind == CallKind::Sync || kind == CallKind::Copy && self.blocking.contains(&row);
        let name = calls.name.get(row as usize).copied();
        let end = clamp_time(start.saturating_add(calls.duration[row as usize].max(0)));
        Some(Outer { start: clamp_time(start), end, kind, blocks, name })
    }
}

/// Periods in which the profiled thread waits while CUPTI flushes its buffers, from the overhead records for it ("CUPTI
/// activity buffer flush", `ACTIVITY_BUFFER_FLUSH`).
fn find_flushes(profile: &Profile) -> Intervals {
    let is_flush = |name: &str| name.to_ascii_lowercase().contains("flush");
    let spans = profile.overhead.iter().filter(|o| is_flush(&o.name)).map(|o| (o.start, o.start.saturating_add(o.duration.max(0))));
    spans.collect()
}

/// Returns true if calls with this name only ask if work is done and return at once (`cudaEventQuery`,
/// `hipStreamQuery`).
pub fn is_poll(name: &str) -> bool {
    ["EventQuery", "StreamQuery"].iter().any(|poll| name.contains(poll))
}

fn blocking_copy_calls(profile: &Profile) -> FxHashSet<u32> {
    let calls = &profile.calls;
    let blocks = |op: crate::model::MemOp| {
        let call = op.call?;
        let at = call as usize;
        let (start, duration) = (*calls.start.get(at)?, *calls.duration.get(at)?);
        let pageable = matches!(op.kind, MemOpKind::Copy { from, to, .. } if [from, to].contains(&Some(MemoryKind::Pageable)));
        let synchronous = calls.call_name(at).is_some_and(|n| !n.name.contains("Async"));
        let done = op.start.0.saturating_add(op.duration.0);
        ((pageable || synchronous) && start.saturating_add(duration) >= done).then_some(call)
    };
    if profile.memops.is_empty() {
        // Copies were not recorded: a function without `Async` in its name returns once the copy is done.
        let rows = 0..u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let synchronous = |row: &u32| calls.call_name(*row as usize).is_some_and(|n| n.kind == CallKind::Copy && !n.name.contains("Async"));
        return rows.filter(synchronous).collect();
    }
    profile.memops.iter().filter_map(blocks).collect()
}

/// Cursor over a thread's calls.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    launch: usize,
    call: usize,
    /// Latest end of all calls passed.
    pub end: Option<i64>,
    /// End and name of the last call passed that blocked the thread.
    pub blocked: Option<(i64, Option<u32>)>,
    /// True while a stream is being captured.
    pub capturing: bool,
    /// Number of consecutive polls that end with the last call passed. Only two or more count as a wait, because memory
    /// allocators poll just once.
    pub polls: u32,
}

impl Walk {
    /// Returns the next outermost call without passing it.
    pub fn peek_call(&self, host: &Host<'_>, lane: &Lane) -> Option<Outer> {
        let (a, b) = (host.launch_call(lane, self.launch), host.other_call(lane, self.call));
        match (a, b) {
            (Some(a), Some(b)) => Some(if a.start <= b.start { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// Advances past a call and the calls nested in it.
    pub fn pass_call(&mut self, host: &Host<'_>, lane: &Lane, outer: &Outer) {
        // A launch nested in another call is the driver call that the runtime function makes.
        while host.launch_call(lane, self.launch).is_some_and(|c| c.start < outer.end || c.start <= outer.start) {
            self.launch += 1;
        }
        while let Some(inner) = host.other_call(lane, self.call).filter(|c| c.start < outer.end || c.start <= outer.start) {
            match inner.name.and_then(|n| host.capture.get(n as usize)) {
                Some(1) => self.capturing = true,
                Some(2) => self.capturing = false,
                _ => {}
            }
            self.call += 1;
        }
        // Calls that are being captured do not launch work, so a launch means that the capture has ended, even if
        // another thread ended it.
        if outer.kind == CallKind::Launch && outer.name.is_none() {
            self.capturing = false;
        }
        let in_a_row = self.end.is_some_and(|end| outer.start.saturating_sub(end) <= CLOSE_NS);
        self.polls = match host.is_poll(outer) {
            true if in_a_row => self.polls + 1,
            poll => u32::from(poll),
        };
        self.end = Some(self.end.map_or(outer.end, |e| e.max(outer.end)));
        if outer.blocks || self.polls > 1 {
            self.blocked = Some((outer.end, outer.name));
        }
    }
}
