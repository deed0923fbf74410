//! Window and cursor of a timeline, and their movement

use crate::analysis::timeline::Window;

/// Visible window and cursor of a timeline, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewport {
    pub start: i64,
    pub end: i64,
    pub cursor: i64,
}

/// Margin on each side of a zoom target, as a fraction (1/n) of the target's length.
const MARGIN: i64 = 20;

impl Viewport {
    /// Window that covers a whole span.
    pub fn whole_span((start, end): (i64, i64)) -> Self {
        Self { start, end: end.max(start.saturating_add(1)), cursor: start }
    }

    pub fn window(self, columns: usize) -> Window {
        Window::new(self.start, self.end, columns)
    }

    pub fn length(self) -> i64 {
        self.end - self.start
    }

    /// Shows a time range with a margin and moves the cursor to its start.
    pub fn zoom_to_range(self, start: i64, end: i64, span: (i64, i64), columns: usize) -> Self {
        let margin = ((end - start) / MARGIN).max(1);
        Self { start: start.saturating_sub(margin), end: end.saturating_add(margin), cursor: start }.clamp_to_span(span, columns)
    }

    /// Clamps the window to the span and to at least 1 ns per column.
    pub fn clamp_to_span(self, (from, to): (i64, i64), columns: usize) -> Self {
        let whole = (to - from).max(1);
        let least = i64::try_from(columns).unwrap_or(1).min(whole).max(1);
        let length = (self.end - self.start).clamp(least, whole);
        let start = self.start.clamp(from, (to - length).max(from));
        Self { start, end: start + length, cursor: self.cursor.clamp(from, to) }
    }

    /// Scrolls the window to the cursor, no further than necessary but with some room beyond the cursor.
    pub fn scroll_to_cursor(self, span: (i64, i64), columns: usize) -> Self {
        let room = self.length() / 8;
        let start = if self.cursor < self.start {
            self.cursor - room
        } else if self.cursor >= self.end {
            self.cursor - self.length() + room.max(1)
        } else {
            return self;
        };
        Self { start, end: start + self.length(), ..self }.clamp_to_span(span, columns)
    }

    /// Moves the cursor by a number of columns, but not out of `span`, and scrolls the window to it.
    pub fn step_cursor(self, columns: i64, width: usize, span: (i64, i64)) -> Self {
        let step = self.window(width).column_width();
        let cursor = self.cursor.saturating_add(columns.saturating_mul(step)).clamp(span.0, span.1.saturating_sub(1).max(span.0));
        Self { cursor, ..self }.scroll_to_cursor(span, width)
    }

    /// Moves window and cursor by eighths of the window's length.
    pub fn pan_by_eighths(self, eighths: i64, span: (i64, i64), columns: usize) -> Self {
        self.move_by(self.length().saturating_mul(eighths) / 8, span, columns)
    }

    /// Moves the window by a number of ns; the cursor keeps its screen position.
    pub fn move_by(self, by: i64, span: (i64, i64), columns: usize) -> Self {
        let before = self.start;
        let moved = Self { start: self.start.saturating_add(by), end: self.end.saturating_add(by), ..self }.clamp_to_span(span, columns);
        Self { cursor: self.cursor + (moved.start - before), ..moved }.clamp_to_span(span, columns)
    }

    /// Scales the window by a ratio; the time `at` keeps its screen position.
    pub fn zoom_at(self, at: i64, (by, of): (i64, i64), span: (i64, i64), columns: usize) -> Self {
        let scaled = |ns: i64| i64::try_from(i128::from(ns) * i128::from(by) / i128::from(of.max(1))).unwrap_or(i64::MAX / 4);
        let at = at.clamp(self.start, self.end);
        let least = i64::try_from(columns).unwrap_or(1);
        if by < of && self.length() <= least {
            return self;
        }
        let to = Self { start: at - scaled(at - self.start), end: at + scaled(self.end - at), ..self }.clamp_to_span(span, columns);
        // Compensates for rounding during earlier zooms, so that zooming out reaches the whole span.
        let whole = span.1 - span.0;
        if by > of && whole - to.length() <= whole / 1_000 { Self { start: span.0, end: span.1, ..to } } else { to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPAN: (i64, i64) = (1_000, 2_000_000);

    #[test]
    fn zooming_in_and_out_comes_back() {
        let place = Viewport { cursor: 700_000, ..Viewport::whole_span(SPAN) };
        let near = (0..10).fold(place, |p, _| p.zoom_at(p.cursor, (1, 2), SPAN, 100));
        assert!((near.start..near.end).contains(&700_000) && near.length() < 2_100, "{near:?}");
        let far = (0..20).fold(near, |p, _| p.zoom_at(p.cursor, (2, 1), SPAN, 100));
        assert_eq!((far.start, far.end), SPAN);
    }

    proptest! {
        #[test]
        fn one_stays_inside_whatever_one_does(moves in prop::collection::vec((0..5_u8, -40_i64..40), 0..60), columns in 1_usize..300) {
            let mut p = Viewport::whole_span(SPAN);
            for (what, by) in moves {
                p = match what {
                    0 => p.step_cursor(by, columns, SPAN),
                    1 => p.pan_by_eighths(by, SPAN, columns),
                    2 => p.zoom_at(p.cursor, (1, 2), SPAN, columns),
                    3 => p.zoom_at(p.cursor, (2, 1), SPAN, columns),
                    _ => p.zoom_to_range(p.cursor, p.cursor + by.abs(), SPAN, columns),
                };
                prop_assert!(SPAN.0 <= p.start && p.start < p.end && p.end <= SPAN.1, "{p:?}");
                prop_assert!((SPAN.0..=SPAN.1).contains(&p.cursor));
            }
        }
    }
}
