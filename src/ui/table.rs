//! Table widget: fitted columns, clickable headers, and rows with a selection.

use super::view::View;
use super::{Role, Theme};
use crate::app::Mouse;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Column of a table; `F` formats a cell from a row.
pub struct Column<F> {
    pub title: &'static str,
    pub width: usize,
    /// Drop order if room is short: the highest rank is dropped first.
    pub rank: u8,
    pub cell: F,
}

/// Chooses columns that fit, by rank; each needs `gap` columns more than its width. A less important column never
/// replaces a more important one that did not fit.
pub fn fit_columns<F>(columns: &[Column<F>], mut room: usize, gap: usize, applies: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..columns.len()).filter(|&i| applies(i)).collect();
    ranked.sort_by_key(|&i| columns[i].rank);
    let mut shown = Vec::new();
    for i in ranked {
        let Some(left) = room.checked_sub(columns[i].width + gap) else { break };
        room = left;
        shown.push(i);
    }
    shown.sort_unstable();
    shown
}

/// Total width of the visible columns, gaps included.
pub fn total_width<F>(columns: &[Column<F>], shown: &[usize], gap: usize) -> usize {
    shown.iter().map(|&i| columns[i].width + gap).sum()
}

/// Column header: padded text, index of the sort order that a click selects, and true if the table is sorted by this
/// column.
pub struct Head {
    pub text: String,
    pub number: Option<usize>,
    pub sorted: bool,
}

impl Head {
    /// Creates a header that is only a label.
    pub fn label_only(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: None, sorted: false }
    }
}

pub fn draw_heads(frame: &mut Frame<'_>, area: Rect, heads: Vec<Head>, view: &mut View, theme: &Theme) {
    let mut spans = Vec::new();
    let mut x = area.x;
    for head in heads {
        let width = u16::try_from(crate::analysis::labels::display_width(&head.text)).unwrap_or(0);
        if let Some(number) = head.number {
            view.hits.push((Rect { x, width, ..area }, Mouse::Head(number)));
        }
        x = x.saturating_add(width);
        // Underline only the word, without its padding.
        let word = head.text.trim_start();
        spans.push(Span::raw(head.text[..head.text.len() - word.len()].to_owned()));
        let tail = word.len() - word.trim_end().len();
        spans.push(Span::styled(word.trim_end().to_owned(), theme.style(if head.sorted { Role::Sorted } else { Role::Head })));
        spans.push(Span::raw(" ".repeat(tail)));
    }
    frame.render_widget(Line::from(spans), area);
}

/// Size and selection of a list. Its name identifies the scroll position.
#[derive(Clone, Copy)]
pub struct Rows {
    pub list: &'static str,
    pub count: usize,
    pub selected: usize,
}

/// Draws the visible rows, scrolling as little as possible; `row` builds a line.
pub fn draw_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    of: Rows,
    view: &mut View,
    theme: &Theme,
    mut row: impl FnMut(usize, &mut View) -> Vec<Span<'static>>,
) {
    let top = view.scroll_to(of.list, of.selected, of.count, area.height.into());
    for (y, at) in (0..area.height).zip(top..of.count) {
        let rect = Rect { y: area.y + y, height: 1, ..area };
        view.hits.push((rect, Mouse::Row(at)));
        let spans = row(at, view);
        frame.render_widget(Line::from(spans), rect);
        if at == of.selected {
            crate::ui::widgets::highlight_row(frame.buffer_mut(), rect, theme);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_in_by_rank() {
        let column = |rank, width| Column { title: "", width, rank, cell: () };
        let columns = [column(2, 4), column(0, 6), column(1, 9), column(3, 1)];
        let shown = |room| fit_columns(&columns, room, 1, |_| true);
        assert_eq!(shown(6), [] as [usize; 0]);
        assert_eq!(shown(7), [1]);
        assert_eq!(shown(17), [1, 2]);
        assert_eq!(shown(21), [1, 2], "the narrow one is less important than the one that found no room");
        assert_eq!(shown(24), [0, 1, 2, 3]);
        assert_eq!(fit_columns(&columns, 24, 1, |i| i != 1), [0, 2, 3]);
    }
}
