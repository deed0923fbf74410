//! `diff`: changes between two runs.

use super::Format;
use super::table::{self, Cell, Column};
use super::top::SourceJson;
use crate::analysis::diff::{Diff, Fate, Row, Side};
use crate::analysis::triage::{TimeCategory, Triage};
use crate::analysis::workload_match::Work;
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, Profile};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct SideJson<'a> {
    name: &'a str,
    count: u64,
    total_ns: i64,
    avg_ns: f64,
    median_ns: Option<f64>,
}

impl<'a> From<&'a Side> for SideJson<'a> {
    fn from(s: &'a Side) -> Self {
        Self { name: &s.name, count: s.count, total_ns: s.total, avg_ns: s.avg, median_ns: s.median }
    }
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    fate: &'static str,
    before: Option<SideJson<'a>>,
    after: Option<SideJson<'a>>,
    delta_ns: i64,
    delta_percent: Option<f64>,
    median_percent: Option<f64>,
    p: Option<f64>,
    significant: bool,
    promise: Option<PromiseJson>,
    /// Launches that the comparison covers, if not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<String>,
}

/// Gain predicted by the first run's hint on the kernel, in percent of its time, and measured gain.
#[derive(Serialize)]
struct PromiseJson {
    id: &'static str,
    at_most_percent: f64,
    least_percent: Option<f64>,
    most_percent: Option<f64>,
    got_percent: Option<f64>,
    outcome: Option<&'static str>,
}

fn promise_json(row: &Row) -> Option<PromiseJson> {
    let promise = row.promise.as_ref()?;
    let percent = |share: f64| (share * 10_000.0).round() / 100.0;
    let kept = row.hint_outcome();
    Some(PromiseJson {
        id: promise.id.id(),
        at_most_percent: percent(promise.gain.at_most),
        least_percent: promise.gain.expected.map(|e| percent(e.0)),
        most_percent: promise.gain.expected.map(|e| percent(e.1)),
        got_percent: row.saved_fraction().map(percent),
        outcome: kept.map(|(p, got)| p.classify_outcome(got).id()),
    })
}

/// Writes a line for each changed kernel with a predicted gain.
pub fn write_predictions(out: &mut dyn Write, rows: &[&Row]) -> io::Result<()> {
    let kept: Vec<_> = rows.iter().filter_map(|r| Some((r.name(), r.hint_outcome()?))).collect();
    if !kept.is_empty() {
        writeln!(out)?;
    }
    for (name, (promise, got)) in kept.iter().take(PROMISES) {
        writeln!(out, "{}: {}", escape_unsafe(name), promise.describe_outcome(*got))?;
    }
    match kept.len().saturating_sub(PROMISES) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more kernels with hints (--format json lists all)"),
    }
}

/// Maximum number of lines on predictions in a table for people.
const PROMISES: usize = 10;

#[derive(Serialize)]
struct PartJson {
    part: &'static str,
    before_percent: f64,
    after_percent: f64,
}

fn finding_ids(t: &Triage) -> Vec<&'static str> {
    t.findings.iter().map(|f| f.id.id()).collect()
}

/// Minimum change of a listed time category, in percentage points of the window.
const POINTS: f64 = 1.0;

/// Writes the changes of the time breakdown and of the findings, for people: "launching went from 61% to 8%".
pub fn write_attribution(out: &mut dyn Write, was: &Triage, is: &Triage) -> io::Result<()> {
    writeln!(out)?;
    let mut parts: Vec<(TimeCategory, f64, f64)> =
        TimeCategory::ALL.into_iter().map(|p| (p, was.part_percent(p), is.part_percent(p))).collect();
    parts.retain(|(_, a, b)| (a - b).abs() >= POINTS);
    parts.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    if parts.is_empty() {
        writeln!(out, "where the time went: unchanged within {POINTS:.0} point")?;
    }
    for (part, a, b) in parts {
        writeln!(out, "{} went from {a:.0}% to {b:.0}% of the window", part.id())?;
    }
    if let (Some(a), Some(b)) = (was.step_stats(), is.step_stats()) {
        writeln!(out, "median step: {} → {}", Nanos(a.median), Nanos(b.median))?;
    }
    let list = |t: &Triage| if t.findings.is_empty() { "none".to_owned() } else { finding_ids(t).join(", ") };
    writeln!(out, "findings: {} → {}", list(was), list(is))
}

#[derive(Serialize)]
struct DiffJson<'a> {
    before: SourceJson<'a>,
    after: SourceJson<'a>,
    total_before_ns: i64,
    total_after_ns: i64,
    delta_percent: Option<f64>,
    launches_before: u64,
    launches_after: u64,
    attribution: Option<Vec<PartJson>>,
    findings_before: Option<Vec<&'static str>>,
    findings_after: Option<Vec<&'static str>>,
    caveats: &'a [String],
    rows: Vec<RowJson<'a>>,
}

/// Writes the comparison as JSON.
pub fn write_json(
    out: &mut dyn Write,
    before: &Profile,
    after: &Profile,
    (diff, judged): (&Diff, Option<(&Triage, &Triage)>),
    rows: &[&Row],
) -> io::Result<()> {
    let rows = rows
        .iter()
        .map(|r| RowJson {
            name: r.name(),
            fate: r.fate.display_name(),
            before: r.before.as_ref().map(Into::into),
            after: r.after.as_ref().map(Into::into),
            delta_ns: r.total_change(),
            delta_percent: r.total_change_percent(),
            median_percent: r.each_percent(),
            p: r.p,
            significant: r.is_significant(),
            promise: promise_json(r),
            compared: compared_launches(r),
        })
        .collect();
    let all = DiffJson {
        before: (&before.source).into(),
        after: (&after.source).into(),
        total_before_ns: diff.totals.0,
        total_after_ns: diff.totals.1,
        delta_percent: diff.total_change_percent(),
        launches_before: diff.launches.0,
        launches_after: diff.launches.1,
        attribution: judged.map(|(was, is)| {
            TimeCategory::ALL
                .into_iter()
                .map(|p| PartJson { part: p.id(), before_percent: was.part_percent(p), after_percent: is.part_percent(p) })
                .collect()
        }),
        findings_before: judged.map(|(was, _)| finding_ids(was)),
        findings_after: judged.map(|(_, is)| finding_ids(is)),
        caveats: &diff.caveats,
        rows,
    };
    super::write_json_line(out, &all)
}

const COLUMNS: &[(&str, &str, bool, bool, u8)] = &[
    ("name", "kernel", false, false, 0),
    ("fate", "", false, false, 3),
    ("before_ns", "before", true, false, 2),
    ("after_ns", "after", true, false, 2),
    ("delta_ns", "change", true, false, 0),
    ("delta_percent", "in %", true, false, 0),
    ("count_before", "launches", true, false, 5),
    ("count_after", "then", true, false, 5),
    ("median_percent", "each", true, false, 1),
    ("p", "p", true, true, 0),
    ("significant", "", false, false, 4),
    ("name_before", "was", false, true, 0),
    ("promise", "", false, true, 0),
    ("compared", "", false, true, 0),
];

/// Formats a change: `+12.3 %`.
fn percent_cell(p: Option<f64>) -> Cell {
    // Zero has no sign.
    let shown = |p: f64| if p.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{p:+.1} %") };
    p.map_or_else(Cell::default, |p| Cell::with_raw(format!("{p:.3}"), shown(p)))
}

/// Launches that the comparison covers, if not all of them.
fn compared_launches(r: &Row) -> Option<String> {
    r.work.describe_work().filter(|_| r.before.is_some() && r.after.is_some())
}

/// Cells of a table row.
fn row_cells(r: &Row) -> Vec<Cell> {
    let total = |s: &Option<Side>| s.as_ref().map_or_else(Cell::default, |s| Cell::with_raw(s.total, Nanos(s.total).to_string()));
    let count = |s: &Option<Side>| {
        s.as_ref().map_or_else(Cell::default, |s| {
            Cell::with_raw(s.count, crate::model::units::format_grouped(i64::try_from(s.count).unwrap_or(i64::MAX)))
        })
    };
    let delta = r.total_change();
    let sign = if delta < 0 { "-" } else { "+" };
    let fate = if r.fate == Fate::Both { "" } else { r.fate.display_name() };
    let word = match (r.is_significant(), r.p, r.work) {
        (true, ..) if r.each_percent().unwrap_or(0.0) > 0.0 => "slower",
        (true, ..) => "faster",
        (false, Some(_), _) => "same",
        (false, None, Work::Other) if r.before.is_some() && r.after.is_some() => "other grids",
        (false, None, _) => "",
    };
    vec![
        Cell::text(r.name()),
        Cell::with_raw(r.fate.display_name(), fate),
        total(&r.before),
        total(&r.after),
        Cell::with_raw(delta, format!("{sign}{}", Nanos(i64::try_from(delta.unsigned_abs()).unwrap_or(i64::MAX)))),
        percent_cell(r.total_change_percent()),
        count(&r.before),
        count(&r.after),
        percent_cell(r.each_percent()),
        r.p.map_or_else(Cell::default, |p| Cell::text(format!("{p:.3e}"))),
        Cell::with_raw(r.is_significant(), word),
        Cell::text(r.before.as_ref().map_or("", |b| &b.name)),
        Cell::text(r.hint_outcome().map_or_else(String::new, |(p, got)| p.describe_outcome(got))),
        Cell::text(compared_launches(r).unwrap_or_default()),
    ]
}

/// Prints the comparison in a format other than JSON; a table for people begins with the totals.
pub fn print_rows(out: &mut dyn Write, diff: &Diff, rows: &[&Row], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Table {
        writeln!(out, "{}", totals_sentence(diff))?;
        writeln!(out)?;
    }
    let column = |&(field, title, right, machine_only, rank): &(_, _, bool, bool, u8)| Column { field, title, right, machine_only, rank };
    let columns: Vec<Column> = COLUMNS.iter().map(column).collect();
    table::print_rows(&columns, rows.iter().map(|r| row_cells(r)), out, format, width)
}

/// One sentence with the totals.
pub fn totals_sentence(diff: &Diff) -> String {
    let change = diff.total_change_percent().map_or_else(String::new, |p| format!(" ({p:+.1}%)"));
    let (a, b) = diff.launches;
    let grouped = |n: u64| crate::model::units::format_grouped(i64::try_from(n).unwrap_or(i64::MAX));
    format!("kernel time {} → {}{change}, launches {} → {}", Nanos(diff.totals.0), Nanos(diff.totals.1), grouped(a), grouped(b))
}
