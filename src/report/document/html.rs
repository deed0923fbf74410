//! Self-contained HTML page without network access or scripts, for light mode, dark mode, and print.

use super::block::{Block, Document, Table};
use super::paths::{command_line, strip_paths};
use super::svg::escape_xml;
use super::text::write_block;
use crate::report::finding_text::{EvidenceText, FindingText};
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");

/// Writes the document; `paths` keeps full paths.
pub fn write_html(out: &mut dyn Write, of: &Document<'_>, paths: bool) -> io::Result<()> {
    let text = |t: &str| if paths { escape_xml(t) } else { escape_xml(&strip_paths(t)) };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    )?;
    // Forbids external resources and scripts.
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">")?;
    writeln!(out, "<title>{}</title><style>\n{STYLE}</style></head><body><main>", text(of.title()))?;
    let mut verdict = true;
    for block in &of.blocks {
        match block {
            Block::Heading(level, t) => writeln!(out, "<h{level}>{}</h{level}>", text(t), level = level.clamp(&1, &6))?,
            Block::Text(t) => {
                // The first paragraph is the verdict.
                writeln!(out, "<p{}>{}</p>", if std::mem::take(&mut verdict) { " class=\"verdict\"" } else { "" }, text(t))?;
            }
            Block::Picture(p) => writeln!(out, "<figure>{}</figure>", p.svg)?,
            Block::Table(t) => write_table(out, t, &text)?,
            Block::List(items) => write_list(out, items, &text)?,
            Block::Command(c) => writeln!(out, "<pre>{}</pre>", escape_xml(&command_line(c, paths)))?,
            Block::Finding(f) => write_finding(out, f, &text)?,
            Block::Verdict(..)
            | Block::Bars(..)
            | Block::Shares(_)
            | Block::KeyValues(_)
            | Block::Facts(_)
            | Block::Rows(_)
            | Block::Explained(_)
            | Block::Script(_)
            | Block::Checks(_) => {
                let mut plain = Vec::new();
                write_block(&mut plain, block, 0, None)?;
                writeln!(out, "<pre>{}</pre>", text(&String::from_utf8_lossy(&plain)))?;
            }
        }
    }
    writeln!(out, "</main></body></html>")
}

fn write_list(out: &mut dyn Write, items: &[String], text: &dyn Fn(&str) -> String) -> io::Result<()> {
    let items: Vec<String> = items.iter().map(|i| format!("<li>{}</li>", text(i))).collect();
    writeln!(out, "<ul>{}</ul>", items.join(""))
}

fn write_table(out: &mut dyn Write, of: &Table, text: &dyn Fn(&str) -> String) -> io::Result<()> {
    let class = |at: usize| if of.head.get(at).is_some_and(|h| h.1) { " class=\"n\"" } else { "" };
    let head: Vec<String> = of.head.iter().enumerate().map(|(at, h)| format!("<th{}>{}</th>", class(at), text(h.0))).collect();
    writeln!(out, "<div class=\"wide\"><table><thead><tr>{}</tr></thead><tbody>", head.join(""))?;
    for row in &of.rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(at, c)| format!("<td{}>{}</td>", class(at), text(c))).collect();
        writeln!(out, "<tr>{}</tr>", cells.join(""))?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn write_finding(out: &mut dyn Write, f: &FindingText, text: &dyn Fn(&str) -> String) -> io::Result<()> {
    let how = if f.rating.is_empty() { String::new() } else { format!(" <span class=\"how\">{}</span>", text(&f.rating)) };
    let tone = if f.is_problem { "wrong" } else { "fine" };
    writeln!(out, "<section class=\"found {tone}\"><h4><code>{}</code>{how}</h4><p>{}</p>", text(f.id), text(&f.headline))?;
    let evidence: Vec<String> = f.evidence.iter().map(EvidenceText::to_line).collect();
    let costs: Vec<String> = f.costs.iter().map(|(word, t)| format!("{word}: {t}")).collect();
    let lists =
        [("Cost", &costs), ("Evidence", &evidence), ("Where", &f.places), ("Consequences", &f.consequences), ("What to do", &f.actions)];
    for (title, items) in lists {
        if !items.is_empty() {
            writeln!(out, "<h5>{title}</h5>")?;
            write_list(out, items, text)?;
        }
    }
    writeln!(out, "</section>")
}
