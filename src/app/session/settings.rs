//! User settings from the command line and the configuration file

use super::location::Location;
use crate::analysis::{GroupBy, SortBy};
use crate::app::actions::Keymap;
use crate::config::First;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the theme.
    pub theme: String,
    /// Names of all themes.
    pub themes: Vec<String>,
    pub keymap: Keymap,
    /// Grouping that a report opens with.
    pub group: GroupBy,
    /// Order that a report opens with.
    pub sort: SortBy,
    /// Metrics that are pinned from the beginning.
    pub pins: Vec<String>,
    /// Screen that a timeline opens with.
    pub first: First,
    /// Initial location of a session, if not `first`.
    pub address: Option<Location>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: "dark".to_owned(),
            themes: vec!["dark".to_owned()],
            keymap: Keymap::default(),
            group: GroupBy::Kernel,
            sort: SortBy::Total,
            pins: Vec::new(),
            first: First::default(),
            address: None,
        }
    }
}
