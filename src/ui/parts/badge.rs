//! Badges of severities and diagnoses; glyphs differ without colours, too.

use super::super::{Role, Theme};
use crate::analysis::hints::{Diagnosis, Severity};
use crate::ui::text::left;
use ratatui::text::Span;

/// Glyph and colour of a severity.
#[must_use]
pub fn glyph(severity: Severity) -> (&'static str, Role) {
    match severity {
        Severity::Healthy => ("✓", Role::Good),
        Severity::Low => ("·", Role::Dim),
        Severity::Medium => ("△", Role::Warn),
        Severity::High => ("▲", Role::Bad),
    }
}

/// Table cell of a first hint: glyph and id.
#[must_use]
pub fn badge(id: Diagnosis, severity: Severity, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let (mark, role) = glyph(severity);
    vec![Span::styled(format!("{mark} "), theme.style(role)), Span::styled(left(id.id(), columns.saturating_sub(2)), theme.style(role))]
}
