//! `triage`: what limits a run, as a page for people, as Markdown, and for scripts.

use super::Format;
use super::table::{self, Cell, Column, wrapped};
use super::top::SourceJson;
use crate::analysis::triage::{Device, Evidence, Finding, Found, Part, Place, PlaceKind, Triage};
use crate::model::text::clean;
use crate::model::{Bytes, Nanos, Profile, units};
use crate::rerun::shell;
use serde::Serialize;
use std::io::{self, Write};

/// A report with what was found in it.
pub type Judged<'a> = (&'a Profile, &'a Triage);

#[derive(Serialize)]
struct WindowJson<'a> {
    start_ns: i64,
    end_ns: i64,
    steps: Option<usize>,
    steps_by: Option<String>,
    step_median_ns: Option<i64>,
    left_out: Vec<LeftOutJson<'a>>,
}

#[derive(Serialize)]
struct LeftOutJson<'a> {
    what: &'a str,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Serialize)]
struct ShareJson {
    part: &'static str,
    ns: i64,
    share_percent: f64,
}

#[derive(Serialize)]
struct CauseJson {
    cause: &'static str,
    part: &'static str,
    ns: i64,
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    device: Option<u32>,
    name: Option<&'a str>,
    pid: Option<u32>,
    busy_ns: i64,
    collectives_ns: i64,
    copies_ns: i64,
    attribution: Vec<ShareJson>,
    idle: Vec<CauseJson>,
}

#[derive(Serialize)]
struct ThresholdJson {
    op: &'static str,
    value: f64,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    name: &'a str,
    value: f64,
    unit: &'a str,
    threshold: Option<ThresholdJson>,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    kind: &'static str,
    name: &'a str,
    start_ns: i64,
    end_ns: i64,
    ns: Option<i64>,
    rank: Option<u32>,
}

#[derive(Serialize)]
struct ConfirmJson<'a> {
    argv: &'a [String],
    why: &'a str,
}

#[derive(Serialize)]
struct EffectJson<'a> {
    id: &'static str,
    headline: &'a str,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'static str,
    severity: &'static str,
    sure: &'static str,
    headline: &'a str,
    share_percent: f64,
    bound: &'a str,
    evidence: Vec<EvidenceJson<'a>>,
    #[serde(rename = "where")]
    places: Vec<PlaceJson<'a>>,
    actions: &'a [String],
    effects: Vec<EffectJson<'a>>,
    confirm: Option<ConfirmJson<'a>>,
}

#[derive(Serialize)]
struct FamilyJson {
    family: &'static str,
    ns: i64,
    share_percent: f64,
}

#[derive(Serialize)]
struct TriageJson<'a> {
    source: Vec<SourceJson<'a>>,
    window: WindowJson<'a>,
    devices: Vec<DeviceJson<'a>>,
    families: Vec<FamilyJson>,
    findings: Vec<FindingJson<'a>>,
    missing: &'a [String],
    ranks: Option<()>,
    straggler: Option<()>,
}

fn rounded(percent: f64) -> f64 {
    (percent * 10_000.0).round() / 10_000.0
}

fn device_json(d: &Device, length: i64) -> DeviceJson<'_> {
    DeviceJson {
        device: d.number,
        name: d.name.as_deref(),
        pid: d.pid,
        busy_ns: d.busy,
        collectives_ns: d.collectives,
        copies_ns: d.copies,
        attribution: d
            .parts
            .iter()
            .map(|(part, ns)| ShareJson { part: part.id(), ns: *ns, share_percent: rounded(*ns as f64 / length as f64 * 100.0) })
            .collect(),
        idle: d.causes.iter().map(|(c, ns)| CauseJson { cause: c.word(), part: c.part().id(), ns: *ns }).collect(),
    }
}

fn finding_json(f: &Finding) -> FindingJson<'_> {
    let evidence = |e: &'_ Evidence| -> Option<ThresholdJson> { e.threshold.map(|(op, value)| ThresholdJson { op, value }) };
    FindingJson {
        id: f.id.id(),
        severity: f.severity.word(),
        sure: f.sure.word(),
        headline: &f.headline,
        share_percent: rounded(f.percent()),
        bound: &f.bound,
        evidence: f.evidence.iter().map(|e| EvidenceJson { name: &e.name, value: e.value, unit: e.unit, threshold: evidence(e) }).collect(),
        places: f
            .places
            .iter()
            .map(|p| PlaceJson { kind: p.kind.word(), name: &p.name, start_ns: p.start, end_ns: p.end, ns: p.ns, rank: p.rank })
            .collect(),
        actions: &f.actions,
        effects: f.effects.iter().map(|(id, headline)| EffectJson { id: id.id(), headline }).collect(),
        confirm: f.confirm.as_ref().map(|c| ConfirmJson { argv: &c.argv, why: &c.why }),
    }
}

fn one<'a>(&(profile, t): &Judged<'a>) -> TriageJson<'a> {
    let kernel_ns: i64 = t.families.iter().map(|f| f.1).sum();
    TriageJson {
        source: vec![(&profile.source).into()],
        window: WindowJson {
            start_ns: t.window.0,
            end_ns: t.window.1,
            steps: (!t.steps.is_empty()).then_some(t.steps.len()),
            steps_by: t.found.as_ref().map(steps_by),
            step_median_ns: t.step_stats().map(|s| s.median),
            left_out: t.left_out.iter().map(|l| LeftOutJson { what: &l.what, start_ns: l.start, end_ns: l.end }).collect(),
        },
        devices: t.devices.iter().map(|d| device_json(d, t.length())).collect(),
        families: t
            .families
            .iter()
            .map(|(f, ns)| FamilyJson { family: f.word(), ns: *ns, share_percent: rounded(*ns as f64 / kernel_ns.max(1) as f64 * 100.0) })
            .collect(),
        findings: t.findings.iter().map(finding_json).collect(),
        missing: &t.missing,
        ranks: None,
        straggler: None,
    }
}

/// How steps were found, for people.
#[must_use]
pub fn steps_by(found: &Found) -> String {
    match found {
        Found::Ranges(name) => format!("ranges \"{name}\""),
        Found::Graphs => "launches of CUDA graphs".to_owned(),
        Found::Period(n) => format!("the sequence of kernels repeats after {n}"),
    }
}

/// Writes what was found as JSON: one object for one report, a line for each of several.
pub fn json(out: &mut dyn Write, judged: &[Judged<'_>]) -> io::Result<()> {
    judged.iter().try_for_each(|j| super::json(out, &one(j)))
}

/// A number of evidence as people read it.
#[must_use]
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Nanos::human(value),
        "byte" => Bytes(value.max(0.0) as u64).to_string(),
        "byte/s" => format!("{:.1} GB/s", value / 1e9),
        "%" => units::human_percent(value),
        "1/s" => format!("{}/s", units::grouped(value.round() as i64)),
        _ if value.fract() == 0.0 || value >= 1000.0 => units::grouped(value.round() as i64),
        _ => format!("{value:.2}"),
    }
}

/// Where it is, in words; times count from the beginning of the window.
#[must_use]
pub fn place(p: &Place, begin: i64) -> String {
    let name = match p.kind {
        PlaceKind::Window | PlaceKind::Step => clean(&p.name).into_owned(),
        kind => format!("{} {}", kind.word(), clean(&p.name)),
    };
    match (p.ns, p.kind) {
        // A sum over the window is at no time.
        (Some(ns), PlaceKind::Kernel | PlaceKind::Call) => format!("{name}: {}", Nanos(ns)),
        (Some(ns), _) => format!("{name}: {}, at {}", Nanos(ns), Nanos(p.start - begin)),
        (None, _) => name,
    }
}

/// What is judged, in a line.
#[must_use]
pub fn judged_line(t: &Triage) -> String {
    let steps = t.step_stats().map_or_else(String::new, |s| format!(", {}, median {}", units::count(s.count, "step"), Nanos(s.median)));
    let span = t.span.1 - t.span.0;
    let of = if t.length() as f64 >= span as f64 * 0.99 { String::new() } else { format!(" of {}", Nanos(span)) };
    format!("{}{of}{steps}", Nanos(t.length()))
}

fn name_of(d: &Device, several: bool) -> String {
    let name = d.name.as_deref().map_or_else(|| "GPU".to_owned(), |n| clean(n).into_owned());
    let number = d.number.filter(|n| several && !name.ends_with(&n.to_string())).map_or_else(String::new, |n| format!(" {n}"));
    let pid = d.pid.filter(|_| several).map_or_else(String::new, |p| format!(", process {p}"));
    format!("{name}{number}{pid}")
}

const BAR: usize = 28;

fn bar(share: f64) -> String {
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8 - 1));
    }
    out
}

/// A page for people.
pub fn page(out: &mut dyn Write, judged: &[Judged<'_>], width: usize) -> io::Result<()> {
    for (at, (profile, t)) in judged.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        one_page(out, profile, t, width.clamp(60, 140))?;
    }
    Ok(())
}

fn one_page(out: &mut dyn Write, profile: &Profile, t: &Triage, width: usize) -> io::Result<()> {
    writeln!(out, "{} · {}", clean(&profile.file_name()), judged_line(t))?;
    if let Some(f) = t.verdict() {
        wrapped(out, &format!("{}: ", f.id.id()), "  ", &f.headline, width)?;
    }
    let several = t.devices.len() > 1;
    for d in &t.devices {
        writeln!(out)?;
        writeln!(out, "{}", name_of(d, several))?;
        for (part, ns) in d.parts.iter().filter(|p| p.1 > 0) {
            let share = *ns as f64 / t.length().max(1) as f64;
            writeln!(out, "  {:<40} {:>8}  {:>6}  {}", part.id(), Nanos(*ns).to_string(), units::human_percent(share * 100.0), bar(share))?;
        }
    }
    for (rank, f) in t.findings.iter().enumerate() {
        writeln!(out)?;
        let gain = if f.stake > 0.0 && f.severity.word() != "healthy" {
            format!(", up to {:.0}% of the window", f.percent())
        } else {
            String::new()
        };
        writeln!(out, "{}. {} ({}, {}{gain})", rank + 1, f.id.id(), f.severity.word(), f.sure.word())?;
        wrapped(out, "   ", "   ", &f.headline, width)?;
        for e in &f.evidence {
            let than = e.threshold.map_or_else(String::new, |(op, v)| format!("  [{op} {}]", value(v, e.unit)));
            writeln!(out, "     · {}: {}{than}", clean(&e.name), value(e.value, e.unit))?;
        }
        for p in &f.places {
            wrapped(out, "     at: ", "         ", &place(p, t.window.0), width)?;
        }
        for (id, headline) in &f.effects {
            wrapped(out, "     effect: ", "         ", &format!("{}: {headline}", id.id()), width)?;
        }
        for action in &f.actions {
            wrapped(out, "     do: ", "         ", action, width)?;
        }
        if let Some(c) = &f.confirm {
            wrapped(out, "     confirm: ", "         ", &c.why, width)?;
            writeln!(out, "       {}", clean(&shell::line(&c.argv)))?;
        }
    }
    if !t.left_out.is_empty() || !t.missing.is_empty() || t.found.is_some() {
        writeln!(out)?;
    }
    if let Some(found) = &t.found {
        wrapped(out, "steps: ", "  ", &steps_by(found), width)?;
    }
    for l in &t.left_out {
        writeln!(out, "left out: {} ({})", l.what, Nanos(l.end - l.start))?;
    }
    for m in &t.missing {
        wrapped(out, "not recorded: ", "  ", m, width)?;
    }
    Ok(())
}

/// The same for an issue tracker.
pub fn markdown(out: &mut dyn Write, judged: &[Judged<'_>]) -> io::Result<()> {
    for (profile, t) in judged {
        writeln!(out, "### {}", table::escaped(&profile.file_name()))?;
        writeln!(out)?;
        if let Some(f) = t.verdict() {
            writeln!(out, "**{}**: {} ({})", f.id.id(), table::escaped(&f.headline), judged_line(t))?;
        }
        writeln!(out)?;
        let several = t.devices.len() > 1;
        let names: Vec<String> = t.devices.iter().map(|d| table::escaped(&name_of(d, several))).collect();
        writeln!(out, "| where the time went | {} |", names.join(" | "))?;
        writeln!(out, "| --- |{}", " ---: |".repeat(names.len()))?;
        for part in Part::ALL.into_iter().filter(|p| t.devices.iter().any(|d| d.parts[*p as usize].1 > 0)) {
            let cells: Vec<String> = t
                .devices
                .iter()
                .map(|d| {
                    let ns = d.parts[part as usize].1;
                    format!("{} ({})", Nanos(ns), units::human_percent(ns as f64 / t.length().max(1) as f64 * 100.0))
                })
                .collect();
            writeln!(out, "| {} | {} |", part.id(), cells.join(" | "))?;
        }
        for f in &t.findings {
            writeln!(out)?;
            writeln!(
                out,
                "- **{}** ({}, {}, up to {:.0}%): {}",
                f.id.id(),
                f.severity.word(),
                f.sure.word(),
                f.percent(),
                table::escaped(&f.headline)
            )?;
            for e in &f.evidence {
                writeln!(out, "  - {}: {}", table::escaped(&e.name), value(e.value, e.unit))?;
            }
            for p in &f.places {
                writeln!(out, "  - at {}", table::escaped(&place(p, t.window.0)))?;
            }
            for action in &f.actions {
                writeln!(out, "  - do: {}", table::escaped(action))?;
            }
        }
        writeln!(out)?;
        for m in &t.missing {
            writeln!(out, "_{}_", table::escaped(m))?;
        }
    }
    Ok(())
}

const COLUMNS: &[(&str, bool)] =
    &[("file", false), ("rank", true), ("id", false), ("severity", false), ("sure", false), ("share_percent", true), ("headline", false)];

/// One row for each finding.
pub fn csv(out: &mut dyn Write, judged: &[Judged<'_>], width: Option<usize>) -> io::Result<()> {
    let columns: Vec<Column> =
        COLUMNS.iter().map(|&(field, right)| Column { field, title: field, right, machine_only: false, rank: 0 }).collect();
    let rows = judged.iter().flat_map(|(profile, t)| {
        let file = profile.source.file.display().to_string();
        t.findings.iter().zip(1..).map(move |(f, rank)| {
            let texts = [file.clone(), rank.to_string(), f.id.id().to_owned(), f.severity.word().to_owned(), f.sure.word().to_owned()];
            let mut row: Vec<Cell> = texts.into_iter().map(Cell::text).collect();
            row.push(Cell::both(rounded(f.percent()), units::human_percent(f.percent())));
            row.push(Cell::text(&*f.headline));
            row
        })
    });
    table::print(&columns, rows, out, Format::Csv, width)
}
