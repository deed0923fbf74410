//! Text form of keys: `q`, `ctrl-c`, `shift-tab`, `f1`, `enter`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with modifiers. Shift is a modifier only for arrows; a shifted letter is a different character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
    shift: bool,
}

const NAMES: [(&str, KeyCode); 15] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("space", KeyCode::Char(' ')),
];

impl Key {
    /// Parses the text form of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut rest, mut ctrl, mut alt) = (text, false, false);
        let mut shift = false;
        loop {
            if let Some(r) = rest.strip_prefix("ctrl-").filter(|r| !r.is_empty()) {
                (rest, ctrl) = (r, true);
            } else if let Some(r) = rest.strip_prefix("alt-").filter(|r| !r.is_empty()) {
                (rest, alt) = (r, true);
            } else if let Some(r) = rest.strip_prefix("shift-").filter(|r| ["up", "down", "left", "right"].contains(r)) {
                (rest, shift) = (r, true);
            } else {
                break;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => match NAMES.iter().find(|(name, _)| *name == rest) {
                Some((_, code)) => *code,
                None => KeyCode::F(rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=12).contains(n))?),
            },
        };
        Some(Self { code, ctrl, alt, shift })
    }

    /// Shift counts only with Tab and the arrows; in letters, it is part of the character.
    pub fn from_event(event: &KeyEvent) -> Self {
        let shifted_tab = event.code == KeyCode::Tab && event.modifiers.contains(KeyModifiers::SHIFT);
        Self {
            code: if shifted_tab { KeyCode::BackTab } else { event.code },
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
            shift: is_arrow(event.code) && event.modifiers.contains(KeyModifiers::SHIFT),
        }
    }

    /// Returns the key without shift; `None` if it does not have shift.
    pub fn without_shift(self) -> Option<Self> {
        self.shift.then_some(Self { shift: false, ..self })
    }

    pub fn name(&self) -> String {
        let base = match (NAMES.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, KeyCode::Char(c)) => c.to_string(),
            (None, KeyCode::F(n)) => format!("f{n}"),
            (None, other) => format!("{other:?}").to_lowercase(),
        };
        format!("{}{base}", self.modifier_prefix())
    }

    fn modifier_prefix(self) -> String {
        let word = |on: bool, word: &'static str| if on { word } else { "" };
        format!("{}{}{}", word(self.ctrl, "ctrl-"), word(self.alt, "alt-"), word(self.shift, "shift-"))
    }

    /// Returns the label of the key, with symbols for arrows.
    pub fn label(&self) -> String {
        let with = |sign: &str| format!("{}{sign}", self.modifier_prefix());
        match self.code {
            KeyCode::Up => with("↑"),
            KeyCode::Down => with("↓"),
            KeyCode::Left => with("←"),
            KeyCode::Right => with("→"),
            KeyCode::Enter if !self.ctrl && !self.alt => "⏎".to_owned(),
            _ => self.name(),
        }
    }
}

fn is_arrow(code: KeyCode) -> bool {
    matches!(code, KeyCode::Up | KeyCode::Down | KeyCode::Left | KeyCode::Right)
}

/// Replaces key symbols that have no ASCII lookalike with words.
pub fn spell_out_keys(text: &str) -> String {
    text.replace('⏎', "enter").replace("↑↓", "up/down").replace('←', "left").replace('→', "right").replace('↑', "up").replace('↓', "down")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["q", "Q", "?", "-", "ctrl-c", "alt-x", "shift-tab", "f5", "enter", "space", "pgdn", "ctrl-alt-d", "shift-left"] {
            assert_eq!(Key::parse(name).unwrap().name(), name);
        }
        for bad in ["", "f13", "hyper-x", "ctrl-", "qq", "shift-q"] {
            assert_eq!(Key::parse(bad), None, "{bad}");
        }
        assert_eq!(spell_out_keys("⏎ ← → ↑↓ ↓ ↑"), "enter left right up/down down up");
    }
}
