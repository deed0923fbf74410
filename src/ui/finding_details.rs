//! Complete description of a finding, as lines of text.

use super::text::{align_left, align_right, wrap_text};
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::triage::Finding;
use crate::analysis::triage::finding::COMPARE_RANKS;
use crate::app::session::Straggler;
use crate::model::text::escape_unsafe;
use crate::report::finding_text::EvidenceText;
use crate::report::triage as say;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Adds wrapped text after a label.
fn put_text(out: &mut Vec<Line<'static>>, (first, label): (&str, Style), (what, style): (&str, Style), columns: usize) {
    let indent = display_width(first);
    for (i, line) in wrap_text(&escape_unsafe(what), columns.saturating_sub(indent).max(20)).into_iter().enumerate() {
        let lead = if i == 0 { first.to_owned() } else { " ".repeat(indent) };
        out.push(Line::from(vec![Span::styled(lead, label), Span::styled(line, style)]));
    }
}

fn put_head(out: &mut Vec<Line<'static>>, word: &'static str, theme: &Theme) {
    if !out.is_empty() {
        out.push(Line::default());
    }
    out.push(Line::styled(word, theme.style(Role::Head)));
}

/// Adds the remedies and the values of a finding about the run or a kernel.
pub fn put_advice(out: &mut Vec<Line<'static>>, (actions, evidence): (&[String], &[EvidenceText]), columns: usize, theme: &Theme) {
    let (text, dim) = (theme.style(Role::Text), theme.style(Role::Dim));
    put_head(out, "What to do", theme);
    for (n, action) in (1..).zip(actions) {
        put_text(out, (&format!("{n} "), dim), (action, text), columns);
    }
    if !evidence.is_empty() {
        put_head(out, "Evidence", theme);
        let values = evidence.iter().map(|e| display_width(&e.value)).max().unwrap_or(0).max(11);
        for e in evidence {
            let than = if e.threshold.is_empty() { String::new() } else { format!("  ({})", e.threshold) };
            let name = columns.saturating_sub(values + 1 + display_width(&than)).min(58);
            out.push(Line::from(vec![
                Span::styled(align_left(&cut_end(&escape_unsafe(&e.name), name), name), dim),
                Span::styled(align_right(&e.value, values), theme.style(Role::Title)),
                Span::styled(than, dim),
            ]));
        }
    }
}

/// Complete description of a finding: values, places, remedies, and how to confirm it.
pub fn detail_lines(
    finding: &Finding,
    (begin, base): (Option<i64>, &str),
    straggler: Option<Straggler<'_>>,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut f = say::finding_text(finding, base, begin);
    // The other ranks are open, so replace the advice to open or record them with what helps against the slow one.
    if let Some(remedies) = straggler.map(|s| &s.finding.actions).filter(|_| finding.id.asks_for_ranks()) {
        f.actions.retain(|action| action != COMPARE_RANKS && !remedies.contains(action));
        f.actions.splice(0..0, remedies.iter().cloned());
        f.confirm = Default::default();
    }
    let mut out: Vec<Line<'static>> = Vec::new();
    let (text, dim) = (theme.style(Role::Text), theme.style(Role::Dim));
    let put = |out: &mut Vec<Line<'static>>, first: &str, style: Style, what: &str| put_text(out, (first, dim), (what, style), columns);
    let head = |out: &mut Vec<Line<'static>>, word: &'static str| put_head(out, word, theme);
    put(&mut out, "", text, &f.headline);
    if !finding.bound.is_empty() {
        put(&mut out, "upper bound: ", dim, &finding.bound);
    }
    put_advice(&mut out, (&f.actions, &f.evidence), columns, theme);
    if !f.places.is_empty() {
        head(&mut out, "Where");
        for p in &f.places {
            put(&mut out, "", text, p);
        }
    }
    if !f.consequences.is_empty() {
        head(&mut out, "Consequences");
        for consequence in &f.consequences {
            put(&mut out, "", text, consequence);
        }
    }
    if !f.confirm.0.is_empty() {
        head(&mut out, "To confirm");
        put(&mut out, "", dim, &f.confirm.0);
        put(&mut out, "  ", text, &crate::rerun::shell::command_line(&f.confirm.1));
    }
    out
}
