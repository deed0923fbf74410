//! Starts this program's own processes for a run.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts a supervisor: with a line to it that ends the run when it is cut, or on its own. Its output is one byte, when it holds the run.
pub fn supervisor(program: &Path, words: &[String], lifeline: bool) -> io::Result<Child> {
    Command::new(program)
        .args(words)
        .stdin(if lifeline { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Starts the supervisor itself, with the line to it and its output passed on; whatever it leaves behind comes to this process.
pub fn kept(program: &Path, words: &[String]) -> io::Result<Child> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).spawn()
}

/// Starts this program's own process that has the terminal while a run does, and waits for it; what it leaves behind when it is
/// killed comes to this process.
pub fn in_terminal(program: &Path, words: &[String]) -> io::Result<ExitStatus> {
    nix::sys::prctl::set_child_subreaper(true)?;
    Command::new(program).args(words).status()
}
