//! `metrics --sections` and `metrics --rules`: a report's own sections with their labels, and the messages of
//! NVIDIA's rules.

use super::Format;
use super::envelope::{Envelope, JsonDocument};
use super::rows::{Rows, TableRow};
use super::table;
use crate::analysis::metric::{Lookup, is_list, member_title};
use crate::analysis::metrics_rows::plain_text;
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::model::Source;
use crate::model::sections::{Entry, Item, Piece, Scope, Verdict};
use crate::model::{self, Details, Metrics};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// A metric in a section.
#[derive(Clone, Debug)]
pub struct Shown {
    pub result: usize,
    /// Identifier of the section.
    pub section: String,
    /// Title of the section.
    pub section_name: String,
    /// Title of the table or chart; empty for metrics directly below the section's title.
    pub table: String,
    /// Human-readable label of the metric.
    pub label: String,
    pub metric: String,
    /// Value of the metric; `None` if it was not collected.
    pub value: Option<String>,
    pub unit: String,
}

/// Message from a rule.
#[derive(Clone, Debug)]
pub struct Ruled {
    pub result: usize,
    /// Identifier of the rule.
    pub rule: String,
    /// Identifier of the rule's section.
    pub section: String,
    /// `INF`, `WRN`, `ERR` or `OPT`, as ncu prints them.
    pub kind: &'static str,
    pub title: String,
    /// Message text without links.
    pub text: String,
    /// `local` or `global`.
    pub speedup_type: Option<&'static str>,
    /// Estimated speedup in percent, from NVIDIA's formula: an upper bound.
    pub speedup_percent: Option<f64>,
    /// Sections and pages that the message links to.
    pub links: Vec<String>,
}

/// Metrics in the sections of one result, in report order.
pub fn section_metrics(metrics: &Metrics, result: usize, details: &Details) -> Vec<Shown> {
    let Some(r) = metrics.results.get(result) else { return Vec::new() };
    let lookup = Lookup::new(metrics, r);
    let mut sections: Vec<_> = details.sections.iter().collect();
    sections.sort_by_key(|s| s.order);
    let mut out = Vec::new();
    for s in sections {
        let mut add = |table: &str, e: &Entry| {
            let mut names = vec![e.metric.to_string()];
            if is_list(&e.metric) {
                names = match lookup.value(&e.metric) {
                    Some(model::Value::Text(list)) => list.split(',').map(|n| n.trim().to_owned()).collect(),
                    _ => Vec::new(),
                };
            }
            for name in names {
                out.push(Shown {
                    result,
                    section: s.id.to_string(),
                    section_name: s.name.to_string(),
                    table: table.to_owned(),
                    // The label of a list is a template: `{UNIT}: {COMPOUND_NAME}`.
                    label: if e.label.contains('{') { member_title(&name) } else { e.label.to_string() },
                    value: lookup.value(&name).map(ToString::to_string),
                    unit: lookup.unit(&name).to_owned(),
                    metric: name,
                });
            }
        };
        for e in &s.header {
            add("", e);
        }
        for item in &s.items {
            if let Item::Table { label, entries } | Item::Bars { label, entries, .. } = item {
                for e in entries {
                    add(label, e);
                }
            }
        }
    }
    out
}

/// Rule messages of one result.
pub fn rule_messages(result: usize, details: &Details) -> Vec<Ruled> {
    let mut out = Vec::new();
    for rule in &details.rules {
        for m in &rule.messages {
            let kind = match m.verdict {
                Verdict::Info => "INF",
                Verdict::Warning => "WRN",
                Verdict::Error => "ERR",
                Verdict::Optimization => "OPT",
                Verdict::None => "",
            };
            let links = m.text.iter().filter_map(|p| match p {
                Piece::Section { id, .. } => Some(format!("section {id}")),
                Piece::Link { url, .. } => Some(url.clone()),
                Piece::Text(_) => None,
            });
            out.push(Ruled {
                result,
                rule: rule.id.clone(),
                section: rule.section.clone(),
                kind,
                title: m.title.clone(),
                text: plain_text(&m.text),
                speedup_type: m.speedup.map(|s| if s.0 == Scope::Global { "global" } else { "local" }),
                speedup_percent: m.speedup.map(|s| s.1),
                links: links.collect(),
            });
        }
    }
    out
}

type SectionColumn = Column<Shown>;

/// Columns of section metrics, in order.
pub fn section_columns() -> Vec<SectionColumn> {
    vec![
        SectionColumn::new("result", "result", Unit::Id, "number of the result", |r| Value::int(r.result)).priority(2),
        SectionColumn::new("section", "section", Unit::Text, "identifier of the section", |r| Value::text(&r.section)),
        SectionColumn::new("section_name", "section_name", Unit::Text, "title of the section", |r| Value::text(&r.section_name))
            .only(Outputs::CSV.with(Outputs::JSON)),
        SectionColumn::new("table", "table", Unit::Text, "title of the table or chart; empty at the section's top", |r| {
            Value::text(&r.table)
        })
        .priority(3),
        SectionColumn::new("label", "label", Unit::Text, "label for people", |r| Value::text(&r.label)),
        SectionColumn::new("metric", "metric", Unit::Text, "name of the metric", |r| Value::text(&r.metric)).priority(1),
        SectionColumn::new("value", "value", Unit::Literal, "value; empty if it was not collected", |r| {
            r.value.as_deref().map_or(Value::Absent, Value::text)
        }),
        SectionColumn::new("unit", "unit", Unit::Text, "unit of the value", |r| Value::text(&r.unit)),
    ]
}

type RuleColumn = Column<Ruled>;

/// Columns of rule messages, in order.
pub fn rule_columns() -> Vec<RuleColumn> {
    vec![
        RuleColumn::new("result", "result", Unit::Id, "number of the result", |r| Value::int(r.result)),
        RuleColumn::new("kind", "kind", Unit::Text, "INF, WRN, ERR or OPT, as ncu prints them", |r| Value::text(r.kind)),
        RuleColumn::new("speedup_percent", "speedup", Unit::Percent, "estimate by NVIDIA's formula, an upper bound", |r| {
            Value::maybe_real(r.speedup_percent)
        })
        .weighing(),
        RuleColumn::new("speedup_type", "scope", Unit::Text, "local or global", |r| r.speedup_type.map_or(Value::Absent, Value::text))
            .priority(1),
        RuleColumn::new("rule", "rule", Unit::Text, "identifier of the rule", |r| Value::text(&r.rule)).priority(2),
        RuleColumn::new("section", "section", Unit::Text, "identifier of the rule's section", |r| Value::text(&r.section)).priority(1),
        RuleColumn::new("title", "title", Unit::Text, "title of the message", |r| Value::text(&r.title)),
        RuleColumn::new("text", "text", Unit::Text, "text without links", |r| Value::Text(r.text.replace('\n', " ").into()))
            .only(Outputs::TEXT.with(Outputs::CSV)),
        RuleColumn::new("text", "text", Unit::Text, "text without links, with its line breaks", |r| Value::text(&r.text))
            .only(Outputs::JSON),
        RuleColumn::new("links", "links", Unit::Path, "sections and pages that the message links to", |r| {
            Value::Path(r.links.iter().map(|l| l.as_str().into()).collect())
        })
        .only(Outputs::JSON),
    ]
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct SectionsJson<'a> {
    rows: Rows<'a, Shown, &'a Shown>,
}

impl JsonDocument for SectionsJson<'_> {
    const NAME: &'static str = "metrics-sections";
}

impl TableRow for Shown {
    fn columns() -> Vec<Column<Self>> {
        section_columns()
    }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct RulesJson<'a> {
    rows: Rows<'a, Ruled, &'a Ruled>,
}

impl JsonDocument for RulesJson<'_> {
    const NAME: &'static str = "metrics-rules";
}

impl TableRow for Ruled {
    fn columns() -> Vec<Column<Self>> {
        rule_columns()
    }
}

pub fn print_rows(out: &mut dyn Write, source: &Source, rows: &[Shown], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return Envelope::of_source(source, &[]).write(out, &SectionsJson { rows: Rows::new(rows.iter()) });
    }
    table::print_rows(section_columns(), rows.iter(), out, format, width)
}

pub fn print_rules(out: &mut dyn Write, source: &Source, rows: &[Ruled], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return Envelope::of_source(source, &[]).write(out, &RulesJson { rows: Rows::new(rows.iter()) });
    }
    // Human-readable tables begin with the largest estimate; machine-readable formats keep the report's order.
    let mut rows: Vec<&Ruled> = rows.iter().collect();
    if format == Format::Table {
        let key = |r: &Ruled| (r.speedup_type == Some("local"), r.speedup_percent.unwrap_or(-1.0));
        rows.sort_by(|a, b| {
            let ((part_a, gain_a), (part_b, gain_b)) = (key(a), key(b));
            let none = (gain_a < 0.0).cmp(&(gain_b < 0.0));
            a.result.cmp(&b.result).then(none).then(part_a.cmp(&part_b)).then(gain_b.total_cmp(&gain_a))
        });
    }
    table::print_rows(rule_columns(), rows.into_iter(), out, format, width)
}
