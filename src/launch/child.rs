//! Runs a child process to completion, without a shell and in its own process group. Reads both outputs, so that the
//! child cannot block on a full pipe, keeps a bounded log, and sends INT, TERM and KILL in turn on cancellation.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Number of output lines to keep.
const LOG_LINES: usize = 200;
/// Lines longer than this are truncated.
const LINE_BYTES: usize = 4096;
/// Signals sent on cancellation, and the time that a child has to react to each.
const PATIENCE: [(Signal, Duration); 3] =
    [(Signal::SIGINT, Duration::from_secs(3)), (Signal::SIGTERM, Duration::from_secs(2)), (Signal::SIGKILL, Duration::from_secs(2))];
/// Polling interval of a running child.
const TICK: Duration = Duration::from_millis(50);

/// Result of a finished child process.
#[derive(Clone, Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// Last lines of both outputs, in order of arrival.
    pub log: Vec<String>,
    /// The caller cancelled the child.
    pub cancelled: bool,
}

/// Command prefix for tools: this program as an intermediate launcher. The id of this process is appended: when this
/// process ends, the kernel terminates the tool.
static STARTER: OnceLock<Vec<OsString>> = OnceLock::new();

/// Makes queried tools end when this program ends, for any reason. The program passes its own command line; tests are a
/// different executable and pass nothing.
pub fn end_tools_with_us(words: Vec<OsString>) {
    // The first call wins.
    let _ = STARTER.set(words);
}

/// Prepends the starter to the command, if one is set.
fn wrap_in_starter(command: &Command) -> Option<Command> {
    let (first, rest) = STARTER.get()?.split_first()?;
    let mut out = Command::new(first);
    out.args(rest).arg(std::process::id().to_string()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => out.env(name, value),
            None => out.env_remove(name),
        };
    }
    Some(out)
}

/// Working folder for querying profilers and disassemblers: ncu and nsys read configuration files from their current
/// folder (`config.ncu-cfg`, `config.ini`, `pyvenv.cfg`), and another user may have put such files into the user's
/// current folder.
const NEUTRAL: &str = "/";

/// Like [`run_child`], but for a tool that is only queried: it runs in a folder that only the administrator can write
/// to. Paths in its arguments must be absolute.
pub fn run_query(command: &mut Command, line: impl FnMut(&str), cancelled: impl Fn() -> bool) -> std::io::Result<Ended> {
    match wrap_in_starter(command) {
        Some(mut tied) => run_child(tied.current_dir(NEUTRAL), line, cancelled),
        None => run_child(command.current_dir(NEUTRAL), line, cancelled),
    }
}

/// Runs a command to completion. `line` gets each line (carriage returns also end lines, because progress bars use
/// them); `cancelled` is polled.
pub fn run_child(command: &mut Command, mut line: impl FnMut(&str), cancelled: impl Fn() -> bool) -> std::io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let (send, lines) = mpsc::sync_channel(256);
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|o| Box::new(o) as Box<dyn Read + Send>),
        child.stderr.take().map(|o| Box::new(o) as Box<dyn Read + Send>),
    ];
    for output in outputs.into_iter().flatten() {
        let send = send.clone();
        std::thread::spawn(move || read_lines(output, &send));
    }
    drop(send);
    let mut log = VecDeque::new();
    let mut keep = |text: String| {
        line(&text);
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(text);
    };
    let mut signals = PATIENCE.into_iter();
    let mut stopping: Option<Instant> = None;
    let status = loop {
        match lines.recv_timeout(TICK) {
            Ok(text) => keep(text),
            // The child may close its outputs before it exits.
            Err(RecvTimeoutError::Disconnected) => std::thread::park_timeout(TICK),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if (stopping.is_some() || cancelled())
            && stopping.is_none_or(|until| Instant::now() >= until)
            && let Some((signal, patience)) = signals.next()
        {
            // Signals the group, so that the child's own children also end. The group may already be gone, so errors
            // are ignored.
            let _ = killpg(group, signal);
            stopping = Some(Instant::now() + patience);
        }
    };
    // The child's last output may still be in the pipes, but do not wait for a grandchild that keeps a pipe open.
    let until = Instant::now() + Duration::from_millis(500);
    while let Ok(text) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
        keep(text);
    }
    if stopping.is_some() {
        let _ = killpg(group, Signal::SIGKILL);
    }
    Ok(Ended { status, log: log.into(), cancelled: stopping.is_some() })
}

/// Starts this program with other arguments; the child ends if this process is killed. The child's stdout is a pipe,
/// and its messages on stderr are discarded.
pub fn start_own_command(args: &[String]) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args);
    let mut command = wrap_in_starter(&command).unwrap_or(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

fn read_lines(mut output: impl Read, send: &mpsc::SyncSender<String>) {
    let mut buffer = [0; 8192];
    let mut line = Vec::new();
    loop {
        let n = match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for &byte in &buffer[..n] {
            if byte == b'\n' || byte == b'\r' {
                if !line.is_empty() && send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            } else if line.len() < LINE_BYTES {
                line.push(byte);
            }
        }
    }
    if !line.is_empty() {
        let _ = send.send(String::from_utf8_lossy(&line).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn sh(script: &str) -> Command {
        let mut c = Command::new("sh");
        c.args(["-c", script]);
        c
    }

    #[test]
    fn both_outputs_arrive_and_the_status() {
        let ended = run_child(&mut sh("echo out; printf '10%%\\r20%%\\r' >&2; exit 7"), |_| {}, || false).unwrap();
        let mut log = ended.log.clone();
        log.sort();
        assert_eq!(log, ["10%", "20%", "out"]);
        assert_eq!((ended.status.code(), ended.cancelled), (Some(7), false));
    }

    #[test]
    fn a_flood_neither_blocks_nor_grows() {
        let ended = run_child(&mut sh("yes | head -n 200000 >&2; echo end"), |_| {}, || false).unwrap();
        assert!(ended.log.len() <= LOG_LINES);
        assert!(ended.status.success());
    }

    #[test]
    fn a_cancelled_child_that_ignores_int_is_ended_with_its_children() {
        let started = Cell::new(false);
        let begun = Instant::now();
        let ended = run_child(
            &mut sh("trap '' INT; echo ready; sleep 600 & wait"),
            |l| started.set(started.get() || l == "ready"),
            || started.get(),
        )
        .unwrap();
        assert!(ended.cancelled && !ended.status.success());
        assert!(begun.elapsed() < Duration::from_mins(1));
    }
}
