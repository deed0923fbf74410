//! Change bar: a decrease grows to the left from the middle, an increase to the right.

use super::super::{Role, Theme};
use crate::ui::text::bar;
use ratatui::style::Style;
use ratatui::text::Span;

/// Bar of `columns` columns for a change from -1 to 1; larger changes are clamped.
pub fn change_bar(change: f64, columns: usize, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    let half = columns.saturating_sub(1) / 2;
    let full: String = bar(change.abs().min(1.0), half, style, theme).iter().map(|s| s.content.to_string()).collect();
    let drawn = full.trim_end().to_owned();
    // Style the empty half as part of the bar, so that without colors the selection does not reverse it.
    let unfilled = theme.style(Role::BarEmpty);
    let blank = Span::styled(" ".repeat(full.chars().count() - drawn.chars().count()), unfilled);
    let tick = Span::styled("│", theme.style(Role::Border));
    let empty = Span::styled(" ".repeat(half), unfilled);
    if change == 0.0 || drawn.is_empty() {
        return vec![empty.clone(), tick, empty];
    }
    if change > 0.0 {
        return vec![empty, tick, Span::styled(drawn, style), blank];
    }
    // Blocks that grow to the left exist only as halves.
    let turned = |c: char| match c {
        '▏' | '▎' | '▍' => '▕',
        '▌' | '▋' | '▊' => '▐',
        _ => '█',
    };
    vec![blank, Span::styled(drawn.chars().rev().map(turned).collect::<String>(), style), tick, empty]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn less_goes_left_and_more_goes_right() {
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let text = |change| change_bar(change, 13, Style::default(), &theme).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text(0.5), "      │███   ");
        assert_eq!(text(-0.5), "   ███│      ");
        assert_eq!(text(-0.25), "    ▐█│      ");
        assert_eq!(text(7.0), "      │██████");
        assert_eq!(text(0.0), "      │      ");
    }
}
