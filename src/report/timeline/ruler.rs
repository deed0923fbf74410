//! Ticks of a time axis.

use super::describe::format_time;
use crate::analysis::labels::display_width;
use crate::analysis::timeline::Window;

/// Minimum number of columns between labels.
const APART: usize = 14;

/// A tick: its column and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    pub column: usize,
    pub label: String,
}

/// Distance between ticks in ns: 1, 2 or 5 times a power of ten, large enough for the labels.
pub fn tick_distance(window: Window) -> i64 {
    let ticks = i64::try_from((window.columns / APART).max(1)).unwrap_or(1);
    let least = (window.length() / ticks).max(1);
    let mut power = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least || step == i64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Ticks at round times whose labels fit.
pub fn ticks(window: Window) -> Vec<Tick> {
    let step = tick_distance(window);
    let first = window.start.div_euclid(step).saturating_mul(step);
    let first = if first < window.start { first.saturating_add(step) } else { first };
    let mut out = Vec::new();
    let mut free = 0;
    let mut at = first;
    while at < window.end {
        let (column, label) = (window.column_at(at), format_time(at, step));
        if column >= free && column + 1 + display_width(&label) <= window.columns {
            free = column + display_width(&label) + 3;
            out.push(Tick { column, label });
        }
        at = at.saturating_add(step);
    }
    out
}

/// The axis as a line of text; omits what would cover one of the `taken` columns: a label, or the tick as well.
pub fn axis_line(window: Window, taken: &[usize]) -> String {
    let mut out = String::new();
    let mut at = 0;
    let free = |tick: &Tick| !taken.iter().any(|c| (tick.column..=tick.column + display_width(&tick.label)).contains(c));
    for tick in ticks(window).into_iter().filter(|tick| !taken.contains(&tick.column)) {
        let label = if free(&tick) { tick.label.as_str() } else { "" };
        out.push_str(&" ".repeat(tick.column - at));
        out.push('╵');
        out.push_str(label);
        at = tick.column + 1 + display_width(label);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_times_with_room_for_their_labels() {
        let labels = |window| ticks(window).into_iter().map(|t| t.label).collect::<Vec<_>>();
        assert_eq!(labels(Window::new(0, 1_000_000_000, 60)), ["0.0 s", "0.5 s"]);
        assert_eq!(labels(Window::new(1_000_000_250, 1_000_001_250, 60))[0], "1.0000005 s");
        assert_eq!(tick_distance(Window::new(0, 1, 1)), 1);
        assert!(axis_line(Window::new(0, i64::MAX / 4, 100), &[]).len() > 10);
    }
}
