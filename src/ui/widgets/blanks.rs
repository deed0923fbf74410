//! Removes the invisible part of the style of spaces, to send fewer bytes over slow connections.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

/// Modifiers that are visible on a space.
const SEEN: Modifier = Modifier::REVERSED.union(Modifier::UNDERLINED).union(Modifier::CROSSED_OUT);

/// Clears the invisible style of each space; otherwise, spaces with different styles would be resent.
pub fn normalize_blanks(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol() == " " && !cell.modifier.intersects(SEEN) {
            (cell.fg, cell.modifier) = (Color::Reset, Modifier::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn blanks_keep_what_is_seen_of_them() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "a b", Style::default().fg(Color::Red).add_modifier(Modifier::BOLD));
        buffer.set_string(3, 0, " ", Style::default().fg(Color::Blue).add_modifier(Modifier::UNDERLINED));
        buffer.set_string(5, 0, " ", Style::default().fg(Color::Blue).bg(Color::Green));
        normalize_blanks(&mut buffer);
        let cell = |x: u16| buffer.cell((x, 0)).map(|c| (c.symbol().to_owned(), c.fg, c.bg, c.modifier)).unwrap();
        assert_eq!(cell(0), ("a".to_owned(), Color::Red, Color::Reset, Modifier::BOLD));
        assert_eq!(cell(1), (" ".to_owned(), Color::Reset, Color::Reset, Modifier::empty()));
        assert_eq!(cell(3), (" ".to_owned(), Color::Blue, Color::Reset, Modifier::UNDERLINED), "an underline is seen on a blank");
        assert_eq!(cell(5), (" ".to_owned(), Color::Reset, Color::Green, Modifier::empty()));
    }
}
