//! A list to choose from, over any screen: groupings, orders, themes, what to copy, where to jump, and all actions.

use super::choice::Choice;
use crate::analysis::fuzzy::Fuzzy;
use tui_input::Input;

#[derive(Clone, Debug)]
pub struct Item {
    /// What it is called.
    pub label: String,
    /// What is said beside it.
    pub hint: String,
    /// A letter that chooses it at once.
    pub letter: Option<char>,
    /// What it stands for.
    pub choice: Choice,
}

#[derive(Clone, Debug)]
pub struct Pick {
    pub title: &'static str,
    pub items: Vec<Item>,
    /// Typed text that narrows the items; without it letters choose.
    pub typed: Option<Input>,
    /// Indices of the items that are listed.
    pub shown: Vec<usize>,
    /// Index of the selected one in `shown`.
    pub selected: usize,
    /// What to go back to when nothing is chosen (themes are shown as the selection moves).
    pub before: Option<Choice>,
}

impl Item {
    /// An item; the letter may be left out.
    #[must_use]
    pub fn new(label: impl Into<String>, hint: impl Into<String>, letter: impl Into<Option<char>>, choice: Choice) -> Self {
        Self { label: label.into(), hint: hint.into(), letter: letter.into(), choice }
    }
}

impl Pick {
    /// A list whose items are chosen by letter.
    #[must_use]
    pub fn by_letter(title: &'static str, items: Vec<Item>, current: Option<&Choice>) -> Self {
        let selected = current.and_then(|c| items.iter().position(|i| i.choice == *c)).unwrap_or(0);
        Self { title, shown: (0..items.len()).collect(), items, typed: None, selected, before: None }
    }

    /// A list that is narrowed by typing.
    #[must_use]
    pub fn by_typing(title: &'static str, items: Vec<Item>) -> Self {
        Self { title, shown: (0..items.len()).collect(), items, typed: Some(Input::default()), selected: 0, before: None }
    }

    /// Lists the items that match the typed text, best first.
    pub fn narrow(&mut self) {
        let pattern = self.typed.as_ref().map_or("", |t| t.value());
        if pattern.trim().is_empty() {
            self.shown = (0..self.items.len()).collect();
        } else {
            let fuzzy = Fuzzy::new(pattern);
            let words: Vec<String> = pattern.split_whitespace().map(str::to_lowercase).collect();
            let mut scored: Vec<(i64, usize)> = self
                .items
                .iter()
                .enumerate()
                .filter_map(|(i, item)| {
                    // In the sentence the words must stand as they are: strewn letters are in every sentence.
                    let hint = item.hint.to_lowercase();
                    let in_hint = || words.iter().all(|w| hint.contains(w)).then_some(i64::MIN / 2);
                    fuzzy.positions(&item.label).map(|(s, _)| s).or_else(in_hint).map(|s| (-s, i))
                })
                .collect();
            scored.sort_unstable();
            self.shown = scored.into_iter().map(|(_, i)| i).collect();
        }
        self.selected = 0;
    }

    #[must_use]
    pub fn item(&self) -> Option<&Item> {
        self.shown.get(self.selected).map(|&i| &self.items[i])
    }

    /// The item with a letter.
    #[must_use]
    pub fn by_key(&self, letter: char) -> Option<&Item> {
        self.items.iter().find(|i| i.letter == Some(letter))
    }

    pub fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }
}
