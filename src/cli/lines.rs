//! `warpscope lines`: GPU idle time by program line.

use super::failure::Failure;
use super::scope_args::ScopeArgs;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::triage::{self, Scope, Triage};
use crate::import::Wants;
use crate::model::{Cancel, Profile};
use crate::report::Format;
use crate::report::host_lines::{HostLines, LineChanges};
use std::path::{Path, PathBuf};

/// `warpscope lines`.
#[derive(Debug, clap::Args)]
pub struct LinesArgs {
    /// Timeline with stacks of the launching threads: from the built-in tracer, or from nsys with CPU samples.
    pub file: PathBuf,
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Compare with another run: functions by the change of the idle time at them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "range", "tree"])]
    pub before: Option<PathBuf>,
    /// List calls as a tree: callers first, each with the idle time in it and in what it calls.
    #[arg(long)]
    pub tree: bool,
    /// List only so many levels of the tree.
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Minimum share of the idle time for `--tree` to list a call.
const LEAST: f64 = 0.01;

/// Prints the program lines that the launching threads were executing while a GPU was idle.
pub fn print_lines(args: &LinesArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let (profile, found) = judge_run(args, &args.file, nsys.clone())?;
    if let Some(before) = &args.before {
        let (earlier, before) = judge_run(args, before, nsys)?;
        let changes = LineChanges::between(&before, &found);
        return print::to_stdout(|out| match print::format_or_default(args.format) {
            Format::Json => changes.write_json(out, &earlier, &profile),
            format => changes.print_rows(out, format, print::terminal_width()),
        });
    }
    let lines = if args.tree { HostLines::of_tree(&profile, &found, args.depth, LEAST) } else { HostLines::of_functions(&profile, &found) };
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => lines.write_json(out, &profile),
        format => lines.print_rows(out, format, print::terminal_width()),
    })
}

/// Reads and triages a run that records program lines.
fn judge_run(args: &LinesArgs, file: &Path, nsys: Option<PathBuf>) -> Result<(Profile, Triage), Failure> {
    let profile = interrupt::open_report(file, nsys, Wants::TRIAGE)?;
    print::warn(&profile);
    let shown = file.display();
    let windows = args.scope.to_windows(&profile, &shown.to_string(), None)?;
    let found = triage::triage_profile(&profile, &Scope { windows, ..Scope::default() }, &Cancel::default());
    let Some(found) = found else {
        if profile.metrics.is_some() {
            return Err(Failure::wrong(format!(
                "{shown}: a report of single kernels has no host code; `warpscope metrics {shown} --source` lists the lines of the kernels' code"
            )));
        }
        return Err(Failure::wrong(format!("{shown}: nothing ran on a GPU in this time, or the report has no times")));
    };
    if found.devices.is_empty() {
        return Err(Failure::wrong(format!("{shown}: nothing ran on a GPU in this time: choose one that begins and ends with work")));
    }
    if found.host_time.times.is_empty() {
        return Err(Failure::wrong(format!("{shown}: {}", no_lines(&profile))));
    }
    Ok((profile, found))
}

/// Explains why there are no lines and how to get them.
fn no_lines(profile: &Profile) -> String {
    if profile.has_host_stacks() {
        "no sample falls into the GPU's idle time: it was hardly idle, or the time is too short for samples each 10 ms".to_owned()
    } else {
        "the threads that launch were not sampled; `warpscope run -- PROGRAM` samples their Python stacks, or native ones".to_owned()
    }
}
