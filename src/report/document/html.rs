//! Self-contained HTML page without network access or scripts, for light mode, dark mode, and print.

use super::block::{BarSeries, Block, Document, KeyValue, Rows, RowsTable, Table};
use super::paths::{command_line, strip_paths};
use super::svg::escape_xml;
use super::text::split_command;
use crate::model::units::{format_count, format_percent};
use crate::report::doctor;
use crate::report::finding_text::{EvidenceText, FindingText};
use crate::report::output::{Cut, note_cut, output};
use crate::rerun::shell;
use std::io::{self, Write};

const STYLE: &str = include_str!("style.css");

/// Writes the document; `paths` keeps full paths. A budget leaves out blocks at the end: if the page were cut at an
/// arbitrary byte, browsers would not show what follows an unclosed element.
pub fn write_html(out: &mut dyn Write, of: &Document<'_>, paths: bool) -> io::Result<()> {
    let all = of.blocks.len();
    let Some(budget) = output().budget else { return write_page(out, of, all, paths) };
    let page = |blocks: usize| {
        let mut bytes = Vec::new();
        write_page(&mut bytes, of, blocks, paths).map(|()| bytes)
    };
    // Always keep the first two blocks: the title, and the verdict that follows it.
    let (mut fits, mut above) = (all.min(2), all + 1);
    while above - fits > 1 {
        let middle = fits.midpoint(above);
        if page(middle)?.len() <= budget { fits = middle } else { above = middle }
    }
    if fits < all {
        note_cut(Cut::Unsaid(format!(
            "{} left out for the budget; all of it: {}",
            format_count(all - fits, "part"),
            shell::command_line(&output().whole)
        )));
    } else {
        note_cut(Cut::Said);
    }
    out.write_all(&page(fits)?)
}

/// Writes a page of the first blocks of a document.
fn write_page(out: &mut dyn Write, of: &Document<'_>, blocks: usize, paths: bool) -> io::Result<()> {
    let mut page = Page { out, paths };
    writeln!(
        page.out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    )?;
    // Forbids external resources and scripts.
    writeln!(page.out, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">")?;
    writeln!(page.out, "<title>{}</title><style>\n{STYLE}</style></head><body><main>", page.text(of.title()))?;
    // Without a verdict, the first paragraph takes its place.
    let is_verdict = |b: &Block<'_>| matches!(b, Block::Verdict(..));
    let verdict = if of.blocks.iter().any(is_verdict) { None } else { of.blocks.iter().position(|b| matches!(b, Block::Text(_))) };
    for (at, block) in of.blocks.iter().take(blocks).enumerate() {
        page.write_block(block, verdict == Some(at))?;
    }
    writeln!(page.out, "</main></body></html>")
}

/// A page that is being written. Cells and items are HTML, all other strings are escaped.
struct Page<'a> {
    out: &'a mut dyn Write,
    paths: bool,
}

impl Page<'_> {
    fn text(&self, text: &str) -> String {
        if self.paths { escape_xml(text) } else { escape_xml(&strip_paths(text)) }
    }

    fn texts<'t>(&self, texts: impl IntoIterator<Item = &'t String>) -> Vec<String> {
        texts.into_iter().map(|t| self.text(t)).collect()
    }

    fn write_block(&mut self, block: &Block<'_>, verdict: bool) -> io::Result<()> {
        match block {
            Block::Heading(level, t) => {
                let text = self.text(t);
                writeln!(self.out, "<h{level}>{text}</h{level}>", level = level.clamp(&1, &6))
            }
            Block::Text(t) => {
                let class = if verdict { " class=\"verdict\"" } else { "" };
                let text = self.text(t);
                writeln!(self.out, "<p{class}>{text}</p>")
            }
            Block::Verdict(id, headline) => {
                let headline = self.text(headline);
                writeln!(self.out, "<p class=\"verdict\"><code>{id}</code>: {headline}</p>")
            }
            Block::Picture(p) => writeln!(self.out, "<figure>{}</figure>", p.svg),
            Block::Table(t) => self.write_table(t),
            Block::Rows(rows) => self.write_table(&rows.to_table()),
            Block::Checks(checks) => self.write_table(&Rows { columns: doctor::columns(), rows: checks.iter().collect() }.to_table()),
            Block::List(items) | Block::Reasoning(items) => self.write_list(&self.texts(items)),
            Block::KeyValues(list) | Block::Facts(list) => self.write_key_values(list),
            Block::Bars(_, series) => series.iter().try_for_each(|s| self.write_bars(s)),
            Block::Shares(lines) => {
                let rows = lines.iter().map(|l| vec![self.text(&l.value), self.text(&l.share), self.text(&l.text)]).collect();
                self.write_rows(&[], rows, &[true, true, false])
            }
            Block::Command(argv) => self.write_code(&command_line(argv, self.paths)),
            Block::Explained(parts) => {
                self.write_code(&split_command(parts).join("\n  "))?;
                let code = |words: &[String]| format!("<code>{}</code>", self.text(&shell::join_words(words)));
                let rows = parts.iter().map(|p| vec![code(&p.words), self.text(&p.why)]).collect();
                self.write_rows(&[], rows, &[])
            }
            Block::Script(t) => self.write_code(t),
            Block::Finding(f) => self.write_finding(f),
        }
    }

    fn write_code(&mut self, code: &str) -> io::Result<()> {
        // Line breaks belong to the code; other control characters are escaped.
        let lines: Vec<String> = code.lines().map(escape_xml).collect();
        writeln!(self.out, "<pre>{}</pre>", lines.join("\n"))
    }

    fn write_list(&mut self, items: &[String]) -> io::Result<()> {
        let items: Vec<String> = items.iter().map(|i| format!("<li>{i}</li>")).collect();
        writeln!(self.out, "<ul>{}</ul>", items.join(""))
    }

    fn write_table(&mut self, of: &Table) -> io::Result<()> {
        let heads: Vec<String> = of.head.iter().map(|h| self.text(h.0)).collect();
        let right: Vec<bool> = of.head.iter().map(|h| h.1).collect();
        let rows = of.rows.iter().map(|r| self.texts(r)).collect();
        self.write_rows(&heads, rows, &right)
    }

    /// Writes a table whose columns are right-aligned where `right` says so; without heads, it has no header.
    fn write_rows(&mut self, heads: &[String], rows: Vec<Vec<String>>, right: &[bool]) -> io::Result<()> {
        let line = |cells: &[String], tag: &str| {
            let class = |at: usize| if right.get(at) == Some(&true) { " class=\"n\"" } else { "" };
            let cells: Vec<String> = cells.iter().enumerate().map(|(at, c)| format!("<{tag}{}>{c}</{tag}>", class(at))).collect();
            format!("<tr>{}</tr>", cells.join(""))
        };
        let head = if heads.is_empty() { String::new() } else { format!("<thead>{}</thead>", line(heads, "th")) };
        writeln!(self.out, "<div class=\"wide\"><table>{head}<tbody>")?;
        for row in rows {
            writeln!(self.out, "{}", line(&row, "td"))?;
        }
        writeln!(self.out, "</tbody></table></div>")
    }

    fn write_key_values(&mut self, list: &[KeyValue]) -> io::Result<()> {
        let command = |argv: &[String]| match argv {
            [] => String::new(),
            argv => format!("<pre>{}</pre>", escape_xml(&command_line(argv, self.paths))),
        };
        let row = |kv: &KeyValue| vec![format!("<b>{}</b>", self.text(&kv.key)), format!("{}{}", self.text(&kv.value), command(&kv.argv))];
        let rows = list.iter().map(row).collect();
        self.write_rows(&[], rows, &[])
    }

    /// Writes a series below its name, without empty parts.
    fn write_bars(&mut self, of: &BarSeries) -> io::Result<()> {
        let name = self.text(&of.name);
        writeln!(self.out, "<h4>{name}</h4>")?;
        let rows = of.bars.iter().filter(|b| b.share > 0.0).map(|b| {
            let percent = b.share.clamp(0.0, 1.0) * 100.0;
            let bar = format!("<div class=\"bar\" style=\"width:{percent:.1}%\"></div>");
            vec![self.text(&b.label), self.text(&b.value), self.text(&format_percent(b.share * 100.0)), bar]
        });
        let rows = rows.collect();
        self.write_rows(&[], rows, &[false, true, true, false])
    }

    fn write_finding(&mut self, f: &FindingText) -> io::Result<()> {
        let rating = if f.rating.is_empty() { String::new() } else { format!(" <span class=\"how\">{}</span>", self.text(&f.rating)) };
        let tone = if f.is_problem { "wrong" } else { "fine" };
        let headline = self.text(&f.headline);
        writeln!(self.out, "<section class=\"found {tone}\"><h4><code>{}</code>{rating}</h4><p>{headline}</p>", f.id)?;
        let evidence: Vec<String> = f.evidence.iter().map(EvidenceText::to_line).collect();
        let costs: Vec<String> = f.costs.iter().map(|(word, t)| format!("{word}: {t}")).collect();
        let confirm: Vec<String> = Some(f.confirm.0.clone()).filter(|why| !why.is_empty()).into_iter().collect();
        let lists = [
            ("Cost", &costs),
            ("Evidence", &evidence),
            ("Where", &f.places),
            ("Consequences", &f.consequences),
            ("What to do", &f.actions),
            ("To confirm it", &confirm),
        ];
        for (title, items) in lists {
            if !items.is_empty() {
                writeln!(self.out, "<h5>{title}</h5>")?;
                self.write_list(&self.texts(items))?;
            }
        }
        if !f.confirm.1.is_empty() {
            self.write_code(&command_line(&f.confirm.1, self.paths))?;
        }
        writeln!(self.out, "</section>")
    }
}
