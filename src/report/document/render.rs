//! Forms of a document.

use super::block::Document;
use super::{write_html, write_markdown, write_text};
use std::io::{self, Write};

/// Form in which a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    Text,
    Markdown,
    /// A whole page.
    Html,
}

/// Output format of a command whose result for people is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    Page(Renderer),
    Csv,
    Json,
}

impl Document<'_> {
    /// Writes the document with full paths. Text is wrapped to `width`, if there is one.
    pub fn write(&self, out: &mut dyn Write, renderer: Renderer, width: Option<usize>) -> io::Result<()> {
        match renderer {
            Renderer::Text => write_text(out, self, width),
            Renderer::Markdown => write_markdown(out, self, true),
            Renderer::Html => write_html(out, self, true),
        }
    }
}
