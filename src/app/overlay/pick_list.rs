//! Pick list over any screen: groupings, sort orders, themes, copy formats, jump targets, and all actions

use super::choice::PickAction;
use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::table::{Column, Sort, sort_orders};
use tui_input::Input;

#[derive(Clone, Debug)]
pub struct Item {
    pub label: String,
    /// Text next to the label.
    pub hint: String,
    /// Letter that chooses the item immediately.
    pub letter: Option<char>,
    pub choice: PickAction,
}

#[derive(Clone, Debug)]
pub struct PickList {
    pub title: &'static str,
    pub items: Vec<Item>,
    /// Text that filters the items; `None` if items are chosen by letter.
    pub typed: Option<Input>,
    /// Indices of the listed items.
    pub shown: Vec<usize>,
    /// Index of the selected item in `shown`.
    pub selected: usize,
    /// Choice to restore if the list is canceled (themes are previewed as the selection moves).
    pub before: Option<PickAction>,
    /// Choice for typed text that no item matches, if the list accepts such text.
    pub other: Option<fn(&str) -> PickAction>,
}

impl Item {
    /// Creates an item; the letter is optional.
    pub fn new(label: impl Into<String>, hint: impl Into<String>, letter: impl Into<Option<char>>, choice: PickAction) -> Self {
        Self { label: label.into(), hint: hint.into(), letter: letter.into(), choice }
    }
}

impl PickList {
    /// Creates a list whose items are chosen by letter.
    pub fn by_letter(title: &'static str, items: Vec<Item>, current: Option<&PickAction>) -> Self {
        let selected = current.and_then(|c| items.iter().position(|i| i.choice == *c)).unwrap_or(0);
        Self { title, shown: (0..items.len()).collect(), items, typed: None, selected, before: None, other: None }
    }

    /// Creates a list of the sort orders that a table's columns declare.
    pub fn sort_orders<R>(columns: &[Column<R>], current: Sort) -> Self {
        let item = |(sort, meaning): (Sort, &'static str)| Item::new(sort.word, meaning, sort.key, PickAction::Sort(sort));
        let items = sort_orders(columns).into_iter().map(item).collect();
        Self::by_letter("sort by", items, Some(&PickAction::Sort(current)))
    }

    /// Creates a list that is filtered by typing.
    pub fn by_typing(title: &'static str, items: Vec<Item>) -> Self {
        Self { title, shown: (0..items.len()).collect(), items, typed: Some(Input::default()), selected: 0, before: None, other: None }
    }

    /// Lists the items that match the typed text, best first.
    pub fn apply_filter(&mut self) {
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
                    // In the hint, words must match literally: a fuzzy match would be found in every sentence.
                    let hint = item.hint.to_lowercase();
                    let in_hint = || words.iter().all(|w| hint.contains(w)).then_some(i64::MIN / 2);
                    fuzzy.match_positions(&item.label).map(|(s, _)| s).or_else(in_hint).map(|s| (-s, i))
                })
                .collect();
            scored.sort_unstable();
            self.shown = scored.into_iter().map(|(_, i)| i).collect();
        }
        self.selected = 0;
    }

    /// Choice that Enter applies: the selected item's, or one for the typed text.
    pub fn chosen(&self) -> Option<PickAction> {
        let typed = self.typed.as_ref().map(|t| t.value().trim()).filter(|t| !t.is_empty());
        self.selected_item().map(|i| i.choice.clone()).or_else(|| Some(self.other?(typed?)))
    }

    pub fn selected_item(&self) -> Option<&Item> {
        self.shown.get(self.selected).map(|&i| &self.items[i])
    }

    /// Returns the item with this letter.
    pub fn by_key(&self, letter: char) -> Option<&Item> {
        self.items.iter().find(|i| i.letter == Some(letter))
    }

    pub fn move_selection(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }
}
