//! Panels, and how an area is divided among them.

use super::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType};

/// Rows from which panels have borders.
pub const BORDERED: u16 = 28;

/// A panel: with a border and a title, or, where room is short, with a heading. Gives its inside.
pub fn panel(frame: &mut Frame<'_>, area: Rect, title: Vec<Span<'static>>, bordered: bool, theme: &Theme) -> Rect {
    if bordered {
        let mut spans = vec![Span::raw(" ")];
        spans.extend(title);
        spans.push(Span::raw(" "));
        let block = Block::bordered().border_type(BorderType::Rounded).border_style(theme.style(Role::Border)).title(Line::from(spans));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        return Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    }
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    frame.render_widget(Line::from(title), Rect { height: 1.min(inner.height), ..inner });
    Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner }
}

/// Takes rows from the top of an area.
pub fn take(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let out = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    out
}

pub fn lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Text::from(lines), area);
}
