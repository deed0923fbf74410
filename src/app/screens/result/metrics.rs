//! Metrics of one result, by section

use crate::analysis::metrics_page::{self, MetricsRow, Wish};
use crate::app::overlay::FilterInput;
use crate::app::screen::move_selection;
use crate::model::{Details, Metrics};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct MetricsView {
    pub rows: Arc<Vec<MetricsRow>>,
    /// Index of the selected row.
    pub selected: usize,
    pub finder: FilterInput,
    /// Keys of the expanded folds.
    pub open: BTreeSet<String>,
}

/// Input for building the rows.
pub struct Of<'a> {
    pub metrics: &'a Metrics,
    pub result: usize,
    pub details: Option<&'a Details>,
    /// Pinned metrics, shown first.
    pub pins: &'a [Arc<str>],
    /// Number of hints.
    pub hints: usize,
}

impl MetricsView {
    /// Rebuilds the rows, keeping the selected row if it still exists.
    pub fn rebuild_rows(&mut self, of: &Of<'_>) {
        let before = self.rows.get(self.selected).cloned();
        let none = Details::default();
        let wish = Wish { filter: self.finder.text().to_owned(), pins: of.pins.to_vec(), open: self.open.clone(), hints: of.hints };
        self.rows = Arc::new(metrics_page::build_rows(of.metrics, of.result, of.details.unwrap_or(&none), &wish));
        let same = |row: &MetricsRow| match (&before, row) {
            (Some(MetricsRow::Fold { key: a, .. }), MetricsRow::Fold { key: b, .. }) => a == b,
            (Some(b), row) => b == row,
            (None, _) => false,
        };
        // A metric may appear in several sections: select the nearest of its rows.
        let all = self.rows.iter().enumerate().filter(|(_, r)| same(r)).map(|(i, _)| i);
        let at = all.min_by_key(|i| i.abs_diff(self.selected)).unwrap_or(0);
        self.select_near(at);
    }

    /// Selects the row at an index, or else the next selectable row, or else the nearest one above.
    pub fn select_near(&mut self, at: usize) {
        let ok = |i: &usize| self.rows.get(*i).is_some_and(MetricsRow::is_selectable);
        let last = self.rows.len().saturating_sub(1);
        let at = at.min(last);
        self.selected = (at..self.rows.len()).find(ok).or_else(|| (0..=at).rev().find(ok)).unwrap_or(0);
    }

    /// Moves the selection, skipping rows that are not selectable.
    pub fn scroll_by(&mut self, by: isize) {
        let selectable: Vec<usize> = (0..self.rows.len()).filter(|&i| self.rows[i].is_selectable()).collect();
        let now = selectable.iter().position(|&i| i >= self.selected).unwrap_or(0);
        self.selected = selectable.get(move_selection(now, by, selectable.len())).copied().unwrap_or(0);
    }

    /// Expands or collapses a fold.
    pub fn toggle_fold(&mut self, key: String) {
        if !self.open.remove(&key) {
            self.open.insert(key);
        }
    }

    /// Goes to the next or previous section.
    pub fn go_to_section(&mut self, forward: bool) {
        let head = |i: &usize| matches!(self.rows.get(*i), Some(MetricsRow::Section { .. }));
        let found = if forward { (self.selected + 1..self.rows.len()).find(head) } else { (0..self.selected).rev().find(head) };
        self.selected = found.unwrap_or(self.selected);
    }

    /// Goes to a metric; searches for it if it is not in any section.
    pub fn go_to(&mut self, name: &str, of: &Of<'_>) {
        self.finder.clear();
        self.rebuild_rows(of);
        let is = |r: &MetricsRow| match r {
            MetricsRow::Cells { metrics, .. } => metrics.iter().any(|m| **m == *name),
            other => other.metric().is_some_and(|m| **m == *name),
        };
        if let Some(at) = self.rows.iter().position(is) {
            self.selected = at;
        } else {
            self.finder.input = name.into();
            self.rebuild_rows(of);
            self.selected = self.rows.iter().position(is).unwrap_or(0);
        }
    }

    pub fn selected_row(&self) -> Option<&MetricsRow> {
        self.rows.get(self.selected)
    }

    /// Metric of the selected row.
    pub fn selected_metric(&self) -> Option<&Arc<str>> {
        self.selected_row()?.metric()
    }
}
