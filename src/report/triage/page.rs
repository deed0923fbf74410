//! Triage as a document, and as rows.

use super::text::{Judged, finding_text, judged_line, lead_headline, name_of, part_name, remarks, round_percent, verdict_text};
use crate::analysis::hints::KernelLead;
use crate::analysis::table::{Column, Unit, Value};
use crate::analysis::triage::{Finding, JudgedDevice, LineTime, TimeCategory, Triage};
use crate::model::{Nanos, Profile, units};
use crate::report::Format;
use crate::report::document::{Bar, BarSeries, Block, Document, ShareLine};
use crate::report::finding_text::FindingText;
use crate::report::ranks::{self, Together};
use crate::report::table;
use std::io::{self, Write};

/// If the reports are ranks of one job, the document begins with their comparison; then follows one report after the
/// other.
pub fn document<'a>(judged: &[Judged<'_>], ranks: Option<&Together<'a>>) -> Document<'a> {
    let mut blocks = ranks.map_or_else(Vec::new, |r| ranks::document(r).blocks);
    for (profile, triage) in judged {
        append_run(&mut blocks, profile, triage);
    }
    Document { blocks }
}

fn append_run(blocks: &mut Vec<Block<'_>>, profile: &Profile, t: &Triage) {
    blocks.push(Block::Heading(3, format!("{} · {}", profile.file_name(), judged_line(t))));
    blocks.extend(verdict_text(t).map(|(id, headline)| Block::Verdict(id, headline)));
    if !t.devices.is_empty() {
        blocks.push(Block::Bars("where the time went", t.devices.iter().map(|d| time_of_device(d, t)).collect()));
    }
    blocks.extend(t.kernel_lead.as_ref().map(|lead| Block::Finding(lead_finding(lead, profile, t))));
    blocks.extend(t.findings.iter().map(|f| Block::Finding(finding_text(f, t.base, t.origin()))));
    let lines = t.host_time.main_lines(LINES);
    if !lines.is_empty() {
        let all = t.host_time.known().max(1) as f64;
        let line = |l: &LineTime| ShareLine {
            value: Nanos(l.ns).to_string(),
            share: units::format_percent(l.ns as f64 / all * 100.0),
            text: format!("{}{}", l.label(), launches_text(t, l)),
        };
        blocks.push(Block::Heading(4, "idle while the host executes (`warpscope lines` lists all)".to_owned()));
        blocks.push(Block::Shares(lines.iter().map(line).collect()));
    }
    let remarks = remarks(t);
    if !remarks.is_empty() {
        blocks.push(Block::List(remarks));
    }
}

/// Puts a measured kernel that comes before the findings into words.
fn lead_finding(lead: &KernelLead, profile: &Profile, t: &Triage) -> FindingText {
    let file = profile.source.file.display().to_string();
    FindingText {
        id: lead.hint.id.id(),
        headline: lead_headline(lead),
        rating: format!(
            "{}, measured, up to {} of {}",
            lead.hint.severity.as_str(),
            units::format_whole_percent(lead.gain * 100.0),
            t.base
        ),
        is_problem: true,
        confirm: (
            "shows the evidence, and what to change".to_owned(),
            ["warpscope", "hints", &file, "--kernel", &lead.kernel, "--explain"].map(str::to_owned).to_vec(),
        ),
        ..FindingText::default()
    }
}

/// Time of a device by category.
fn time_of_device(d: &JudgedDevice, t: &Triage) -> BarSeries {
    let bar = |&(part, ns): &(TimeCategory, i64)| Bar {
        id: part.id(),
        label: t.doubt_idle(part_name(d, part)),
        value: Nanos(ns).to_string(),
        share: ns as f64 / t.length().max(1) as f64,
    };
    BarSeries { name: name_of(d, t.devices.len() > 1), bars: d.parts.iter().map(bar).collect() }
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

/// A finding of a run with the data of its cells.
pub struct FindingRow<'a> {
    /// `None` if the finding is about the ranks of a job together.
    profile: Option<&'a Profile>,
    /// Position in the list, from 1.
    rank: usize,
    cause: Cause<'a>,
}

/// A finding, or a measured kernel that comes before the findings.
enum Cause<'a> {
    Finding(&'a Finding),
    Kernel(&'a KernelLead),
}

/// The columns, in order.
pub fn finding_columns<'a>() -> Vec<Column<FindingRow<'a>>> {
    type FindingColumn<'a> = Column<FindingRow<'a>>;
    vec![
        FindingColumn::new("file", "file", Unit::Text, "report; empty if the finding is about the ranks of a job together", |r| {
            r.profile.map_or(Value::Absent, |p| Value::Text(p.source.file.display().to_string().into()))
        }),
        FindingColumn::new("rank", "#", Unit::Id, "place in the list; 1 is the verdict", |r| Value::int(r.rank)),
        FindingColumn::new("id", "finding", Unit::Text, "identifier, which never changes its meaning", |r| match r.cause {
            Cause::Finding(f) => Value::text(f.id.id()),
            Cause::Kernel(lead) => Value::text(lead.hint.id.id()),
        }),
        FindingColumn::new("severity", "severity", Unit::Text, "high, medium, low or healthy", |r| match r.cause {
            Cause::Finding(f) => Value::text(f.severity.as_str()),
            Cause::Kernel(lead) => Value::text(lead.hint.severity.as_str()),
        }),
        FindingColumn::new("sure", "sure", Unit::Text, "certain, likely or possible; empty for a kernel", |r| match r.cause {
            Cause::Finding(f) => Value::text(f.sure.as_str()),
            Cause::Kernel(_) => Value::Absent,
        }),
        FindingColumn::new("share_percent", "share", Unit::Percent, "of the window that would be gained at most", |r| {
            Value::Real(round_percent(match r.cause {
                Cause::Finding(f) => f.gain_percent(),
                Cause::Kernel(lead) => lead.gain * 100.0,
            }))
        }),
        FindingColumn::new("headline", "headline", Unit::Text, "the finding in a sentence", |r| match r.cause {
            Cause::Finding(f) => Value::text(&f.headline),
            Cause::Kernel(lead) => Value::Text(lead_headline(lead).into()),
        }),
    ]
}

/// Prints one CSV row per finding, those about the ranks of a job first.
pub fn print_csv(out: &mut dyn Write, judged: &[Judged<'_>], ranks: Option<&Together<'_>>, width: Option<usize>) -> io::Result<()> {
    let of_job = ranks.map(|r| (None, None, &r.job.findings));
    let of_reports = judged.iter().map(|(profile, t)| (Some(*profile), t.kernel_lead.as_ref(), &t.findings));
    let rows = of_job.into_iter().chain(of_reports).flat_map(|(profile, lead, findings)| {
        let causes = lead.map(Cause::Kernel).into_iter().chain(findings.iter().map(Cause::Finding));
        causes.zip(1..).map(move |(cause, rank)| FindingRow { profile, rank, cause })
    });
    table::print_rows(finding_columns(), rows, out, Format::Csv, width)
}
