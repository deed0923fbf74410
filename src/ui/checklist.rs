//! The checklist over the screen: what of an analysis this session has, and what is still to do.

use super::text::{left, wrap};
use super::{Role, Theme};
use crate::analysis::checklist::{Part, Tick, items};
use crate::app::App;
use crate::model::Metrics;
use ratatui::text::{Line, Span};

/// Its lines.
#[must_use]
pub fn lines(app: &App, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    const WHAT: usize = 28;
    let metrics = |at: usize| -> Option<&Metrics> { app.reports.get(at)?.profile.as_ref()?.metrics.as_deref() };
    let parts: Vec<Part<'_>> = app
        .reports
        .iter()
        .filter_map(|r| {
            let joined = r.joins.iter().filter_map(|(other, join)| Some((metrics(*other)?, join)));
            let joined = joined.flat_map(|(m, join)| join.pairs.iter().map(move |p| (p.launch, m, p.result))).collect();
            Some(Part { profile: r.profile.as_deref()?, joined })
        })
        .collect();
    if parts.is_empty() {
        return vec![Line::raw("nothing is read yet")];
    }
    let mut out = Vec::new();
    for item in items(&parts) {
        let (mark, role) = match item.tick {
            Tick::Done => ("✓", Role::Good),
            Tick::Partly => ("▸", Role::Warn),
            Tick::Open => ("○", Role::Text),
            Tick::NotNeeded => ("·", Role::Faint),
        };
        out.push(Line::from(vec![
            Span::styled(format!("{mark} "), theme.style(role)),
            Span::styled(left(item.what, WHAT), theme.style(if item.tick == Tick::NotNeeded { Role::Faint } else { Role::Title })),
            Span::styled(item.have.clone(), theme.style(Role::Dim)),
        ]));
        if matches!(item.tick, Tick::Partly | Tick::Open) {
            let lines = wrap(item.next, columns.saturating_sub(4).max(20)).into_iter().enumerate();
            out.extend(lines.map(|(i, l)| Line::styled(format!("  {}{l}", if i == 0 { "→ " } else { "  " }), theme.style(Role::Next))));
        }
    }
    out
}
