//! Key bindings: defaults from the action table, with the user's overrides

use super::key_scopes::KeyScope;
use super::table::{ACTIONS, Action, ActionId, find_action};
use crate::analysis::fuzzy::nearest_match;
use crate::analysis::next_step::{KEY_BEGIN, KEY_END};
use crate::config::keys::{Key, spell_out_keys};
use std::collections::{BTreeMap, HashMap};

/// Encloses a key in a sentence. Text read from reports never contains it (see
/// [`escape_unsafe`](crate::model::text::escape_unsafe)).
pub const LINK: char = '\u{2063}';

/// Key bindings, for lookup by key and by action.
#[derive(Clone, Debug)]
pub struct Keymap {
    keys: BTreeMap<ActionId, Vec<Key>>,
    actions: HashMap<Key, Vec<ActionId>>,
    /// True if labels use ASCII only.
    ascii: bool,
}

impl Default for Keymap {
    fn default() -> Self {
        // The default keys always parse; a test checks this.
        Self::with_user_keys(&BTreeMap::new()).unwrap_or_else(|_| Self { keys: BTreeMap::new(), actions: HashMap::new(), ascii: false })
    }
}

impl Keymap {
    /// Returns the default bindings, overridden by the user's keys for named actions. Two actions may share a key only
    /// if no screen has both.
    pub fn with_user_keys(user: &BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        for name in user.keys() {
            if !ACTIONS.iter().any(|a| a.name == name) {
                let near = nearest_match(name, ACTIONS.iter().map(|a| a.name));
                return Err(match near {
                    Some(near) => format!("[keys]: no action `{name}`; did you mean `{near}`?"),
                    None => format!("[keys]: no action `{name}`; press `?` in `warpscope` for the list"),
                });
            }
        }
        let mut map = Self { keys: BTreeMap::new(), actions: HashMap::new(), ascii: false };
        for action in ACTIONS {
            let names: Vec<&str> = user.get(action.name).map_or_else(|| action.keys.to_vec(), |k| k.iter().map(String::as_str).collect());
            for name in names {
                let key = Key::parse(name)
                    .ok_or_else(|| format!("[keys] {}: no key `{name}`; write `q`, `ctrl-c`, `f1`, `enter`, `pgdn` …", action.name))?;
                let taken = map.actions.entry(key).or_default();
                // A screen's own key takes precedence over a common one, unless the user bound the common one.
                let before = |own: &Action, common: &Action| {
                    matches!(own.on, KeyScope::Timeline | KeyScope::Ranks | KeyScope::Memory | KeyScope::Rerun | KeyScope::Run)
                        && common.on == KeyScope::Everywhere
                        && !user.contains_key(common.name)
                };
                let rivals: Vec<&Action> = taken
                    .iter()
                    .filter_map(|&id| find_action(id))
                    .filter(|other| other.on.overlaps_with(action.on) && !before(action, other) && !before(other, action))
                    .collect();
                let mine = user.contains_key(action.name);
                // A default yields to a key that the user chose.
                if let Some(rival) = rivals.iter().find(|r| user.contains_key(r.name) == mine) {
                    return Err(format!("[keys]: `{name}` is bound to both `{}` and `{}`", rival.name, action.name));
                }
                if !mine && !rivals.is_empty() {
                    continue;
                }
                for rival in rivals.into_iter().map(|r| r.id) {
                    taken.retain(|&id| id != rival);
                    if let Some(keys) = map.keys.get_mut(&rival) {
                        keys.retain(|&k| k != key);
                    }
                }
                taken.push(action.id);
                map.keys.entry(action.id).or_default().push(key);
            }
        }
        Ok(map)
    }

    /// Returns the action of a key on a screen: the screen's own action rather than a common one, and the action of the
    /// plain key if Shift plus that key is not bound.
    pub fn find_action(&self, key: Key, on: KeyScope) -> Option<ActionId> {
        let works = |id: &&ActionId| find_action(**id).is_some_and(|a| a.on.applies_to(on));
        let own = |id: &&ActionId| works(id) && find_action(**id).is_some_and(|a| a.on != KeyScope::Everywhere);
        let bound = self.actions.get(&key).and_then(|ids| ids.iter().find(own).or_else(|| ids.iter().find(works)).copied());
        // Shift plus an arrow acts like the plain arrow, unless it is bound.
        bound.or_else(|| self.find_action(key.without_shift()?, on))
    }

    /// Explains where a key works, for a screen on which it does nothing.
    pub fn elsewhere(&self, key: Key) -> String {
        let label = key.label();
        let bound = |key: Key| self.actions.get(&key).map(Vec::as_slice).unwrap_or_default();
        let ids = match bound(key) {
            [] => key.without_shift().map(bound).unwrap_or_default(),
            ids => ids,
        };
        // If several screens have the same action, its names start with the screen.
        let word = |a: &Action| {
            let screens = [("run-", KeyScope::Library), ("memory-", KeyScope::Memory), ("ranks-", KeyScope::Ranks)];
            let prefix = screens.iter().find(|s| s.1 == a.on).and_then(|s| a.name.strip_prefix(s.0));
            prefix.unwrap_or(a.name).replace('-', " ")
        };
        let actions = ids.iter().filter_map(|id| find_action(*id));
        let mut places: Vec<String> = actions.map(|a| format!("{} ({})", word(a), a.on.as_str())).collect();
        places.truncate(3);
        if places.is_empty() {
            return format!("{label} has no action; {} lists all keys", self.key_label(ActionId::Help));
        }
        format!("{label} does nothing here; elsewhere: {}", places.join(" · "))
    }

    /// Keys bound to an action.
    pub fn keys(&self, id: ActionId) -> &[Key] {
        self.keys.get(&id).map_or(&[], Vec::as_slice)
    }

    /// First key of an action, enclosed in [`LINK`]s so that it appears highlighted and clickable in a sentence.
    pub fn link(&self, id: ActionId) -> String {
        format!("{LINK}{}{LINK}", self.key_label(id))
    }

    /// Replaces the key placeholders in a sentence (see [`key_of`](crate::analysis::next_step::key_of)) with the bound
    /// keys.
    pub fn spell(&self, sentence: &str) -> String {
        self.replace_keys(sentence, |id| self.key_label(id))
    }

    /// Like [`Self::spell`], but formats keys like [`Self::link`].
    pub fn spell_links(&self, sentence: &str) -> String {
        self.replace_keys(sentence, |id| self.link(id))
    }

    fn replace_keys(&self, sentence: &str, label: impl Fn(ActionId) -> String) -> String {
        let mut out = String::with_capacity(sentence.len());
        let mut rest = sentence;
        while let Some((before, after)) = rest.split_once(KEY_BEGIN) {
            out.push_str(before);
            let Some((name, after)) = after.split_once(KEY_END) else { break };
            match ACTIONS.iter().find(|a| a.name == name).filter(|a| !self.key_label(a.id).is_empty()) {
                Some(action) => out.push_str(&label(action.id)),
                None => out.push_str(name),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// Label of an action's first key; empty if it has none.
    pub fn key_label(&self, id: ActionId) -> String {
        self.keys(id).first().map(|key| self.label(key)).unwrap_or_default()
    }

    fn label(&self, key: &Key) -> String {
        if self.ascii { spell_out_keys(&key.label()) } else { key.label() }
    }

    /// Labels of an action's first `count` keys, or of as many as fit in `width` columns.
    pub fn first_labels(&self, id: ActionId, count: usize, width: usize) -> String {
        let mut out = String::new();
        for label in self.keys(id).iter().take(count).map(|key| self.label(key)) {
            if out.is_empty() {
                out = label;
            } else if out.chars().count() + 1 + label.chars().count() <= width {
                out = format!("{out} {label}");
            }
        }
        out
    }

    /// Returns the keys with labels in ASCII, such as `enter`.
    pub fn with_ascii_labels(self, ascii: bool) -> Self {
        Self { ascii, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use KeyScope::{Kernels, Launches};

    #[test]
    fn first_labels_fit_their_column() {
        let keymap = Keymap::default();
        assert_eq!(keymap.first_labels(ActionId::Open, 2, 9), "⏎ →");
        let keymap = keymap.with_ascii_labels(true);
        assert_eq!(keymap.first_labels(ActionId::Open, 2, 9), "enter");
        assert_eq!(keymap.first_labels(ActionId::Open, 2, 11), "enter right");
    }

    fn user(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        pairs.iter().map(|(a, k)| ((*a).to_owned(), vec![(*k).to_owned()])).collect()
    }

    #[test]
    fn the_default_keys_are_readable_and_without_conflict() {
        let map = Keymap::with_user_keys(&BTreeMap::new()).unwrap();
        for action in ACTIONS {
            assert_eq!(map.keys(action.id).len(), action.keys.len(), "{}", action.name);
        }
        assert_eq!(map.find_action(Key::parse("J").unwrap(), Launches), Some(ActionId::Jump));
        assert_eq!(map.find_action(Key::parse("J").unwrap(), Kernels), None);
    }

    #[test]
    fn the_user_s_key_takes_the_place_of_a_default() {
        let map = Keymap::with_user_keys(&user(&[("quit", "s")])).unwrap();
        assert_eq!(map.find_action(Key::parse("s").unwrap(), Kernels), Some(ActionId::Quit));
        assert_eq!(map.find_action(Key::parse("q").unwrap(), Kernels), None);
        assert!(map.keys(ActionId::Sort).is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Keymap::with_user_keys(&user(&[("qiut", "x")])).unwrap_err(), "[keys]: no action `qiut`; did you mean `quit`?");
        assert!(Keymap::with_user_keys(&user(&[("quit", "hyper-x")])).unwrap_err().contains("no key `hyper-x`"));
        assert!(Keymap::with_user_keys(&user(&[("quit", "x"), ("help", "x")])).unwrap_err().contains("both"));
    }
}
