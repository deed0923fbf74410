//! Stacked bar of shares and its legend.

use super::super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::triage::TimeCategory;
use crate::model::units;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Part of a whole: name, share (0 to 1), and style.
#[derive(Clone, Debug)]
pub struct Share {
    pub name: String,
    pub share: f64,
    pub style: Style,
    /// Letter that represents the part in all bars of a screen if there are no colors.
    pub letter: Option<&'static str>,
}

/// Glyphs that distinguish parts without letters and colors.
const SHADES: [&str; 8] = ["█", "▓", "▒", "░", "+", "=", ":", "·"];

impl Share {
    /// Share of a time category.
    pub fn of_category(category: TimeCategory, name: String, share: f64, theme: &Theme) -> Self {
        Self { name, share, style: theme.style(Role::Part(category)), letter: Some(category.letter()) }
    }

    fn plain_glyph(&self, at: usize) -> &'static str {
        self.letter.unwrap_or(SHADES[at % SHADES.len()])
    }
}

/// Number of cells of each part. A part of at least half a cell gets one; cells left over after rounding down go to the
/// parts with the largest remainders.
pub fn share_cells(shares: &[f64], columns: usize) -> Vec<usize> {
    let exact: Vec<f64> = shares.iter().map(|s| s.clamp(0.0, 1.0) * columns as f64).collect();
    let all = (exact.iter().sum::<f64>().round() as usize).min(columns);
    let mut cells: Vec<usize> = exact.iter().map(|e| if *e >= 0.5 { (e.floor() as usize).max(1) } else { 0 }).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    let rest = |at: &usize| exact.get(*at).map_or(0.0, |e| e.fract());
    order.sort_by(|a, b| rest(b).total_cmp(&rest(a)).then(a.cmp(b)));
    // A part below one cell has already been rounded up, so it gets none of the remaining cells.
    let open: Vec<usize> = order.into_iter().filter(|&at| exact.get(at).is_some_and(|e| *e >= 1.0)).collect();
    for &at in open.iter().cycle().take(open.len() * 2) {
        if cells.iter().sum::<usize>() >= all {
            break;
        }
        if let Some(cell) = cells.get_mut(at) {
            *cell += 1;
        }
    }
    while cells.iter().sum::<usize>() > all {
        let Some(most) = cells.iter_mut().max() else { break };
        *most -= 1;
    }
    cells
}

/// Stacked bar: the width of a part is its share, and its percentage is inside if there is room. The rest stays empty.
pub fn stacked_bar(parts: &[Share], columns: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let cells = share_cells(&parts.iter().map(|p| p.share).collect::<Vec<_>>(), columns);
    for (at, (part, wide)) in parts.iter().zip(cells).enumerate().filter(|(_, (_, wide))| *wide > 0) {
        let plain = part.style.fg.is_none();
        let text =
            Some(format!(" {}", units::format_whole_percent(part.share * 100.0))).filter(|t| display_width(t) < wide).unwrap_or_default();
        if plain {
            spans.push(Span::styled(part.plain_glyph(at).repeat(wide), part.style));
        } else {
            let blank = " ".repeat(wide - display_width(&text));
            spans.push(Span::styled(format!("{text}{blank}"), part.style.add_modifier(Modifier::REVERSED).remove_modifier(Modifier::BOLD)));
        }
    }
    Line::from(spans)
}

/// Legend of the parts in up to `rows` lines; each part has a swatch of its color or shade. The smallest parts are left
/// out if there is no room for all of them.
pub fn share_legend(parts: &[Share], columns: usize, rows: usize, dim: Style, theme: &Theme) -> Vec<Line<'static>> {
    let mut kept: Vec<usize> = (0..parts.len()).collect();
    while let Some(least) = kept.iter().copied().min_by(|a, b| parts[*a].share.total_cmp(&parts[*b].share)) {
        let out = legend_lines(parts, &kept, columns, dim, theme);
        if out.len() <= rows {
            return out;
        }
        kept.retain(|at| *at != least);
    }
    Vec::new()
}

fn legend_lines(parts: &[Share], kept: &[usize], columns: usize, dim: Style, theme: &Theme) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> = Vec::new();
    let mut used = usize::MAX;
    for (at, part) in kept.iter().map(|&at| (at, &parts[at])) {
        let swatch = if part.style.fg.is_none() { part.plain_glyph(at) } else { "■" };
        let text = format!("{} {}", part.name, units::format_whole_percent(part.share * 100.0));
        let wide = 2 + display_width(&text) + 2;
        if used.saturating_add(wide) > columns + 2 {
            out.push(Line::default());
            used = 0;
        }
        used += wide;
        if let Some(line) = out.last_mut() {
            line.push_span(Span::styled(format!("{swatch} "), part.style.remove_modifier(Modifier::BOLD)));
            line.push_span(Span::styled(cut_end(&text, columns.saturating_sub(2)), if at == 0 { theme.style(Role::Text) } else { dim }));
            line.push_span(Span::raw("  "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;
    use ratatui::style::Color;

    #[test]
    fn parts_fill_their_share_and_say_what_they_are() {
        let part = |name: &str, share, colour| Share { name: name.to_owned(), share, style: Style::default().fg(colour), letter: None };
        let parts = [part("loads", 0.61, Color::Red), part("queue", 0.23, Color::Blue), part("rest", 0.16, Color::Gray)];
        let bar = stacked_bar(&parts, 20);
        assert_eq!(bar.width(), 20);
        assert_eq!(bar.spans.iter().map(|s| s.content.to_string()).collect::<Vec<_>>(), [" 61%        ", " 23% ", "   "]);
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let lines = share_legend(&parts, 24, 4, Style::default(), &theme);
        assert_eq!(
            lines.iter().map(|l| l.to_string().trim_end().to_owned()).collect::<Vec<_>>(),
            ["■ loads 61%  ■ queue 23%", "■ rest 16%"]
        );
        let reversed: Vec<Share> = parts.iter().rev().cloned().collect();
        let short = share_legend(&reversed, 24, 1, Style::default(), &theme);
        assert_eq!(short.iter().map(|l| l.to_string().trim_end().to_owned()).collect::<Vec<_>>(), ["■ queue 23%  ■ loads 61%"]);
        assert!(share_legend(&parts, 24, 0, Style::default(), &theme).is_empty());
    }

    #[test]
    fn leftover_cells_go_to_the_largest_remainders() {
        assert_eq!(share_cells(&[0.73, 0.13, 0.055, 0.085], 10), [7, 1, 1, 1]);
        assert_eq!(share_cells(&[0.47, 0.47, 0.06], 10), [5, 4, 1]);
        assert_eq!(share_cells(&[0.96, 0.04], 10), [10, 0]);
        assert_eq!(share_cells(&[0.25, 0.25], 10), [3, 2]);
        assert_eq!(share_cells(&[0.055; 18], 10).iter().sum::<usize>(), 10);
        assert!(share_cells(&[], 10).is_empty());
    }

    #[test]
    fn without_colours_neighbours_have_different_shades() {
        let parts = [0.5, 0.5].map(|share| Share { name: String::new(), share, style: Style::default(), letter: None });
        assert_eq!(stacked_bar(&parts, 8).to_string(), "████▓▓▓▓");
        // A category has the same letter in every bar, even if a category before it is missing.
        let plain = Library::new(Vec::new()).theme("dark", ColorMode::None).unwrap();
        let bar = |parts: &[(TimeCategory, f64)]| {
            let parts: Vec<Share> = parts.iter().map(|(c, share)| Share::of_category(*c, String::new(), *share, &plain)).collect();
            stacked_bar(&parts, 8).to_string()
        };
        assert_eq!(bar(&[(TimeCategory::Kernels, 0.5), (TimeCategory::Copies, 0.25), (TimeCategory::Launching, 0.25)]), "KKKKCCLL");
        assert_eq!(bar(&[(TimeCategory::Kernels, 0.5), (TimeCategory::Launching, 0.5)]), "KKKKLLLL");
    }
}
