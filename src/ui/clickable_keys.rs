//! Makes key names clickable: finds text on the screen that is styled as a key and names one.

use super::view::View;
use super::{Role, Theme};
use crate::app::{ACTIONS, ActionId, App, Mouse};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Back arrow in front of the name of a screen's subject.
const BACK: &str = "‹";

/// Finds the drawn key names. Other click targets at the same position take precedence.
pub fn find_keys(buffer: &Buffer, app: &App, view: &mut View, theme: &Theme) {
    let here = app.current_scope();
    // Overlays have their own keys.
    if app.over.is_some() {
        return;
    }
    let named = |text: &str| {
        let bound = |id: ActionId| app.session.key_label(id) == text;
        ACTIONS.iter().find(|a| a.on.applies_to(here) && bound(a.id)).map(|a| a.id)
    };
    let style = theme.style(Role::Key);
    let (mut found, mut phrases) = (Vec::new(), Vec::new());
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let from = x;
            let mut text = String::new();
            while let Some(cell) = buffer.cell((x, y)).filter(|c| x < area.right() && c.symbol() != " " && has_style(c.style(), style)) {
                text.push_str(cell.symbol());
                x += 1;
            }
            let action = match text.as_str() {
                // Skip blank cells quickly, since most of the screen contains no keys.
                "" => None,
                BACK => Some(ActionId::Back),
                text => named(text),
            };
            if let Some(action) = action {
                found.push((Rect { x: from, y, width: x - from, height: 1 }, Mouse::Action(action)));
                if y < area.top() + HEADER {
                    let (left, right) = find_phrase(buffer, y, (from, x), style);
                    phrases.push((Rect { x: left, y, width: right - left, height: 1 }, Mouse::Action(action)));
                }
            }
            x = x.max(from + 1);
        }
        if y < area.top() + HEADINGS {
            phrases.extend(find_words(buffer, y, |id| ACTIONS.iter().any(|a| a.id == id && a.on.applies_to(here))));
        }
    }
    // Later targets take precedence: keys over the words around them, and all other targets over both.
    phrases.append(&mut found);
    phrases.append(&mut view.hits);
    view.hits = phrases;
}

/// Number of header rows, and number of rows at the top in which `WORDS` may occur.
const HEADER: u16 = 2;
const HEADINGS: u16 = 5;
/// Words that precede the value of a setting, and the action that changes the setting.
const WORDS: [(&str, ActionId); 2] = [("group ", ActionId::Group), ("sort ", ActionId::Sort)];

fn symbol(buffer: &Buffer, x: u16, y: u16) -> &str {
    buffer.cell((x, y)).map_or(" ", ratatui::buffer::Cell::symbol)
}

/// Finds the columns of the words to which a key in parentheses belongs, as in `4 notes (n)`, or of the key alone.
/// Words of one phrase are separated by a single space; other keys and `·` end it.
fn find_phrase(buffer: &Buffer, y: u16, (from, to): (u16, u16), key: Style) -> (u16, u16) {
    if from == 0 || symbol(buffer, from - 1, y) != "(" || symbol(buffer, to, y) != ")" {
        return (from, to);
    }
    let ends = |x: u16| {
        let blank = symbol(buffer, x, y) == " ";
        let other = buffer.cell((x, y)).is_none_or(|c| !blank && has_style(c.style(), key));
        other || symbol(buffer, x, y) == "·" || blank && (x == 0 || symbol(buffer, x - 1, y) == " ")
    };
    let mut left = from - 1;
    while left > 0 && !ends(left - 1) {
        left -= 1;
    }
    (if symbol(buffer, left, y) == " " { left + 1 } else { left }, to + 1)
}

/// Finds clickable settings with their values, and the index of the report (`1 of 4`).
fn find_words(buffer: &Buffer, y: u16, works: impl Fn(ActionId) -> bool) -> Vec<(Rect, Mouse)> {
    let columns = buffer.area.left()..buffer.area.right();
    let cells: Vec<&str> = columns.map(|x| symbol(buffer, x, y)).collect();
    let starts = |at: usize, word: &str| {
        at > 0 && cells[at - 1] == " " && word.chars().zip(&cells[at..]).filter(|(c, cell)| cell.chars().eq([*c])).count() == word.len()
    };
    // A value ends at two spaces.
    let end = |at: usize| (at..cells.len()).find(|&x| cells[x] == " " && cells.get(x + 1).is_none_or(|next| [" ", "─"].contains(next)));
    let mut out = Vec::new();
    let mut put = |from: usize, to: usize, action: ActionId| {
        if let (Ok(x), Ok(width)) = (u16::try_from(from), u16::try_from(to.saturating_sub(from))) {
            out.push((Rect { x: buffer.area.left() + x, y, width, height: 1 }, Mouse::Action(action)));
        }
    };
    for at in 0..cells.len() {
        for (word, action) in WORDS {
            if starts(at, word) && works(action) {
                put(at, end(at + word.len()).unwrap_or(cells.len()), action);
            }
        }
        let digit = |x: usize| cells.get(x).is_some_and(|c| c.len() == 1 && c.as_bytes()[0].is_ascii_digit());
        // Only the first line names the report.
        if y == buffer.area.top() && digit(at) && cells[at + 1..].starts_with(&[" ", "o", "f", " "]) && digit(at + 5) {
            let first = (0..=at).rev().take_while(|&x| digit(x)).last().unwrap_or(at);
            let last = (at + 5..cells.len()).take_while(|&x| digit(x)).last().unwrap_or(at + 5);
            put(first, last + 1, ActionId::NextReport);
        }
    }
    out
}

/// Returns true if a cell has the color and boldness of the style.
fn has_style(cell: Style, style: Style) -> bool {
    let bold = |s: Style| s.add_modifier.contains(Modifier::BOLD);
    cell.fg.filter(|c| *c != ratatui::style::Color::Reset) == style.fg && bold(cell) == bold(style)
}
