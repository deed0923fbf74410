//! The explorer's terminal when something goes wrong: who gives it back, and how a program ends whose terminal is gone.

use super::Failure;
use crate::launch::terminal::{self, Guard};
use crate::ui;

/// Name of the command that gives the terminal back when the explorer cannot.
const GUARD: &str = "__terminal";
/// Exit code when the terminal is gone, as shells have it for a hangup.
const HUNG_UP: u8 = 129;

/// Has a process of this program's give the terminal back should this one be killed.
pub fn guard() {
    ui::terminal::guard(std::env::current_exe().ok().and_then(|program| Guard::start(&program, &[GUARD])));
}

/// `__terminal MODES GROUP`.
pub fn give_back(modes: &str, group: i32) -> Result<(), Failure> {
    Ok(terminal::guard(modes, group, &ui::terminal::escape())?)
}

/// The end of a program whose terminal is gone: there is nobody to tell.
impl Failure {
    /// For an error of the terminal.
    #[must_use]
    pub fn hung_up(_: &std::io::Error) -> Self {
        Self { text: String::new(), code: HUNG_UP }
    }
}
