//! `warpscope themes`: names of all themes.

use super::failure::Failure;
use super::print;
use crate::config::{self, ColorMode};
use crate::ui::theme::Library;

fn load_library() -> Library {
    Library::new(config::load_themes(config::config_folder().as_deref()))
}

/// Lists the themes.
pub fn list_themes() -> Result<(), Failure> {
    print::lines(&load_library().names())
}

/// Checks that a theme exists and is valid.
pub fn check_theme(name: &str) -> Result<(), Failure> {
    load_library().theme(name, ColorMode::True).map(|_| ()).map_err(Failure::usage)
}
