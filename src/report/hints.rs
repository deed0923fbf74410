//! `hints`: what is wrong, or right, with each kernel, why, and what to do; for scripts, as a table, or as the chain of reasoning.

use super::Format;
use super::table::{Cell, Column, Table};
use super::top::{NoteJson, SourceJson};
use crate::analysis::hints::{Evidence, Hint, Subject};
use crate::analysis::metric::{count, human_number};
use crate::model::Profile;
use crate::model::text::clean;
use crate::rerun::{confirm, shell};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct ThresholdJson {
    op: &'static str,
    value: f64,
    source: &'static str,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    metric: &'a str,
    label: &'a str,
    value: f64,
    unit: &'a str,
    threshold: Option<ThresholdJson>,
    section: Option<&'static str>,
}

#[derive(Serialize)]
struct ConfirmJson {
    argv: Vec<String>,
    shell: String,
    why: String,
    exact: bool,
}

#[derive(Serialize)]
struct EffectJson<'a> {
    id: &'static str,
    headline: &'a str,
}

#[derive(Serialize)]
struct HintJson<'a> {
    id: &'static str,
    severity: &'static str,
    confidence: &'static str,
    headline: &'a str,
    evidence: Vec<EvidenceJson<'a>>,
    gain_percent: f64,
    gain_bound: &'a str,
    actions: &'a [String],
    effects: Vec<EffectJson<'a>>,
    confirm: Option<ConfirmJson>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    result: Option<usize>,
    launch: u32,
    kernel: &'a str,
    depth: &'static str,
    hints: Vec<HintJson<'a>>,
}

#[derive(Serialize)]
struct HintsJson<'a> {
    source: SourceJson<'a>,
    rows: Vec<RowJson<'a>>,
    notes: Vec<NoteJson<'a>>,
}

fn one<'a>(profile: &Profile, subject: &Subject, hint: &'a Hint) -> HintJson<'a> {
    let command = confirm::command(profile, subject.launch, &hint.confirm).ok();
    HintJson {
        id: hint.id.id(),
        severity: hint.severity.word(),
        confidence: hint.sure.word(),
        headline: &hint.headline,
        evidence: hint
            .evidence
            .iter()
            .map(|e| EvidenceJson {
                metric: &e.metric,
                label: &e.label,
                value: e.value,
                unit: &e.unit,
                threshold: e.threshold.map(|t| ThresholdJson { op: t.op, value: t.value, source: t.source }),
                section: e.section,
            })
            .collect(),
        gain_percent: (hint.percent() * 100.0).round() / 100.0,
        gain_bound: &hint.bound,
        actions: &hint.actions,
        effects: hint.effects.iter().map(|(id, headline)| EffectJson { id: id.id(), headline }).collect(),
        confirm: command
            .map(|c| ConfirmJson { argv: c.argv(), shell: c.shell(), why: hint.confirm.why.clone(), exact: c.exact() })
            .filter(|c| !c.argv.is_empty()),
    }
}

/// Writes hints as JSON.
pub fn json(out: &mut dyn Write, profile: &Profile, subjects: &[Subject]) -> io::Result<()> {
    let rows = subjects
        .iter()
        .map(|s| RowJson {
            result: s.result,
            launch: s.launch,
            kernel: s.kernel.function(),
            depth: s.depth.word(),
            hints: s.hints.iter().map(|h| one(profile, s, h)).collect(),
        })
        .collect();
    let notes = profile.notes.iter().map(Into::into).collect();
    super::json(out, &HintsJson { source: SourceJson::from(&profile.source), rows, notes })
}

const COLUMNS: &[(&str, &str, bool, bool, u8)] = &[
    ("result", "result", true, false, 3),
    ("launch", "launch", true, true, 0),
    ("kernel", "kernel", false, false, 0),
    ("rank", "#", true, false, 4),
    ("id", "diagnosis", false, false, 0),
    ("severity", "severity", false, false, 2),
    ("confidence", "sure", false, false, 5),
    ("gain_percent", "gain up to", true, false, 1),
    ("headline", "in this kernel", false, false, 0),
];

/// Hints as a table: a row for each, at most so many for a kernel.
#[must_use]
pub fn table(subjects: &[Subject], most: usize) -> Table {
    let columns =
        COLUMNS.iter().map(|&(field, title, right, machine_only, rank)| Column { field, title, right, machine_only, rank }).collect();
    let mut rows = Vec::new();
    for s in subjects {
        let head = |rank: String| {
            let result = s.result.map_or_else(String::new, |r| r.to_string());
            vec![Cell::text(result), Cell::text(s.launch.to_string()), Cell::text(s.kernel.function()), Cell::text(rank)]
        };
        if s.hints.is_empty() {
            let mut row = head(String::new());
            let said = if s.failed {
                "ncu could not profile this launch".to_owned()
            } else {
                s.collect().map_or("nothing stands out".to_owned(), |c| format!("not enough was collected: {}", c.sections.join(", ")))
            };
            row.extend(["", "", "", ""].map(Cell::text));
            row.push(Cell::text(said));
            rows.push(row);
        }
        for (rank, h) in s.hints.iter().take(most).enumerate() {
            let mut row = head((rank + 1).to_string());
            row.extend([h.id.id(), h.severity.word(), h.sure.word()].map(Cell::text));
            row.push(Cell::both(format!("{:.2}", h.percent()), format!("{:.0} %", h.percent())));
            row.push(Cell::text(&*h.headline));
            rows.push(row);
        }
    }
    Table { columns, rows }
}

/// A number of evidence with its unit, as people read it.
#[must_use]
pub fn value(e: &Evidence) -> String {
    if matches!(e.unit.as_str(), "sector" | "request" | "inst" | "warp" | "cycle" | "thread" | "block") && e.value >= 1e6 {
        return format!("{} {}", count(e.value), e.unit);
    }
    let (number, unit) = human_number(e.value, &e.unit);
    format!("{number} {unit}").trim_end().to_owned()
}

/// A threshold as people read it: `≥ 80 %`.
#[must_use]
pub fn threshold(e: &Evidence) -> Option<String> {
    let t = e.threshold?;
    let (number, unit) = human_number(t.value, &e.unit);
    let number = number.strip_suffix(".00").unwrap_or(&number);
    Some(format!("{} {number} {unit}", t.op).trim_end().to_owned())
}

fn wrapped(out: &mut dyn Write, first: &str, rest: &str, text: &str, width: usize) -> io::Result<()> {
    let room = width.saturating_sub(first.chars().count()).max(20);
    let mut line = String::new();
    let mut lead = first;
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            writeln!(out, "{lead}{}", clean(&line))?;
            line.clear();
            lead = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{lead}{}", clean(&line))
}

/// Prints the chain of reasoning with its numbers.
pub fn explain(out: &mut dyn Write, profile: &Profile, subjects: &[Subject], width: usize) -> io::Result<()> {
    for (at, s) in subjects.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let what = s.result.map_or_else(|| format!("launch {}", s.launch), |r| format!("result {r}"));
        writeln!(out, "{} · {what} · depth: {}", clean(s.kernel.function()), s.depth.word())?;
        for line in reasoning(s) {
            wrapped(out, "  ", "    ", &line, width)?;
        }
        for (rank, h) in s.hints.iter().enumerate() {
            writeln!(out)?;
            let head = format!("{}. {} ({}, {}): ", rank + 1, h.id.id(), h.severity.word(), h.sure.word());
            wrapped(out, "  ", "     ", &format!("{head}{}", h.headline), width)?;
            wrapped(
                out,
                "     gain: ",
                "           ",
                &format!("up to {:.0}% of the kernel's time. Bound: {}", h.percent(), h.bound),
                width,
            )?;
            for e in &h.evidence {
                let than = threshold(e).map_or_else(String::new, |t| format!("   [{t}: {}]", e.threshold.map_or("", |t| t.source)));
                let metric = if e.metric.is_empty() { "computed" } else { &e.metric };
                writeln!(out, "     · {} = {}{than}", clean(&e.label), value(e))?;
                writeln!(out, "         {}", clean(metric))?;
            }
            for (id, headline) in &h.effects {
                wrapped(out, "     → so: ", "           ", &format!("{}: {headline}", id.id()), width)?;
            }
            for action in &h.actions {
                wrapped(out, "     change: ", "             ", action, width)?;
            }
            if let Ok(c) = confirm::command(profile, s.launch, &h.confirm) {
                wrapped(out, "     confirm: ", "              ", &h.confirm.why, width)?;
                if !c.argv().is_empty() {
                    writeln!(out, "       {}", clean(&shell::line(&c.argv())))?;
                }
            }
        }
        if s.failed {
            writeln!(out, "  ncu could not profile this launch")?;
        } else if s.hints.is_empty() {
            writeln!(out, "  nothing that the rules know stands out")?;
        }
        if let Some(collect) = s.collect().filter(|_| s.hints.is_empty()) {
            wrapped(out, "  collect: ", "           ", &format!("{}: {}", collect.sections.join(", "), collect.why), width)?;
        }
    }
    Ok(())
}

/// How the demands and stalls lead to the hints, in sentences.
#[must_use]
pub fn reasoning(subject: &Subject) -> Vec<String> {
    crate::analysis::hints::reasoning::sentences(&subject.facts)
}

/// Formats other than JSON.
pub fn print(out: &mut dyn Write, subjects: &[Subject], format: Format, width: Option<usize>) -> io::Result<()> {
    let most = if format == Format::Csv { usize::MAX } else { 3 };
    table(subjects, most).print(out, format, width)
}
