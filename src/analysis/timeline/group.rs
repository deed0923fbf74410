//! Rows of a timeline, and the devices and threads that they belong to.

use super::event::{EventId, Events, Known};
use super::lane::Lane;
use super::plot::Plot;
use super::track::{Before, Track};
use super::union::Union;
use super::window::{Cell, Window, cells};
use crate::model::Profile;
use std::sync::Arc;

/// What a group of rows is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// The number that people know the device by.
    Device(u32),
    /// Metrics of a device over time.
    Metrics(u32),
    /// Process and thread.
    Thread(u32, u32),
    /// Values that belong to no device and no thread.
    Machine,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// A stream or queue: kernels, copies, sets.
    Queue,
    /// Calls of CUDA or HIP.
    Api,
    /// Ranges that the program named.
    Ranges,
    /// Operators of a framework.
    Operators,
    Python,
    /// Calls of the operating system.
    Os,
    /// Whether a thread was running.
    State,
    /// What the profiler did.
    Profiler,
    Memory,
    Counter,
}

impl RowKind {
    pub const ALL: [Self; 10] = [
        Self::Queue,
        Self::Api,
        Self::Ranges,
        Self::Operators,
        Self::Python,
        Self::Os,
        Self::State,
        Self::Profiler,
        Self::Memory,
        Self::Counter,
    ];

    /// The word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queue => "streams",
            Self::Api => "api",
            Self::Ranges => "ranges",
            Self::Operators => "operators",
            Self::Python => "python",
            Self::Os => "os",
            Self::State => "running",
            Self::Profiler => "profiler",
            Self::Memory => "memory",
            Self::Counter => "counters",
        }
    }
}

/// A row by what it is of; the number tells rows of a kind apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    pub group: GroupKey,
    pub kind: RowKind,
    pub number: u64,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// Events, the outermost first.
    Lanes(Vec<Lane>),
    Plot(Plot),
}

#[derive(Clone, Debug)]
pub struct Row {
    pub key: RowKey,
    pub name: String,
    pub content: Content,
    /// Events that are nested too deeply to be shown.
    pub left_out: usize,
}

impl Row {
    #[must_use]
    pub fn lanes(&self) -> &[Lane] {
        match &self.content {
            Content::Lanes(lanes) => lanes,
            Content::Plot(_) => &[],
        }
    }

    #[must_use]
    pub fn events(&self) -> usize {
        self.lanes().iter().map(Lane::len).sum()
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Lanes(lanes) => lanes.iter().map(Lane::bytes).sum(),
            Content::Plot(plot) => plot.bytes(),
        }
    }
}

/// Rows that belong together: of a device, of a thread.
#[derive(Clone, Debug)]
pub struct Group {
    pub key: GroupKey,
    pub name: String,
    /// Says more, where there is room: the model of a device, the name of a process.
    pub about: String,
    pub rows: Vec<Arc<Row>>,
    /// Everything that runs on a device, where that is more than one lane.
    pub union: Option<Arc<Union>>,
}

/// Rows that tell most of what a thread does.
const TELLING: [RowKind; 7] =
    [RowKind::Queue, RowKind::Api, RowKind::Operators, RowKind::Ranges, RowKind::Python, RowKind::Os, RowKind::Profiler];

impl Group {
    /// The lane that stands for the group while it is folded, unless that is a union.
    #[must_use]
    pub fn telling(&self) -> Option<(usize, &Lane)> {
        TELLING.into_iter().find_map(|kind| {
            let at = self.rows.iter().position(|r| r.key.kind == kind)?;
            Some((at, self.rows[at].lanes().first()?))
        })
    }

    /// What runs in the columns of a window, all rows of a device together; of a thread the outermost calls.
    #[must_use]
    pub fn summary(&self, of: &Events<'_>, window: Window) -> Vec<Cell> {
        match (&self.union, self.telling()) {
            (Some(union), _) => cells(union.as_ref(), of, window),
            (None, Some((_, lane))) => cells(lane, of, window),
            (None, None) => vec![Cell::default(); window.columns],
        }
    }

    /// Busy time before a time, as in the summary.
    #[must_use]
    pub fn before(&self, of: &Events<'_>, time: i64) -> Before {
        match (&self.union, self.telling()) {
            (Some(union), _) => union.before(of, time),
            (None, Some((_, lane))) => lane.before(of, time),
            (None, None) => Before::default(),
        }
    }

    /// Whether it says anything by itself: when a thread was running says nothing alone, and what the profiler did on it little.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.rows.iter().any(|r| !matches!(r.key.kind, RowKind::State | RowKind::Profiler))
    }

    #[must_use]
    pub fn events(&self) -> usize {
        self.rows.iter().map(|r| r.events()).sum()
    }
}

/// A part of a timeline that is built by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What ran on devices.
    Devices,
    /// Calls of CUDA or HIP.
    Calls,
    /// Ranges, operators, functions of Python.
    Ranges,
    /// Calls of the operating system, what threads were doing, counters, memory.
    Others,
}

impl Part {
    /// All of them, in the order in which they are wanted.
    pub const ALL: [Self; 4] = [Self::Devices, Self::Calls, Self::Ranges, Self::Others];
}

/// What came of a part.
#[derive(Clone, Debug)]
pub struct Built {
    pub part: Part,
    pub groups: Vec<Group>,
    /// From the first start to the last end, ns.
    pub span: Option<(i64, i64)>,
    pub known: Arc<Known>,
}

/// Where an event is: indices of the group, the row and the lane, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub group: usize,
    pub row: usize,
    pub lane: usize,
    pub at: usize,
}

/// Everything that happened, in rows.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub groups: Vec<Group>,
    /// From the first start to the last end of what ran on devices, of calls and of ranges, ns; where there are none of these, of everything.
    pub span: (i64, i64),
    /// The same of everything, also of threads that begin before or outlast the run.
    pub reach: (i64, i64),
    /// Parts that are there.
    pub parts: Vec<Part>,
    known: Arc<Known>,
}

impl Timeline {
    /// Adds what was built.
    pub fn add(&mut self, built: Built) {
        let Built { part, groups, span, known } = built;
        if self.parts.contains(&part) {
            return;
        }
        self.known = known;
        if let Some((start, end)) = span {
            self.reach = if self.parts.is_empty() { (start, end) } else { (self.reach.0.min(start), self.reach.1.max(end)) };
        }
        // Threads that only wait for something may outlast the run by far.
        if let Some((start, end)) = span.filter(|_| part != Part::Others || self.span == (0, 0)) {
            self.span = if self.span == (0, 0) { (start, end) } else { (self.span.0.min(start), self.span.1.max(end)) };
        }
        self.parts.push(part);
        for group in groups {
            match self.groups.iter_mut().find(|g| g.key == group.key) {
                Some(known) => {
                    known.rows.extend(group.rows);
                    known.rows.sort_by_key(|r| r.key.kind);
                    known.union = known.union.take().or(group.union);
                }
                None => self.groups.push(group),
            }
        }
        // Devices first, then the threads that do most with them.
        self.groups.sort_by_cached_key(|g| {
            let calls: usize = g.rows.iter().filter(|r| r.key.kind == RowKind::Api).map(|r| r.events()).sum();
            let order = match g.key {
                GroupKey::Device(n) => (0, n, 0),
                GroupKey::Metrics(n) => (0, n, 1),
                GroupKey::Thread(..) => (1, 0, 0),
                GroupKey::Machine => (2, 0, 0),
            };
            (order, std::cmp::Reverse((calls, g.events())), g.key)
        });
    }

    /// Reads events of the profile that it was built from.
    #[must_use]
    pub fn events<'a>(&self, profile: &'a Profile) -> Events<'a> {
        Events::with(profile, Arc::clone(&self.known))
    }

    /// Whether all of it is there.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.parts.len() == Part::ALL.len()
    }

    #[must_use]
    pub fn lane(&self, group: usize, row: usize, lane: usize) -> Option<&Lane> {
        self.groups.get(group)?.rows.get(row)?.lanes().get(lane)
    }

    #[must_use]
    pub fn event(&self, spot: Spot) -> Option<EventId> {
        self.lane(spot.group, spot.row, spot.lane)?.get(spot.at)
    }

    /// Where an event is. Looks at every lane that may hold it.
    #[must_use]
    pub fn find(&self, of: &Events<'_>, wanted: EventId) -> Option<Spot> {
        let (start, _) = of.span(wanted.event());
        for (group, g) in self.groups.iter().enumerate() {
            for (row, r) in g.rows.iter().enumerate() {
                for (lane, l) in r.lanes().iter().enumerate() {
                    // Several may begin at one time; one that takes none may lie before the one that is wanted.
                    let mut at = l.count_before(of, start);
                    while let Some(id) = l.get(at).filter(|id| of.span(id.event()).0 == start) {
                        if id == wanted || of.same_call(id.event(), wanted.event()) {
                            return Some(Spot { group, row, lane, at });
                        }
                        at += 1;
                    }
                }
            }
        }
        None
    }

    /// Bytes that it takes beside the profile.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rows: usize = self.groups.iter().flat_map(|g| &g.rows).map(|r| r.bytes()).sum();
        rows + self.groups.iter().filter_map(|g| g.union.as_ref()).map(|u| u.bytes()).sum::<usize>()
    }
}
