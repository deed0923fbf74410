//! `diff`: changes between two runs.

use super::Format;
use super::document::{Block, Document, Rows as RowsBlock};
use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::table;
use super::top::kernel_steps;

use crate::analysis::diff::{Diff, DiffRow};
use crate::analysis::table::lines::{LineChange, compare_lines};
use crate::analysis::table::{Column, changes};
use crate::analysis::triage::{StepStats, StepTimes, TimeCategory, Triage, frame_label, like_steps, step_parts};
use crate::model::units::{format_grouped, format_percent_change};
use crate::model::{Nanos, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// One line for each changed kernel with a predicted gain.
fn prediction_lines(rows: &[&DiffRow]) -> Vec<String> {
    let kept: Vec<_> = rows.iter().filter_map(|r| Some((r.name(), r.hint_outcome()?))).collect();
    let mut lines: Vec<String> =
        kept.iter().take(PROMISES).map(|(name, (promise, got))| format!("{name}: {}", promise.describe_outcome(*got))).collect();
    if kept.len() > PROMISES {
        lines.push(format!("and {} more kernels with hints (--format json lists all)", kept.len() - PROMISES));
    }
    lines
}

/// One line for each kernel whose launch configuration changed.
fn config_lines(rows: &[&DiffRow]) -> Vec<String> {
    let changed = rows.iter().filter_map(|r| Some(format!("{}: {}", r.name(), r.config_text()?)));
    let mut lines: Vec<String> = changed.collect();
    if lines.len() > CONFIGS {
        let more = lines.len() - CONFIGS;
        lines.truncate(CONFIGS);
        lines.push(format!("and {more} more kernels with another launch configuration (--format json lists all)"));
    }
    lines
}

/// Maximum number of lines about launch configurations in a human-readable table.
const CONFIGS: usize = 5;

/// Maximum number of lines about predictions in a human-readable table.
const PROMISES: usize = 10;

#[derive(Serialize, JsonSchema)]
struct PartJson {
    part: &'static str,
    before_percent: f64,
    after_percent: f64,
}

fn finding_ids(t: &Triage) -> Vec<&'static str> {
    t.findings.iter().map(|f| f.id.id()).collect()
}

/// Minimum change in a time category for it to be listed, in percentage points of the window.
const POINTS: f64 = 1.0;

/// Maximum number of listed functions whose idle time changed, and the minimum change for a function to be listed, as a
/// share of the idle time of the run that idles longer.
const LINES: usize = 3;
const LEAST_LINE: f64 = 0.05;

/// Functions of the program at which the GPU waits longer or shorter than before; empty if the launching threads were
/// not sampled in both runs.
fn line_changes(was: &Triage, is: &Triage) -> Vec<String> {
    let (before, after) = (&was.host_time, &is.host_time);
    if before.times.is_empty() || after.times.is_empty() {
        return Vec::new();
    }
    let steps = like_steps(was, is);
    let per = |ns: i64, steps: Option<usize>| Nanos(ns / i64::try_from(steps.unwrap_or(1)).unwrap_or(1));
    let known = per(before.known(), steps.map(|s| s.0)).0.max(per(after.known(), steps.map(|s| s.1)).0);
    let unit = if steps.is_some() { " a step" } else { "" };
    let times = |line: &LineChange| (per(line.before.unwrap_or(0), steps.map(|s| s.0)), per(line.after.unwrap_or(0), steps.map(|s| s.1)));
    compare_lines(before, after, steps)
        .into_iter()
        .take(LINES)
        .map(|line| (times(&line), line.frame))
        .take_while(|((a, b), _)| (b.0 - a.0).abs() as f64 >= LEAST_LINE * known as f64)
        .map(|((a, b), frame)| format!("GPU idle in {}: {a} → {b}{unit}", frame_label(&frame)))
        .collect()
}

/// Changes in the time breakdown as sentences, the largest first: "launching went from 61% to 8%".
fn breakdown_changes(was: &Triage, is: &Triage) -> Vec<String> {
    if let Some(parts) = step_parts(was, is) {
        return step_part_changes(parts);
    }
    let mut parts: Vec<(TimeCategory, f64, f64)> =
        TimeCategory::ALL.into_iter().map(|p| (p, was.part_percent(p), is.part_percent(p))).collect();
    parts.retain(|(_, a, b)| (a - b).abs() >= POINTS);
    parts.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    if parts.is_empty() {
        return vec![format!("where the time went: unchanged within {POINTS:.0} point")];
    }
    let (before, after) = (was.base, is.base);
    let base = if before == after { String::new() } else { format!(" of {before}") };
    parts.iter().map(|(part, a, b)| format!("{} went from {a:.0}%{base} to {b:.0}% of {after}", part.id())).collect()
}

/// Smallest change of a part worth naming, as a share of the longer step.
const LEAST_PART: f64 = 0.01;

/// Changes in the mean time of a step by category: "copies exposed: 2.42 ms → 10.2 ms a step".
fn step_part_changes(mut parts: Vec<(TimeCategory, f64, f64)>) -> Vec<String> {
    let step = |of: fn(&(TimeCategory, f64, f64)) -> f64| parts.iter().map(of).sum::<f64>();
    let longer = step(|p| p.1).max(step(|p| p.2));
    parts.retain(|(_, a, b)| (a - b).abs() >= LEAST_PART * longer);
    if parts.is_empty() {
        return vec!["where the time of a step went: unchanged within 1%".to_owned()];
    }
    parts.iter().map(|(part, a, b)| format!("{}: {} → {} a step", part.id(), Nanos(*a as i64), Nanos(*b as i64))).collect()
}

/// Changes in the number and the length of steps.
fn step_changes(was: &Triage, is: &Triage) -> Vec<String> {
    let (Some(a), Some(b), Some(times)) = (was.step_stats(), is.step_stats(), StepTimes::of_runs(was, is)) else {
        return Vec::new();
    };
    let change = (times.after - times.before) as f64 / times.before.max(1) as f64 * 100.0;
    let mut lines = vec![format!("{}: {} → {} ({change:+.0}%)", times.name, Nanos(times.before), Nanos(times.after))];
    if times.name != "median step" {
        lines.push(format!("median step: {} → {}", Nanos(a.median), Nanos(b.median)));
    }
    if a.count != b.count {
        lines.push(format!("steps: {} → {}: totals are of different amounts of work", a.count, b.count));
    }
    lines
}

/// The comparison for people: changes in the judged time, totals, changed kernels, and predicted gains.
pub fn document<'a>(diff: &Diff, rows: &[&'a DiffRow], judged: Option<(&Triage, &Triage)>) -> Document<'a> {
    let table = RowsBlock { columns: changes::readable_columns(diff.steps.is_some()), rows: rows.to_vec() };
    let mut blocks = Vec::new();
    // The run first: its kernels may be faster while it is slower.
    if let Some((was, is)) = judged {
        let list = |t: &Triage| if t.findings.is_empty() { "none".to_owned() } else { finding_ids(t).join(", ") };
        let mut lines = step_changes(was, is);
        lines.extend(breakdown_changes(was, is));
        lines.extend(line_changes(was, is));
        let (was, is) = (list(was), list(is));
        lines.push(if was == is { format!("findings, the same in both: {was}") } else { format!("findings: {was} → {is}") });
        blocks.push(Block::List(lines));
    }
    blocks.extend([Block::Text(totals_sentence(diff)), Block::Rows(Box::new(table))]);
    let configs = config_lines(rows);
    if !configs.is_empty() {
        blocks.push(Block::List(configs));
    }
    let predictions = prediction_lines(rows);
    if !predictions.is_empty() {
        blocks.push(Block::List(predictions));
    }
    Document { blocks }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct DiffJson<'a> {
    total_before_ns: i64,
    total_after_ns: i64,
    delta_percent: Option<f64>,
    launches_before: u64,
    launches_after: u64,
    /// Steps that were found in each run, and their median length: compare these, not totals, if the numbers differ.
    steps_before: Option<usize>,
    steps_after: Option<usize>,
    step_median_before_ns: Option<i64>,
    step_median_after_ns: Option<i64>,
    /// Median times from the start of a step to that of the next, which include what lies between steps.
    step_period_before_ns: Option<i64>,
    step_period_after_ns: Option<i64>,
    /// Parts of the judged time.
    attribution: Option<Vec<PartJson>>,
    findings_before: Option<Vec<&'static str>>,
    findings_after: Option<Vec<&'static str>>,
    caveats: &'a [String],
    rows: Rows<'a, DiffRow, &'a DiffRow>,
}

impl JsonDocument for DiffJson<'_> {
    const NAME: &'static str = "diff";
    const VERSION: &'static str = "1.2";
}

impl TableRow for DiffRow {
    fn columns() -> Vec<Column<Self>> {
        changes::columns()
    }
}

/// Writes the comparison as JSON.
pub fn write_json(
    out: &mut dyn Write,
    before: &Profile,
    after: &Profile,
    (diff, judged): (&Diff, Option<(&Triage, &Triage)>),
    rows: &[&DiffRow],
) -> io::Result<()> {
    let steps = |which: fn((&'_ Triage, &'_ Triage)) -> Option<StepStats>| judged.and_then(which);
    let all = DiffJson {
        total_before_ns: diff.totals.0,
        total_after_ns: diff.totals.1,
        delta_percent: diff.total_change_percent(),
        launches_before: diff.launches.0,
        launches_after: diff.launches.1,
        steps_before: steps(|j| j.0.step_stats()).map(|s| s.count),
        steps_after: steps(|j| j.1.step_stats()).map(|s| s.count),
        step_median_before_ns: steps(|j| j.0.step_stats()).map(|s| s.median),
        step_median_after_ns: steps(|j| j.1.step_stats()).map(|s| s.median),
        step_period_before_ns: steps(|j| j.0.step_stats()).and_then(|s| s.period),
        step_period_after_ns: steps(|j| j.1.step_stats()).and_then(|s| s.period),
        attribution: judged.map(|(was, is)| {
            TimeCategory::ALL
                .into_iter()
                .map(|p| PartJson { part: p.id(), before_percent: was.part_percent(p), after_percent: is.part_percent(p) })
                .collect()
        }),
        findings_before: judged.map(|(was, _)| finding_ids(was)),
        findings_after: judged.map(|(_, is)| finding_ids(is)),
        caveats: &diff.caveats,
        rows: Rows::new(rows.iter().copied()),
    };
    let slower = rows.iter().filter(|r| r.after.is_some() && r.total_change() > 0).max_by_key(|r| r.total_change());
    let sampled = judged.is_some_and(|(was, is)| !was.host_time.times.is_empty() && !is.host_time.times.is_empty());
    let earlier = before.source.file.display().to_string();
    let lines = sampled.then(|| {
        let why = "says which lines of the program the GPU waits for longer or shorter";
        NextJson::on_report("lines", &after.source, ["--before", &earlier, "--format", "json"], why)
    });
    let next = lines.into_iter().chain(slower.into_iter().flat_map(|r| kernel_steps(after, r.name())));
    Envelope::of_profiles([before, after]).then(next).write(out, &all)
}

/// Prints the changed kernels as CSV.
pub fn print_csv(out: &mut dyn Write, rows: &[&DiffRow], width: Option<usize>) -> io::Result<()> {
    table::print_rows(changes::columns(), rows.iter().copied(), out, Format::Csv, width)
}

/// Kernel time and launches of both runs in one sentence. If the runs differ in length but both have steps, times are
/// per step.
fn totals_sentence(diff: &Diff) -> String {
    let times = diff.kernel_times();
    // Totals are not comparable between runs of different length.
    let comparable = diff.steps.is_some() && diff.step_totals.is_some() || !diff.one_isolated && !diff.differ_in_length;
    let change = times.change_percent().filter(|_| comparable).map_or_else(String::new, |p| format!(" ({})", format_percent_change(p)));
    let kernels = format!("{} {} → {}{change}", times.name, Nanos::format_ns(times.before), Nanos::format_ns(times.after));
    match diff.steps.filter(|_| diff.step_totals.is_some()) {
        Some((before, after)) => format!(
            "{kernels}, steps {} → {}: the runs differ in length, so that times are those of a step",
            format_grouped(before),
            format_grouped(after)
        ),
        None => format!("{kernels}, launches {} → {}", format_grouped(diff.launches.0), format_grouped(diff.launches.1)),
    }
}
