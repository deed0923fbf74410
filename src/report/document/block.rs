//! Block model of everything that is printed for people. Strings are unescaped: renderers escape them.

use crate::analysis::table::{Column, Outputs, columns_of};
use crate::report::finding_text::FindingText;
use crate::report::{Format, table};
use crate::rerun::CommandPart;
use std::borrow::Borrow;
use std::io::{self, Write};

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

/// A table with declared columns, which may be cut to a width and to a budget.
pub trait RowsTable {
    /// Prints the rows, as [`table::print_rows`] does.
    fn print(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()>;

    /// The same table as strings, complete.
    fn to_table(&self) -> Table;
}

/// Rows with the columns that show them.
pub struct Rows<R, B: Borrow<R>> {
    pub columns: Vec<Column<R>>,
    pub rows: Vec<B>,
}

impl<R, B: Borrow<R>> RowsTable for Rows<R, B> {
    fn print(&self, out: &mut dyn Write, format: Format, width: Option<usize>) -> io::Result<()> {
        table::print_rows(self.columns.clone(), self.rows.iter().map(Borrow::borrow), out, format, width)
    }

    fn to_table(&self) -> Table {
        let columns = columns_of(self.columns.clone(), Outputs::TEXT);
        Table {
            head: columns.iter().map(|c| (c.title, !c.unit.is_text())).collect(),
            rows: self.rows.iter().map(|row| columns.iter().map(|c| c.shown(row.borrow())).collect()).collect(),
        }
    }
}

/// A labelled sentence and the command that it mentions, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// Empty for a sentence that continues the one before.
    pub key: String,
    pub value: String,
    pub argv: Vec<String>,
}

impl KeyValue {
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into(), argv: Vec::new() }
    }

    /// Adds the command that does what the sentence recommends.
    pub fn with_command(self, argv: &[String]) -> Self {
        Self { argv: argv.to_vec(), ..self }
    }
}

/// Result of checking one property of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckText {
    pub id: &'static str,
    /// ok, warning, blocks or unknown.
    pub state: &'static str,
    /// Property that was checked.
    pub what: &'static str,
    pub found: String,
    /// Consequence of a problem; empty if there is none.
    pub means: String,
    /// Command or step that solves the problem.
    pub fix: Option<String>,
}

/// Part of a whole, shown as a bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// Names the same part in all series.
    pub id: &'static str,
    /// Name of the part in this series.
    pub label: String,
    pub value: String,
    /// Share of the whole, 0 to 1.
    pub share: f64,
}

/// A whole divided into parts, such as the time of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    pub name: String,
    pub bars: Vec<Bar>,
}

/// Sentence about a part of a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareLine {
    pub value: String,
    pub share: String,
    pub text: String,
}

pub enum Block<'a> {
    /// Level and text; the title of the document has level 1.
    Heading(u8, String),
    Text(String),
    /// Identifier and headline of the finding that matters most.
    Verdict(&'static str, String),
    KeyValues(Vec<KeyValue>),
    /// Properties of a subject, with longer labels.
    Facts(Vec<KeyValue>),
    Picture(Picture),
    Table(Table),
    Rows(Box<dyn RowsTable + 'a>),
    List(Vec<String>),
    /// Sentences that lead to what follows, below their heading.
    Reasoning(Vec<String>),
    /// Title of the parts, and one series for each whole. All series have the same parts.
    Bars(&'static str, Vec<BarSeries>),
    Shares(Vec<ShareLine>),
    /// A command, as a list of arguments.
    Command(Vec<String>),
    /// A command in parts, each with its purpose. A part without arguments only explains.
    Explained(Vec<CommandPart>),
    Script(String),
    Finding(FindingText),
    Checks(Vec<CheckText>),
}

impl Block<'_> {
    /// A command, unless it is empty.
    pub fn command(argv: Vec<String>) -> Option<Self> {
        (!argv.is_empty()).then_some(Self::Command(argv))
    }
}

/// Blocks in reading order; `text.rs`, `markdown.rs` and `html.rs` render them.
#[derive(Default)]
pub struct Document<'a> {
    pub blocks: Vec<Block<'a>>,
}

impl Document<'_> {
    /// First heading, which becomes the title of the window.
    pub fn title(&self) -> &str {
        let heading = self.blocks.iter().find_map(|b| if let Block::Heading(_, text) = b { Some(text.as_str()) } else { None });
        heading.unwrap_or("warpscope")
    }
}
