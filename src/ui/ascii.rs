//! ASCII-only rendering for non-UTF-8 locales: replaces every other character on the screen with a lookalike.

use ratatui::buffer::Buffer;

const LOOKALIKES: &[(&str, &str)] = &[
    ("µ", "u"),
    ("μ", "u"),
    ("×", "x"),
    ("·", "-"),
    ("…", "~"),
    ("›", ">"),
    ("‹", "<"),
    ("–", "-"),
    ("−", "-"),
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
    ("●", "@"),
    ("○", "o"),
    ("◆", "*"),
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
    ("▐", "#"),
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
    ("┷", "+"),
    ("╷", ","),
    ("┊", ":"),
    ("┈", "-"),
    ("⠿", "#"),
];

/// Returns the ASCII lookalike of a symbol; ASCII is returned unchanged.
fn ascii_lookalike(symbol: &str) -> &str {
    if symbol.is_ascii() {
        return symbol;
    }
    if let Some((_, plain)) = LOOKALIKES.iter().find(|(s, _)| *s == symbol) {
        return plain;
    }
    match symbol.chars().next().map(|c| c as u32) {
        // Braille: the more dots, the darker the replacement.
        Some(c @ 0x2800..=0x28ff) => match (c & 0xff).count_ones() {
            0 => " ",
            1 | 2 => ".",
            3..=5 => ":",
            _ => "#",
        },
        _ if crate::analysis::labels::display_width(symbol) > 1 => "??",
        _ => "?",
    }
}

/// Converts text to ASCII of the same width.
pub fn to_ascii(text: &str) -> String {
    use unicode_segmentation::UnicodeSegmentation;
    text.graphemes(true).map(ascii_lookalike).collect()
}

/// Replaces all non-ASCII characters in the buffer.
pub fn asciify_buffer(buffer: &mut Buffer) {
    // Replace `≥ 80` with `>=80`: the `=` takes the place of the space, since `>` alone would change the meaning.
    for at in 0..buffer.content.len().saturating_sub(1) {
        let first = match buffer.content[at].symbol() {
            "≥" => ">",
            "≤" => "<",
            _ => continue,
        };
        if buffer.content[at + 1].symbol() == " " {
            buffer.content[at].set_symbol(first);
            buffer.content[at + 1].set_symbol("=");
        }
    }
    spell_out_signs(buffer);
    for cell in &mut buffer.content {
        let plain = ascii_lookalike(cell.symbol()).to_owned();
        if plain != cell.symbol() {
            cell.set_symbol(&plain);
        }
    }
}

/// Signs that need two ASCII characters, because one alone would mean something else, as in `<92%` for `≤92%`. The last
/// element is the single-character substitute if there is no room for two.
const SIGNS: [(&str, [&str; 2], &str); 4] =
    [("±", ["+", "-"], "~"), ("≤", ["<", "="], "<"), ("≥", [">", "="], ">"), ("≠", ["!", "="], "*")];

/// Replaces each sign with its two characters. This shifts the text after it by one column, up to the next pair of
/// blanks, which absorbs the shift.
fn spell_out_signs(buffer: &mut Buffer) {
    let columns = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks_mut(columns) {
        while let Some((at, (_, both, single))) =
            row.iter().enumerate().find_map(|(at, c)| Some((at, SIGNS.iter().find(|sign| sign.0 == c.symbol())?)))
        {
            let blank = |x: usize| row.get(x).is_none_or(|c| matches!(c.symbol(), " " | "│" | "┃"));
            let gap = (at + 1..columns).find(|&x| row.get(x).is_some_and(|c| c.symbol() == " ") && blank(x + 1));
            if let Some(text) = gap.and_then(|gap| row.get_mut(at..=gap)) {
                text.rotate_right(1);
                let style = text.get(1).map(ratatui::buffer::Cell::style).unwrap_or_default();
                for (cell, symbol) in text.iter_mut().zip(both) {
                    cell.set_symbol(symbol).set_style(style);
                }
            } else if let Some(cell) = row.get_mut(at) {
                cell.set_symbol(single);
            }
        }
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
        asciify_buffer(&mut buffer);
        let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert!(text.is_ascii(), "{text:?}");
        assert!(text.starts_with("1.2 us x~ #. ??"), "{text:?}");
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
        buffer.set_string(0, 0, "≥ 80 ≤ 5", Style::default());
        asciify_buffer(&mut buffer);
        let text = |buffer: &Buffer| buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        assert_eq!(text(&buffer).trim_end(), ">=80 <=5");
        for (from, to) in [("≤92%   a ≠ b", "<=92%  a != b"), ("≤92% a ≠   b", "<=92%a !=   b")] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 14, 1));
            buffer.set_string(0, 0, from, Style::default());
            asciify_buffer(&mut buffer);
            assert!(!text(&buffer).contains("<9"), "{from} {to} {}", text(&buffer));
        }
        for (from, to) in [("a (±5 µs)  b", "a (+-5 us) b"), ("one, ±5 µs │", "one, +-5 us|"), ("one,±5 µs; b", "one,~5 us; b")] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
            buffer.set_string(0, 0, from, Style::default());
            asciify_buffer(&mut buffer);
            assert_eq!(text(&buffer), to);
        }
    }
}
