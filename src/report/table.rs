//! A table of cells that know both their raw value and how people read it.

use crate::analysis::labels;
use crate::model::text::clean;
use crate::report::Format;
use std::borrow::Cow;
use std::io::{self, Write};

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// For machines; empty when absent.
    pub raw: String,
    /// For people; empty when absent.
    pub human: String,
}

impl Cell {
    /// The same text for both.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let raw = text.into();
        Self { human: raw.clone(), raw }
    }

    /// A raw value and how people read it.
    #[must_use]
    pub fn both(raw: impl std::fmt::Display, human: impl Into<String>) -> Self {
        Self { raw: format!("{raw}"), human: human.into() }
    }
}

/// A column's field name (for CSV), its title (for people) and whether it is a number.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Field name in CSV: the same as in JSON.
    pub field: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Numbers stand to the right.
    pub right: bool,
    /// Left out of tables for people: it repeats another column in a longer form.
    pub machine_only: bool,
}

/// Columns and rows.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell a column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Prints the table in a format other than JSON. `width` is the terminal's, if there is one: the first text column gives way to it.
    pub fn print(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        match format {
            Format::Csv | Format::Json => self.csv(out),
            Format::Md => self.markdown(out),
            Format::Table => self.aligned(out, width),
        }
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(self.columns.iter().map(|c| c.field)).map_err(io_error)?;
        for row in &self.rows {
            csv.write_record(row.iter().map(|c| c.raw.as_str())).map_err(io_error)?;
        }
        csv.flush()
    }

    fn shown(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&i| !self.columns[i].machine_only).collect()
    }

    fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let shown = self.shown();
        let escape = |t: &str| {
            clean(t)
                .replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('<', "\\<")
                .replace('`', "\\`")
                .replace('*', "\\*")
                .replace('_', "\\_")
        };
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        writeln!(out, "{}", line(shown.iter().map(|&i| self.columns[i].title.to_owned()).collect()))?;
        writeln!(out, "{}", line(shown.iter().map(|&i| if self.columns[i].right { "---:" } else { "---" }.to_owned()).collect()))?;
        for row in &self.rows {
            writeln!(out, "{}", line(shown.iter().map(|&i| escape(&row[i].human)).collect()))?;
        }
        Ok(())
    }

    fn aligned(&self, out: &mut dyn Write, width: Option<usize>) -> io::Result<()> {
        const GAP: usize = 2;
        let shown = self.shown();
        let cells: Vec<Vec<Cow<'_, str>>> = self.rows.iter().map(|r| shown.iter().map(|&i| clean(&r[i].human)).collect()).collect();
        let mut widths: Vec<usize> = shown.iter().map(|&i| labels::width(self.columns[i].title)).collect();
        for row in &cells {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(labels::width(cell));
            }
        }
        let flexible = shown.iter().position(|&i| !self.columns[i].right);
        let mut texts: Option<Vec<String>> = None;
        if let (Some(limit), Some(at)) = (width, flexible) {
            let others: usize = widths.iter().sum::<usize>() - widths[at] + GAP * (widths.len() - 1);
            let room = limit.saturating_sub(others).max(24);
            if widths[at] > room {
                widths[at] = room;
                texts = Some(labels::fit(&cells.iter().map(|r| r[at].clone().into_owned()).collect::<Vec<_>>(), room));
            }
        }
        let mut line = String::new();
        let mut write = |cells: &[&str]| -> io::Result<()> {
            line.clear();
            for (k, cell) in cells.iter().enumerate() {
                let pad = " ".repeat(widths[k].saturating_sub(labels::width(cell)));
                if self.columns[shown[k]].right {
                    line.push_str(&pad);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&pad);
                }
                line.push_str("  ");
            }
            writeln!(out, "{}", line.trim_end())
        };
        write(&shown.iter().map(|&i| self.columns[i].title).collect::<Vec<_>>())?;
        for (r, row) in cells.iter().enumerate() {
            let mut row: Vec<&str> = row.iter().map(AsRef::as_ref).collect();
            if let (Some(texts), Some(at)) = (&texts, flexible) {
                row[at] = &texts[r];
            }
            write(&row)?;
        }
        Ok(())
    }
}

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
        let column = |field, title, right| Column { field, title, right, machine_only: false };
        Table {
            columns: vec![column("name", "kernel", false), column("total_ns", "total", true)],
            rows: vec![vec![Cell::text("a|b\x1b[2J"), Cell::both(1_500, "1.50 µs")], vec![Cell::text("カ"), Cell::both(7, "7 ns")]],
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
        assert_eq!(printed(Format::Md).lines().nth(2), Some("| a\\|b^[[2J | 1.50 µs |"));
        assert_eq!(printed(Format::Csv), "name,total_ns\na|b\x1b[2J,1500\nカ,7\n");
    }
}
