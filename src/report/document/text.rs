//! Text version of a document, for a terminal.

use super::block::{BarSeries, Block, CheckText, Document, KeyValue, ShareLine};
use crate::analysis::labels::{cut_end, display_width};
use crate::model::text::escape_unsafe;
use crate::model::units::format_percent;
use crate::report::output::bold;
use crate::report::table::{self, write_wrapped};
use crate::report::{Format, finding_text};
use crate::rerun::{CommandPart, shell};
use std::io::{self, Write};

/// Width of the label column, including the gap after it.
const KEYS: usize = 9;
/// Width of the column of labels in facts.
const FACTS: usize = 21;
/// Width of the column with the parts of a command.
const WORDS: usize = 34;

/// Writes the document with an empty line between blocks, but none below a heading. Without a width, lines are not
/// wrapped.
pub fn write_text(out: &mut dyn Write, of: &Document<'_>, width: Option<usize>) -> io::Result<()> {
    let (mut below_heading, mut rank) = (true, 0);
    for block in &of.blocks {
        if !std::mem::replace(&mut below_heading, matches!(block, Block::Heading(..))) {
            writeln!(out)?;
        }
        match block {
            // Findings are numbered within a report.
            Block::Heading(1..=3, _) => rank = 0,
            Block::Finding(_) => rank += 1,
            _ => {}
        }
        write_block(out, block, rank, width)?;
    }
    Ok(())
}

/// Writes a single block; `rank` is the number of a finding.
fn write_block(out: &mut dyn Write, block: &Block<'_>, rank: usize, width: Option<usize>) -> io::Result<()> {
    let columns = width.unwrap_or(usize::MAX);
    match block {
        Block::Heading(_, t) => writeln!(out, "{}", escape_unsafe(t)),
        Block::Text(t) => write_wrapped(out, "", "", t, columns),
        Block::Verdict(id, headline) => write_wrapped(out, &format!("{} ", bold(&format!("{id}:"))), "  ", headline, columns),
        Block::KeyValues(list) => list.iter().try_for_each(|kv| write_key_value(out, kv, columns)),
        Block::Facts(list) => {
            list.iter().try_for_each(|kv| write_wrapped(out, &format!("  {:<FACTS$} ", kv.key), &" ".repeat(FACTS + 3), &kv.value, columns))
        }
        Block::Picture(p) => write_wrapped(out, "", "", &p.words, columns),
        Block::Table(t) => table::write_aligned_texts(&t.head, t.rows.iter().cloned(), out, width),
        Block::Rows(rows) => rows.print(out, Format::Table, width),
        Block::List(items) => items.iter().try_for_each(|i| write_wrapped(out, "", "  ", i, columns)),
        Block::Reasoning(items) => items.iter().try_for_each(|i| write_wrapped(out, "  ", "    ", i, columns)),
        Block::Bars(_, series) => write_bars(out, series),
        Block::Shares(lines) => lines.iter().try_for_each(|l| write_share(out, l, columns)),
        Block::Command(argv) => write_command(out, "    ", argv),
        Block::Explained(parts) => write_parts(out, parts, columns),
        Block::Script(t) => t.lines().try_for_each(|l| writeln!(out, "    {}", escape_unsafe(l))),
        Block::Finding(f) => finding_text::write_text(out, rank, f, columns),
        Block::Checks(checks) => checks.iter().try_for_each(|c| write_check(out, c)),
    }
}

/// Width of a full bar, in columns.
const BAR: usize = 28;

fn share_bar(share: f64) -> String {
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(eighths % 8 - 1));
    }
    out
}

/// Writes each series below its name, without empty parts.
fn write_bars(out: &mut dyn Write, series: &[BarSeries]) -> io::Result<()> {
    for (at, of) in series.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", escape_unsafe(&of.name))?;
        for bar in of.bars.iter().filter(|b| b.share > 0.0) {
            let percent = format_percent(bar.share * 100.0);
            writeln!(out, "  {:<40} {:>8}  {percent:>6}  {}", bar.label, bar.value, share_bar(bar.share))?;
        }
    }
    Ok(())
}

fn write_share(out: &mut dyn Write, of: &ShareLine, columns: usize) -> io::Result<()> {
    let text = format!("{:>8}  {:>6}  {}", of.value, of.share, of.text);
    write_wrapped(out, "  ", "                    ", &text, columns)
}

fn write_command(out: &mut dyn Write, indent: &str, argv: &[String]) -> io::Result<()> {
    writeln!(out, "{indent}{}", escape_unsafe(&shell::command_line(argv)))
}

fn write_key_value(out: &mut dyn Write, of: &KeyValue, columns: usize) -> io::Result<()> {
    let indent = " ".repeat(KEYS);
    write_wrapped(out, &format!("{:<KEYS$}", of.key), &indent, &of.value, columns)?;
    if of.argv.is_empty() { Ok(()) } else { write_command(out, &indent, &of.argv) }
}

/// Writes the command with one part a line, then the purpose of each part.
fn write_parts(out: &mut dyn Write, parts: &[CommandPart], columns: usize) -> io::Result<()> {
    for (n, line) in split_command(parts).iter().enumerate() {
        writeln!(out, "{}{}", if n == 0 { "  " } else { "      " }, escape_unsafe(line))?;
    }
    writeln!(out)?;
    for part in parts {
        let words = escape_unsafe(&shell::join_words(&part.words)).into_owned();
        let short = cut_end(&words, WORDS);
        let head = format!("  {short}{}  ", " ".repeat(WORDS - display_width(&short)));
        write_wrapped(out, &head, &" ".repeat(WORDS + 4), &part.why, columns)?;
    }
    Ok(())
}

/// Lines of a shell command, one for each part that has arguments; all but the last end in a backslash.
pub(super) fn split_command(parts: &[CommandPart]) -> Vec<String> {
    let mut lines: Vec<String> = parts.iter().filter(|p| !p.words.is_empty()).map(|p| shell::join_words(&p.words)).collect();
    let last = lines.len().saturating_sub(1);
    lines[..last].iter_mut().for_each(|line| line.push_str(" \\"));
    lines
}

fn write_check(out: &mut dyn Write, of: &CheckText) -> io::Result<()> {
    writeln!(out, "{:<8}  {:<34}  {}", of.state, of.what, escape_unsafe(&of.found))?;
    if !of.means.is_empty() {
        writeln!(out, "{:<8}  {}", "", escape_unsafe(&of.means))?;
    }
    of.fix.as_ref().map_or(Ok(()), |fix| writeln!(out, "{:<8}  → {}", "", escape_unsafe(fix)))
}
