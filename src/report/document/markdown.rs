//! Markdown version of a shareable report, for tickets and chats: descriptions replace the images.

use super::block::{Block, Handout};
use super::paths::{command_line, strip_paths};
use crate::report::{finding_text, table};
use std::io::{self, Write};

/// Writes the report; `paths` keeps full paths.
pub fn write_markdown(out: &mut dyn Write, of: &Handout, paths: bool) -> io::Result<()> {
    let raw = |t: &str| if paths { t.to_owned() } else { strip_paths(t) };
    let text = |t: &str| table::escape_markdown(&raw(t));
    for block in &of.blocks {
        match block {
            Block::Heading(level, t) => writeln!(out, "{} {}\n", "#".repeat(usize::from(*level)), text(t))?,
            Block::Text(t) => writeln!(out, "{}\n", text(t))?,
            Block::Picture(p) => writeln!(out, "_{}_\n", text(&p.words))?,
            Block::Table(t) => {
                let rows = t.rows.iter().map(|r| r.iter().map(|c| raw(c)).collect());
                table::write_markdown_texts(&t.head, rows, out)?;
                writeln!(out)?;
            }
            Block::List(items) => {
                items.iter().try_for_each(|i| writeln!(out, "- {}", text(i)))?;
                writeln!(out)?;
            }
            Block::Command(c) => {
                // Use a fence that no line of the command can close.
                let line = command_line(c, paths);
                let ticks = "`".repeat(3 + line.matches("```").count());
                writeln!(out, "{ticks}sh\n{}\n{ticks}\n", crate::model::text::escape_unsafe(&line))?;
            }
            Block::Finding(f) => finding_text::write_markdown(out, f, &text)?,
        }
    }
    Ok(())
}
