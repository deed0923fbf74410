//! Events of a window, in order.

use crate::analysis::metric::Lookup;
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::analysis::timeline::{Event, EventId, Events, Lane, Pattern, RowKind, Timeline};
use crate::model::text::escape_unsafe;
use crate::model::{Metrics, Profile};
use crate::report::envelope::{Envelope, JsonDocument};
use crate::report::rows::{Rows, TableRow};
use crate::report::triage::round_percent;
use crate::report::{Format, table};
use crate::rerun::match_results::Join;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::sync::Arc;

/// Throughputs from ncu's Speed of Light section, and utilization of the tensor pipe.
const SM: &[&str] = &["sm__throughput.avg.pct_of_peak_sustained_elapsed"];
const MEMORY: &[&str] = &["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"];
const TENSOR: &[&str] = &[
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
];

/// Options that select the listed events.
pub struct Chosen<'a> {
    /// Start and end (exclusive), ns; events in progress at the start are listed, too.
    pub from: i64,
    pub to: i64,
    /// Only rows of these kinds; all rows if empty.
    pub kinds: &'a [RowKind],
    /// Only names that match this pattern.
    pub pattern: Option<Pattern>,
    pub limit: usize,
    /// Joined results of ncu.
    pub joined: &'a [(Arc<Metrics>, Join)],
}

/// A listed event.
pub struct EventRow {
    start_ns: i64,
    duration_ns: i64,
    row: String,
    kind: &'static str,
    name: String,
    /// Index of the launch, as in `launches`.
    launch: Option<u32>,
    bytes: Option<u64>,
    sm_percent: Option<f64>,
    memory_percent: Option<f64>,
    tensor_percent: Option<f64>,
}

/// Next event of a lane: start and end, ns, longer events first; the lane, and the index in it.
type Next = (i64, Reverse<i64>, usize, usize);

/// Events of a window, sorted by start.
pub fn event_rows<'a>(
    profile: &'a Profile,
    timeline: &'a Timeline,
    of: &'a Events<'a>,
    chosen: &'a Chosen<'a>,
) -> impl Iterator<Item = EventRow> + 'a {
    let wanted = |kind: RowKind| chosen.kinds.is_empty() || chosen.kinds.contains(&kind);
    let mut lanes: Vec<(String, &Lane)> = Vec::new();
    for group in &timeline.groups {
        for row in group.rows.iter().filter(|r| wanted(r.key.kind)) {
            lanes.extend(row.lanes().iter().map(|lane| (format!("{} · {}", escape_unsafe(&group.name), escape_unsafe(&row.name)), lane)));
        }
    }
    let mut heap: BinaryHeap<Reverse<Next>> = BinaryHeap::new();
    let entry = move |of: &Events<'_>, number: usize, at: usize, id: EventId| {
        let (start, end) = of.span(id.to_event());
        Reverse((start, Reverse(end), number, at))
    };
    for (number, (_, lane)) in lanes.iter().enumerate() {
        let first = lane.count_before(of, chosen.from);
        let running = first.checked_sub(1).filter(|&at| lane.get(at).is_some_and(|id| of.span(id.to_event()).1 > chosen.from));
        let at = running.unwrap_or(first);
        heap.extend(lane.get(at).map(|id| entry(of, number, at, id)));
    }
    std::iter::from_fn(move || {
        loop {
            let Reverse((start, Reverse(end), number, at)) = heap.pop()?;
            if start >= chosen.to {
                return None;
            }
            let (row, lane) = &lanes[number];
            heap.extend(lane.get(at + 1).map(|id| entry(of, number, at + 1, id)));
            let Some(id) = lane.get(at) else { continue };
            if chosen.pattern.as_ref().is_none_or(|p| p.matches_event(of, id.to_event())) {
                return Some(event_row(profile, of, row, id.to_event(), (start, end), chosen.joined));
            }
        }
    })
    .take(chosen.limit)
}

fn event_row(
    profile: &Profile,
    of: &Events<'_>,
    row: &str,
    event: Event,
    (start, end): (i64, i64),
    joined: &[(Arc<Metrics>, Join)],
) -> EventRow {
    let launch = if let Event::Launch(launch) = event { Some(launch) } else { None };
    let result = launch.and_then(|launch| {
        joined.iter().find_map(|(metrics, join)| metrics.results.get(join.of_launch(launch)?.result).map(|r| Lookup::new(metrics, r)))
    });
    let value = |names: &[&str]| result.as_ref().and_then(|r| r.first_finite(names)).map(round_percent);
    EventRow {
        start_ns: start,
        duration_ns: end - start,
        row: row.to_owned(),
        kind: of.category(event).display_name(),
        name: super::describe::full_name(of, event),
        launch,
        bytes: if let Event::Mem(row) = event { profile.memops.get(row as usize).and_then(|m| m.bytes).map(|b| b.0) } else { None },
        sm_percent: value(SM),
        memory_percent: value(MEMORY),
        tensor_percent: value(TENSOR),
    }
}

type EventColumn = Column<EventRow>;

/// The columns, in order. `results` is true if some launches have ncu results.
pub fn columns(results: bool) -> Vec<EventColumn> {
    let measured = if results { Outputs::PRINTED } else { Outputs::JSON };
    vec![
        EventColumn::new("start_ns", "start", Unit::ExactTime, "start, from the report's 0", |e| Value::Int(e.start_ns)),
        EventColumn::new("duration_ns", "duration", Unit::Ns, "duration", |e| Value::Int(e.duration_ns)).weighing(),
        EventColumn::new("row", "row", Unit::Text, "row of the timeline", |e| Value::text(&e.row)).priority(3),
        EventColumn::new("kind", "kind", Unit::Text, "kind of event", |e| Value::text(e.kind)).priority(2),
        EventColumn::new("name", "name", Unit::Text, "name", |e| Value::text(&e.name)),
        EventColumn::new("launch", "launch", Unit::Id, "number of the launch, as in `launches`", |e| Value::maybe_int(e.launch))
            .priority(4),
        EventColumn::new("bytes", "size", Unit::Bytes, "bytes of a copy or set", |e| Value::maybe_int(e.bytes)).priority(5),
        EventColumn::new("sm_percent", "SM", Unit::Percent, "SM throughput that ncu measured", |e| Value::maybe_real(e.sm_percent))
            .only(measured)
            .priority(6),
        EventColumn::new("memory_percent", "memory", Unit::Percent, "memory throughput that ncu measured", |e| {
            Value::maybe_real(e.memory_percent)
        })
        .only(measured)
        .priority(6),
        EventColumn::new("tensor_percent", "tensor", Unit::Percent, "use of the tensor pipe that ncu measured", |e| {
            Value::maybe_real(e.tensor_percent)
        })
        .only(measured)
        .priority(6),
    ]
}

/// Prints events in a format other than JSON.
pub fn print_rows(
    out: &mut dyn Write,
    rows: impl Iterator<Item = EventRow>,
    results: bool,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    table::print_rows(columns(results), rows, out, format, width)
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct EventsJson<'a> {
    events: Rows<'a, EventRow>,
}

impl JsonDocument for EventsJson<'_> {
    const NAME: &'static str = "events";
}

impl TableRow for EventRow {
    fn columns() -> Vec<Column<Self>> {
        columns(true)
    }
}

/// Writes events as JSON.
pub fn write_json<'a>(out: &mut dyn Write, profile: &'a Profile, rows: impl Iterator<Item = EventRow> + 'a) -> io::Result<()> {
    Envelope::of_profile(profile).write(out, &EventsJson { events: Rows::new(rows) })
}
