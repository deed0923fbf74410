//! Text that filters a screen's list

use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Maximum number of characters accepted from a paste.
const MOST_PASTED: usize = 2_000;

/// Filter text; `typing` is true while it has the keyboard focus.
#[derive(Clone, Debug, Default)]
pub struct FilterInput {
    pub input: Input,
    pub typing: bool,
}

/// Effect of a key on the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The text changed: rebuild the list and select its first row.
    Changed,
    /// The text was cleared: rebuild the list and keep the selected row.
    Cleared,
    /// Move the selection by rows.
    Rows(isize),
    /// Move the selection by pages.
    Pages(isize),
    Nothing,
}

impl FilterInput {
    pub fn text(&self) -> &str {
        self.input.value()
    }

    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// Clears the text; returns false if it was empty.
    pub fn clear(&mut self) -> bool {
        let had = !self.is_empty();
        self.input.reset();
        had
    }

    /// Handles a key while the filter has focus: ⏎ keeps the text, esc clears it, arrows move the selection.
    pub fn handle_key(&mut self, event: KeyEvent) -> Typed {
        match event.code {
            KeyCode::Enter => {
                self.typing = false;
                Typed::Nothing
            }
            KeyCode::Esc => {
                self.typing = false;
                self.input.reset();
                Typed::Cleared
            }
            KeyCode::Up => Typed::Rows(-1),
            KeyCode::Down => Typed::Rows(1),
            KeyCode::PageUp => Typed::Pages(-1),
            KeyCode::PageDown => Typed::Pages(1),
            _ if self.input.handle_event(&Event::Key(event)).is_some_and(|c| c.value) => Typed::Changed,
            _ => Typed::Nothing,
        }
    }
}

/// Inserts pasted text into an input line, dropping control characters.
pub fn insert(input: &mut Input, text: &str, ok: fn(char) -> bool) {
    for c in text.chars().filter(|&c| !c.is_control() && ok(c)).take(MOST_PASTED) {
        input.handle(InputRequest::InsertChar(c));
    }
}
