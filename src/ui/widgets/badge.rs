//! Badges for severities and diagnoses; the glyphs are distinct even without colors.

use super::super::{Role, Theme};
use crate::analysis::hints::{Diagnosis, FirstHint, Severity};
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

/// Minimum share of all kernels' time at stake for a hint to have the color of high or medium severity.
const STAKES: [(f64, Role); 2] = [(0.05, Role::Bad), (0.01, Role::Warn)];

/// Badge of a first hint in a table: glyph and id.
pub fn hint_badge(id: Diagnosis, severity: Severity, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    badge(id, severity, severity_glyph(severity).1, columns, theme)
}

/// Badge of a kernel's first hint in a list of kernels. The glyph shows the severity for the kernel itself; the color
/// is limited by the time at stake relative to all kernels, of whose time the kernel takes `share`, 0 to 1.
pub fn staked_badge(hint: &FirstHint, share: f64, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let own = severity_glyph(hint.severity).1;
    let role = match hint.gain {
        Some((_, most)) => {
            let allowed = STAKES.iter().find(|s| most * share >= s.0).map_or(Role::Dim, |s| s.1);
            if own == Role::Bad || allowed == Role::Dim { allowed } else { own }
        }
        None => own,
    };
    badge(hint.id, hint.severity, role, columns, theme)
}

fn badge(id: Diagnosis, severity: Severity, role: Role, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let mark = severity_glyph(severity).0;
    vec![
        Span::styled(format!("{mark} "), theme.style(role)),
        Span::styled(align_left(id.id(), columns.saturating_sub(2)), theme.style(role)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn the_colour_of_a_hint_depends_on_what_is_at_stake_of_the_run() {
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let color = |severity, gain, share| {
            let hint = FirstHint { id: Diagnosis::SmallGrid, severity, headline: String::new(), gain };
            staked_badge(&hint, share, 20, &theme)[0].style.fg
        };
        let of = |role| theme.style(role).fg;
        assert_eq!(color(Severity::High, Some((0.2, 0.8)), 0.3), of(Role::Bad));
        assert_eq!(color(Severity::High, Some((0.2, 0.8)), 0.03), of(Role::Warn));
        assert_eq!(color(Severity::High, Some((0.2, 0.8)), 0.002), of(Role::Dim));
        assert_eq!(color(Severity::Medium, Some((0.0, 0.2)), 0.9), of(Role::Warn));
        assert_eq!(color(Severity::Low, Some((0.0, 0.05)), 1.0), of(Role::Dim));
        assert_eq!(color(Severity::Healthy, None, 0.001), of(Role::Good));
    }
}
