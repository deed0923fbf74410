//! Rows of the metrics screen, and what they are made with.

use super::memory_chart;
use crate::model::sections::{Piece, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A chart that is drawn over several lines.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    Memory(Box<memory_chart::Flow>),
    /// Values over something else; where this launch stands.
    Curve {
        /// (x, y), by x.
        points: Vec<(f64, f64)>,
        here: Option<f64>,
        axis: String,
    },
    /// Values over the time of the kernel.
    Time {
        label: String,
        unit: String,
        /// Values in order of time.
        values: Vec<f64>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    Section {
        id: Arc<str>,
        name: Arc<str>,
        /// What it is about.
        about: Arc<str>,
        /// What the tool's rules make of it: the gravest verdict.
        verdict: Option<Verdict>,
    },
    /// A list within a section that can be opened and closed.
    Fold {
        key: String,
        label: String,
        /// Number of rows in it.
        count: usize,
        /// Whether it is open.
        open: bool,
    },
    /// A title within a section.
    Label(String),
    Metric(Cell),
    /// A metric as a bar among its like.
    Bar {
        /// The metric; empty for an instance of one.
        cell: Cell,
        /// Length, 0 to 1.
        share: f64,
    },
    /// A row of a table with several metrics.
    Cells {
        /// Title of the row; empty for the heads.
        label: String,
        /// Shown values, or heads.
        cells: Vec<String>,
        /// The metrics behind them.
        metrics: Vec<Arc<str>>,
        /// Whether these are the heads.
        head: bool,
    },
    /// What a rule says: index of the rule and of its message.
    Rule(usize, usize),
    /// A hint in one line, which leads to the hints.
    Hint(usize),
    /// A remark of ours.
    Note(String),
    Chart(Chart),
}

/// A metric with its value, as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub name: Arc<str>,
    /// What people call it.
    pub label: String,
    /// The value; empty when it was not collected.
    pub number: String,
    pub unit: String,
    /// The value in percent, for a bar.
    pub percent: Option<f64>,
}

impl Row {
    /// Whether the selection stops here.
    #[must_use]
    pub fn selectable(&self) -> bool {
        !matches!(self, Self::Label(_) | Self::Note(_) | Self::Cells { head: true, .. } | Self::Chart(_))
    }

    /// The metric that the row is about.
    #[must_use]
    pub fn metric(&self) -> Option<&Arc<str>> {
        match self {
            Self::Metric(cell) | Self::Bar { cell, .. } if !cell.name.is_empty() => Some(&cell.name),
            Self::Cells { metrics, head: false, .. } => metrics.first(),
            _ => None,
        }
    }
}

/// What the page is made with.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Typed text: only metrics whose name or label match it.
    pub filter: String,
    /// Metrics that are shown first.
    pub pins: Vec<Arc<str>>,
    /// Folds that are open.
    pub open: BTreeSet<String>,
    /// Number of hints, of which the first stand at the top.
    pub hints: usize,
}

/// A rule's text without its links.
#[must_use]
pub fn plain(text: &[Piece]) -> String {
    text.iter()
        .map(|p| match p {
            Piece::Text(t) => t.as_str(),
            Piece::Section { label, .. } | Piece::Link { label, .. } => label.as_str(),
        })
        .collect()
}
