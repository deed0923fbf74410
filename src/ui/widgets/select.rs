//! Highlight of the selected row that preserves the colors of its content.

use super::super::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

/// Block elements: parts of charts rather than text.
const BLOCKS: std::ops::RangeInclusive<char> = '▀'..='▟';

/// Highlights a row that has already been drawn. Severities keep their colors even if the selection has its own text
/// color; dimmed text becomes normal, because the background is brighter.
pub fn highlight_row(buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let selected = theme.style(Role::Selected);
    let colour = |role| theme.style(role).fg;
    let severities = [Role::Good, Role::Warn, Role::Bad].map(colour);
    let dimmed = [Role::Dim, Role::Faint].map(colour);
    let area = area.intersection(buffer.area);
    for position in area.positions() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
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
            (Some(fg), true) => {
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
