//! Output formats, and JSON that is safe to print on a terminal.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns with units, human-readable.
    Table,
    /// Comma-separated raw numbers.
    Csv,
    /// JSON with stable field names, raw numbers.
    Json,
    /// A Markdown table with units.
    Md,
}

/// Layout of line breaks in JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    OneLine,
    /// Each element of a list in the outermost object starts on a new line.
    LinePerElement,
}

/// Escapes characters that affect a terminal and that JSON does not escape (C1 controls, marks that reorder text). Only
/// strings can contain such characters.
struct Safe {
    layout: Layout,
    /// Number of open lists and objects.
    depth: usize,
}

/// Depth of the elements of lists in the outermost object.
const ELEMENT: usize = 2;

impl Formatter for Safe {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let obeyed = |c: char| {
            ('\u{7f}'..='\u{9f}').contains(&c)
                || ('\u{200e}'..='\u{200f}').contains(&c)
                || ('\u{2028}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c)
        };
        // Scanning bytes is much faster than decoding characters, and nearly all strings are ASCII.
        if fragment.bytes().all(|b| b < 0x7f) {
            return out.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| obeyed(c)) {
            write!(out, "{}\\u{:04x}", &rest[..at], u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b"," })?;
        let breaks = self.layout == Layout::LinePerElement && self.depth == ELEMENT;
        out.write_all(if breaks { b"\n" } else { b"" })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(b"}")
    }
}

fn serialize_into(out: impl Write, value: &impl Serialize, layout: Layout) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Safe { layout, depth: 0 })).map_err(io::Error::from)
}

/// Serializes a value as JSON that is safe to print on a terminal.
pub fn json_text(value: &impl Serialize) -> io::Result<String> {
    let mut out = Vec::new();
    serialize_into(&mut out, value, Layout::OneLine)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// Writes a value as JSON that is safe to print on a terminal, followed by a newline. Lists that are generated while
/// they are serialized take no memory.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize, layout: Layout) -> io::Result<()> {
    // There are many small writes: a buffer of a known type avoids a virtual call for each of them.
    let mut buffer = io::BufWriter::with_capacity(1 << 15, out);
    serialize_into(&mut buffer, value, layout)?;
    buffer.write_all(b"\n")?;
    buffer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_nothing_that_a_terminal_obeys_and_reads_back_the_same() {
        let evil = "a\u{1b}[2J\u{9b}2J\u{202e}\u{7f}é\"";
        let text = json_text(&evil).unwrap();
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text:?}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), evil);
    }

    #[test]
    fn each_element_of_an_outer_list_begins_a_line() {
        let mut out = Vec::new();
        write_json(&mut out, &serde_json::json!({"a": 1, "rows": [{"x": [1, 2]}, {"x": []}]}), Layout::LinePerElement).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"a\":1,\"rows\":[\n{\"x\":[1,2]},\n{\"x\":[]}]}\n");
    }
}
