//! Gauge: a bar for a share of the whole, with a tick at the threshold.

use super::super::{Role, Theme};
use crate::ui::text::bar;
use ratatui::style::Modifier;
use ratatui::text::Span;

/// Bar of `columns` columns, filled to `share` (0 to 1), with a visible empty part and a tick at a threshold (0 to 1).
/// A bar that reaches the threshold is brighter but has no warning color, because reaching a threshold is not a problem
/// in itself.
pub fn gauge(share: f64, columns: usize, threshold: Option<f64>, theme: &Theme) -> Vec<Span<'static>> {
    let reached = threshold.is_some_and(|t| share >= t);
    let style = theme.style(if reached { Role::Peak } else { Role::Bar });
    let drawn: String = bar(share, columns, style, theme).iter().map(|s| s.content.to_string()).collect();
    let tick = threshold.map(|t| ((t * columns as f64).round() as usize).min(columns.saturating_sub(1)));
    let mut out: Vec<Span<'static>> = Vec::new();
    for (at, c) in drawn.chars().enumerate() {
        let (text, style) = match (c, Some(at) == tick) {
            (' ', true) => ("┊".to_owned(), theme.style(Role::Dim)),
            (' ', false) => ("░".to_owned(), theme.style(Role::BarEmpty)),
            ('█', true) => ("┊".to_owned(), style.add_modifier(Modifier::REVERSED)),
            _ => (c.to_string(), style),
        };
        match out.last_mut().filter(|s| s.style == style) {
            Some(last) => last.content.to_mut().push_str(&text),
            None => out.push(Span::styled(text, style)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn a_gauge_shows_value_rest_and_threshold() {
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let text = |share, tick| gauge(share, 10, tick, &theme).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text(0.5, Some(0.8)), "█████░░░┊░");
        assert_eq!(text(1.0, Some(0.8)), "████████┊█");
        assert_eq!(text(0.0, None), "░░░░░░░░░░");
        assert_eq!(text(0.25, Some(0.2)), "██▌░░░░░░░", "the tick lies under a column that is not full");
        let style = |share: f64| gauge(share, 10, Some(0.8), &theme)[0].style;
        assert_ne!(style(0.5), style(0.9));
    }
}
