//! Fewer bytes for slow lines: what cannot be seen of a style is not sent.

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

/// Modifiers that are seen on a blank, too.
const SEEN: Modifier = Modifier::REVERSED.union(Modifier::UNDERLINED).union(Modifier::CROSSED_OUT);

/// Gives each blank the style of what stands left of it, where nobody sees a difference: a terminal is told of every change.
pub fn calm(buffer: &mut Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left() + 1..area.right() {
            let Some((fg, bg, modifier)) = buffer.cell((x - 1, y)).map(|c| (c.fg, c.bg, c.modifier)) else { continue };
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            if cell.symbol() == " " && cell.bg == bg && !cell.modifier.intersects(SEEN) && !modifier.intersects(SEEN) {
                (cell.fg, cell.modifier) = (fg, modifier);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

    #[test]
    fn blanks_take_the_style_on_their_left_where_that_is_not_seen() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "ab", Style::default().fg(Color::Red));
        buffer.set_string(3, 0, "c", Style::default().fg(Color::Blue).add_modifier(Modifier::UNDERLINED));
        buffer.set_string(5, 0, " ", Style::default().bg(Color::Green));
        let before: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        calm(&mut buffer);
        assert_eq!(buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect::<String>(), before);
        assert_eq!(buffer.cell((2, 0)).unwrap().fg, Color::Red);
        assert_eq!(buffer.cell((4, 0)).unwrap().modifier, Modifier::empty(), "an underline is seen on a blank");
        assert_eq!(buffer.cell((5, 0)).unwrap().bg, Color::Green);
        assert_eq!(buffer.cell((6, 0)).unwrap().bg, Color::Reset);
    }
}
