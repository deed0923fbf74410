//! `warpscope themes`.

use super::{Failure, print};
use crate::config;
use crate::ui::theme::Library;

/// Lists the themes.
pub fn list_themes() -> Result<(), Failure> {
    let names = Library::new(config::load_themes(config::config_folder().as_deref())).names();
    print::lines(&names)
}
