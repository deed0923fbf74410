//! Badges for severities and diagnoses; the glyphs are distinct even without colors.

use super::super::{Role, Theme};
use crate::analysis::finding::{Finding, FindingId, Sure};
use crate::analysis::hints::{Diagnosis, Severity};
use crate::ui::text::align_left;
use ratatui::text::Span;

/// Glyph and color of a severity.
pub fn severity_glyph(severity: Severity) -> (&'static str, Role) {
    match severity {
        Severity::Healthy => ("✓", Role::Good),
        Severity::Low => ("·", Role::Dim),
        Severity::Medium => ("△", Role::Warn),
        Severity::High => ("▲", Role::Bad),
    }
}

/// Glyph and color of a finding. The color of a problem that is only possible is that of a warning.
pub fn finding_glyph<I: FindingId>(finding: &Finding<I>) -> (&'static str, Role) {
    match severity_glyph(finding.severity) {
        (glyph, Role::Bad) if finding.sure == Sure::Possible => (glyph, Role::Warn),
        other => other,
    }
}

/// Badge of a first hint in a table: glyph and id.
pub fn hint_badge(id: Diagnosis, severity: Severity, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let (mark, role) = severity_glyph(severity);
    vec![
        Span::styled(format!("{mark} "), theme.style(role)),
        Span::styled(align_left(id.id(), columns.saturating_sub(2)), theme.style(role)),
    ]
}
