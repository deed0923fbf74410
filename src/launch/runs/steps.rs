//! Step of a guided run: a command that runs to completion while the run is in progress.

use super::super::run_child;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Runs the command. `hear` gets each output line; `cancelled` is polled. The error is a sentence with the exit status
/// and the last output line.
///
/// `starter` prefixes the command: this program as an intermediate launcher, which terminates the command when this
/// process ends.
pub fn run_step(
    starter: &[OsString],
    argv: &[String],
    directory: &Path,
    mut hear: impl FnMut(&str),
    cancelled: impl Fn() -> bool,
) -> Result<(), String> {
    let Some(program) = argv.first() else { return Err("the step has no command".to_owned()) };
    let mut words = starter.iter().cloned().chain(argv.iter().map(OsString::from));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    if directory.is_dir() {
        command.current_dir(directory);
    }
    let ended = run_child(&mut command, |line| hear(line), cancelled).map_err(|e| format!("{program} cannot be started: {e}"))?;
    if ended.cancelled {
        return Err("it was stopped".to_owned());
    }
    if ended.status.success() {
        return Ok(());
    }
    let how = ended.status.code().map_or_else(|| "was killed".to_owned(), |code| format!("ended with exit code {code}"));
    let last = ended.log.iter().rev().find(|l| !l.trim().is_empty()).map_or_else(String::new, |l| format!(": {}", l.trim()));
    Err(format!("{program} {how}{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, cancelled: bool) -> (Result<(), String>, Vec<String>) {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let mut heard = Vec::new();
        let done = run_step(&[], &argv, Path::new("/"), |l| heard.push(l.to_owned()), || cancelled);
        (done, heard)
    }

    #[test]
    fn ends_are_sentences() {
        assert_eq!(sh("echo a; echo b >&2", false).0, Ok(()));
        assert_eq!(sh("echo a", false).1, ["a"]);
        assert_eq!(sh("echo not there >&2; exit 22", false).0, Err("sh ended with exit code 22: not there".to_owned()));
        assert_eq!(sh("exec sleep 600", true).0, Err("it was stopped".to_owned()));
        assert!(run_step(&[], &["/nonexistent/x".to_owned()], Path::new("/"), |_| {}, || false).unwrap_err().contains("cannot be started"));
    }
}
