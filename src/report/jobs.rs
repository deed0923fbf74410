//! `recipes check`: launches selected by the jobs in rocprofv3's input files, and errors in the files.

use super::document::{Block, Document, KeyValue};
use super::envelope::{Envelope, JsonDocument};
use super::{Format, table};
use crate::analysis::table::{Column, Unit, Value};
use crate::model::Severity;
use crate::model::units::format_count;
use crate::rerun::jobs::filter::Filter;
use crate::rerun::jobs::select::{Selected, Taken};
use crate::rerun::jobs::{Checked, File, JobProblem};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Launches in a report that each job selects, or the reason why they are unknown; `None` for jobs that select nothing.
pub type InReport = Vec<Option<Result<Selected, String>>>;

#[derive(Serialize, JsonSchema)]
struct FindingJson<'a> {
    severity: &'static str,
    id: &'static str,
    line: Option<usize>,
    text: &'a str,
    fix: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct TakenJson<'a> {
    kernel: &'a str,
    process: Option<u32>,
    gpu: Option<u32>,
    /// Index of the symbol's first launch, and its grid in workgroups.
    first_launch: u32,
    grid: Option<[u32; 3]>,
    launches: u64,
    selected: u64,
    /// Numbers from 1, at most twenty of them.
    numbers: &'a [u64],
}

#[derive(Serialize, JsonSchema)]
struct SelectedJson<'a> {
    taken: Vec<TakenJson<'a>>,
    differ: &'a [String],
    too_few: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct JobJson<'a> {
    number: usize,
    line: Option<usize>,
    collects: &'a [String],
    selects: Option<String>,
    in_report: Option<SelectedJson<'a>>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct FileJson<'a> {
    file: &'a str,
    worst: Option<&'static str>,
    findings: Vec<FindingJson<'a>>,
    jobs: Vec<JobJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct FilesJson<'a> {
    files: Vec<FileJson<'a>>,
}

impl JsonDocument for FilesJson<'_> {
    const NAME: &'static str = "recipes-check";
    const VERSION: &'static str = "1.1";
}

fn findings_json(list: &[JobProblem]) -> Vec<FindingJson<'_>> {
    list.iter()
        .map(|f| FindingJson { severity: f.severity.as_str(), id: f.id, line: f.line, text: &f.text, fix: f.fix.as_deref() })
        .collect()
}

fn selected_json(s: &Selected) -> SelectedJson<'_> {
    let taken = s.taken.iter().map(|t| TakenJson {
        kernel: &t.kernel,
        process: t.process,
        gpu: t.gpu,
        first_launch: t.first,
        grid: t.grid,
        launches: t.launches,
        selected: t.selected,
        numbers: &t.numbers,
    });
    SelectedJson { taken: taken.collect(), differ: &s.differ, too_few: &s.too_few }
}

fn job_json<'a>(job: &'a Checked, found: Option<&'a Option<Result<Selected, String>>>) -> JobJson<'a> {
    JobJson {
        number: job.number,
        line: job.line,
        collects: &job.collects,
        selects: job.filter.as_ref().map(Filter::describe),
        in_report: found.and_then(Option::as_ref).and_then(|f| f.as_ref().ok()).map(selected_json),
        findings: findings_json(&job.findings),
    }
}

fn file_json((name, file, found): &(String, File, InReport)) -> FileJson<'_> {
    FileJson {
        file: name,
        worst: file.max_severity().map(Severity::as_str),
        findings: findings_json(&file.findings),
        jobs: file.jobs.iter().enumerate().map(|(i, j)| job_json(j, found.get(i))).collect(),
    }
}

/// Writes files and their findings as JSON.
pub fn write_json(out: &mut dyn Write, files: &[(String, File, InReport)]) -> io::Result<()> {
    Envelope::default().write(out, &FilesJson { files: files.iter().map(file_json).collect() })
}

/// A finding with the file and job to which it applies.
pub struct FindingRow<'a> {
    file: &'a str,
    job: Option<usize>,
    finding: &'a JobProblem,
}

/// The columns, in order.
pub fn columns<'a>() -> Vec<Column<FindingRow<'a>>> {
    vec![
        Column::new("file", "file", Unit::Text, "input file", |r: &FindingRow<'_>| Value::text(r.file)),
        Column::new("job", "job", Unit::Id, "number of the job, from 1; none for findings on the whole file", |r| Value::maybe_int(r.job)),
        Column::new("line", "line", Unit::Id, "line of the file, from 1", |r| Value::maybe_int(r.finding.line)),
        Column::new("severity", "severity", Unit::Text, "error, warning or info", |r| Value::text(r.finding.severity.as_str())),
        Column::new("id", "finding", Unit::Text, "identifier of the finding", |r| Value::text(r.finding.id)),
        Column::new("text", "text", Unit::Text, "the finding in a sentence", |r| Value::text(&r.finding.text)),
        Column::new("fix", "fix", Unit::Text, "change that avoids it", |r| r.finding.fix.as_deref().map_or(Value::Absent, Value::text)),
    ]
}

/// Prints one CSV row per finding.
pub fn print_csv(out: &mut dyn Write, files: &[(String, File, InReport)]) -> io::Result<()> {
    let rows = files.iter().flat_map(|(name, file, _)| {
        let of_file = file.findings.iter().map(move |finding| FindingRow { file: name, job: None, finding });
        let of_jobs = file
            .jobs
            .iter()
            .flat_map(move |job| job.findings.iter().map(move |f| FindingRow { file: name, job: Some(job.number), finding: f }));
        of_file.chain(of_jobs)
    });
    table::print_rows(columns(), rows, out, Format::Csv, None)
}

fn append_findings(list: &[JobProblem], facts: &mut Vec<KeyValue>) {
    for f in list {
        let line = f.line.map_or_else(String::new, |l| format!("line {l}: "));
        let word = if f.severity == Severity::Info { "note" } else { f.severity.as_str() };
        facts.push(KeyValue::new(word, format!("{line}{}", f.text)));
        facts.extend(f.fix.as_ref().map(|fix| KeyValue::new("", format!("fix: {fix}"))));
    }
}

/// Formats numbers as text, joining neighbors into ranges.
fn format_numbers(taken: &Taken) -> String {
    let mut pieces: Vec<String> = taken
        .numbers
        .chunk_by(|a, b| *b == a + 1)
        .filter_map(|run| match run {
            [one] => Some(one.to_string()),
            [first, .., last] => Some(format!("{first}–{last}")),
            [] => None,
        })
        .collect();
    if taken.selected as usize > taken.numbers.len() {
        pieces.push("…".to_owned());
    }
    pieces.join(", ")
}

/// Maximum number of listed kernel symbols.
const SYMBOLS: usize = 20;
/// Maximum number of names in a sentence.
const NAMES: usize = 3;

/// Launches of a report that a job selects, in sentences.
fn selected_lines(found: &Result<Selected, String>) -> Vec<String> {
    let s = match found {
        Ok(s) => s,
        Err(why) => return vec![why.clone()],
    };
    let total: u64 = s.taken.iter().map(|t| t.selected).sum();
    let mut lines = vec![if total == 0 {
        "no launch is selected".to_owned()
    } else {
        format!("{} of {}", format_count(total, "launch"), format_count(s.taken.len(), "kernel symbol"))
    }];
    lines.extend(s.taken.iter().take(SYMBOLS).map(|t| {
        let gpu = t.gpu.map_or_else(String::new, |g| format!(" on GPU {g}"));
        let other = s.distinguish(t).map_or_else(String::new, |what| format!(", {what}"));
        format!("{}{gpu}{other}: {} (of {})", t.kernel, format_numbers(t), format_count(t.launches, "launch"))
    }));
    if s.taken.len() > SYMBOLS {
        lines.push(format!("and {} more", format_count(s.taken.len() - SYMBOLS, "kernel symbol")));
    }
    let names = |list: &[String]| {
        let more = if list.len() > NAMES { format!(" and {} more", list.len() - NAMES) } else { String::new() };
        format!("{}{more}", list.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", "))
    };
    if !s.too_few.is_empty() {
        lines.push(format!("matched, but not launched so often: {}", names(&s.too_few)));
    }
    if !s.differ.is_empty() {
        let engines = "taken by one of the engines only (up to ROCm 7.0, from 7.1 on; listed here as from 7.1 on)";
        lines.push(format!("{engines}: {}", names(&s.differ)));
    }
    if s.unknown > 0 {
        lines.push(format!("for {} the pattern takes too long to say", format_count(s.unknown, "kernel")));
    }
    lines
}

fn append_job(job: &Checked, found: Option<&Result<Selected, String>>, report: &str, blocks: &mut Vec<Block<'_>>) {
    let line = job.line.map_or_else(String::new, |l| format!(", line {l}"));
    blocks.push(Block::Heading(4, format!("Job {}{line}", job.number)));
    let collects = if job.collects.is_empty() { "nothing".to_owned() } else { job.collects.join(", ") };
    let mut facts = vec![KeyValue::new("collects", collects)];
    facts.extend(job.filter.as_ref().map(|filter| {
        let counted = "counted for each symbol of each code object and GPU, in each process";
        KeyValue::new("selects", format!("{}, {counted}", filter.describe()))
    }));
    append_findings(&job.findings, &mut facts);
    let lines = found.map_or_else(Vec::new, selected_lines);
    facts.extend(lines.into_iter().enumerate().map(|(at, line)| match at {
        0 => KeyValue::new("in trace", format!("{report}: {line}")),
        _ => KeyValue::new("", line),
    }));
    blocks.push(Block::KeyValues(facts));
}

/// The files for people: what their jobs collect and select, and the findings.
pub fn document(files: &[(String, File, InReport)], report: &str) -> Document<'static> {
    let mut blocks = Vec::new();
    for (name, file, found) in files {
        blocks.push(Block::Heading(3, format!("{name}: {} for rocprofv3", format_count(file.jobs.len(), "job"))));
        let mut facts = Vec::new();
        append_findings(&file.findings, &mut facts);
        if !facts.is_empty() {
            blocks.push(Block::KeyValues(facts));
        }
        for (i, job) in file.jobs.iter().enumerate() {
            append_job(job, found.get(i).and_then(Option::as_ref), report, &mut blocks);
        }
    }
    Document { blocks }
}
