//! Highlight of the selected row that preserves the colors of its content.

use super::super::{Role, Theme};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

/// Block elements: parts of charts rather than text.
const BLOCKS: std::ops::RangeInclusive<char> = '▀'..='▟';

/// Marks whose color is their meaning, in contrast to text in the same color.
const MARKS: [&str; 8] = ["▲", "△", "▼", "✓", "✗", "●", "○", "◆"];
/// Minimum length of a run of one letter for the letters around it to be a bar rather than a word, and of blanks for them
/// to be an empty bar.
const RUN: usize = 3;

/// Cells of a row that belong to a bar: block elements, the empty rest of a bar, and letters that stand for parts of it.
fn find_bars(buffer: &Buffer, area: Rect, theme: &Theme) -> Vec<bool> {
    let empty = theme.style(Role::BarEmpty).add_modifier;
    let cells: Vec<_> = area.positions().filter_map(|p| buffer.cell(p)).collect();
    let drawn = |symbol: &str| symbol.chars().next().is_some_and(|c| BLOCKS.contains(&c));
    let mut out: Vec<bool> = cells.iter().map(|c| drawn(c.symbol())).collect();
    // Single blanks around faint text have the style of an empty bar, too.
    let is_empty = |c: &&Cell| c.symbol() == " " && !empty.is_empty() && c.modifier.contains(empty);
    let mut at = 0;
    while at < cells.len() {
        let blanks = cells[at..].iter().copied().take_while(is_empty).count();
        let beside = |at: Option<usize>| at.and_then(|at| out.get(at)).copied().unwrap_or_default();
        if blanks >= RUN || beside(at.checked_sub(1)) || beside(Some(at + blanks)) {
            out[at..at + blanks].fill(true);
        }
        at += blanks.max(1);
    }
    // The empty part of a bar must differ from its filled part.
    for at in 1..cells.len() {
        let blank = cells.get(at).is_some_and(|c| c.symbol() == " ");
        let beside = out.get(at - 1).copied().unwrap_or_default();
        let middle = cells.get(at).is_some_and(|c| c.symbol() == "│");
        if let Some(bar) = out.get_mut(at).filter(|_| (blank || middle) && beside) {
            *bar = true;
        }
    }
    let mut from = 0;
    for word in cells.split(|c| c.symbol() == " ") {
        let letters = word.iter().all(|c| c.symbol().bytes().all(|b| b.is_ascii_uppercase()));
        let run = word.windows(RUN).any(|w| w.iter().all(|c| Some(c.symbol()) == w.first().map(|c| c.symbol())));
        if letters && run {
            out.iter_mut().skip(from).take(word.len()).for_each(|bar| *bar = true);
        }
        from += word.len() + 1;
    }
    out
}

/// Highlights a row that has already been drawn. Severities keep their colors even if the selection has its own text
/// color; dimmed text becomes normal, because the background is brighter.
pub fn highlight_row(buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let selected = theme.style(Role::Selected);
    let colour = |role| theme.style(role).fg;
    let severities = [Role::Good, Role::Warn, Role::Bad].map(colour);
    let dimmed = [Role::Dim, Role::Faint].map(colour);
    let area = area.intersection(buffer.area);
    let reverse = selected.fg.is_none() && selected.add_modifier.contains(Modifier::REVERSED);
    let bars = if reverse { find_bars(buffer, area, theme) } else { Vec::new() };
    for (at, position) in area.positions().enumerate() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
        // A reversed bar would look like a hole, and the color of a bar drawn as background must stay.
        if bars.get(at).copied().unwrap_or_default() || (selected.fg.is_some() && cell.modifier.contains(Modifier::REVERSED)) {
            continue;
        }
        let own = cell.style().fg.filter(|c| *c != ratatui::style::Color::Reset);
        let severity = own.is_some() && severities.contains(&own);
        let drawn = cell.symbol().chars().next().is_some_and(|c| BLOCKS.contains(&c));
        match (selected.fg, severity) {
            // A bar in the selection's text color would look like a hole.
            (Some(_), _) if drawn => {
                cell.set_style(selected);
                if let Some(own) = own {
                    cell.set_fg(own);
                }
            }
            (Some(fg), true) if MARKS.contains(&cell.symbol()) => {
                // Used as the background, the cell's own color makes it visible in the row.
                let ground = own.unwrap_or(fg);
                cell.set_style(selected.bg(ground));
            }
            _ => {
                cell.set_style(selected);
                if selected.fg.is_none() && own.is_some() && dimmed.contains(&own) {
                    cell.set_fg(colour(Role::Text).unwrap_or_default());
                }
            }
        }
        if severity && selected.add_modifier.contains(Modifier::REVERSED) {
            cell.set_style(ratatui::style::Style::default().add_modifier(Modifier::BOLD));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;
    use ratatui::text::Line;
    use ratatui::text::Span;
    use ratatui::widgets::Widget;

    #[test]
    fn bars_are_never_reversed() {
        let library = Library::new(Vec::new());
        let theme = library.theme("mono", ColorMode::None).unwrap();
        let draw = |theme: &Theme, spans: Vec<Span<'static>>| {
            let line = Line::from(spans);
            let mut buffer = Buffer::empty(Rect::new(0, 0, u16::try_from(line.width()).unwrap(), 1));
            line.render(buffer.area, &mut buffer);
            let area = buffer.area;
            highlight_row(&mut buffer, area, theme);
            buffer
        };
        let mut spans = vec![Span::raw("0 ")];
        spans.extend(crate::ui::text::bar(0.5, 4, theme.style(Role::Bar), &theme));
        spans.extend([Span::raw(" "), Span::raw("KKKNLL"), Span::raw(" GPU")]);
        let reversed =
            |b: &Buffer| -> String { b.content.iter().map(|c| if c.modifier.contains(Modifier::REVERSED) { 'r' } else { '.' }).collect() };
        assert_eq!(reversed(&draw(&theme, spans)), "rr...........rrrr");
        let numbered = vec![Span::styled(" 1 ", theme.style(Role::Faint)), Span::raw("cause")];
        assert_eq!(reversed(&draw(&theme, numbered)), "r".repeat(8));
        let mut spans = vec![Span::raw("-40.7% ")];
        spans.extend(crate::ui::widgets::change_bar(-0.5, 9, theme.style(Role::Bar), &theme));
        assert_eq!(reversed(&draw(&theme, spans)), "rrrrrrr.........");
        // With colors, a bar drawn as background keeps its color, and text in a warning color turns into a background
        // of that color.
        let theme = library.theme("sixteen", ColorMode::Sixteen).unwrap();
        let part = theme.style(Role::Part(crate::analysis::triage::TimeCategory::Kernels));
        let spans = vec![Span::styled(" 9%", part.add_modifier(Modifier::REVERSED)), Span::styled("late", theme.style(Role::Warn))];
        let drawn = draw(&theme, spans);
        assert!(drawn.content[..3].iter().all(|c| Some(c.fg) == part.fg && c.modifier.contains(Modifier::REVERSED)), "{drawn:?}");
        assert!(drawn.content[3..].iter().all(|c| Some(c.bg) == theme.style(Role::Selected).bg), "{drawn:?}");
    }

    #[test]
    fn severities_keep_their_colours_in_every_theme() {
        let library = Library::new(Vec::new());
        for name in library.names() {
            for mode in [ColorMode::True, ColorMode::Indexed, ColorMode::Sixteen] {
                let theme = library.theme(&name, mode).unwrap();
                for role in [Role::Good, Role::Warn, Role::Bad] {
                    let Some(own) = theme.style(role).fg else { continue };
                    let mut bar = Buffer::empty(Rect::new(0, 0, 1, 1));
                    Line::styled("█", theme.style(Role::Bar)).render(bar.area, &mut bar);
                    highlight_row(&mut bar, Rect::new(0, 0, 1, 1), &theme);
                    assert_eq!(Some(bar.cell((0, 0)).unwrap().fg), theme.style(Role::Bar).fg, "{name} {mode:?}");
                    let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
                    Line::from(vec![Span::styled("▲", theme.style(role)), Span::styled(" text", theme.style(Role::Text))])
                        .render(buffer.area, &mut buffer);
                    highlight_row(&mut buffer, Rect::new(0, 0, 8, 1), &theme);
                    let mark = buffer.cell((0, 0)).unwrap();
                    assert!(mark.fg == own || mark.bg == own, "{name} {mode:?} {role:?}: {mark:?}");
                    assert_ne!(mark.fg, mark.bg, "{name} {mode:?} {role:?}");
                }
            }
        }
    }
}
