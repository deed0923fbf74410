//! Block model of a shareable report. Strings are unescaped: renderers escape them.

use crate::report::finding_text::FindingText;

/// An SVG image whose strings are escaped, and its description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    pub svg: String,
    pub words: String,
}

/// A table; columns with numbers are right-aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Column titles, and true for right alignment.
    pub head: Vec<(&'static str, bool)>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Level and text; the title of the report has level 1.
    Heading(u8, String),
    Text(String),
    Picture(Picture),
    Table(Table),
    List(Vec<String>),
    /// A command, as a list of arguments.
    Command(Vec<String>),
    Finding(FindingText),
}

/// A shareable report.
#[derive(Clone, Debug, Default)]
pub struct Handout {
    pub title: String,
    pub blocks: Vec<Block>,
}
