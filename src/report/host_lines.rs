//! `lines`: idle time of the devices by program line.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::{Format, table};
use crate::analysis::call_tree::CallTree;
use crate::analysis::table::Column;
use crate::analysis::table::lines::{LineChange, LineRow, change_columns, columns, compare_lines};
use crate::analysis::triage::{HostTime, LineTime, Triage, like_steps};
use crate::model::{Activity, Nanos, Profile, units};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Functions of a run, or its call tree, with the device idle time attributed to each.
pub struct HostLines {
    /// Each row with its level in the tree and the thread that held the interpreter lock.
    rows: Vec<(LineTime, u32, Option<String>)>,
    /// Idle time covered by samples and not covered, ns.
    known: i64,
    unknown: i64,
    /// Number of samples; 0 if each call was recorded.
    samples: u64,
    /// Name of the analyzed time span, its start and its end.
    base: &'static str,
    window: (i64, i64),
}

/// Time that was judged.
#[derive(Serialize, JsonSchema)]
struct WindowJson {
    judged: &'static str,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct LinesJson<'a> {
    window: WindowJson,
    samples: u64,
    /// Idle time of the devices during which it is known where the launching threads were.
    idle_ns: i64,
    idle_without_samples_ns: i64,
    rows: Rows<'a, LineRow<'a>>,
}

impl JsonDocument for LinesJson<'_> {
    const NAME: &'static str = "lines";
}

impl TableRow for LineRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        columns()
    }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct LineChangesJson<'a> {
    rows: Rows<'a, &'a LineChange>,
}

impl JsonDocument for LineChangesJson<'_> {
    const NAME: &'static str = "lines-changes";
}

impl TableRow for &LineChange {
    fn columns() -> Vec<Column<Self>> {
        change_columns()
    }
}

/// Label of a thread for use in sentences: `thread 4711 (loader)`.
pub fn thread_label(profile: &Profile, thread: u32) -> String {
    match profile.threads.get(thread as usize) {
        Some(t) => t.name.as_ref().map_or_else(|| format!("thread {}", t.tid), |name| format!("thread {} ({name})", t.tid)),
        None => "another thread".to_owned(),
    }
}

impl HostLines {
    /// The functions to which the idle time is attributed.
    pub fn of_functions(profile: &Profile, triage: &Triage) -> Self {
        let time = &triage.host_time;
        let rows = time.list_lines().into_iter().map(|line| {
            let holder = line.held_by.map(|thread| thread_label(profile, thread));
            (line, 0, holder)
        });
        Self {
            rows: rows.collect(),
            known: time.known(),
            unknown: time.unknown,
            samples: count_samples(time),
            base: triage.base,
            window: triage.window,
        }
    }

    /// The tree of calls, down to a depth, without nodes below a minimum share of the idle time.
    pub fn of_tree(profile: &Profile, triage: &Triage, depth: Option<u32>, least: f64) -> Self {
        let time = &triage.host_time;
        let tree = CallTree::from_time(time, |thread| thread_label(profile, thread));
        let listed = tree.listed_nodes(depth, least);
        let rows = listed.iter().filter_map(|&id| tree.nodes.get(id as usize)).map(|n| (n.to_line(), n.depth, None)).collect();
        Self { rows, known: tree.known, unknown: tree.unknown, samples: count_samples(time), base: triage.base, window: triage.window }
    }

    fn line_rows(&self) -> impl Iterator<Item = LineRow<'_>> {
        self.rows.iter().map(|(line, depth, holder)| LineRow { line, depth: *depth, all: self.known, holder: holder.as_deref() })
    }

    pub fn write_json(&self, out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
        let document = LinesJson {
            window: WindowJson { judged: self.base, start_ns: self.window.0, end_ns: self.window.1 },
            samples: self.samples,
            idle_ns: self.known,
            idle_without_samples_ns: self.unknown,
            rows: Rows::new(self.line_rows()),
        };
        let next = NextJson::on_report("triage", &profile.source, ["--format", "json"], "says what limits the run, and what to change");
        Envelope::of_profile(profile).then([next]).write(out, &document)
    }

    pub fn print_rows(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        let has = |id: &str| match id {
            "inside" => self.rows.iter().any(|r| r.0.inside.is_some()),
            "launches" | "host_ns" => self.rows.iter().any(|r| r.0.launching.host_ns().is_some()),
            "samples" => self.rows.iter().any(|r| r.0.samples > 0),
            "activity" => self.rows.iter().any(|r| r.0.activity != Activity::Unknown),
            "gil_holder" => self.rows.iter().any(|r| r.2.is_some()),
            _ => true,
        };
        // Programs can pick columns by name; human readers only want those with contents.
        let shown = columns().into_iter().filter(|c| format == Format::Csv || has(c.id)).collect();
        if format == Format::Table {
            writeln!(out, "{}", self.describe_base())?;
        }
        table::print_rows(shown, self.line_rows(), out, format, width)
    }

    /// Time span to which the shares refer, in one line.
    fn describe_base(&self) -> String {
        let samples = (self.samples > 0).then(|| units::format_count(self.samples, "sample"));
        let rest = (self.unknown > 0).then(|| format!("{} more without", Nanos(self.unknown)));
        let said: Vec<String> = samples.into_iter().chain(rest).collect();
        let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
        format!("GPU idle {} in {}, by what the host executed meanwhile{said}", Nanos(self.known), self.base)
    }
}

fn count_samples(time: &HostTime) -> u64 {
    time.times.iter().map(|t| t.samples).sum()
}

/// Functions of two runs, ordered by the change in idle time at them.
pub struct LineChanges(Vec<LineChange>);

impl LineChanges {
    /// Compares two runs, using idle time per step if both have steps.
    pub fn between(before: &Triage, after: &Triage) -> Self {
        Self(compare_lines(&before.host_time, &after.host_time, like_steps(before, after)))
    }

    pub fn write_json(&self, out: &mut dyn Write, before: &Profile, after: &Profile) -> io::Result<()> {
        Envelope::of_profiles([before, after]).write(out, &LineChangesJson { rows: Rows::new(self.0.iter()) })
    }

    pub fn print_rows(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        let steps = self.0.iter().any(|c| c.steps.is_some());
        let shown = change_columns().into_iter().filter(|c| format == Format::Csv || steps || !c.id.contains("step")).collect();
        table::print_rows(shown, self.0.iter(), out, format, width)
    }
}
