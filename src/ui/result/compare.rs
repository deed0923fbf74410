//! Two results side by side: better and worse in colour, by the direction that the metric has.

use super::super::table::{self, Rows};
use super::super::text::{left, right};
use super::super::view::View;
use super::super::{Role, Theme};
use crate::analysis::compare::{Change, Row};
use crate::analysis::labels::{cut_end, cut_middle, width};
use crate::app::{ActionId, App, ResultScreen};
use crate::model::config::dim3;
use crate::model::text::clean;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let Some((report, metrics, other)) = &screen.compare.other else { return };
    let columns = usize::from(area.width);
    let [against, head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let name = metrics.results.get(*other).map(|r| {
        let dims = |d: Option<[u32; 3]>| d.map(dim3).unwrap_or_default();
        format!("{}  ({}) × ({})", clean(r.kernel.function()), dims(r.grid), dims(r.block))
    });
    let file = app.session.reports.get(*report).filter(|_| *report != screen.report).and_then(|r| r.file.file_name());
    let file = file.map(|f| format!("  in {}", clean(&f.to_string_lossy()))).unwrap_or_default();
    let key = app.session.key(ActionId::CompareWith);
    let tail = format!("  result {other} ({} of {}){file}  ({key} chooses another)", other + 1, metrics.results.len());
    let line = vec![
        Span::styled("with ", theme.style(Role::Dim)),
        Span::styled(cut_middle(&name.unwrap_or_default(), columns.saturating_sub(width(&tail) + 5).max(20)), theme.style(Role::Title)),
        Span::styled(cut_end(&tail, columns / 2), theme.style(Role::Dim)),
    ];
    frame.render_widget(Line::from(line), against);
    // Label, first, second, change; with room the metric's own name, too.
    // `0.32 inst/cycle` and a blank before it.
    let value = 16;
    let label = (columns.saturating_sub(2 * value + 12)).clamp(20, 46);
    let full = columns.saturating_sub(label + 2 * value + 14);
    let titles = format!("{}{}{}{}", left("metric", label), right("this", value), right("other", value), right("change", 12));
    frame.render_widget(Line::styled(titles, theme.style(Role::Head)), head);
    let of = Rows { list: "compare", count: screen.compare.rows.len(), selected: screen.compare.selected };
    table::rows(frame, rows, of, view, theme, |at, _| {
        let Some(row) = screen.compare.rows.get(at) else { return Vec::new() };
        let (role, sign) = match row.change {
            Change::Better => (Role::Good, "better"),
            Change::Worse => (Role::Bad, "worse"),
            Change::Different => (Role::Text, ""),
            Change::Same | Change::Alone => (Role::Faint, ""),
        };
        let quiet = matches!(row.change, Change::Same | Change::Alone);
        let text = theme.style(if quiet { Role::Dim } else { Role::Text });
        let mut spans = vec![
            Span::styled(left(&cut_end(&clean(&row.label), label.saturating_sub(1)), label), text),
            Span::styled(right(&clean(&row.first), value), text),
            Span::styled(right(&clean(&row.second), value), text),
            Span::styled(right(&change(row), 12), theme.style(role)),
        ];
        if full >= 30 {
            let sign = if sign.is_empty() { String::new() } else { format!("{sign}  ") };
            spans.push(Span::styled(format!("  {}", left(&sign, 8)), theme.style(role)));
            spans.push(Span::styled(cut_end(&clean(&row.name), full.saturating_sub(10)), theme.style(Role::Faint)));
        }
        spans
    });
}

/// `+12.3%`, `-4.5 pts`, `3.1×`, or what else there is to say.
fn change(row: &Row) -> String {
    let mark = match row.change {
        Change::Better => "▲ ",
        Change::Worse => "▼ ",
        _ => "",
    };
    match (row.delta, row.change) {
        (_, Change::Alone) => "only one".to_owned(),
        (_, Change::Same) => "=".to_owned(),
        (Some(d), _) if row.points => format!("{mark}{d:+.1} pts"),
        (Some(d), _) if d >= 200.0 => format!("{mark}{:.1}×", d / 100.0 + 1.0),
        (Some(d), _) => format!("{mark}{d:+.1}%"),
        (None, _) => format!("{mark}≠"),
    }
}
