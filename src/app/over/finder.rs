//! Text that is typed into a screen to narrow its list.

use crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Characters of a pasted text that are taken.
const MOST_PASTED: usize = 2_000;

/// The text, and whether keys go to it.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    pub input: Input,
    pub typing: bool,
}

/// What a key did to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Another text: the list must be made again, its first row is meant.
    Changed,
    /// No text any more: the list must be made again, the selected row stays.
    Cleared,
    /// The selection moves by so many rows.
    Rows(isize),
    /// By so many pages.
    Pages(isize),
    Nothing,
}

impl Finder {
    #[must_use]
    pub fn text(&self) -> &str {
        self.input.value()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// Forgets the text; false when there was none.
    pub fn clear(&mut self) -> bool {
        let had = !self.is_empty();
        self.input.reset();
        had
    }

    /// Takes a key while it is typed into: ⏎ keeps the text, esc clears it, arrows move the selection.
    pub fn key(&mut self, event: KeyEvent) -> Typed {
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

/// Puts a pasted text into a line, without what a terminal would obey.
pub fn insert(input: &mut Input, text: &str, ok: fn(char) -> bool) {
    for c in text.chars().filter(|&c| !c.is_control() && ok(c)).take(MOST_PASTED) {
        input.handle(InputRequest::InsertChar(c));
    }
}
