//! Tables of cells with both a raw value and a text for people.

use crate::analysis::labels;
use crate::model::text::escape_unsafe;
use crate::report::Format;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// For machines; empty if absent.
    pub raw: String,
    /// For people; empty if absent.
    pub human: String,
}

impl Cell {
    /// Creates a cell with the same text for people and machines.
    pub fn text(text: impl Into<String>) -> Self {
        let raw = text.into();
        Self { human: raw.clone(), raw }
    }

    /// Creates a cell from a raw value and its text for people.
    pub fn with_raw(raw: impl std::fmt::Display, human: impl Into<String>) -> Self {
        Self { raw: format!("{raw}"), human: human.into() }
    }
}

/// A column's field name (for CSV), its title (for people) and whether it is a number.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Field name in CSV: the same as in JSON.
    pub field: &'static str,
    pub title: &'static str,
    /// Aligned to the right, for numbers.
    pub right: bool,
    /// Omitted from tables for people, because the column repeats another one in a longer form.
    pub machine_only: bool,
    /// Drop order in a narrow terminal: the highest first, 0 never.
    pub rank: u8,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Prints the table in a format other than JSON.
    pub fn print(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        print_rows(&self.columns, self.rows.iter().cloned(), out, format, width)
    }
}

/// Streams rows in a format other than JSON, since there may be millions. `width` is the terminal's width, if there is
/// a terminal: the first text column shrinks, and columns are dropped.
pub fn print_rows(
    columns: &[Column],
    rows: impl Iterator<Item = Vec<Cell>>,
    out: &mut dyn Write,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    match format {
        Format::Csv | Format::Json => write_csv(columns, rows, out, width.is_some()),
        Format::Md => write_markdown(columns, rows, out),
        Format::Table => write_aligned(columns, rows, out, width),
    }
}

/// Prevents CSV injection (OWASP): a text that a spreadsheet would interpret as a formula gets a leading `'`, the
/// spreadsheets' own escape, unless the text is a number.
pub fn no_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Makes a text safe to print on a terminal later: replaces control characters with visible ones, except for tabs and
/// line ends, which CSV quotes.
fn obeyed_by_no_terminal(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if obeyed(c) {
            out.push_str(&escape_unsafe(c.encode_utf8(&mut [0; 4])));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Writes raw values that are safe for spreadsheets and terminals.
fn write_csv(columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>, out: &mut dyn Write, terminal: bool) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|c| c.field)).map_err(io_error)?;
    for row in rows {
        if terminal {
            csv.write_record(row.iter().map(|c| escape_unsafe(&no_formula(&c.raw)).into_owned())).map_err(io_error)?;
        } else {
            for cell in &row {
                csv.write_field(obeyed_by_no_terminal(&no_formula(&cell.raw)).as_bytes()).map_err(io_error)?;
            }
            csv.write_record(None::<&[u8]>).map_err(io_error)?;
        }
    }
    csv.flush()
}

/// Rows under a header as CSV for the clipboard, safe for spreadsheets and terminals.
pub fn to_paste(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    // Writing to a `Vec` cannot fail.
    let _ = csv.write_record(head);
    for row in rows {
        let _ = csv.write_record(row.iter().map(|c| escape_unsafe(&no_formula(c)).into_owned()));
    }
    csv.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

fn for_people(columns: &[Column]) -> Vec<usize> {
    (0..columns.len()).filter(|&i| !columns[i].machine_only).collect()
}

/// Escapes everything that has a meaning in Markdown, including links, images and HTML.
pub fn escape_markdown(text: &str) -> String {
    ['\\', '|', '<', '`', '*', '_', '[', ']', '!', '&', '~', '$']
        .iter()
        .fold(escape_unsafe(text).into_owned(), |t, c| t.replace(*c, &format!("\\{c}")))
}

/// Writes a text over several lines, broken at blanks: the first line begins with `first`, the others with `rest`.
pub fn write_wrapped(out: &mut dyn Write, first: &str, rest: &str, text: &str, width: usize) -> io::Result<()> {
    let room = width.saturating_sub(first.chars().count()).max(20);
    let mut line = String::new();
    let mut lead = first;
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            writeln!(out, "{lead}{}", escape_unsafe(&line))?;
            line.clear();
            lead = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{lead}{}", escape_unsafe(&line))
}

fn write_markdown(columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>, out: &mut dyn Write) -> io::Result<()> {
    let shown = for_people(columns);
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(shown.iter().map(|&i| columns[i].title.to_owned()).collect()))?;
    writeln!(out, "{}", line(shown.iter().map(|&i| if columns[i].right { "---:" } else { "---" }.to_owned()).collect()))?;
    for row in rows {
        writeln!(out, "{}", line(shown.iter().map(|&i| escape_markdown(&row[i].human)).collect()))?;
    }
    Ok(())
}

/// Number of rows that determine the column widths; later rows use the same widths.
const SAMPLE: usize = 5_000;

fn write_aligned(
    columns: &[Column],
    mut rows: impl Iterator<Item = Vec<Cell>>,
    out: &mut dyn Write,
    width: Option<usize>,
) -> io::Result<()> {
    const GAP: usize = 2;
    let sample: Vec<Vec<Cell>> = rows.by_ref().take(SAMPLE).collect();
    let mut shown = for_people(columns);
    let cell = |row: &[Cell], i: usize| escape_unsafe(&row[i].human).into_owned();
    // A single huge text must not pad all other rows: such a text overflows its column instead.
    let longest = |i: usize| sample.iter().map(|r| labels::display_width(&escape_unsafe(&r[i].human))).max().unwrap_or(0).min(MOST_NAME);
    let widest = |i: usize| longest(i).max(labels::display_width(columns[i].title));
    let flexible = shown.iter().copied().find(|&i| !columns[i].right);
    let mut widths: Vec<usize> = (0..columns.len()).map(|i| if columns[i].machine_only { 0 } else { widest(i) }).collect();
    let mut texts: HashMap<String, String> = HashMap::new();
    let limit = width.unwrap_or(usize::MAX);
    if let Some(at) = flexible {
        let others = |shown: &[usize]| shown.iter().filter(|&&i| i != at).map(|&i| widths[i] + GAP).sum::<usize>();
        // Drop columns by rank until names have enough room.
        while limit.saturating_sub(others(&shown)) < LEAST_NAME.min(widths[at]) {
            match shown.iter().copied().filter(|&i| columns[i].rank > 0).max_by_key(|&i| (columns[i].rank, i)) {
                Some(worst) => shown.retain(|&i| i != worst),
                None => break,
            }
        }
        let room = limit.saturating_sub(others(&shown)).clamp(LEAST_NAME, MOST_NAME);
        if widths[at] > room {
            // Rows may share a name, but different names must remain distinguishable.
            let names: BTreeSet<String> = sample.iter().map(|r| cell(r, at)).collect();
            let names: Vec<String> = names.into_iter().collect();
            let fitted = labels::fit_labels(&names, room);
            texts = names.into_iter().zip(fitted).collect();
            widths[at] = room;
        }
    }
    let mut line = String::new();
    let mut write = |cells: &[String]| -> io::Result<()> {
        line.clear();
        for (&i, cell) in shown.iter().zip(cells) {
            let pad = " ".repeat(widths[i].saturating_sub(labels::display_width(cell)));
            let (before, after) = if columns[i].right { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.extend([before, cell, after, "  "]);
        }
        writeln!(out, "{}", line.trim_end())
    };
    write(&shown.iter().map(|&i| columns[i].title.to_owned()).collect::<Vec<_>>())?;
    for row in sample.iter().cloned().chain(rows) {
        let cells: Vec<String> = shown
            .iter()
            .map(|&i| {
                let text = cell(&row, i);
                if Some(i) == flexible {
                    texts.get(&text).cloned().unwrap_or_else(|| labels::cut_middle(&text, widths[i]))
                } else if text.len() > MOST_NAME {
                    labels::cut_middle(&text, MOST_NAME)
                } else {
                    text
                }
            })
            .collect();
        write(&cells)?;
    }
    Ok(())
}

/// Minimum and maximum width of a name.
const LEAST_NAME: usize = 24;
const MOST_NAME: usize = 200;

fn io_error(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |field, title, right| Column { field, title, right, machine_only: false, rank: 0 };
        Table {
            columns: vec![column("name", "kernel", false), column("total_ns", "total", true)],
            rows: vec![vec![Cell::text("a|b\x1b[2J"), Cell::with_raw(1_500, "1.50 µs")], vec![Cell::text("カ"), Cell::with_raw(7, "7 ns")]],
        }
    }

    fn printed(format: Format) -> String {
        let mut out = Vec::new();
        table().print(&mut out, format, None).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn people_get_units_and_clean_text_and_machines_raw_values() {
        assert_eq!(printed(Format::Table), "kernel      total\na|b^[[2J  1.50 µs\nカ           7 ns\n");
        assert_eq!(printed(Format::Md).lines().nth(2), Some(r"| a\|b^\[\[2J | 1.50 µs |"));
        assert_eq!(printed(Format::Csv), "name,total_ns\na|b^[[2J,1500\nカ,7\n");
    }

    #[test]
    fn names_are_no_formulas_and_no_pictures() {
        for evil in ["=HYPERLINK(\"http://evil\")", "@SUM(1+1)", "+cmd|' /C calc'!A0", "-rf", "\t=1"] {
            assert_eq!(no_formula(evil), format!("'{evil}"));
        }
        for plain in ["void k()", "-1.5e3", "+2", "-inf", "", "a=b", "_Z1kv"] {
            assert_eq!(no_formula(plain), plain);
        }
        let mut table = table();
        table.rows =
            vec![vec![Cell::text("=1+1"), Cell::with_raw(-3, "x")], vec![Cell::text("![x](http://evil) <b> &lt;"), Cell::with_raw(1, "x")]];
        let printed = |format| {
            let mut out = Vec::new();
            table.print(&mut out, format, None).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(printed(Format::Csv), "name,total_ns\n'=1+1,-3\n![x](http://evil) <b> &lt;,1\n");
        assert_eq!(printed(Format::Md).lines().nth(3), Some(r"| \!\[x\](http://evil) \<b> \&lt; | x |"));
    }
}
