//! Starts this program's own processes for a run.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts a supervisor: with a line to it that ends the run when it is cut, or on its own. It has no output.
pub fn supervisor(program: &Path, words: &[String], lifeline: bool) -> io::Result<Child> {
    Command::new(program)
        .args(words)
        .stdin(if lifeline { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Runs a command in the foreground to its end: the terminal is its own. `started` hears its process id.
pub fn foreground(words: &[OsString], env: &[(String, String)], directory: &Path, started: impl FnOnce(i32)) -> io::Result<ExitStatus> {
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut child = Command::new(program).args(arguments).envs(env.iter().map(|(k, v)| (k, v))).current_dir(directory).spawn()?;
    started(i32::try_from(child.id()).unwrap_or(i32::MAX));
    child.wait()
}
