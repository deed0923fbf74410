//! Preflight checks of a run on this machine.

use crate::launch::doctor::preflight::MEASURE;
use crate::launch::doctor::{Check, Places, collect_facts, preflight_problems};
use crate::library::store;
use crate::rerun::recipes::expected_bytes;
use std::path::Path;

/// Formats a check as a single line.
pub fn format_check(check: &Check) -> String {
    let means = if check.means.is_empty() { String::new() } else { format!("; {}", check.means) };
    let fix = check.fix.as_ref().map_or_else(String::new, |f| format!(" → {f}"));
    format!("{}: {}{means}{fix}", check.what, check.found)
}

/// Returns potential obstacles to a command, most severe first. Reports go to `folder`, or otherwise to the library.
pub fn preflight_checks(tool: &str, argv: &[String], folder: Option<&Path>, nsys: Option<&Path>) -> Vec<Check> {
    let samples = argv.iter().any(|w| w == "--sample=process-tree");
    // The tracer's options end at the report name, which precedes the program.
    let own = argv.iter().skip_while(|w| *w != "trace").take_while(|w| *w != "--output");
    let measures = |w: &String| ["--survey", "--measure", "--stalls"].iter().any(|o| w.split('=').next() == Some(o));
    let of = if tool == "trace" && own.clone().any(measures) { MEASURE } else { tool };
    let library = store::library_folder().ok();
    let reports = folder.or(library.as_deref());
    let places = reports.map_or_else(Places::from_environment, Places::for_reports);
    preflight_problems(&collect_facts(&places, nsys, &|| false), of, samples, expected_bytes(tool, argv))
}
