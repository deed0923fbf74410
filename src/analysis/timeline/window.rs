//! A time window divided into columns, and the activity in each column. The cost depends on the number of columns, not
//! of events.

use super::event::{Category, Events};
use super::lane::Lane;
use super::track::Track;

/// A time range, ns, divided into columns of equal width (within 1 ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: i64,
    pub end: i64,
    pub columns: usize,
}

impl Window {
    /// Creates a window with at least 1 ns per column.
    pub fn new(start: i64, end: i64, columns: usize) -> Self {
        let columns = columns.max(1);
        let least = i64::try_from(columns).unwrap_or(i64::MAX);
        Self { start, end: end.max(start.saturating_add(least)), columns }
    }

    pub fn length(&self) -> i64 {
        self.end - self.start
    }

    /// Start of a column, ns; for the column after the last one, the end of the window.
    pub fn column_start(&self, column: usize) -> i64 {
        let part = i128::from(self.length()) * column as i128 / self.columns.max(1) as i128;
        self.start + i64::try_from(part).unwrap_or(i64::MAX)
    }

    /// Returns the column that contains a time; if it is outside the window, the nearest one.
    pub fn column_at(&self, time: i64) -> usize {
        let at = i128::from(time.clamp(self.start, self.end) - self.start) * self.columns as i128 / i128::from(self.length().max(1));
        let mut column = usize::try_from(at).unwrap_or(0).min(self.columns - 1);
        // Column starts are rounded down, so the result may be one too small: use the last column that starts at or
        // before the time.
        while column + 1 < self.columns && self.column_start(column + 1) <= time {
            column += 1;
        }
        column
    }

    pub fn contains(&self, time: i64) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// Width of a column, ns.
    pub fn column_width(&self) -> i64 {
        (self.length() / i64::try_from(self.columns).unwrap_or(i64::MAX)).max(1)
    }
}

/// Activity in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Busy share of the column, 0 to 1.
    pub share: f64,
    /// Category with the most busy time; events of zero length do not count.
    pub top: Option<Category>,
    /// Number of events that start in the column.
    pub events: usize,
    /// Number of events that start before the column, which is also the index of the first event in it.
    pub first: usize,
}

/// Computes the activity in the columns of a window.
pub fn compute_cells(track: &impl Track, of: &Events<'_>, window: Window) -> Vec<Cell> {
    let mut before = track.before(of, window.start);
    (0..window.columns)
        .map(|column| {
            let (start, end) = (window.column_start(column), window.column_start(column + 1));
            let after = track.before(of, end);
            let busy = |category: Category| after.busy[category as usize] - before.busy[category as usize];
            let sum: i64 = Category::ALL.into_iter().map(busy).sum();
            let cell = Cell {
                share: (sum as f64 / (end - start).max(1) as f64).clamp(0.0, 1.0),
                top: Category::ALL.into_iter().filter(|&c| busy(c) > 0).max_by_key(|&c| (busy(c), std::cmp::Reverse(c))),
                events: after.events - before.events,
                first: before.events,
            };
            before = after;
            cell
        })
        .collect()
}

/// An event that covers the middle of at least one column, and is therefore drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index into the lane.
    pub at: usize,
    pub from: usize,
    /// End column, exclusive.
    pub to: usize,
}

/// Finds the events that cover the middle of some column, with the columns that they occupy.
pub fn visible_blocks(lane: &Lane, of: &Events<'_>, window: Window) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    // Look up an event that spans several columns only once.
    let mut running: Option<(usize, i64)> = None;
    for column in 0..window.columns {
        let (start, end) = (window.column_start(column), window.column_start(column + 1));
        let middle = start + (end - start) / 2;
        let at = match running.filter(|r| middle < r.1) {
            Some((at, _)) => Some(at),
            None => lane.running_at(of, middle),
        };
        let Some(at) = at else { continue };
        running = lane.get(at).map(|id| (at, of.span(id.to_event()).1));
        match out.last_mut() {
            Some(block) if block.at == at && block.to == column => block.to = column + 1,
            _ => out.push(Block { at, from: column, to: column + 1 }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_tile_the_window(start in -1000_i64..1_000_000, length in 1_i64..1_000_000, columns in 1_usize..300, at in 0_i64..1_000_000) {
            let window = Window::new(start, start + length, columns);
            prop_assert_eq!((window.column_start(0), window.column_start(columns)), (window.start, window.end));
            let time = window.start + at % window.length();
            let column = window.column_at(time);
            prop_assert!(window.column_start(column) <= time && time < window.column_start(column + 1), "{window:?} {time} {column}");
        }
    }
}
