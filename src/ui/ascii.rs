//! Draws with ASCII only, for locales that are not UTF-8: every other character on the screen is replaced by one that looks like it.

use ratatui::buffer::Buffer;

/// Keys that have no character that looks like them, in words.
#[must_use]
pub fn words(text: &str) -> String {
    text.replace('⏎', "enter").replace("↑↓", "up/down")
}

const LOOKALIKES: &[(&str, &str)] = &[
    ("µ", "u"),
    ("μ", "u"),
    ("×", "x"),
    ("·", "-"),
    ("…", "~"),
    ("›", ">"),
    ("‹", "<"),
    ("–", "-"),
    ("—", "-"),
    ("≥", ">"),
    ("≤", "<"),
    ("±", "+"),
    ("⌀", "o"),
    ("▲", "^"),
    ("△", "!"),
    ("▼", "v"),
    ("↑", "^"),
    ("↓", "v"),
    ("←", "<"),
    ("→", ">"),
    ("⏎", "<"),
    ("●", "*"),
    ("○", "o"),
    ("◆", "#"),
    ("◇", "o"),
    ("•", "."),
    ("▾", "v"),
    ("◂", "<"),
    ("◀", "<"),
    ("▶", ">"),
    ("≠", "!"),
    ("∞", "~"),
    ("✓", "+"),
    ("✗", "x"),
    ("▸", ">"),
    ("█", "#"),
    ("▉", "#"),
    ("▊", "#"),
    ("▋", "#"),
    ("▌", "#"),
    ("▍", "="),
    ("▎", "-"),
    ("▏", " "),
    ("▕", "|"),
    ("▁", "_"),
    ("▂", "_"),
    ("▃", "-"),
    ("▄", "-"),
    ("▅", "="),
    ("▆", "="),
    ("▇", "#"),
    ("░", "."),
    ("■", "#"),
    ("▀", "#"),
    ("╵", "'"),
    ("▒", ":"),
    ("▓", "#"),
    ("─", "-"),
    ("│", "|"),
    ("┌", "+"),
    ("┐", "+"),
    ("└", "+"),
    ("┘", "+"),
    ("╭", "+"),
    ("╮", "+"),
    ("╰", "+"),
    ("╯", "+"),
    ("├", "+"),
    ("┤", "+"),
    ("┬", "+"),
    ("┴", "+"),
    ("┼", "+"),
    ("━", "="),
    ("⠿", "#"),
];

/// Replaces all characters beyond ASCII.
pub fn asciify(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if symbol.is_ascii() {
            continue;
        }
        let wide = crate::analysis::labels::width(symbol) > 1;
        let plain = match LOOKALIKES.iter().find(|(s, _)| *s == symbol) {
            Some((_, plain)) => plain,
            None => match symbol.chars().next().map(|c| c as u32) {
                // Braille: the more dots, the darker.
                Some(c @ 0x2800..=0x28ff) => match (c & 0xff).count_ones() {
                    0 => " ",
                    1 | 2 => ".",
                    3..=5 => ":",
                    _ => "#",
                },
                _ if wide => "??",
                _ => "?",
            },
        };
        cell.set_symbol(plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn nothing_but_ascii_is_left_and_columns_stay() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
        buffer.set_string(0, 0, "1.2 µs ×… ⣿⠁ カー é█", Style::default());
        asciify(&mut buffer);
        let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert!(text.is_ascii(), "{text:?}");
        assert!(text.starts_with("1.2 us x~ #. ??"), "{text:?}");
    }
}
