//! Events of a timeline: rows of the profile's tables, each packed into four bytes.

use crate::analysis::readable::readable_name;
use crate::analysis::triage::device_ops::{clamp_time, find_collectives};
use crate::model::text::escape_unsafe;
use crate::model::{CallKind, MemOpKind, Profile, RangeOrigin, units};
use std::borrow::Cow;
use std::sync::Arc;

/// An event: a row of one of the profile's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A kernel on its device.
    Launch(u32),
    /// The call that launched a kernel.
    LaunchCall(u32),
    /// A copy or memset on its device.
    Mem(u32),
    /// A graph that was traced as a whole, on its device.
    Graph(u32),
    /// A call that launched no kernel.
    Call(u32),
    Range(u32),
    /// An operating system call.
    Os(u32),
    Overhead(u32),
}

/// Packed form of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u32);

/// Number of bits for the row number; the table number is above them.
const BITS: u32 = 29;
const ROW: u32 = (1 << BITS) - 1;

impl EventId {
    /// Maximum number of rows per table; further rows are not shown.
    pub const MOST: usize = 1 << BITS;

    pub fn to_event(self) -> Event {
        let row = self.0 & ROW;
        match self.0 >> BITS {
            0 => Event::Launch(row),
            1 => Event::LaunchCall(row),
            2 => Event::Mem(row),
            3 => Event::Graph(row),
            4 => Event::Call(row),
            5 => Event::Range(row),
            6 => Event::Os(row),
            _ => Event::Overhead(row),
        }
    }
}

impl From<Event> for EventId {
    fn from(event: Event) -> Self {
        let (table, row) = match event {
            Event::Launch(row) => (0, row),
            Event::LaunchCall(row) => (1, row),
            Event::Mem(row) => (2, row),
            Event::Graph(row) => (3, row),
            Event::Call(row) => (4, row),
            Event::Range(row) => (5, row),
            Event::Os(row) => (6, row),
            Event::Overhead(row) => (7, row),
        };
        Self(table << BITS | row & ROW)
    }
}

/// Category of an event, which determines its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Kernel,
    /// A kernel that communicates between ranks.
    Collective,
    Copy,
    Set,
    /// Host calls, from here to `OtherCall`: launches, waits, copies, allocations, code loading, graph creation,
    /// others.
    Launch,
    Sync,
    CopyCall,
    Alloc,
    Module,
    GraphCall,
    OtherCall,
    Range,
    Operator,
    Python,
    /// OS call in which a thread waits; `Os` is any other.
    OsWait,
    Os,
    Overhead,
}

impl Category {
    /// Returns true for spans that only enclose other activities.
    pub fn is_enclosing(self) -> bool {
        matches!(self, Self::Range | Self::Operator | Self::Python)
    }

    pub const ALL: [Self; 17] = [
        Self::Kernel,
        Self::Collective,
        Self::Copy,
        Self::Set,
        Self::Launch,
        Self::Sync,
        Self::CopyCall,
        Self::Alloc,
        Self::Module,
        Self::GraphCall,
        Self::OtherCall,
        Self::Range,
        Self::Operator,
        Self::Python,
        Self::OsWait,
        Self::Os,
        Self::Overhead,
    ];

    /// Label, also used in scripts.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Collective => "collective",
            Self::Copy => "memcpy",
            Self::Set => "memset",
            Self::Launch => "launch call",
            Self::Sync => "synchronizing call",
            Self::CopyCall => "copy call",
            Self::Alloc => "allocating call",
            Self::Module => "module call",
            Self::GraphCall => "graph call",
            Self::OtherCall => "call",
            Self::Range => "range",
            Self::Operator => "operator",
            Self::Python => "Python function",
            Self::OsWait => "OS call that waits",
            Self::Os => "OS call",
            Self::Overhead => "profiler",
        }
    }
}

/// C library and system calls in which a thread waits, by the names that nsys records (`--trace=osrt`).
const WAITS: &[&str] = &[
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_barrier_wait",
    "futex",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "sched_yield",
    "wait",
    "waitpid",
    "wait4",
    "waitid",
    "sigwait",
    "sigwaitinfo",
    "sigtimedwait",
    "accept",
    "accept4",
    "recv",
    "recvfrom",
    "recvmsg",
    "read",
    "pread",
    "readv",
    "fread",
    "fgets",
    "getc",
    "fgetc",
    "msgrcv",
    "io_getevents",
    "flock",
    "fsync",
    "fdatasync",
];

/// Properties of a profile that are needed for many events, computed only once.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// True for collectives, by kernel.
    collective: Vec<bool>,
    /// True for calls in which a thread waits, by name index in [`OsCalls`](crate::model::OsCalls).
    waits: Vec<bool>,
    /// Assigned as end to ranges that are still open when the report ends, ns.
    end: i64,
}

impl Known {
    pub fn from_profile(profile: &Profile) -> Self {
        let collective = find_collectives(profile);
        let waits = profile.os_calls.names.iter().map(|n| WAITS.contains(&n.trim_start_matches('_'))).collect();
        let end = profile.ranges.iter().filter(|r| r.end < i64::MAX).map(|r| r.end).max();
        let last = (!profile.launches.is_empty()).then(|| profile.launches.end(profile.launches.len() - 1));
        Self { collective, waits, end: clamp_time(end.max(last).unwrap_or_default()) }
    }
}

/// Reader for a profile's events.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    pub profile: &'a Profile,
    known: Arc<Known>,
}

impl<'a> Events<'a> {
    pub fn from_profile(profile: &'a Profile) -> Self {
        Self::with_known(profile, Arc::new(Known::from_profile(profile)))
    }

    /// Creates a reader that reuses properties computed earlier.
    pub fn with_known(profile: &'a Profile, known: Arc<Known>) -> Self {
        Self { profile, known }
    }

    /// End of the last range, launch, copy or call, ns.
    pub fn last_end(&self) -> i64 {
        let copies = &self.profile.memops;
        let copy =
            copies.len().checked_sub(1).and_then(|last| copies.get(last)).map_or(i64::MIN, |m| m.start.0.saturating_add(m.duration.0));
        let calls = &self.profile.calls;
        let call = calls.start.last().zip(calls.duration.last()).map_or(i64::MIN, |(start, duration)| start.saturating_add(*duration));
        self.known.end.max(clamp_time(call)).max(clamp_time(copy))
    }

    pub fn known_names(&self) -> Arc<Known> {
        Arc::clone(&self.known)
    }

    /// Start and end, ns; the end is never before the start.
    pub fn span(&self, event: Event) -> (i64, i64) {
        let p = self.profile;
        let of = |start: i64, duration: i64| (start, start.saturating_add(duration.max(0)));
        let (start, end) = match event {
            Event::Launch(row) => of(p.launches.start(row as usize), p.launches.duration(row as usize)),
            Event::LaunchCall(row) => p.launches.call(row as usize).map_or((0, 0), |(start, cost)| of(start, cost)),
            Event::Mem(row) => p.memops.get(row as usize).map_or((0, 0), |m| of(m.start.0, m.duration.0)),
            Event::Graph(row) => p.graphs.get(row as usize).map_or((0, 0), |g| of(g.start.0, g.duration.0)),
            Event::Call(row) => call_span(&p.calls.start, &p.calls.duration, row),
            Event::Range(row) => {
                let range = p.ranges.get(row as usize);
                (range.start, if range.end == i64::MAX { self.known.end } else { range.end })
            }
            Event::Os(row) => call_span(&p.os_calls.start, &p.os_calls.duration, row),
            Event::Overhead(row) => p.overhead.get(row as usize).map_or((0, 0), |o| of(o.start, o.duration)),
        };
        let start = clamp_time(start);
        (start, clamp_time(end).max(start))
    }

    pub fn category(&self, event: Event) -> Category {
        let p = self.profile;
        match event {
            Event::Launch(row) => {
                let kernel = p.launches.kernel(row as usize).0 as usize;
                if self.known.collective.get(kernel).copied().unwrap_or_default() { Category::Collective } else { Category::Kernel }
            }
            Event::Graph(_) => Category::Kernel,
            Event::LaunchCall(_) => Category::Launch,
            Event::Mem(row) => match p.memops.get(row as usize).map(|m| m.kind) {
                Some(MemOpKind::Set) => Category::Set,
                _ => Category::Copy,
            },
            Event::Call(row) => match p.calls.kind(row as usize) {
                CallKind::Launch | CallKind::GraphLaunch | CallKind::HostFunction => Category::Launch,
                CallKind::Sync => Category::Sync,
                CallKind::Copy | CallKind::Set => Category::CopyCall,
                CallKind::Alloc | CallKind::Free => Category::Alloc,
                CallKind::Module => Category::Module,
                CallKind::Graph => Category::GraphCall,
                CallKind::Event | CallKind::Profiler | CallKind::Query | CallKind::Other => Category::OtherCall,
            },
            Event::Range(row) => match p.ranges.get(row as usize).origin {
                RangeOrigin::Operator | RangeOrigin::Instruction => Category::Operator,
                RangeOrigin::Python => Category::Python,
                RangeOrigin::Nvtx | RangeOrigin::Annotation | RangeOrigin::Roctx => Category::Range,
                RangeOrigin::Wave => match p.ranges.names.get(p.ranges.get(row as usize).name as usize).map(|(_, name)| &**name) {
                    Some("executing") => Category::Kernel,
                    Some("waiting") => Category::Sync,
                    Some("stalled") => Category::OsWait,
                    _ => Category::Range,
                },
            },
            Event::Os(row) => {
                let name = p.os_calls.name.get(row as usize).copied().unwrap_or(u32::MAX);
                if self.known.waits.get(name as usize).copied().unwrap_or_default() { Category::OsWait } else { Category::Os }
            }
            Event::Overhead(_) => Category::Overhead,
        }
    }

    /// Returns true if both events are the same launching call, which all nodes of a graph share.
    pub fn same_call(&self, a: Event, b: Event) -> bool {
        let (Event::LaunchCall(x), Event::LaunchCall(y)) = (a, b) else { return false };
        let thread = |row: u32| {
            let place = self.profile.places.get(self.profile.launches.place(row as usize)?.0 as usize)?;
            Some((place.pid, place.thread))
        };
        self.span(a) == self.span(b) && thread(x) == thread(y)
    }

    /// Number of kernels in the graph launch to which this launch belongs; `None` for a kernel outside of graphs.
    pub fn graph_kernels(&self, row: u32) -> Option<usize> {
        /// Maximum number of consecutive rows from other calls to skip when searching for nodes of the same graph
        /// launch.
        const BETWEEN: usize = 4096;
        let launches = &self.profile.launches;
        let (at, call) = (row as usize, launches.call(row as usize)?);
        let process = |r: usize| self.profile.places.get(launches.place(r)?.0 as usize)?.pid;
        launches.graph_node(at)?;
        let count = |rows: &mut dyn Iterator<Item = usize>| {
            let (mut found, mut others) = (0, 0);
            for r in rows {
                if others > BETWEEN {
                    break;
                }
                let same = launches.graph_node(r).is_some() && launches.call(r) == Some(call) && process(r) == process(at);
                (found, others) = if same { (found + 1, 0) } else { (found, others + 1) };
            }
            found
        };
        Some(count(&mut (at..launches.len())) + count(&mut (0..at).rev()))
    }

    /// Returns true if this launch belongs to the first recorded launch of its graph.
    pub fn is_first_of_graph(&self, row: u32) -> bool {
        let launches = &self.profile.launches;
        launches.first_of_node(row as usize).is_some_and(|first| launches.call(first) == launches.call(row as usize))
    }

    pub fn event_name(&self, event: Event) -> Cow<'a, str> {
        let p = self.profile;
        match event {
            Event::LaunchCall(row) if p.launches.graph_node(row as usize).is_some() => {
                let kernels = self.graph_kernels(row).unwrap_or_default();
                Cow::Owned(format!("launch graph of {}", units::format_count(kernels, "kernel")))
            }
            Event::Launch(row) | Event::LaunchCall(row) => {
                let kernel = p.kernels.get(p.launches.kernel(row as usize).0 as usize);
                let name = kernel.map_or(Cow::Borrowed(""), |k| Cow::Owned(escape_unsafe(&readable_name(k)).into_owned()));
                if matches!(event, Event::LaunchCall(_)) { Cow::Owned(format!("launch {name}")) } else { name }
            }
            Event::Mem(row) => Cow::Borrowed(match p.memops.get(row as usize).map(|m| m.kind) {
                Some(MemOpKind::Set) => "memset",
                Some(MemOpKind::Copy { kind, .. }) => kind.as_str(),
                None => "",
            }),
            Event::Graph(row) => p.graphs.get(row as usize).map_or(Cow::Borrowed(""), |g| Cow::Owned(format!("graph {}", g.graph))),
            Event::Call(row) => p.calls.call_name(row as usize).map_or(Cow::Borrowed(""), |n| escape_unsafe(&n.name)),
            Event::Range(row) => Cow::Owned(escape_unsafe(&p.ranges.label(p.ranges.get(row as usize).name)).into_owned()),
            Event::Os(row) => {
                let name = p.os_calls.name.get(row as usize).and_then(|&n| p.os_calls.names.get(n as usize));
                name.map_or(Cow::Borrowed(""), |n| escape_unsafe(n))
            }
            Event::Overhead(row) => p.overhead.get(row as usize).map_or(Cow::Borrowed(""), |o| escape_unsafe(&o.name)),
        }
    }
}

fn call_span(start: &[i64], duration: &[i64], row: u32) -> (i64, i64) {
    let (start, duration) = (start.get(row as usize).copied().unwrap_or_default(), duration.get(row as usize).copied().unwrap_or_default());
    (start, start.saturating_add(duration.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_pack_and_unpack() {
        for row in [0, 1, 12_345_678, ROW] {
            for event in [
                Event::Launch(row),
                Event::LaunchCall(row),
                Event::Mem(row),
                Event::Graph(row),
                Event::Call(row),
                Event::Range(row),
                Event::Os(row),
                Event::Overhead(row),
            ] {
                assert_eq!(EventId::from(event).to_event(), event);
            }
        }
        assert_eq!(size_of::<EventId>(), 4);
    }
}
