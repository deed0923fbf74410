//! Prints what `analysis` computed: tables for people, CSV, JSON and Markdown for everything else.
//!
//! A new report is one file that fills a [`Table`] and a JSON value, and one row in [`REPORTS`].

pub mod code;
pub mod diff;
pub mod hints;
pub mod launches;
pub mod metrics;
pub mod recipes;
pub mod rerun;
pub mod runs;
pub mod sections;
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
pub static REPORTS: &[(&str, &str)] = &[
    ("top", "kernels, or other groups of launches, ranked by time"),
    ("launches", "kernel launches in launch order"),
    ("metrics", "every metric of an Nsight Compute report"),
    ("hints", "what is wrong, or right, with each kernel, and what to change"),
    ("diff", "what changed between two runs"),
    ("rerun", "the command that profiles chosen launches again"),
];

/// Treats a reader that went away as success: `warpscope top … | head` is no error.
pub fn tolerate_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A value as JSON in which nothing is left that a terminal obeys: what JSON itself does not escape (C1 controls, marks that reorder text)
/// is escaped too, and only strings can hold it.
pub fn json_text(value: &impl serde::Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    let obeyed = |c: char| {
        ('\u{7f}'..='\u{9f}').contains(&c)
            || ('\u{200e}'..='\u{200f}').contains(&c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    if !text.contains(obeyed) {
        return Ok(text);
    }
    Ok(text.chars().map(|c| if obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect())
}

/// Writes a value as JSON on one line.
pub fn json(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
    writeln!(out, "{}", json_text(value)?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn json_holds_nothing_that_a_terminal_obeys_and_reads_back_the_same() {
        let evil = "a\u{1b}[2J\u{9b}2J\u{202e}\u{7f}é\"";
        let text = super::json_text(&evil).unwrap();
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), evil);
    }
}
