//! Lines of keys and values.

use crate::model::text::escape_unsafe;
use crate::ui::text::{align_left, wrap_text};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// One line per pair, or more if wrapped; keys in `dim`, values in `text`.
pub fn key_value_lines<'a>(
    all: impl IntoIterator<Item = (&'a str, &'a str)>,
    (word, columns): (usize, usize),
    dim: Style,
    text: Style,
) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for (title, value) in all {
        for (at, line) in wrap_text(&escape_unsafe(value), columns.saturating_sub(word).max(8)).into_iter().enumerate() {
            let title = if at == 0 { title } else { "" };
            out.push(Line::from(vec![Span::styled(align_left(title, word), dim), Span::styled(line, text)]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_stay_in_their_column() {
        let all = [("folder", "/tmp"), ("command", "python3 train.py --steps 10")];
        let text: Vec<String> = key_value_lines(all, (9, 24), Style::default(), Style::default()).iter().map(Line::to_string).collect();
        assert_eq!(text, ["folder   /tmp", "command  python3", "         train.py", "         --steps 10"]);
    }
}
