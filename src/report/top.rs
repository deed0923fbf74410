//! `top`: groups of launches, ranked.

use super::coverage::CoverageJson;
use super::table::{Cell, Column, Table};
use crate::analysis::what_if_curves::{Curve, Worths};
use crate::analysis::{GroupBy, GroupRow, Grouping};
use crate::model::{Device, Nanos, Note, Profile, Source, units};
use serde::Serialize;

/// Source of the numbers: tool and file.
#[derive(Serialize)]
pub struct SourceJson<'a> {
    tool: &'a str,
    tool_version: Option<&'a str>,
    file: String,
}

impl<'a> From<&'a Source> for SourceJson<'a> {
    fn from(source: &'a Source) -> Self {
        Self { tool: &source.tool, tool_version: source.version.as_deref(), file: source.file.display().to_string() }
    }
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    id: u32,
    name: Option<&'a str>,
    chip: Option<&'a str>,
    compute_capability: Option<String>,
    sm_count: Option<u32>,
    clock_hz: Option<u64>,
    memory_bandwidth_bytes_per_second: Option<u64>,
    memory_bytes: Option<u64>,
    l2_bytes: Option<u64>,
}

impl<'a> From<&'a Device> for DeviceJson<'a> {
    fn from(d: &'a Device) -> Self {
        Self {
            id: d.id,
            name: d.name.as_deref(),
            chip: d.chip.as_deref(),
            compute_capability: d.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            sm_count: d.sm_count,
            clock_hz: d.clock_hz,
            memory_bandwidth_bytes_per_second: d.memory_bandwidth,
            memory_bytes: d.memory.map(|b| b.0),
            l2_bytes: d.l2.map(|b| b.0),
        }
    }
}

/// JSON form of a note.
#[derive(Serialize)]
pub struct NoteJson<'a> {
    severity: &'static str,
    kind: &'static str,
    text: &'a str,
    fix: Option<&'a str>,
}

impl<'a> From<&'a Note> for NoteJson<'a> {
    fn from(n: &'a Note) -> Self {
        Self { severity: n.severity.as_str(), kind: n.kind.as_str(), text: &n.text, fix: n.fix.as_deref() }
    }
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    demangled: Option<&'a str>,
    kernels: Option<u32>,
    count: u64,
    total_ns: i64,
    share_percent: f64,
    /// Share of the row's kernels in the run, and the time saved if they took no time; `null` if the model does not
    /// apply.
    run: Option<RunJson>,
    avg_ns: f64,
    median_ns: Option<f64>,
    min_ns: i64,
    max_ns: i64,
    stddev_ns: Option<f64>,
    p99_ns: Option<i64>,
}

/// Percent of the run's length.
#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the unit is part of each name in JSON")]
struct RunJson {
    share_percent: f64,
    saves_percent: f64,
    saves_at_least_percent: f64,
    saves_at_most_percent: f64,
}

impl From<&Curve> for RunJson {
    fn from(curve: &Curve) -> Self {
        let percent = |share: f64| (share * 10_000.0).round() / 100.0;
        Self {
            share_percent: percent(curve.share),
            saves_percent: percent(curve.saved_share(1.0)),
            saves_at_least_percent: percent(curve.bounds.0),
            saves_at_most_percent: percent(curve.bounds.1),
        }
    }
}

#[derive(Serialize)]
pub struct TopJson<'a> {
    source: SourceJson<'a>,
    device: Vec<DeviceJson<'a>>,
    by: &'static str,
    total_kernel_ns: i64,
    launches: u64,
    rows: Vec<RowJson<'a>>,
    coverage: CoverageJson<'a>,
    notes: Vec<NoteJson<'a>>,
}

/// Demangled name of a row's kernel; for several kernels, of the one with the most time.
fn demangled_name<'a>(profile: &'a Profile, row: &GroupRow) -> Option<&'a str> {
    row.kernel.and_then(|k| profile.kernels.get(k.0 as usize)).map(crate::model::Kernel::demangled)
}

/// The report as JSON. `rows` are indices into the grouping's rows, in listed order; `worths` are their
/// effects on the run, by name.
pub fn to_json<'a>(profile: &'a Profile, grouping: &'a Grouping, rows: &[u32], worths: Option<&Worths>) -> TopJson<'a> {
    let row = |&i: &u32| {
        let row = &grouping.rows[i as usize];
        RowJson {
            name: &row.name,
            demangled: demangled_name(profile, row),
            kernels: (row.kernel.is_some() && matches!(grouping.by, GroupBy::Kernel | GroupBy::Name)).then_some(row.kernels),
            count: row.stats.count,
            total_ns: row.stats.total,
            share_percent: row.share_percent,
            run: worths.and_then(|w| w.get(&row.name)).map(RunJson::from),
            avg_ns: row.stats.avg,
            median_ns: row.stats.median,
            min_ns: row.stats.min,
            max_ns: row.stats.max,
            stddev_ns: row.stats.stddev,
            p99_ns: row.stats.p99,
        }
    };
    TopJson {
        source: SourceJson::from(&profile.source),
        device: profile.devices.iter().map(Into::into).collect(),
        by: grouping.by.cli_name(),
        total_kernel_ns: grouping.total_ns,
        launches: grouping.launches,
        rows: rows.iter().map(row).collect(),
        coverage: profile.into(),
        notes: profile.notes.iter().map(Into::into).collect(),
    }
}

const fn make_column(field: &'static str, title: &'static str, right: bool, rank: u8) -> Column {
    Column { field, title, right, machine_only: false, rank }
}

/// The report as a table.
pub fn to_table(profile: &Profile, grouping: &Grouping, rows: &[u32]) -> Table {
    let mut columns = vec![
        make_column("rank", "#", true, 0),
        make_column("name", grouping.by.group_noun(), false, 0),
        make_column("share_percent", "share", true, 0),
        make_column("total_ns", "total", true, 0),
        make_column("count", "count", true, 1),
        make_column("avg_ns", "avg", true, 2),
        make_column("median_ns", "p50", true, 5),
        make_column("p99_ns", "p99", true, 3),
        make_column("min_ns", "min", true, 6),
        make_column("max_ns", "max", true, 4),
        make_column("stddev_ns", "stddev", true, 7),
    ];
    let with_demangled = matches!(grouping.by, GroupBy::Kernel | GroupBy::Name | GroupBy::Mangled);
    if with_demangled {
        columns.push(Column { machine_only: true, ..make_column("demangled", "demangled", false, 0) });
    }
    let float = |v: Option<f64>| v.map_or_else(Cell::default, |v| Cell::with_raw(v, Nanos::format_ns(v)));
    let rows = rows.iter().enumerate().map(|(rank, &i)| {
        let row = &grouping.rows[i as usize];
        let s = &row.stats;
        let ns = |v: i64| Cell::with_raw(v, Nanos(v).to_string());
        let mut cells = vec![
            Cell::text((rank + 1).to_string()),
            Cell::text(row.name.clone()),
            Cell::with_raw(row.share_percent, units::format_percent(row.share_percent)),
            ns(s.total),
            Cell::with_raw(s.count, units::format_grouped(i64::try_from(s.count).unwrap_or(i64::MAX))),
            float(Some(s.avg)),
            float(s.median),
            s.p99.map_or_else(Cell::default, ns),
            ns(s.min),
            ns(s.max),
            float(s.stddev),
        ];
        if with_demangled {
            cells.push(Cell::text(demangled_name(profile, row).unwrap_or_default()));
        }
        cells
    });
    Table { rows: rows.collect(), columns }
}
