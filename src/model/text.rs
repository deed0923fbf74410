//! Makes text from a report safe to display: names may contain escape sequences that a terminal would execute.

use std::borrow::Cow;

/// Returns true for characters that a terminal interprets, that reorder text, or that are invisible.
pub fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{a0}'
                | '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{1680}'
                | '\u{2800}'
                | '\u{3000}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
        )
        || ('\u{180b}'..='\u{180f}').contains(&c)
        || ('\u{2000}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202f}').contains(&c)
        || ('\u{fe00}'..='\u{fe0f}').contains(&c)
        || ('\u{205f}'..='\u{206f}').contains(&c)
        || ('\u{fff9}'..='\u{fffb}').contains(&c)
        || ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Replaces unsafe characters with visible ones: caret notation such as `^[` for control characters, `\u{…}` for the
/// rest.
pub fn escape_unsafe(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if (c as u32) < 0x20 => {
                out.push('^');
                out.push(char::from_u32(c as u32 + 0x40).unwrap_or('?'));
            }
            '\u{7f}' => out.push_str("^?"),
            c if is_unsafe_to_show(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Joins text into one line: line breaks and tabs, with surrounding whitespace, become one space. For commands and
/// sentences, not for names.
pub fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text.split(['\n', '\r', '\t']).map(str::trim).filter(|p| !p.is_empty()).collect();
    escape_unsafe(&parts.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_survives() {
        assert_eq!(escape_unsafe("void k<3>(float *)"), "void k<3>(float *)");
        assert_eq!(escape_unsafe("a\x1b[31mb\x07\n\u{9b}2J\u{202e}x\x7f"), "a^[[31mb^G^J\\u{9b}2J\\u{202e}x^?");
        for c in (0..0x20).chain(0x7f..0xa0).filter_map(char::from_u32) {
            assert!(!escape_unsafe(&c.to_string()).chars().any(char::is_control), "{c:?}");
        }
        assert_eq!(escape_unsafe("カーネル é"), "カーネル é");
        assert_eq!(one_line("python -c 'import torch\n    print(1)\t\x1b'\n"), "python -c 'import torch print(1) ^['");
    }
}
