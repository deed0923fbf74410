//! Starts this program's own processes for a run.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts a supervisor, either detached or with a pipe to its stdin that ends the run when it is closed. The supervisor
/// writes one byte to its output once it has taken charge of the run.
pub fn spawn_supervisor(program: &Path, words: &[String], lifeline: bool) -> io::Result<Child> {
    Command::new(program)
        .args(words)
        .stdin(if lifeline { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Starts a supervisor that inherits stdin (the pipe) and the output; its orphans become children of this process.
pub fn spawn_kept_supervisor(program: &Path, words: &[String]) -> io::Result<Child> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).spawn()
}

/// Starts this program as the process that owns the terminal during a run, and waits for that process to end. If it is
/// killed, its orphans become children of this process.
pub fn run_in_terminal(program: &Path, words: &[String]) -> io::Result<ExitStatus> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).status()
}
