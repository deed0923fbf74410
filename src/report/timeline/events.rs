//! Events of a window, in order.

use crate::analysis::metric::Lookup;
use crate::analysis::timeline::{Event, EventId, Events, Lane, Pattern, RowKind, Timeline};
use crate::model::text::escape_unsafe;
use crate::model::{Metrics, Nanos, Profile};
use crate::report::Format;
use crate::report::table::{self, Cell, Column};
use crate::report::triage::round_percent;
use crate::rerun::match_results::Join;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::sync::Arc;

/// Throughputs of ncu's Speed of Light section, and utilisation of the tensor pipe.
const SM: &[&str] = &["sm__throughput.avg.pct_of_peak_sustained_elapsed"];
const MEMORY: &[&str] = &["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"];
const TENSOR: &[&str] = &[
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
];

/// Selection of the listed events.
pub struct Chosen<'a> {
    /// Start and end (exclusive), ns; events that are running at the start are listed, too.
    pub from: i64,
    pub to: i64,
    /// Only rows of these kinds; all if empty.
    pub kinds: &'a [RowKind],
    /// Only names that match.
    pub pattern: Option<Pattern>,
    pub limit: usize,
    /// Joined results of ncu.
    pub joined: &'a [(Arc<Metrics>, Join)],
}

/// JSON form of an event.
#[derive(Serialize)]
pub struct EventJson {
    start_ns: i64,
    duration_ns: i64,
    row: String,
    kind: &'static str,
    name: String,
    /// Number of the launch, as in `launches`.
    launch: Option<u32>,
    bytes: Option<u64>,
    sm_percent: Option<f64>,
    memory_percent: Option<f64>,
    tensor_percent: Option<f64>,
}

/// The next event of a lane: start and end, ns, the longer first; the lane, and the index in it.
type Next = (i64, Reverse<i64>, usize, usize);

/// Events of a window, sorted by start.
pub fn event_rows<'a>(
    profile: &'a Profile,
    timeline: &'a Timeline,
    of: &'a Events<'a>,
    chosen: &'a Chosen<'a>,
) -> impl Iterator<Item = EventJson> + 'a {
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
                return Some(event_json(profile, of, row, id.to_event(), (start, end), chosen.joined));
            }
        }
    })
    .take(chosen.limit)
}

fn event_json(
    profile: &Profile,
    of: &Events<'_>,
    row: &str,
    event: Event,
    (start, end): (i64, i64),
    joined: &[(Arc<Metrics>, Join)],
) -> EventJson {
    let launch = if let Event::Launch(launch) = event { Some(launch) } else { None };
    let result = launch.and_then(|launch| {
        joined.iter().find_map(|(metrics, join)| metrics.results.get(join.of_launch(launch)?.result).map(|r| Lookup::new(metrics, r)))
    });
    let value = |names: &[&str]| result.as_ref().and_then(|r| r.first_finite(names)).map(round_percent);
    EventJson {
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

/// Field, title, alignment to the right, machine-only flag, and drop order in a narrow terminal.
const COLUMNS: &[(&str, &str, bool, bool, u8)] = &[
    ("start_ns", "start", true, false, 0),
    ("duration_ns", "duration", true, false, 0),
    ("row", "row", false, false, 3),
    ("kind", "kind", false, false, 2),
    ("name", "name", false, false, 0),
    ("launch", "launch", true, false, 4),
    ("bytes", "size", true, false, 5),
    ("sm_percent", "SM %", true, false, 6),
    ("memory_percent", "mem %", true, false, 6),
    ("tensor_percent", "tensor %", true, false, 6),
];

/// Prints events in a format other than JSON.
pub fn print_rows(
    out: &mut dyn Write,
    rows: impl Iterator<Item = EventJson>,
    results: bool,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    // Omit the columns of ncu results if there are none.
    let shown = COLUMNS.len() - if results { 0 } else { 3 };
    let columns: Vec<Column> = COLUMNS[..shown]
        .iter()
        .map(|&(field, title, right, machine_only, rank)| Column { field, title, right, machine_only, rank })
        .collect();
    let cells = rows.map(|e| {
        let percent = |p: Option<f64>| p.map_or_else(Cell::default, |p| Cell::with_raw(p, format!("{p:.1}")));
        let mut cells = vec![
            Cell::with_raw(e.start_ns, format!("{:.9} s", e.start_ns as f64 / 1e9)),
            Cell::with_raw(e.duration_ns, Nanos(e.duration_ns).to_string()),
            Cell::text(e.row),
            Cell::text(e.kind),
            Cell::text(e.name),
            e.launch.map_or_else(Cell::default, |l| Cell::text(l.to_string())),
            e.bytes.map_or_else(Cell::default, |b| Cell::with_raw(b, crate::model::Bytes(b).to_string())),
            percent(e.sm_percent),
            percent(e.memory_percent),
            percent(e.tensor_percent),
        ];
        cells.truncate(shown);
        cells
    });
    table::print_rows(&columns, cells, out, format, width)
}

/// Writes events as JSON, one by one.
pub fn write_json(out: &mut dyn Write, profile: &Profile, rows: impl Iterator<Item = EventJson>) -> io::Result<()> {
    let source = crate::report::json_text(&crate::report::top::SourceJson::from(&profile.source))?;
    write!(out, "{{\"source\":{source},\"events\":[")?;
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(crate::report::json_text(&row)?.as_bytes())?;
    }
    writeln!(out, "]}}")
}
