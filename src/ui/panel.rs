//! Panels with borders or headings, and helpers for dividing an area.

use super::text::wrap_text;
use super::{Role, Theme};
use crate::model::text::escape_unsafe;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType};

/// Minimum number of rows of a body for panels to have borders.
pub const BORDERED: u16 = 28;

/// Minimum number of columns of a body for panels to have borders.
const BORDERED_COLUMNS: u16 = 100;

/// Returns true if a body of this size has room for borders. In a smaller body, a single panel fills the screen,
/// without side panels.
pub fn fits_borders(body: Rect) -> bool {
    body.height >= BORDERED && body.width >= BORDERED_COLUMNS
}

/// Titled frame around a part of the screen.
#[derive(Default)]
pub struct Panel {
    title: Vec<Span<'static>>,
    /// Text to the right of the title.
    note: Vec<Span<'static>>,
    /// True if the panel has the keyboard focus.
    focused: bool,
}

impl Panel {
    pub fn new(title: Vec<Span<'static>>) -> Self {
        Self { title, ..Self::default() }
    }

    /// Sets the note at the right end of the top edge.
    pub fn note(self, note: Vec<Span<'static>>) -> Self {
        Self { note, ..self }
    }

    pub fn focused(self) -> Self {
        Self { focused: true, ..self }
    }

    pub fn with_focus(self, focused: bool) -> Self {
        Self { focused, ..self }
    }

    /// Draws a border, or only a heading if room is short. Returns the inner area.
    pub fn draw(self, frame: &mut Frame<'_>, area: Rect, bordered: bool, theme: &Theme) -> Rect {
        let padded = |spans: Vec<Span<'static>>| {
            let mut all = vec![Span::raw(" ")];
            // Unstyled spans would inherit the border's color.
            all.extend(spans.into_iter().map(|s| if s.style.fg.is_none() { s.fg(Color::Reset) } else { s }));
            all.push(Span::raw(" "));
            Line::from(all)
        };
        if bordered {
            let border = if self.focused { theme.style(Role::Key).remove_modifier(Modifier::BOLD) } else { theme.style(Role::Border) };
            let mut block = Block::bordered().border_type(BorderType::Rounded).border_style(border);
            let room = usize::from(area.width).saturating_sub(6);
            let title = padded(self.title);
            if self.note.iter().any(|s| !s.content.is_empty()) && title.width() + padded(self.note.clone()).width() < room {
                block = block.title(padded(self.note).right_aligned());
            }
            let block = block.title(title);
            let inner = block.inner(area);
            frame.render_widget(block, area);
            return Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
        }
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        frame.render_widget(Line::from(self.title), Rect { height: 1.min(inner.height), ..inner });
        Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner }
    }
}

/// Draws a panel that has only a title.
pub fn draw_panel(frame: &mut Frame<'_>, area: Rect, title: Vec<Span<'static>>, bordered: bool, theme: &Theme) -> Rect {
    Panel::new(title).draw(frame, area, bordered, theme)
}

/// Splits rows off the top of an area and returns them.
pub fn split_top(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let out = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    out
}

/// Draws a message about an empty screen: a block of lines in the middle.
pub fn draw_notice(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let wide = lines.iter().map(Line::width).max().unwrap_or(0);
    let left = area.width.saturating_sub(u16::try_from(wide).unwrap_or(u16::MAX)) / 2;
    let top = area.height.saturating_sub(u16::try_from(lines.len()).unwrap_or(u16::MAX)) / 3;
    let place = Rect { x: area.x + left, y: area.y + top, width: area.width - left, height: area.height - top };
    draw_lines(frame, place, lines);
}

/// Draws the message of a screen without content. The first sentence is the title, such as what is missing; the rest,
/// below it, says why and names the key or command that helps.
pub fn draw_message(frame: &mut Frame<'_>, area: Rect, text: &str, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(8)).clamp(20, 90);
    let (what, rest) = text.split_once(". ").map_or((text, ""), |(what, rest)| (what, rest));
    let what = if rest.is_empty() { what.to_owned() } else { format!("{what}.") };
    let styled =
        |text: &str, role: Role| wrap_text(&escape_unsafe(text), columns).into_iter().map(move |l| Line::styled(l, theme.style(role)));
    // A message that ends in `…` reports work in progress: do not emphasize it.
    let waits = what.ends_with('…');
    let mut lines: Vec<Line<'static>> = styled(&what, if waits { Role::Dim } else { Role::Title }).collect();
    if !rest.is_empty() {
        lines.push(Line::default());
        lines.extend(styled(rest, Role::Dim));
    }
    draw_notice(frame, area, lines);
}

pub fn draw_lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Text::from(lines), area);
}
