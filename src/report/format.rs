//! Output formats, and JSON that is safe to print on a terminal.

use std::io::{self, Write};

/// Output format of a report.
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

/// Serializes a value to JSON that is safe to print on a terminal: also escapes characters with an effect on a terminal
/// that JSON does not escape (C1 controls, marks that reorder text). Only strings can contain such characters.
pub fn json_text(value: &impl serde::Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    let obeyed = |c: char| {
        ('\u{7f}'..='\u{9f}').contains(&c)
            || ('\u{200e}'..='\u{200f}').contains(&c)
            || ('\u{2028}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c)
    };
    // Scanning bytes is much faster than decoding characters, and nearly all texts are ASCII.
    if text.bytes().all(|b| b < 0x7f) || !text.contains(obeyed) {
        return Ok(text);
    }
    Ok(text.chars().map(|c| if obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect())
}

/// Writes a value as JSON on one line.
pub fn write_json_line(out: &mut dyn Write, value: &impl serde::Serialize) -> io::Result<()> {
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
