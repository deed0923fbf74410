//! Table widget: fitted columns, clickable headers, and rows with a selection.

use super::view::View;
use super::{Role, Theme};
use crate::analysis::table::{Column, Sort};
use crate::app::Mouse;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Chooses columns that fit, by priority; each needs `gap` columns more than its width. A less important column never
/// replaces a more important one that did not fit.
pub fn fit_columns<R>(columns: Vec<Column<R>>, mut room: usize, gap: usize) -> Vec<Column<R>> {
    let mut ranked: Vec<(u8, usize)> = columns.iter().enumerate().map(|(i, c)| (c.priority, i)).collect();
    ranked.sort_unstable();
    let mut shown = vec![false; columns.len()];
    for (_, i) in ranked {
        let Some(left) = room.checked_sub(columns[i].width + gap) else { break };
        room = left;
        shown[i] = true;
    }
    columns.into_iter().zip(shown).filter_map(|(c, shown)| shown.then_some(c)).collect()
}

/// Total width of columns including gaps.
pub fn total_width<R>(columns: &[Column<R>], gap: usize) -> usize {
    columns.iter().map(|c| c.width + gap).sum()
}

/// Column header: padded text, the sort order selected by a click, and true if the table is sorted by this column.
pub struct Head {
    pub text: String,
    pub sort: Option<Sort>,
    pub sorted: bool,
}

impl Head {
    /// Creates a header that is only a label.
    pub fn label_only(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, sorted: false }
    }

    /// Creates the header of a column in a table that is sorted by `by`.
    pub fn of_column<R>(column: &Column<R>, text: String, by: Sort) -> Self {
        Self { text, sort: column.sort, sorted: column.sort == Some(by) }
    }
}

pub fn draw_heads(frame: &mut Frame<'_>, area: Rect, heads: Vec<Head>, view: &mut View, theme: &Theme) {
    let mut spans = Vec::new();
    let mut x = area.x;
    for head in heads {
        let width = u16::try_from(crate::analysis::labels::display_width(&head.text)).unwrap_or(0);
        if let Some(sort) = head.sort {
            view.hits.push((Rect { x, width, ..area }, Mouse::Head(sort)));
        }
        x = x.saturating_add(width);
        // Underline only the word, not its padding.
        let word = head.text.trim_start();
        spans.push(Span::raw(head.text[..head.text.len() - word.len()].to_owned()));
        let tail = word.len() - word.trim_end().len();
        spans.push(Span::styled(word.trim_end().to_owned(), theme.style(if head.sorted { Role::Sorted } else { Role::Head })));
        spans.push(Span::raw(" ".repeat(tail)));
    }
    frame.render_widget(Line::from(spans), area);
}

/// Size and selection of a list. The name identifies the scroll position.
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
    use crate::analysis::table::{Unit, Value};

    #[test]
    fn columns_come_in_by_priority() {
        let column = |id, priority, width| Column::<()>::new(id, "", Unit::Id, "", |()| Value::Absent).priority(priority).on_screen(width);
        let columns = || vec![column("a", 2, 4), column("b", 0, 6), column("c", 1, 9), column("d", 3, 1)];
        let shown = |room| fit_columns(columns(), room, 1).iter().map(|c| c.id).collect::<String>();
        assert_eq!([shown(6), shown(7), shown(17), shown(24)], ["", "b", "bc", "abcd"]);
        assert_eq!(shown(21), "bc", "the narrow one is less important than the one that found no room");
    }
}
