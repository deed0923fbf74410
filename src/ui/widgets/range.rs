//! Range bar: solid up to the lower end, shaded up to the upper end.

use super::super::{Role, Theme};
use ratatui::style::Style;
use ratatui::text::Span;

/// Bar of `columns` columns for a value between `least` and `most` (both 0 to 1): solid up to `least`, shaded up to
/// `most`, the rest empty.
pub fn range_bar(least: f64, most: f64, columns: usize, style: Style, theme: &Theme) -> Vec<Span<'static>> {
    let at = |share: f64| ((share.clamp(0.0, 1.0) * columns as f64).round() as usize).min(columns);
    let (full, end) = (at(least), at(most.max(least)));
    let parts = [("█", full, style), ("▒", end - full, style), ("░", columns - end, theme.style(Role::BarEmpty))];
    parts.into_iter().filter(|p| p.1 > 0).map(|(c, n, style)| Span::styled(c.repeat(n), style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn a_range_is_full_then_shaded_then_empty() {
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let text = |a, b| range_bar(a, b, 10, theme.style(Role::Bar), &theme).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(
            [text(0.4, 0.7), text(0.0, 0.9), text(0.5, 0.5), text(0.8, 2.0)],
            ["████▒▒▒░░░", "▒▒▒▒▒▒▒▒▒░", "█████░░░░░", "████████▒▒"]
        );
    }
}
