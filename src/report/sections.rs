//! `metrics --sections` and `metrics --rules`: a report's own sections with their labels, and the messages of
//! NVIDIA's rules.

use super::Format;
use super::table::{self, Cell, Column};
use crate::analysis::metric::{Lookup, is_list, member_title};
use crate::analysis::metrics_rows::plain_text;
use crate::model::sections::{Entry, Item, Piece, Scope, Verdict};
use crate::model::{Details, Metrics, Value};
use serde::Serialize;
use std::io::{self, Write};

/// A metric in a section.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    pub result: usize,
    /// Identifier of the section.
    pub section: String,
    /// Title of the section.
    pub section_name: String,
    /// Title of the table or chart; empty at the section's top.
    pub table: String,
    /// Label of the metric for people.
    pub label: String,
    pub metric: String,
    /// Value of the metric; `None` if it was not collected.
    pub value: Option<String>,
    pub unit: String,
}

/// Message of a rule.
#[derive(Clone, Debug, Serialize)]
pub struct Ruled {
    pub result: usize,
    /// Identifier of the rule.
    pub rule: String,
    /// Identifier of the rule's section.
    pub section: String,
    /// `INF`, `WRN`, `ERR` or `OPT`, as ncu prints them.
    pub kind: &'static str,
    pub title: String,
    /// Text without links.
    pub text: String,
    /// `local` or `global`.
    pub speedup_type: Option<&'static str>,
    /// Estimated speedup in percent, by NVIDIA's formula: an upper bound.
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
                    Some(Value::Text(list)) => list.split(',').map(|n| n.trim().to_owned()).collect(),
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

fn make_column(field: &'static str, right: bool, machine_only: bool, rank: u8) -> Column {
    Column { field, title: field, right, machine_only, rank }
}

pub fn print_rows(out: &mut dyn Write, rows: &[Shown], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(out, "{{\"rows\":{}}}", super::json_text(&rows)?);
    }
    let columns = [
        make_column("result", true, false, 2),
        make_column("section", false, false, 0),
        make_column("section_name", false, true, 0),
        make_column("table", false, false, 3),
        make_column("label", false, false, 0),
        make_column("metric", false, false, 1),
        make_column("value", true, false, 0),
        make_column("unit", false, false, 0),
    ];
    let cells = rows.iter().map(|r| {
        let texts = [&r.section, &r.section_name, &r.table, &r.label, &r.metric];
        let mut cells = vec![Cell::text(r.result.to_string())];
        cells.extend(texts.map(|t| Cell::text(t.clone())));
        cells.push(Cell::text(r.value.clone().unwrap_or_default()));
        cells.push(Cell::text(r.unit.clone()));
        cells
    });
    table::print_rows(&columns, cells, out, format, width)
}

pub fn print_rules(out: &mut dyn Write, rows: &[Ruled], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(out, "{{\"rows\":{}}}", super::json_text(&rows)?);
    }
    let columns = [
        make_column("result", true, false, 0),
        make_column("kind", false, false, 0),
        make_column("speedup_percent", true, false, 0),
        make_column("speedup_type", false, false, 1),
        make_column("rule", false, false, 2),
        make_column("section", false, false, 1),
        make_column("title", false, false, 0),
        make_column("text", false, false, 0),
    ];
    // Tables for people begin with the largest estimate; formats for machines keep the report's order.
    let mut rows: Vec<&Ruled> = rows.iter().collect();
    if format == Format::Table {
        let key = |r: &Ruled| (r.speedup_type == Some("local"), r.speedup_percent.unwrap_or(-1.0));
        rows.sort_by(|a, b| {
            let ((part_a, gain_a), (part_b, gain_b)) = (key(a), key(b));
            let none = (gain_a < 0.0).cmp(&(gain_b < 0.0));
            a.result.cmp(&b.result).then(none).then(part_a.cmp(&part_b)).then(gain_b.total_cmp(&gain_a))
        });
    }
    let cells = rows.into_iter().map(|r| {
        let percent = r.speedup_percent.map_or_else(Cell::default, |p| Cell::with_raw(p, format!("{p:.1}")));
        vec![
            Cell::text(r.result.to_string()),
            Cell::text(r.kind),
            percent,
            Cell::text(r.speedup_type.unwrap_or_default()),
            Cell::text(r.rule.clone()),
            Cell::text(r.section.clone()),
            Cell::text(r.title.clone()),
            Cell::text(r.text.replace('\n', " ")),
        ]
    });
    table::print_rows(&columns, cells, out, format, width)
}
