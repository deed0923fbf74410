//! Prints tables as declared by their columns.

use super::budget::{keep_for_text, left_out_sentence};
use super::output::{Cut, bold, count_shown, note_cut, output};
use crate::analysis::labels;
use crate::analysis::table::{Column, Outputs, columns_of};
use crate::model::text::escape_unsafe;
use crate::report::Format;
use std::borrow::{Borrow, Cow};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// Prints rows in a format other than JSON, one at a time, since there may be millions. `width` is the terminal's
/// width, if there is a terminal: the first text column shrinks, and columns are dropped.
pub fn print_rows<R, B: Borrow<R>>(
    columns: Vec<Column<R>>,
    rows: impl Iterator<Item = B>,
    out: &mut dyn Write,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let options = output();
    let Some(budget) = options.budget else { return print_all(columns, rows, out, format, width) };
    // Writing to memory cannot fail.
    let print = |rows: &[&B]| {
        let mut text = Vec::new();
        let _ = print_all(columns.clone(), rows.iter().map(|&r| r.borrow()), &mut text, format, width);
        text
    };
    let notice = left_out_sentence(usize::MAX, &options.whole).len();
    let (kept, left_out) = keep_for_text(&columns, rows, budget.saturating_sub(notice), |rows| print(rows).len());
    out.write_all(&print(&kept.iter().collect::<Vec<_>>()))?;
    if left_out == 0 {
        return Ok(());
    }
    let sentence = left_out_sentence(left_out, &options.whole);
    match format {
        // A line that is not a row would break parsers, so a message on stderr reports the cut after the output.
        Format::Csv | Format::Json => note_cut(Cut::Unsaid(sentence)),
        Format::Md | Format::Table => {
            writeln!(out, "\n{sentence}")?;
            note_cut(Cut::Said);
        }
    }
    Ok(())
}

fn print_all<R, B: Borrow<R>>(
    columns: Vec<Column<R>>,
    rows: impl Iterator<Item = B>,
    out: &mut dyn Write,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    match format {
        Format::Csv | Format::Json => write_csv(&columns_of(columns, Outputs::CSV), rows, out, width.is_some()),
        Format::Md | Format::Table => {
            let columns = columns_of(columns, Outputs::TEXT);
            let heads: Vec<Head> = columns.iter().map(Head::from).collect();
            let cell = |row: &B, at: usize| columns[at].shown(row.borrow());
            if format == Format::Md { write_markdown(&heads, rows, &cell, out) } else { write_aligned(&heads, rows, &cell, out, width) }
        }
    }
}

/// Writes a table of strings as Markdown; columns with `true` are right-aligned.
pub fn write_markdown_texts(heads: &[(&str, bool)], rows: impl Iterator<Item = Vec<String>>, out: &mut dyn Write) -> io::Result<()> {
    let heads: Vec<Head<'_>> = heads.iter().map(|&(title, right)| Head { title, right, priority: 0 }).collect();
    write_markdown(&heads, rows, &|row: &Vec<String>, at| row.get(at).cloned().unwrap_or_default(), out)
}

/// Writes a table of strings in aligned columns; columns with `true` are right-aligned.
pub fn write_aligned_texts(
    heads: &[(&str, bool)],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut dyn Write,
    width: Option<usize>,
) -> io::Result<()> {
    let heads: Vec<Head<'_>> = heads.iter().map(|&(title, right)| Head { title, right, priority: 0 }).collect();
    write_aligned(&heads, rows, &|row: &Vec<String>, at| row.get(at).cloned().unwrap_or_default(), out, width)
}

/// Header of a printed column.
struct Head<'a> {
    title: &'a str,
    right: bool,
    /// Drop order in a narrow terminal: the highest is dropped first, 0 never.
    priority: u8,
}

impl<R> From<&Column<R>> for Head<'static> {
    fn from(c: &Column<R>) -> Self {
        Self { title: c.title, right: !c.unit.is_text(), priority: c.priority }
    }
}

/// Function that returns the human-readable text of a cell.
type Shown<'a, R> = &'a dyn Fn(&R, usize) -> String;

/// Prevents CSV injection (OWASP): a string that a spreadsheet would interpret as a formula gets a leading `'`, the
/// spreadsheets' own escape, unless the string is a number.
pub fn no_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err() {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Makes a string safe to print on a terminal later: replaces control characters with visible ones, except for tabs
/// and newlines, which CSV quotes.
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
fn write_csv<R, B: Borrow<R>>(columns: &[Column<R>], rows: impl Iterator<Item = B>, out: &mut dyn Write, terminal: bool) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    if !output().no_header {
        csv.write_record(columns.iter().map(|c| c.id)).map_err(io_error)?;
    }
    let mut raw = String::new();
    for row in rows {
        for column in columns {
            raw.clear();
            (column.value)(row.borrow()).write_raw(column.unit, &mut raw);
            let safe = no_formula(&raw);
            let safe = if terminal { escape_unsafe(&safe) } else { obeyed_by_no_terminal(&safe) };
            csv.write_field(safe.as_bytes()).map_err(io_error)?;
        }
        csv.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    csv.flush()
}

/// Formats rows under a header as CSV for the clipboard, safe for spreadsheets and terminals.
pub fn to_paste(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut csv = csv::Writer::from_writer(Vec::new());
    // Writing to a `Vec` cannot fail.
    let _ = csv.write_record(head);
    for row in rows {
        let _ = csv.write_record(row.iter().map(|c| escape_unsafe(&no_formula(c)).into_owned()));
    }
    csv.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Escapes everything that has a meaning in Markdown, including links, images and HTML.
pub fn escape_markdown(text: &str) -> String {
    ['\\', '|', '<', '`', '*', '_', '[', ']', '!', '&', '~', '$']
        .iter()
        .fold(escape_unsafe(text).into_owned(), |t, c| t.replace(*c, &format!("\\{c}")))
}

/// Writes text on several lines, broken at spaces: the first line begins with `first`, the others with `rest`.
pub fn write_wrapped(out: &mut dyn Write, first: &str, rest: &str, text: &str, width: usize) -> io::Result<()> {
    let room = width.saturating_sub(count_shown(first)).max(20);
    let mut line = String::new();
    let mut lead = first;
    for word in text.split(' ') {
        if !line.is_empty() && count_shown(&line) + 1 + count_shown(word) > room {
            writeln!(out, "{}", format!("{lead}{}", escape_unsafe(&line)).trim_end())?;
            line.clear();
            lead = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{}", format!("{lead}{}", escape_unsafe(&line)).trim_end())
}

fn write_markdown<R>(heads: &[Head<'_>], rows: impl Iterator<Item = R>, cell: Shown<'_, R>, out: &mut dyn Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    if output().no_header {
        return rows
            .map(|row| line((0..heads.len()).map(|at| escape_markdown(&cell(&row, at))).collect()))
            .try_for_each(|l| writeln!(out, "{l}"));
    }
    writeln!(out, "{}", line(heads.iter().map(|h| h.title.to_owned()).collect()))?;
    writeln!(out, "{}", line(heads.iter().map(|h| if h.right { "---:" } else { "---" }.to_owned()).collect()))?;
    for row in rows {
        writeln!(out, "{}", line((0..heads.len()).map(|at| escape_markdown(&cell(&row, at))).collect()))?;
    }
    Ok(())
}

/// Number of rows that determine the column widths; later rows use the same widths.
const SAMPLE: usize = 5_000;

fn write_aligned<R>(
    heads: &[Head<'_>],
    mut rows: impl Iterator<Item = R>,
    cell: Shown<'_, R>,
    out: &mut dyn Write,
    width: Option<usize>,
) -> io::Result<()> {
    const GAP: usize = 2;
    let texts_of = |row: R| -> Vec<String> { (0..heads.len()).map(|at| escape_unsafe(&cell(&row, at)).into_owned()).collect() };
    let sample: Vec<Vec<String>> = rows.by_ref().take(SAMPLE).map(texts_of).collect();
    let mut shown: Vec<usize> = (0..heads.len()).collect();
    // A single huge string must not pad all other rows: it overflows its column instead.
    let longest = |i: usize| sample.iter().map(|r| labels::display_width(&r[i])).max().unwrap_or(0).min(MOST_NAME);
    let flexible = shown.iter().copied().find(|&i| !heads[i].right);
    let mut widths: Vec<usize> = (0..heads.len()).map(|i| longest(i).max(labels::display_width(heads[i].title))).collect();
    let mut texts: HashMap<String, String> = HashMap::new();
    let limit = width.unwrap_or(usize::MAX);
    if let Some(at) = flexible {
        let others = |shown: &[usize]| shown.iter().filter(|&&i| i != at).map(|&i| widths[i] + GAP).sum::<usize>();
        // Drop columns by priority until names have enough room.
        while limit.saturating_sub(others(&shown)) < LEAST_NAME.min(widths[at]) {
            match shown.iter().copied().filter(|&i| heads[i].priority > 0).max_by_key(|&i| (heads[i].priority, i)) {
                Some(worst) => shown.retain(|&i| i != worst),
                None => break,
            }
        }
        let room = limit.saturating_sub(others(&shown)).clamp(LEAST_NAME, MOST_NAME);
        if widths[at] > room {
            // Rows may share a name, but different names must remain distinguishable.
            let names: BTreeSet<String> = sample.iter().map(|r| r[at].clone()).collect();
            let names: Vec<String> = names.into_iter().collect();
            let fitted = labels::fit_labels(&names, room);
            texts = names.into_iter().zip(fitted).collect();
            widths[at] = room;
        }
    }
    let mut line = String::new();
    let mut write = |cells: &[String], head: bool| -> io::Result<()> {
        line.clear();
        for (&i, cell) in shown.iter().zip(cells) {
            let pad = " ".repeat(widths[i].saturating_sub(labels::display_width(cell)));
            let (before, after) = if heads[i].right { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.extend([before, cell, after, "  "]);
        }
        let line = line.trim_end();
        writeln!(out, "{}", if head { bold(line) } else { line.into() })
    };
    if !output().no_header {
        write(&shown.iter().map(|&i| heads[i].title.to_owned()).collect::<Vec<_>>(), true)?;
    }
    for row in sample.into_iter().chain(rows.map(texts_of)) {
        let cells: Vec<String> = shown
            .iter()
            .map(|&i| {
                let text = &row[i];
                if Some(i) == flexible {
                    texts.get(text).cloned().unwrap_or_else(|| labels::cut_middle(text, widths[i]))
                } else if text.len() > MOST_NAME {
                    labels::cut_middle(text, MOST_NAME)
                } else {
                    text.clone()
                }
            })
            .collect();
        write(&cells, false)?;
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
    use crate::analysis::table::{Unit, Value};

    type Row = (&'static str, i64);

    fn printed(rows: &[Row], format: Format) -> String {
        let columns: Vec<Column<Row>> = vec![
            Column::new("name", "kernel", Unit::Text, "", |r: &Row| Value::text(r.0)),
            Column::new("total_ns", "total", Unit::Ns, "", |r: &Row| Value::Int(r.1)),
        ];
        let mut out = Vec::new();
        print_rows(columns, rows.iter().copied(), &mut out, format, None).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn people_get_units_and_clean_text_and_machines_raw_values() {
        let rows = [("a|b\x1b[2J", 1_500), ("カ", 7)];
        assert_eq!(printed(&rows, Format::Table), "kernel      total\na|b^[[2J  1.50 µs\nカ           7 ns\n");
        assert_eq!(printed(&rows, Format::Md).lines().nth(2), Some(r"| a\|b^\[\[2J | 1.50 µs |"));
        assert_eq!(printed(&rows, Format::Csv), "name,total_ns\na|b^[[2J,1500\nカ,7\n");
    }

    #[test]
    fn names_are_no_formulas_and_no_pictures() {
        for evil in ["=HYPERLINK(\"http://evil\")", "@SUM(1+1)", "+cmd|' /C calc'!A0", "-rf", "\t=1"] {
            assert_eq!(no_formula(evil), format!("'{evil}"));
        }
        for plain in ["void k()", "-1.5e3", "+2", "-inf", "", "a=b", "_Z1kv"] {
            assert_eq!(no_formula(plain), plain);
        }
        let rows = [("=1+1", -3), ("![x](http://evil) <b> &lt;", 1)];
        assert_eq!(printed(&rows, Format::Csv), "name,total_ns\n'=1+1,-3\n![x](http://evil) <b> &lt;,1\n");
        assert_eq!(printed(&rows, Format::Md).lines().nth(3), Some(r"| \!\[x\](http://evil) \<b> \&lt; | 1 ns |"));
    }
}
