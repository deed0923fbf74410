//! Triage as a readable page, as Markdown, and as rows.

use super::text::{Judged, finding_text, judged_line, name_of, part_name, remarks, round_percent};
use crate::analysis::table::{Column, Unit, Value};
use crate::analysis::triage::{Finding, LineTime, TimeCategory, Triage};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, Profile, units};
use crate::report::Format;
use crate::report::finding_text::{write_markdown as write_finding_markdown, write_text};
use crate::report::output::bold;
use crate::report::table::{self, write_wrapped};
use std::io::{self, Write};

const BAR: usize = 28;

fn share_bar(share: f64) -> String {
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8 - 1));
    }
    out
}

/// Prints the readable page.
pub fn print_page(out: &mut dyn Write, judged: &[Judged<'_>], width: usize) -> io::Result<()> {
    for (at, (profile, t)) in judged.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        one_page(out, profile, t, width.clamp(60, 140))?;
    }
    Ok(())
}

fn one_page(out: &mut dyn Write, profile: &Profile, t: &Triage, width: usize) -> io::Result<()> {
    writeln!(out, "{} · {}", escape_unsafe(&profile.file_name()), judged_line(t))?;
    if let Some(f) = t.verdict() {
        write_wrapped(out, &format!("{} ", bold(&format!("{}:", f.id.id()))), "  ", &f.headline, width)?;
    }
    let several = t.devices.len() > 1;
    for d in &t.devices {
        writeln!(out)?;
        writeln!(out, "{}", name_of(d, several))?;
        for (part, ns) in d.parts.iter().filter(|p| p.1 > 0) {
            let share = *ns as f64 / t.length().max(1) as f64;
            writeln!(
                out,
                "  {:<40} {:>8}  {:>6}  {}",
                part_name(d, *part),
                Nanos(*ns).to_string(),
                units::format_percent(share * 100.0),
                share_bar(share)
            )?;
        }
    }
    for (rank, f) in t.findings.iter().enumerate() {
        writeln!(out)?;
        write_text(out, rank + 1, &finding_text(f, t.base, t.window.0), width)?;
    }
    print_lines(out, t, width)?;
    let remarks = remarks(t);
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    remarks.iter().try_for_each(|line| write_wrapped(out, "", "  ", line, width))
}

/// Number of program lines on a page.
const LINES: usize = 5;

/// `: about 1,200 launches, 34 ms of the host's time`; empty for a line without launches, or with too few samples.
fn launches_text(t: &Triage, line: &LineTime) -> String {
    let Some(launches) = line.launching.launches().filter(|&n| n > 0) else { return String::new() };
    let about = if t.host_time.exact { "" } else { "about " };
    let host = line.launching.host_ns().map_or_else(String::new, |ns| format!(", {} of the host's time", Nanos(ns)));
    format!(": {about}{}{host}", units::format_count(launches, "launch"))
}

fn print_lines(out: &mut dyn Write, t: &Triage, width: usize) -> io::Result<()> {
    let lines = t.host_time.main_lines(LINES);
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "idle while the host executes (`warpscope lines` lists all)")?;
    let all = t.host_time.known().max(1) as f64;
    lines.iter().try_for_each(|l| {
        let text = format!(
            "{:>8}  {:>6}  {}{}",
            Nanos(l.ns).to_string(),
            units::format_percent(l.ns as f64 / all * 100.0),
            escape_unsafe(&l.label()),
            launches_text(t, l)
        );
        write_wrapped(out, "  ", "                    ", &text, width)
    })
}

/// Writes the page as Markdown, for an issue tracker.
pub fn write_markdown(out: &mut dyn Write, judged: &[Judged<'_>]) -> io::Result<()> {
    for (profile, t) in judged {
        writeln!(out, "### {}", table::escape_markdown(&profile.file_name()))?;
        writeln!(out)?;
        if let Some(f) = t.verdict() {
            writeln!(out, "**{}**: {} ({})", f.id.id(), table::escape_markdown(&f.headline), judged_line(t))?;
        }
        writeln!(out)?;
        let several = t.devices.len() > 1;
        let names: Vec<String> = t.devices.iter().map(|d| table::escape_markdown(&name_of(d, several))).collect();
        writeln!(out, "| where the time went | {} |", names.join(" | "))?;
        writeln!(out, "| --- |{}", " ---: |".repeat(names.len()))?;
        for part in TimeCategory::ALL.into_iter().filter(|p| t.devices.iter().any(|d| d.parts[*p as usize].1 > 0)) {
            let cells: Vec<String> = t
                .devices
                .iter()
                .map(|d| {
                    let ns = d.parts[part as usize].1;
                    format!("{} ({})", Nanos(ns), units::format_percent(ns as f64 / t.length().max(1) as f64 * 100.0))
                })
                .collect();
            writeln!(out, "| {} | {} |", part.id(), cells.join(" | "))?;
        }
        writeln!(out)?;
        for f in &t.findings {
            write_finding_markdown(out, &finding_text(f, t.base, t.window.0), &|t| table::escape_markdown(t))?;
        }
        let lines = t.host_time.main_lines(LINES);
        if !lines.is_empty() {
            writeln!(out, "Idle while the host executes:")?;
            writeln!(out)?;
        }
        let all = t.host_time.known().max(1) as f64;
        for l in lines {
            let share = units::format_percent(l.ns as f64 / all * 100.0);
            let launches = launches_text(t, &l);
            writeln!(out, "- {} ({share}): {}{launches}", Nanos(l.ns), table::escape_markdown(&l.label()))?;
        }
        if !t.host_time.main_lines(LINES).is_empty() {
            writeln!(out)?;
        }
        for line in remarks(t) {
            writeln!(out, "- {}", table::escape_markdown(&line))?;
        }
    }
    Ok(())
}

/// A finding of a run with the data of its cells.
pub struct FindingRow<'a> {
    profile: &'a Profile,
    /// Position in the list, from 1.
    rank: usize,
    finding: &'a Finding,
}

/// The columns, in order.
pub fn finding_columns<'a>() -> Vec<Column<FindingRow<'a>>> {
    type FindingColumn<'a> = Column<FindingRow<'a>>;
    vec![
        FindingColumn::new("file", "file", Unit::Text, "report", |r| Value::Text(r.profile.source.file.display().to_string().into())),
        FindingColumn::new("rank", "#", Unit::Id, "place in the list; 1 is the verdict", |r| Value::int(r.rank)),
        FindingColumn::new("id", "finding", Unit::Text, "identifier, which never changes its meaning", |r| Value::text(r.finding.id.id())),
        FindingColumn::new("severity", "severity", Unit::Text, "high, medium, low or healthy", |r| {
            Value::text(r.finding.severity.as_str())
        }),
        FindingColumn::new("sure", "sure", Unit::Text, "certain, likely or possible", |r| Value::text(r.finding.sure.as_str())),
        FindingColumn::new("share_percent", "share", Unit::Percent, "of the window that would be gained at most", |r| {
            Value::Real(round_percent(r.finding.gain_percent()))
        }),
        FindingColumn::new("headline", "headline", Unit::Text, "the finding in a sentence", |r| Value::text(&r.finding.headline)),
    ]
}

/// Prints one CSV row per finding.
pub fn print_csv(out: &mut dyn Write, judged: &[Judged<'_>], width: Option<usize>) -> io::Result<()> {
    let rows =
        judged.iter().flat_map(|(profile, t)| t.findings.iter().zip(1..).map(move |(finding, rank)| FindingRow { profile, rank, finding }));
    table::print_rows(finding_columns(), rows, out, Format::Csv, width)
}
