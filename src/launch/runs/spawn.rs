//! Starts this program's own processes for a run.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts a supervisor, either with a pipe to its stdin whose closing ends the run, or detached. Its output is one
/// byte, when it holds the run.
pub fn spawn_supervisor(program: &Path, words: &[String], lifeline: bool) -> io::Result<Child> {
    Command::new(program)
        .args(words)
        .stdin(if lifeline { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Starts the supervisor, which inherits the pipe on stdin and the output; its orphans become children of this process.
pub fn spawn_kept_supervisor(program: &Path, words: &[String]) -> io::Result<Child> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).spawn()
}

/// Starts this program's process that has the terminal during a run, and waits for it; if it is killed, its orphans
/// become children of this process.
pub fn run_in_terminal(program: &Path, words: &[String]) -> io::Result<ExitStatus> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).status()
}
