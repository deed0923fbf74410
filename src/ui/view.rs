//! State between frames: scroll positions, fitted names, and click targets.

use crate::analysis::labels;
use crate::app::Mouse;
use crate::app::session::groups::MOST_COMPARED;
use ratatui::layout::{Position, Rect};
use std::collections::HashMap;
use std::sync::Arc;

/// Names fitted to a width, and the names from which they were made.
#[derive(Debug, Default)]
struct Fitted {
    of: Option<Arc<Vec<String>>>,
    width: usize,
    names: Vec<String>,
}

#[derive(Debug, Default)]
pub struct View {
    /// First visible row of each scrolled list, by list name.
    tops: HashMap<&'static str, usize>,
    /// Maximum scroll offset of the open page.
    pub most_scroll: usize,
    /// True to draw only ASCII characters.
    pub ascii: bool,
    /// Click targets of the last frame with their actions; later ones are on top.
    pub hits: Vec<(Rect, Mouse)>,
    fitted: Fitted,
}

impl View {
    pub fn new(ascii: bool) -> Self {
        Self { ascii, ..Self::default() }
    }

    /// Mouse event for a click at a position.
    pub fn hit_test(&self, column: u16, row: u16) -> Mouse {
        let position = Position { x: column, y: row };
        match self.hits.iter().rev().find(|(area, _)| area.contains(position)) {
            Some((area, Mouse::Spot(at, _))) => Mouse::Spot(*at, usize::from(column - area.x)),
            Some((_, mouse)) => *mouse,
            None => Mouse::Elsewhere,
        }
    }

    pub fn scroll_offset(&mut self, list: &'static str) -> &mut usize {
        self.tops.entry(list).or_default()
    }

    /// Scrolls a list to its selected row, as little as possible, and returns the first visible row.
    pub fn scroll_to(&mut self, list: &'static str, selected: usize, rows: usize, height: usize) -> usize {
        let top = self.scroll_offset(list);
        *top = scrolled_top(*top, selected, rows, height);
        *top
    }

    /// Fits a name to a width, distinct from the other names. All names are refitted only when the names or the width
    /// change; if the table has too many rows for that, each name is fitted individually.
    pub fn fit_name(&mut self, names: &Arc<Vec<String>>, width: usize, row: usize) -> String {
        if names.len() > MOST_COMPARED {
            return names.get(row).map_or_else(String::new, |n| labels::cut_middle(n, width));
        }
        let same = self.fitted.width == width && self.fitted.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, names));
        if !same {
            self.fitted = Fitted { of: Some(Arc::clone(names)), width, names: labels::fit_labels(names, width) };
        }
        self.fitted.names.get(row).cloned().unwrap_or_default()
    }
}

/// First visible row after scrolling to the selected row as little as possible.
pub fn scrolled_top(top: usize, selected: usize, rows: usize, height: usize) -> usize {
    let most = rows.saturating_sub(height);
    let top = if selected < top {
        selected
    } else if selected >= top + height {
        selected + 1 - height
    } else {
        top
    };
    top.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrolling_moves_as_little_as_possible() {
        assert_eq!(scrolled_top(0, 5, 100, 10), 0);
        assert_eq!(scrolled_top(0, 10, 100, 10), 1);
        assert_eq!(scrolled_top(50, 20, 100, 10), 20);
        assert_eq!(scrolled_top(95, 99, 100, 10), 90);
        assert_eq!(scrolled_top(5, 0, 3, 10), 0);
    }

    #[test]
    fn what_lies_on_top_is_hit() {
        let mut view = View::default();
        view.hits.push((Rect::new(0, 0, 10, 10), Mouse::Row(1)));
        view.hits.push((Rect::new(2, 2, 2, 2), Mouse::Item(3)));
        assert_eq!((view.hit_test(1, 1), view.hit_test(2, 3), view.hit_test(50, 1)), (Mouse::Row(1), Mouse::Item(3), Mouse::Elsewhere));
    }
}
