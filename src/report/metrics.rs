//! `metrics`: every metric of every result.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::{Format, table};
use crate::analysis::labels;
use crate::analysis::table::{Column, Unit, Value};
use crate::model::{self, Metrics, ResultMetrics, Source, units};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Filter for a result's metrics: names that contain a string, ignoring case.
pub struct Shown<'a> {
    pub metrics: &'a Metrics,
    /// Substring of the name, in lower case; empty to match all names.
    pub filter: String,
}

impl<'a> Shown<'a> {
    /// Name, unit and value of each matching metric, in report order.
    pub fn matching_metrics(&self, result: &'a ResultMetrics) -> impl Iterator<Item = (&'a str, &'a str, &'a model::Value)> + use<'a, '_> {
        let (names, units) = (&self.metrics.names, &self.metrics.units);
        let named =
            result.values.iter().filter_map(|(n, v)| Some((&**names.get(*n as usize)?, units.get(*n as usize).map_or("", |u| u), v)));
        // Exclude lists of members, which describe the layout of a section and are not measurements; ncu does not print
        // them either.
        let lists = ["breakdown:", "group:", "regex:"];
        named.filter(move |(name, ..)| !lists.iter().any(|l| name.starts_with(l)) && name.to_lowercase().contains(&self.filter))
    }
}

struct ValueJson<'a>(&'a model::Value);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            model::Value::Integer(n) => s.serialize_u64(*n),
            // JSON has no NaN: write it as a string.
            model::Value::Float(f) if f.is_finite() => s.serialize_f64(*f),
            model::Value::Float(f) => s.serialize_str(&f.to_string()),
            model::Value::Text(t) => s.serialize_str(t),
        }
    }
}

/// Schema of a metric's value.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "declares a schema")]
enum AnyValue {
    Number(f64),
    Text(String),
}

#[derive(Serialize, JsonSchema)]
struct MetricJson<'a> {
    /// A text if JSON has no such number (NaN).
    #[schemars(with = "AnyValue")]
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

#[derive(Serialize, JsonSchema)]
struct ResultJson<'a> {
    result: usize,
    kernel: &'a str,
    demangled: Option<&'a str>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    device: Option<u64>,
    cc: Option<String>,
    failed: bool,
    /// Metrics by name.
    #[schemars(with = "BTreeMap<String, MetricJson<'static>>")]
    metrics: MapJson<'a>,
}

/// Results that are generated one at a time while they are written.
struct Results<'a>(&'a Shown<'a>, RefCell<Box<dyn Iterator<Item = (usize, &'a ResultMetrics)> + 'a>>);

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.1.borrow_mut().by_ref().map(|(at, r)| ResultJson {
            result: at,
            kernel: r.kernel.function(),
            demangled: r.kernel.demangled.as_deref(),
            grid: r.grid,
            block: r.block,
            device: r.device,
            cc: r.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            failed: r.failed,
            metrics: MapJson(self.0, r),
        }))
    }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct MetricsJson<'a> {
    #[schemars(with = "Vec<ResultJson<'static>>")]
    rows: Results<'a>,
}

impl JsonDocument for MetricsJson<'_> {
    const NAME: &'static str = "metrics";
}

/// Writes results as JSON.
pub fn write_json<'a>(
    out: &mut dyn Write,
    shown: &'a Shown<'a>,
    results: impl Iterator<Item = (usize, &'a ResultMetrics)> + 'a,
) -> io::Result<()> {
    let document = MetricsJson { rows: Results(shown, RefCell::new(Box::new(results))) };
    let next = NextJson::on_report("hints", &shown.metrics.source, ["--format", "json"], "says what the metrics mean for each kernel");
    Envelope::of_source(&shown.metrics.source, &shown.metrics.notes).then([next]).write(out, &document)
}

/// Maximum width of a value in a human-readable table, in columns.
const LONGEST: usize = 60;

/// A metric of a result.
pub struct MetricRow<'a> {
    result: usize,
    of: &'a ResultMetrics,
    name: &'a str,
    unit: &'a str,
    value: &'a model::Value,
}

type MetricColumn<'a> = Column<MetricRow<'a>>;

/// The columns, in order. `several` is true if there are several results, so that each row needs its result's number.
pub fn columns<'a>(several: bool) -> Vec<MetricColumn<'a>> {
    vec![
        MetricColumn::new("result", "result", Unit::Id, "number of the result", |r| Value::int(r.result)).priority(u8::from(!several)),
        MetricColumn::new("kernel", "kernel", Unit::Text, "function", |r| Value::text(r.of.kernel.function())).priority(2),
        MetricColumn::new("grid", "grid", Unit::Dims, "blocks in the grid", |r| Value::maybe_dims(r.of.grid)).priority(3),
        MetricColumn::new("block", "block", Unit::Dims, "threads of a block", |r| Value::maybe_dims(r.of.block)).priority(4),
        MetricColumn::new("metric", "metric", Unit::Text, "name of the metric", |r| Value::text(r.name)),
        MetricColumn::new("value", "value", Unit::Literal, "value in the unit", |r| match r.value {
            model::Value::Integer(n) => {
                let shown = i64::try_from(*n).map_or_else(|_| n.to_string(), units::format_grouped);
                Value::Labelled(n.to_string().into(), shown.into())
            }
            model::Value::Float(f) => Value::Labelled(f.to_string().into(), format_number(*f).into()),
            // Truncate long lists of launches.
            model::Value::Text(t) => Value::Labelled((&**t).into(), labels::cut_end(t, LONGEST).into()),
        }),
        MetricColumn::new("unit", "unit", Unit::Text, "unit of the value", |r| Value::text(r.unit)),
    ]
}

/// Prints results in a format other than JSON: one row for each metric of each result.
pub fn print_rows<'a>(
    out: &mut dyn Write,
    shown: &'a Shown<'a>,
    results: impl Iterator<Item = (usize, &'a ResultMetrics)> + 'a,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let rows = results
        .flat_map(|(result, of)| shown.matching_metrics(of).map(move |(name, unit, value)| MetricRow { result, of, name, unit, value }));
    table::print_rows(columns(shown.metrics.results.len() > 1), rows, out, format, width)
}

/// Name and value of a fact.
type Fact = (&'static str, String);

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct SessionJson<'a> {
    session: Rows<'a, Fact, &'a Fact>,
}

impl JsonDocument for SessionJson<'_> {
    const NAME: &'static str = "metrics-session";
}

impl TableRow for Fact {
    fn columns() -> Vec<Column<Self>> {
        type FactColumn = Column<Fact>;
        vec![
            FactColumn::new("fact", "fact", Unit::Text, "name", |f| Value::text(f.0)),
            FactColumn::new("value", "value", Unit::Text, "value", |f| Value::text(&f.1)),
        ]
    }
}

/// Prints facts about a session.
pub fn print_session(out: &mut dyn Write, source: &Source, facts: &[Fact], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return Envelope::of_source(source, &[]).write(out, &SessionJson { session: Rows::new(facts.iter()) });
    }
    table::print_rows(Fact::columns(), facts.iter(), out, format, width)
}

/// Formats a number with two decimals and thousands separators, as ncu does; an integer without decimals,
/// a tiny number with three digits.
fn format_number(f: f64) -> String {
    let size = f.abs();
    if f.is_finite() && f.fract() == 0.0 && size < 1e15 {
        units::format_grouped(f as i64)
    } else if (size > 0.0 && size < 0.01) || (size >= 1e15 && f.is_finite()) {
        format!("{f:.2e}")
    } else if size >= 1_000.0 && f.is_finite() {
        let cents = format!("{:.2}", size.fract());
        // For example, 0.999 becomes 1.00, which carries into the integer part.
        let (whole, cents) = if cents.starts_with('1') { (size.trunc() + 1.0, "0.00") } else { (size.trunc(), &*cents) };
        format!("{}{}{}", if f < 0.0 { "-" } else { "" }, units::format_grouped(whole as i64), &cents[1..])
    } else {
        format!("{f:.2}")
    }
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
