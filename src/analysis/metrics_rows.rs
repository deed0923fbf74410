//! Rows of the metrics screen, and settings for building them.

use super::memory_chart;
use crate::model::sections::{Piece, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A chart that spans several lines.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    Memory(Box<memory_chart::Flow>),
    /// Values as a function of another quantity, with the position of this launch.
    Curve {
        /// Points (x, y), ordered by x.
        points: Vec<(f64, f64)>,
        here: Option<f64>,
        axis: String,
    },
    /// Values over the duration of the kernel.
    Time {
        label: String,
        unit: String,
        /// Values in order of time.
        values: Vec<f64>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum MetricsRow {
    Section {
        id: Arc<str>,
        name: Arc<str>,
        /// Description of the section.
        about: Arc<str>,
        /// Most severe verdict of the profiler's rules on the section.
        verdict: Option<Verdict>,
    },
    /// A list within a section that can be opened and closed.
    Fold {
        key: String,
        label: String,
        /// Number of rows in the list.
        count: usize,
        open: bool,
    },
    /// A title within a section.
    Label(String),
    Metric(Cell),
    /// A metric shown as a bar among similar ones.
    Bar {
        /// The metric; empty for an instance of a metric.
        cell: Cell,
        /// Length, 0 to 1.
        share: f64,
    },
    /// A row of a table with several metrics.
    Cells {
        /// Title of the row; empty for the header.
        label: String,
        /// Formatted values, or column headers.
        cells: Vec<String>,
        /// Metrics of the cells.
        metrics: Vec<Arc<str>>,
        /// True for the header row.
        head: bool,
    },
    /// Message of a rule: index of the rule, and of the message within it.
    Rule(usize, usize),
    /// A one-line hint that links to the hints screen.
    Hint(usize),
    /// A note by this program.
    Note(String),
    Chart(Chart),
}

/// A metric with its formatted value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    pub name: Arc<str>,
    pub label: String,
    /// Formatted value; empty if it was not collected.
    pub number: String,
    pub unit: String,
    /// The value in percent, if it is drawn as a bar.
    pub percent: Option<f64>,
}

impl MetricsRow {
    /// Returns true if the row can be selected.
    pub fn is_selectable(&self) -> bool {
        !matches!(self, Self::Label(_) | Self::Note(_) | Self::Cells { head: true, .. } | Self::Chart(_))
    }

    /// Returns the metric of the row.
    pub fn metric(&self) -> Option<&Arc<str>> {
        match self {
            Self::Metric(cell) | Self::Bar { cell, .. } if !cell.name.is_empty() => Some(&cell.name),
            Self::Cells { metrics, head: false, .. } => metrics.first(),
            _ => None,
        }
    }
}

/// Settings of the page.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Search text: only metrics with a matching name or label are shown.
    pub filter: String,
    /// Metrics shown first.
    pub pins: Vec<Arc<str>>,
    /// Keys of the open folds.
    pub open: BTreeSet<String>,
    /// Number of hints; the first few are shown at the top.
    pub hints: usize,
}

/// Returns the text of a rule without its links.
pub fn plain_text(text: &[Piece]) -> String {
    text.iter()
        .map(|p| match p {
            Piece::Text(t) => t.as_str(),
            Piece::Section { label, .. } | Piece::Link { label, .. } => label.as_str(),
        })
        .collect()
}
