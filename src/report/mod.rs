//! Prints the results of `analysis` as tables, CSV, JSON, Markdown, HTML, Parquet and traces.
//!
//! A table's columns are declared next to its rows ([`analysis::table`](crate::analysis::table)).

mod budget;
pub mod code;
pub mod columns;
pub mod coverage;
pub mod diff;
pub mod doctor;
pub mod document;
pub mod envelope;
pub mod finding;
pub mod finding_text;
mod format;
pub mod hints;
pub mod host_lines;
pub mod jobs;
pub mod launches;
pub mod live;
pub mod memory;
pub mod metrics;
pub mod output;
pub mod parquet_export;
pub mod ranges;
pub mod ranks;
pub mod recipes;
pub mod rerun;
pub mod rows;
pub mod runs;
pub mod schemas;
pub mod sections;
pub mod table;
pub mod timeline;
pub mod top;
pub mod trace_event;
pub mod triage;

pub use document::PageFormat;
pub use format::{Format, Layout, json_text, write_json};

use std::io;

/// Name of each report (also the subcommand that prints it) and its content.
pub static REPORTS: &[(&str, &str)] = &[
    ("triage", "what limits the run, where the time went, and what to do"),
    ("timeline", "a window of time as text: what ran where, and why nothing did"),
    ("events", "what happens in a window of time, in order"),
    ("ranges", "NVTX ranges or operators as a tree, with the GPU's time inside"),
    ("ranks", "the ranks of one job: which makes the others wait, and why"),
    ("memory", "how memory is used: the peak and who holds it, what grows, why it ran out"),
    ("report", "one file to hand on, HTML or Markdown: verdict, kernels, evidence, commands"),
    ("top", "kernels, or other groups of launches, ranked by time"),
    ("launches", "kernel launches in launch order"),
    ("metrics", "every metric of an Nsight Compute report"),
    ("hints", "what is wrong, or right, with each kernel, and what to change"),
    ("diff", "what changed between two runs"),
    ("rerun", "the command that profiles chosen launches again"),
];

/// Treats a closed pipe as success: `warpscope top … | head` is not an error.
pub fn tolerate_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
