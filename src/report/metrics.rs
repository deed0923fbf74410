//! `metrics`: every metric of every result.

use super::Format;
use super::table::{self, Cell, Column};
use super::top::{NoteJson, SourceJson};
use crate::analysis::labels;
use crate::model::{Metrics, ResultMetrics, Value, config, units};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io::{self, Write};

/// Filter of a result's metrics: names that contain a text, ignoring case.
pub struct Shown<'a> {
    pub metrics: &'a Metrics,
    /// Part of a name, in lower case; empty for all.
    pub filter: String,
}

impl<'a> Shown<'a> {
    /// Name, unit and value of each matching metric, in report order.
    pub fn matching_metrics(&self, result: &'a ResultMetrics) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> + use<'a, '_> {
        let (names, units) = (&self.metrics.names, &self.metrics.units);
        let named =
            result.values.iter().filter_map(|(n, v)| Some((&**names.get(*n as usize)?, units.get(*n as usize).map_or("", |u| u), v)));
        // Exclude lists of members, which describe the layout of a section and are not measurements; ncu does not print
        // them either.
        let lists = ["breakdown:", "group:", "regex:"];
        named.filter(move |(name, ..)| !lists.iter().any(|l| name.starts_with(l)) && name.to_lowercase().contains(&self.filter))
    }
}

struct ValueJson<'a>(&'a Value);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Integer(n) => s.serialize_u64(*n),
            // JSON has no NaN: write it as a string.
            Value::Float(f) if f.is_finite() => s.serialize_f64(*f),
            Value::Float(f) => s.serialize_str(&f.to_string()),
            Value::Text(t) => s.serialize_str(t),
        }
    }
}

#[derive(Serialize)]
struct MetricJson<'a> {
    value: ValueJson<'a>,
    unit: &'a str,
}

struct MapJson<'a>(&'a Shown<'a>, &'a ResultMetrics);

impl Serialize for MapJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        // A report may contain a metric twice, but a JSON object must not repeat a key.
        let mut seen = FxHashSet::default();
        for (name, unit, value) in self.0.matching_metrics(self.1).filter(|(name, ..)| seen.insert(*name)) {
            map.serialize_entry(name, &MetricJson { value: ValueJson(value), unit })?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct ResultJson<'a> {
    result: usize,
    kernel: &'a str,
    demangled: Option<&'a str>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    device: Option<u64>,
    cc: Option<String>,
    failed: bool,
    metrics: MapJson<'a>,
}

/// Writes results as JSON, one after another.
pub fn write_json<'a>(
    out: &mut dyn Write,
    shown: &'a Shown<'a>,
    results: impl Iterator<Item = (usize, &'a ResultMetrics)>,
) -> io::Result<()> {
    let source = super::json_text(&SourceJson::from(&shown.metrics.source))?;
    write!(out, "{{\"source\":{source},\"rows\":[")?;
    for (i, (at, r)) in results.enumerate() {
        let row = ResultJson {
            result: at,
            kernel: r.kernel.function(),
            demangled: r.kernel.demangled.as_deref(),
            grid: r.grid,
            block: r.block,
            device: r.device,
            cc: r.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            failed: r.failed,
            metrics: MapJson(shown, r),
        };
        if i > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(super::json_text(&row)?.as_bytes())?;
    }
    let notes: Vec<NoteJson<'_>> = shown.metrics.notes.iter().map(Into::into).collect();
    writeln!(out, "],\"notes\":{}}}", super::json_text(&notes)?)
}

/// Maximum columns of a value for people.
const LONGEST: usize = 60;

const COLUMNS: &[(&str, &str, bool, bool, u8)] = &[
    ("result", "result", true, false, 1),
    ("kernel", "kernel", false, false, 2),
    ("grid", "grid", true, false, 3),
    ("block", "block", true, false, 4),
    ("metric", "metric", false, false, 0),
    ("value", "value", true, false, 0),
    ("unit", "unit", false, false, 0),
];

/// Prints results in a format other than JSON: one row for each metric of each result.
pub fn print_rows<'a>(
    out: &mut dyn Write,
    shown: &'a Shown<'a>,
    results: impl Iterator<Item = (usize, &'a ResultMetrics)> + 'a,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let mut columns: Vec<Column> =
        COLUMNS.iter().map(|&(field, title, right, machine_only, rank)| Column { field, title, right, machine_only, rank }).collect();
    // With several results, each row must contain its result's number.
    if let Some(number) = columns.first_mut().filter(|_| shown.metrics.results.len() > 1) {
        number.rank = 0;
    }
    let rows = results.flat_map(|(at, r)| shown.matching_metrics(r).map(move |(name, unit, value)| row_cells(at, r, name, unit, value)));
    table::print_rows(&columns, rows, out, format, width)
}

#[derive(Serialize)]
struct FactJson<'a> {
    fact: &'a str,
    value: &'a str,
}

/// Prints facts of a session.
pub fn print_session(out: &mut dyn Write, facts: &[(&'static str, String)], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        let rows: Vec<FactJson<'_>> = facts.iter().map(|(fact, value)| FactJson { fact, value }).collect();
        return writeln!(out, "{{\"session\":{}}}", super::json_text(&rows)?);
    }
    let column = |field| Column { field, title: field, right: false, machine_only: false, rank: 0 };
    let rows = facts.iter().map(|(fact, value)| vec![Cell::text(*fact), Cell::text(value.clone())]);
    table::print_rows(&[column("fact"), column("value")], rows, out, format, width)
}

/// Formats a number with two decimals and thousands separators, as ncu does; a whole number without decimals,
/// a tiny one with three digits.
fn format_number(f: f64) -> String {
    let size = f.abs();
    if f.is_finite() && f.fract() == 0.0 && size < 1e15 {
        units::format_grouped(f as i64)
    } else if (size > 0.0 && size < 0.01) || (size >= 1e15 && f.is_finite()) {
        format!("{f:.2e}")
    } else if size >= 1_000.0 && f.is_finite() {
        let cents = format!("{:.2}", size.fract());
        // For example, 0.999 becomes 1.00, a carry into the whole number.
        let (whole, cents) = if cents.starts_with('1') { (size.trunc() + 1.0, "0.00") } else { (size.trunc(), &*cents) };
        format!("{}{}{}", if f < 0.0 { "-" } else { "" }, units::format_grouped(whole as i64), &cents[1..])
    } else {
        format!("{f:.2}")
    }
}

fn row_cells(at: usize, r: &ResultMetrics, name: &str, unit: &str, value: &Value) -> Vec<Cell> {
    let dims = |d: Option<[u32; 3]>| {
        d.map_or_else(Cell::default, |d| Cell::with_raw(format!("{}x{}x{}", d[0], d[1], d[2]), config::format_dim3(d)))
    };
    let value = match value {
        Value::Integer(n) => Cell::with_raw(n, i64::try_from(*n).map_or_else(|_| n.to_string(), units::format_grouped)),
        Value::Float(f) => Cell::with_raw(f, format_number(*f)),
        // Truncate long lists of launches.
        Value::Text(t) => Cell::with_raw(t, labels::cut_end(t, LONGEST)),
    };
    vec![
        Cell::text(at.to_string()),
        Cell::text(r.kernel.function().to_owned()),
        dims(r.grid),
        dims(r.block),
        Cell::text(name.to_owned()),
        value,
        Cell::text(unit.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::format_number;

    #[test]
    fn numbers_are_readable() {
        for (f, want) in [
            (16.0, "16"),
            (1_234_567.0, "1,234,567"),
            (1_234.567, "1,234.57"),
            (-1_999.999, "-2,000.00"),
            (0.5, "0.50"),
            (0.000_123_4, "1.23e-4"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
            (1e20, "1.00e20"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(format_number(f), want);
        }
    }
}
