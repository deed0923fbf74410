//! `warpscope themes`.

use super::{Failure, print};
use crate::config;
use crate::ui::theme::Library;

/// Lists the themes.
pub fn themes() -> Result<(), Failure> {
    let names = Library::new(config::themes(config::folder().as_deref())).names();
    print::lines(&names)
}
