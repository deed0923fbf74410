//! Terminal recovery: restores the explorer's terminal after a crash, and ends a program whose terminal has
//! disappeared.

use super::failure::Failure;
use crate::launch::terminal::{self, Guard};
use crate::ui;

/// Name of the command that restores the terminal if the explorer cannot.
const GUARD: &str = "__terminal";
/// Exit code if the terminal has disappeared, as in shells after a hangup.
const HUNG_UP: u8 = 129;

/// Starts a child process that restores the terminal if this process is killed.
pub fn start_guard() {
    ui::terminal::set_guard(std::env::current_exe().ok().and_then(|program| Guard::spawn_guard(&program, &[GUARD])));
}

/// `__terminal MODES GROUP`: restores the terminal if the explorer is killed.
pub fn give_back(modes: &str, group: i32) -> Result<(), Failure> {
    Ok(terminal::restore_on_exit(modes, group, &ui::terminal::restore_sequence())?)
}

impl Failure {
    /// Creates an error without a message, since the terminal has disappeared.
    pub fn hung_up(_: &std::io::Error) -> Self {
        Self { text: String::new(), code: HUNG_UP, reason: crate::cli::reason::Reason::Cancelled }
    }
}
