//! Theme sample for the list of themes, with an example of each widget.

use super::super::{Role, Theme};
use super::stacked_bar::{Share, stacked_bar};
use super::{change_bar, gauge, hint_badge};
use crate::analysis::Family;
use crate::analysis::hints::{Diagnosis, Severity};
use crate::analysis::roofline::Precision;
use crate::analysis::triage::TimeCategory;
use ratatui::text::{Line, Span};

/// Number of rows and columns of the sample.
pub const SIZE: (u16, usize) = (9, 46);

pub fn sample_lines(theme: &Theme) -> Vec<Line<'static>> {
    let columns = SIZE.1;
    let mut out = Vec::new();
    let words = [
        ("text", Role::Text),
        ("title", Role::Title),
        ("dim", Role::Dim),
        ("faint", Role::Faint),
        ("mark", Role::Mark),
        ("next", Role::Next),
    ];
    let mut spans: Vec<Span<'static>> = words.iter().map(|(word, role)| Span::styled(format!("{word}  "), theme.style(*role))).collect();
    spans.extend([Span::styled("k", theme.style(Role::Key)), Span::styled(" key", theme.style(Role::Dim))]);
    out.push(Line::from(spans));
    for (severity, id) in [(Severity::High, Diagnosis::DramBandwidth), (Severity::Medium, Diagnosis::LaunchOverhead)] {
        let mut spans = hint_badge(id, severity, 26, theme);
        spans.push(Span::raw(" "));
        spans.extend(gauge(if severity == Severity::High { 0.92 } else { 0.45 }, 14, Some(0.8), theme));
        out.push(Line::from(spans));
    }
    let mut spans = vec![Span::styled("✓ healthy  ", theme.style(Role::Good)), Span::styled("-41%  ", theme.style(Role::Good))];
    spans.extend(change_bar(-0.6, 13, theme.style(Role::Good), theme));
    out.push(Line::from(spans));
    let parts: Vec<Share> =
        TimeCategory::ALL.into_iter().map(|p| Share::of_category(p, String::new(), 1.0 / TimeCategory::ALL.len() as f64, theme)).collect();
    out.push(stacked_bar(&parts, columns));
    out.push(Line::from(Family::ALL.map(|f| Span::styled("▌   ", theme.style(Role::Family(f)))).to_vec()));
    let precisions = Precision::ALL.map(|p| Span::styled(format!("━━ {}  ", p.display_name()), theme.style(Role::Work(p))));
    out.push(Line::from(precisions.to_vec()));
    out.push(Line::styled("─".repeat(columns), theme.style(Role::Border)));
    out
}
