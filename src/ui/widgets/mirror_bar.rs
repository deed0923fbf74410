//! Two-sided bar: two values of one item, on both sides of its name.

use super::super::{Role, Theme};
use super::gauge;
use crate::analysis::labels::display_width;
use crate::ui::text::{align_left, align_right};
use ratatui::text::Span;

/// Width of a percentage.
const FIGURE: usize = 4;

/// Draws the first value (0 to 1) to the left of the name and the second to the right, each as a bar with a
/// percentage. Bars of values at or above the threshold are brighter.
pub fn mirror_bar(
    name: &str,
    (first, second): (Option<f64>, Option<f64>),
    columns: usize,
    wide: usize,
    threshold: f64,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let bar = columns.saturating_sub(wide + 2 + 2 * (FIGURE + 1)) / 2;
    let figure = |v: Option<f64>| v.map_or_else(|| "–".to_owned(), |v| format!("{:.0}", v * 100.0));
    let drawn = |v: Option<f64>| v.map_or_else(|| vec![Span::raw(" ".repeat(bar))], |v| gauge(v, bar, None, theme));
    let bright = |v: Option<f64>, spans: Vec<Span<'static>>| -> Vec<Span<'static>> {
        if v.is_none_or(|v| v < threshold) {
            return spans;
        }
        let from = theme.style(Role::Bar);
        spans.into_iter().map(|s| if s.style == from { s.style(theme.style(Role::Peak)) } else { s }).collect()
    };
    let mut out = vec![Span::styled(align_right(&figure(first), FIGURE), theme.style(Role::Title)), Span::raw(" ")];
    out.extend(mirror_spans(bright(first, drawn(first))));
    let name = align_right(name, wide.midpoint(display_width(name)));
    out.push(Span::styled(format!(" {} ", align_left(&name, wide)), theme.style(Role::Text)));
    out.extend(bright(second, drawn(second)));
    out.push(Span::styled(align_right(&figure(second), FIGURE), theme.style(Role::Title)));
    out
}

/// Mirrors a bar, so that it grows to the left; such blocks exist only as halves.
fn mirror_spans(spans: Vec<Span<'static>>) -> Vec<Span<'static>> {
    let turned = |c: char| match c {
        '▏' | '▎' | '▍' => '▕',
        '▌' | '▋' | '▊' => '▐',
        '▉' => '█',
        other => other,
    };
    spans.into_iter().rev().map(|s| Span::styled(s.content.chars().rev().map(turned).collect::<String>(), s.style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn two_bars_grow_from_the_name() {
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let text = |values| mirror_bar("L2", values, 36, 4, 0.8, &theme).iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text((Some(0.5), Some(1.0))), "  50 ░░░░░█████  L2  ██████████ 100");
        assert_eq!(text((None, Some(0.25))), "   –             L2  ██▌░░░░░░░  25");
        assert_eq!(text((Some(0.25), None)), "  25 ░░░░░░░▐██  L2               –");
        let style = |v: f64| mirror_bar("L2", (Some(v), None), 36, 4, 0.8, &theme)[3].style;
        assert_ne!(style(0.9), style(0.79));
    }
}
