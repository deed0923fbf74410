//! `warpscope lines`.

use super::triage::scope_windows;
use super::triage_args::Lines;
use super::{Failure, interrupt, print};
use crate::analysis::triage::{self, Scope};
use crate::import::Wants;
use crate::model::Cancel;
use crate::report::Format;
use crate::report::host_lines::HostLines;
use std::path::PathBuf;

/// Share of the idle time below which `--tree` lists no calls.
const LEAST: f64 = 0.01;

/// Prints the lines of the program at which the launching threads were while a GPU was idle.
pub fn print_lines(args: &Lines, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let profile = interrupt::open_report(&args.file, nsys, Wants::TRIAGE)?;
    print::warn(&profile);
    let shown = args.file.display();
    let windows = scope_windows(&profile, &shown.to_string(), args.range.as_deref(), args.phase.as_deref(), &args.between, None)?;
    let found = triage::triage_profile(&profile, &Scope { windows, ..Scope::default() }, &Cancel::default());
    let Some(found) = found else {
        return Err(Failure::wrong(format!("{shown}: nothing ran on a GPU in this time, or the report has no times")));
    };
    if found.host_time.times.is_empty() {
        return Err(Failure::wrong(format!("{shown}: {}", no_lines(&profile))));
    }
    let lines = if args.tree {
        HostLines::of_tree(&profile, &found.host_time, args.depth, LEAST)
    } else {
        HostLines::of_functions(&profile, &found.host_time)
    };
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => lines.write_json(out, &profile),
        format => lines.print_rows(out, format, print::terminal_width()),
    })
}

/// Says why there are no lines, and how to get them.
fn no_lines(profile: &crate::model::Profile) -> String {
    if profile.samples.samples.is_empty() {
        "the threads that launch were not sampled; `warpscope run -- PROGRAM` samples their Python stacks".to_owned()
    } else {
        "no sample falls into the time that the GPU was idle: it was hardly idle, or not for long".to_owned()
    }
}
