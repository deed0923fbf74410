//! User settings from the command line and the configuration file

use super::location::Location;
use crate::analysis::GroupBy;
use crate::analysis::table::Sort;
use crate::analysis::table::kernels::TOTAL;
use crate::app::actions::Keymap;
use crate::config::First;

#[derive(Clone, Debug)]
pub struct Settings {
    pub theme: String,
    pub themes: Vec<String>,
    pub keymap: Keymap,
    /// Initial grouping of a report.
    pub group: GroupBy,
    /// Initial sort order of a report.
    pub sort: Sort,
    /// Metrics that are pinned initially.
    pub pins: Vec<String>,
    /// Initial screen of a timeline.
    pub first: First,
    /// Initial location of the session; overrides `first`.
    pub address: Option<Location>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: "dark".to_owned(),
            themes: vec!["dark".to_owned()],
            keymap: Keymap::default(),
            group: GroupBy::Kernel,
            sort: TOTAL,
            pins: Vec::new(),
            first: First::default(),
            address: None,
        }
    }
}
