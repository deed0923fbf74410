//! Rows of a timeline, and the devices and threads to which they belong.

use super::event::{EventId, Events, Known};
use super::lane::Lane;
use super::plot::Plot;
use super::track::{Before, Track};
use super::union::Union;
use super::window::{Cell, Window, compute_cells};
use crate::model::Profile;
use std::sync::Arc;

/// The device, thread or machine to which a group of rows belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// Device number shown to the user.
    Device(u32),
    /// Metrics of a device over time.
    Metrics(u32),
    /// Process and thread.
    Thread(u32, u32),
    /// Values that do not belong to a device or a thread.
    Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// A stream or queue: kernels, copies, memsets.
    Queue,
    /// CUDA or HIP calls.
    Api,
    /// Ranges that the program marked.
    Ranges,
    Operators,
    Python,
    Os,
    /// Share of time during which a thread was running.
    State,
    /// Time that the profiler itself spent.
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

    /// Name used on the command line.
    pub fn cli_name(self) -> &'static str {
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

/// Identity of a row; the number distinguishes rows of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    pub group: GroupKey,
    pub kind: RowKind,
    pub number: u64,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// Events, outermost lane first.
    Lanes(Vec<Lane>),
    Plot(Plot),
}

#[derive(Clone, Debug)]
pub struct TimelineRow {
    pub key: RowKey,
    pub name: String,
    pub content: Content,
    /// Number of events that are nested too deeply to be shown.
    pub left_out: usize,
}

impl TimelineRow {
    pub fn lanes(&self) -> &[Lane] {
        match &self.content {
            Content::Lanes(lanes) => lanes,
            Content::Plot(_) => &[],
        }
    }

    pub fn event_count(&self) -> usize {
        self.lanes().iter().map(Lane::len).sum()
    }

    /// Memory usage, bytes.
    pub fn bytes(&self) -> usize {
        match &self.content {
            Content::Lanes(lanes) => lanes.iter().map(Lane::bytes).sum(),
            Content::Plot(plot) => plot.bytes(),
        }
    }
}

/// Rows for a device or thread.
#[derive(Clone, Debug)]
pub struct Group {
    pub key: GroupKey,
    pub name: String,
    /// Additional description, shown if there is room: the model of a device, the name of a process.
    pub about: String,
    pub rows: Vec<Arc<TimelineRow>>,
    /// All activity on a device, combined; `None` if the device has only one lane, and for threads.
    pub union: Option<Arc<Union>>,
}

/// Kinds of rows that can represent a folded group, best first.
const TELLING: [RowKind; 7] =
    [RowKind::Queue, RowKind::Api, RowKind::Operators, RowKind::Ranges, RowKind::Python, RowKind::Os, RowKind::Profiler];

impl Group {
    /// Returns the lane that represents a folded group without a union, with the index of its row.
    pub fn main_lane(&self) -> Option<(usize, &Lane)> {
        TELLING.into_iter().find_map(|kind| {
            let at = self.rows.iter().position(|r| r.key.kind == kind)?;
            Some((at, self.rows[at].lanes().first()?))
        })
    }

    /// Activity in the columns of a window: that of all rows of a device combined, or that of the main lane of a
    /// thread.
    pub fn summary_cells(&self, of: &Events<'_>, window: Window) -> Vec<Cell> {
        match (&self.union, self.main_lane()) {
            (Some(union), _) => compute_cells(union.as_ref(), of, window),
            (None, Some((_, lane))) => compute_cells(lane, of, window),
            (None, None) => vec![Cell::default(); window.columns],
        }
    }

    /// Busy time before `time`, from the same events as [`Self::summary_cells`].
    pub fn busy_before(&self, of: &Events<'_>, time: i64) -> Before {
        match (&self.union, self.main_lane()) {
            (Some(union), _) => union.before(of, time),
            (None, Some((_, lane))) => lane.before(of, time),
            (None, None) => Before::default(),
        }
    }

    /// Returns true for a thread that only makes OS calls, such as the driver's and the profiler's own threads.
    pub fn is_helper(&self) -> bool {
        matches!(self.key, GroupKey::Thread(..))
            && self.rows.iter().all(|r| matches!(r.key.kind, RowKind::Os | RowKind::State | RowKind::Profiler) || r.event_count() == 0)
    }

    /// Returns true if the group has rows other than running states and profiler activity.
    pub fn is_relevant(&self) -> bool {
        self.rows.iter().any(|r| !matches!(r.key.kind, RowKind::State | RowKind::Profiler))
    }

    pub fn event_count(&self) -> usize {
        self.rows.iter().map(|r| r.event_count()).sum()
    }
}

/// A part of a timeline that is built separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimelinePart {
    /// Activity of the devices.
    Devices,
    /// CUDA or HIP calls.
    Calls,
    /// Ranges, operators, Python functions.
    Ranges,
    /// OS calls, thread states, counters, memory.
    Others,
}

impl TimelinePart {
    /// All parts, most urgent first.
    pub const ALL: [Self; 4] = [Self::Devices, Self::Calls, Self::Ranges, Self::Others];
}

/// Result of building a part.
#[derive(Clone, Debug)]
pub struct Built {
    pub part: TimelinePart,
    pub groups: Vec<Group>,
    /// First start and last end, ns.
    pub span: Option<(i64, i64)>,
    pub known: Arc<Known>,
}

/// Position of an event: indices of its group, row and lane, and its index within the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub group: usize,
    pub row: usize,
    pub lane: usize,
    pub at: usize,
}

/// All events of a run, arranged in rows.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub groups: Vec<Group>,
    /// First start and last end of device activity, calls and ranges, ns; if there are none, of all events.
    pub span: (i64, i64),
    /// First start and last end of all events, ns, including threads that start before the run or outlast it.
    pub reach: (i64, i64),
    /// Parts built so far.
    pub parts: Vec<TimelinePart>,
    known: Arc<Known>,
}

impl Timeline {
    pub fn add_part(&mut self, built: Built) {
        let Built { part, groups, span, known } = built;
        if self.parts.contains(&part) {
            return;
        }
        self.known = known;
        if let Some((start, end)) = span {
            self.reach = if self.parts.is_empty() { (start, end) } else { (self.reach.0.min(start), self.reach.1.max(end)) };
        }
        // OS calls and thread states do not extend the span, because threads that only wait may outlast the run by far.
        if let Some((start, end)) = span.filter(|_| part != TimelinePart::Others || self.span == (0, 0)) {
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
        // Devices first, then the threads with the most calls.
        self.groups.sort_by_cached_key(|g| {
            let calls: usize = g.rows.iter().filter(|r| r.key.kind == RowKind::Api).map(|r| r.event_count()).sum();
            let order = match g.key {
                GroupKey::Device(n) => (0, n, 0),
                GroupKey::Metrics(n) => (0, n, 1),
                GroupKey::Thread(..) => (1, 0, 0),
                GroupKey::Machine => (2, 0, 0),
            };
            (order, std::cmp::Reverse((calls, g.event_count())), g.key)
        });
    }

    /// Returns a reader for the events of the profile from which the timeline was built.
    pub fn event_reader<'a>(&self, profile: &'a Profile) -> Events<'a> {
        Events::with_known(profile, Arc::clone(&self.known))
    }

    /// Returns true if all parts have been built.
    pub fn is_complete(&self) -> bool {
        self.parts.len() == TimelinePart::ALL.len()
    }

    pub fn lane_at(&self, group: usize, row: usize, lane: usize) -> Option<&Lane> {
        self.groups.get(group)?.rows.get(row)?.lanes().get(lane)
    }

    pub fn event_at(&self, spot: Spot) -> Option<EventId> {
        self.lane_at(spot.group, spot.row, spot.lane)?.get(spot.at)
    }

    /// Returns the position of an event. Searches every lane that may contain it.
    pub fn find_event(&self, of: &Events<'_>, wanted: EventId) -> Option<Spot> {
        let (start, _) = of.span(wanted.to_event());
        for (group, g) in self.groups.iter().enumerate() {
            for (row, r) in g.rows.iter().enumerate() {
                for (lane, l) in r.lanes().iter().enumerate() {
                    // Several events may start at the same time: one of zero length may precede the wanted one.
                    let mut at = l.count_before(of, start);
                    while let Some(id) = l.get(at).filter(|id| of.span(id.to_event()).0 == start) {
                        if id == wanted || of.same_call(id.to_event(), wanted.to_event()) {
                            return Some(Spot { group, row, lane, at });
                        }
                        at += 1;
                    }
                }
            }
        }
        None
    }

    /// Memory usage in addition to the profile, bytes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.groups.iter().flat_map(|g| &g.rows).map(|r| r.bytes()).sum();
        rows + self.groups.iter().filter_map(|g| g.union.as_ref()).map(|u| u.bytes()).sum::<usize>()
    }
}
