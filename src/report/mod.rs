//! Prints what `analysis` computed: tables for people, CSV, JSON and Markdown for everything else.
//!
//! A new report is one file that fills a [`Table`] and a JSON value, and one row in [`REPORTS`].

pub mod launches;
pub mod table;
pub mod top;

pub use table::{Cell, Table};

use std::io::{self, Write};

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns with units, for people.
    Table,
    /// Comma-separated values, raw numbers.
    Csv,
    /// JSON with stable field names, raw numbers.
    Json,
    /// A Markdown table with units.
    Md,
}

/// Name of each report (also the subcommand that prints it) and what it lists.
pub static REPORTS: &[(&str, &str)] =
    &[("top", "kernels, or other groups of launches, ranked by time"), ("launches", "kernel launches in launch order")];

/// Treats a reader that went away as success: `warpscope top … | head` is no error.
pub fn tolerate_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a value as JSON on one line.
pub fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)
}
