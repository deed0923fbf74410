//! Hints on one result, line by line

use crate::analysis::hints::Subject;
use crate::analysis::ncu_rules;
use crate::app::screen::move_selection;
use crate::model::Details;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Line of the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Index of a hint, and true if the hint is expanded.
    Hint(usize, bool),
    /// Reason for the hint's possible gain.
    Bound(usize),
    /// Metric value that supports the hint.
    Evidence(usize, usize),
    /// Effect of following the hint.
    Effect(usize, usize),
    Action(usize, usize),
    /// Measurement that can confirm the hint.
    Confirm(usize),
    Title(&'static str),
    /// Sentence of the reasoning.
    Reason(String),
    /// Speedup estimate from one of NVIDIA's rules: indices of the rule and its message.
    Theirs(usize, usize),
    /// Placeholder for an empty list of hints.
    Nothing,
}

impl Line {
    /// Returns true if the line is selectable.
    pub fn is_selectable(&self) -> bool {
        matches!(self, Self::Hint(..) | Self::Evidence(..) | Self::Confirm(_) | Self::Theirs(..))
    }
}

/// Maximum number of NVIDIA rules to list.
const MOST_THEIRS: usize = 5;

/// Builds the lines. `toggled` contains the hints that are not in their initial state: the first hint is initially
/// expanded, the others collapsed.
pub fn build_lines(subject: &Subject, details: Option<&Details>, toggled: &BTreeSet<usize>) -> Vec<Line> {
    let mut out = Vec::new();
    for (i, hint) in subject.hints.iter().enumerate() {
        let open = (i == 0) != toggled.contains(&i);
        out.push(Line::Hint(i, open));
        if open {
            out.push(Line::Bound(i));
            out.extend((0..hint.evidence.len()).map(|e| Line::Evidence(i, e)));
            out.extend((0..hint.effects.len()).map(|e| Line::Effect(i, e)));
            out.extend((0..hint.actions.len()).map(|a| Line::Action(i, a)));
            if hint.confirm.is_rerun() || (subject.is_amd() && !hint.confirm.why.is_empty()) {
                out.push(Line::Confirm(i));
            }
        }
    }
    if subject.hints.is_empty() {
        out.push(Line::Nothing);
    }
    if !subject.reasoning.is_empty() {
        out.push(Line::Title("How it was found"));
        out.extend(subject.reasoning.iter().cloned().map(Line::Reason));
    }
    let theirs = details.map(ncu_rules::largest_speedups).unwrap_or_default();
    if !theirs.is_empty() {
        out.push(Line::Title("NVIDIA's rules, by estimated speedup"));
        out.extend(theirs.into_iter().take(MOST_THEIRS).map(|(r, m, ..)| Line::Theirs(r, m)));
    }
    out
}

#[derive(Clone, Debug, Default)]
pub struct HintsView {
    pub lines: Arc<[Line]>,
    /// Index of the selected line.
    pub selected: usize,
    /// Hints that the user toggled: the first hint is then collapsed, any other hint expanded.
    pub toggled: BTreeSet<usize>,
}

impl HintsView {
    /// Hint to which the selected line belongs; `None` for lines about NVIDIA's rules.
    pub fn selected_hint(&self) -> Option<usize> {
        self.lines.get(self.selected).and_then(|l| match l {
            Line::Hint(i, _) | Line::Evidence(i, _) | Line::Confirm(i) => Some(*i),
            _ => None,
        })
    }

    pub fn rebuild_lines(&mut self, subject: &Subject, details: Option<&Details>) {
        let before = self.lines.get(self.selected).cloned();
        self.lines = build_lines(subject, details, &self.toggled).into();
        let same = |l: &Line| match (&before, l) {
            (Some(Line::Hint(a, _)), Line::Hint(b, _)) => a == b,
            (Some(b), l) => b == l,
            (None, _) => false,
        };
        let at = self.lines.iter().position(same).unwrap_or(self.selected);
        self.selected = at.min(self.lines.len().saturating_sub(1));
    }

    pub fn scroll_by(&mut self, by: isize) {
        let selectable: Vec<usize> = (0..self.lines.len()).filter(|&i| self.lines[i].is_selectable()).collect();
        let now = selectable.iter().position(|&i| i >= self.selected).unwrap_or(0);
        self.selected = selectable.get(move_selection(now, by, selectable.len())).copied().unwrap_or(0);
    }

    /// Expands or collapses a hint.
    pub fn toggle_hint(&mut self, hint: usize) {
        if !self.toggled.remove(&hint) {
            self.toggled.insert(hint);
        }
    }

    /// Expands a hint and selects it.
    pub fn show_hint(&mut self, hint: usize, subject: &Subject, details: Option<&Details>) {
        if hint > 0 {
            self.toggled.insert(hint);
        } else {
            self.toggled.remove(&0);
        }
        self.rebuild_lines(subject, details);
        self.selected = self.lines.iter().position(|l| matches!(l, Line::Hint(i, _) if *i == hint)).unwrap_or(0);
    }
}
