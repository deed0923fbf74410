//! Markdown version of a document, for tickets and chats: descriptions replace the images.

use super::block::{BarSeries, Block, Document, KeyValue, Rows, RowsTable, Table};
use super::paths::{command_line, strip_paths};
use super::text::split_command;
use crate::model::text::escape_unsafe;
use crate::model::units::format_percent;
use crate::report::{Format, doctor, finding_text, table};
use crate::rerun::shell;
use std::io::{self, Write};

/// Writes the document; `paths` keeps full paths.
pub fn write_markdown(out: &mut dyn Write, of: &Document<'_>, paths: bool) -> io::Result<()> {
    let mut text = Vec::new();
    write_blocks(&mut text, of, paths)?;
    // An empty line ends each block, but not the document.
    out.write_all(text.strip_suffix(b"\n\n").map_or(&text, |rest| &text[..=rest.len()]))
}

fn write_blocks(out: &mut dyn Write, of: &Document<'_>, paths: bool) -> io::Result<()> {
    let raw = |t: &str| if paths { t.to_owned() } else { strip_paths(t) };
    let text = |t: &str| table::escape_markdown(&raw(t));
    for block in &of.blocks {
        match block {
            Block::Heading(level, t) => writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), text(t))?,
            Block::Text(t) => writeln!(out, "{}\n", text(t))?,
            Block::Picture(p) => writeln!(out, "_{}_\n", text(&p.words))?,
            Block::Table(t) => write_table(out, t, &raw)?,
            Block::List(items) | Block::Reasoning(items) => {
                items.iter().try_for_each(|i| writeln!(out, "- {}", text(i)))?;
                writeln!(out)?;
            }
            Block::Verdict(id, headline) => writeln!(out, "**{id}**: {}\n", text(headline))?,
            Block::KeyValues(list) | Block::Facts(list) => {
                list.iter().try_for_each(|kv| write_key_value(out, kv, &text, paths))?;
                writeln!(out)?;
            }
            Block::Rows(rows) if paths => {
                rows.print(out, Format::Md, None)?;
                writeln!(out)?;
            }
            Block::Rows(rows) => write_table(out, &rows.to_table(), &raw)?,
            Block::Bars(title, series) => write_bars(out, title, series, &raw)?,
            Block::Shares(lines) => {
                lines.iter().try_for_each(|l| writeln!(out, "- {} ({}): {}", l.value, l.share, text(&l.text)))?;
                writeln!(out)?;
            }
            Block::Command(c) => write_code(out, &command_line(c, paths))?,
            Block::Explained(parts) => {
                write_code(out, &split_command(parts).join("\n  "))?;
                for part in parts {
                    let code = inline_code(&shell::join_words(&part.words), &text);
                    let gap = if code.is_empty() { "" } else { ": " };
                    writeln!(out, "- {code}{gap}{}", text(&part.why))?;
                }
                writeln!(out)?;
            }
            Block::Script(t) => write_code(out, t)?,
            Block::Checks(checks) => {
                Rows { columns: doctor::columns(), rows: checks.iter().collect() }.print(out, Format::Md, None)?;
                writeln!(out)?;
            }
            Block::Finding(f) => finding_text::write_markdown(out, f, &text)?,
        }
    }
    Ok(())
}

fn write_table(out: &mut dyn Write, of: &Table, raw: &dyn Fn(&str) -> String) -> io::Result<()> {
    let rows = of.rows.iter().map(|r| r.iter().map(|c| raw(c)).collect());
    table::write_markdown_texts(&of.head, rows, out)?;
    writeln!(out)
}

/// Writes a table with a row for each part and a column for each series, without parts that are empty everywhere.
fn write_bars(out: &mut dyn Write, title: &str, series: &[BarSeries], raw: &dyn Fn(&str) -> String) -> io::Result<()> {
    let names: Vec<String> = series.iter().map(|s| raw(&s.name)).collect();
    let heads: Vec<(&str, bool)> = std::iter::once((title, false)).chain(names.iter().map(|n| (n.as_str(), true))).collect();
    let parts = series.first().map_or(0, |s| s.bars.len());
    let rows = (0..parts).filter(|&at| series.iter().any(|s| s.bars[at].share > 0.0)).map(|at| {
        let cells = series.iter().map(|s| format!("{} ({})", s.bars[at].value, format_percent(s.bars[at].share * 100.0)));
        std::iter::once(series[0].bars[at].id.to_owned()).chain(cells).collect()
    });
    table::write_markdown_texts(&heads, rows, out)?;
    writeln!(out)
}

/// Writes shell code in a fence that no line of it can close.
fn write_code(out: &mut dyn Write, code: &str) -> io::Result<()> {
    let ticks = "`".repeat(3 + code.matches("```").count());
    writeln!(out, "{ticks}sh")?;
    code.lines().try_for_each(|line| writeln!(out, "{}", escape_unsafe(line)))?;
    writeln!(out, "{ticks}\n")
}

/// Code within a sentence. Code that contains backticks is escaped instead, since it would end there.
fn inline_code(code: &str, text: &dyn Fn(&str) -> String) -> String {
    match code {
        "" => String::new(),
        code if code.contains('`') => text(code),
        code => format!("`{}`", escape_unsafe(code)),
    }
}

fn write_key_value(out: &mut dyn Write, of: &KeyValue, text: &dyn Fn(&str) -> String, paths: bool) -> io::Result<()> {
    let key = if of.key.is_empty() { String::new() } else { format!("{}: ", text(&of.key)) };
    writeln!(out, "- {key}{}", text(&of.value))?;
    if of.argv.is_empty() { Ok(()) } else { writeln!(out, "  {}", inline_code(&command_line(&of.argv, paths), text)) }
}
