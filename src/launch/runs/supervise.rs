//! The supervisor, a process next to the explorer that runs a profiler. It owns the profiler from start to end: it
//! reads both outputs into the log, stops the profiler on request or when the explorer is gone, and leaves no process
//! behind, even if the explorer crashes.

use super::exit_diagnosis::{Exit, Watch};
use super::log::LogWriter;
use super::process::{self, Process};
use super::progress;
use super::stop_sequence::Stage;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The command to supervise.
#[derive(Debug)]
pub struct Order<'a> {
    /// Words that precede the profiler's command: this program's own [`exec_profiler`], or nothing in tests.
    pub starter: Vec<OsString>,
    /// The profiler with its options, followed by the program and its arguments.
    pub argv: &'a [String],
    pub env: &'a [(String, String)],
    pub directory: &'a Path,
    /// Maximum silence of the profiler after INT before TERM is sent: some write their reports without printing
    /// anything.
    pub silence_limit: Duration,
    /// The run ends when stdin is closed; the explorer holds the other end. Otherwise, the run is detached from the
    /// start.
    pub lifeline: bool,
    /// Number of signals received so far that ask this process to stop the run.
    pub signals: Arc<AtomicUsize>,
    /// Thread that temporarily starts programs. They are also children of this process, but not part of the run.
    pub helper: Option<JoinHandle<()>>,
}

/// An event in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The profiler was started and has this process id.
    Started(i32),
    /// A stop reached its next stage.
    Stage(Stage),
    /// The explorer detached; the run continues.
    Detached,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub exit: Exit,
    /// Output collected from the profiler.
    pub watch: Watch,
    /// Number of leftover processes that had to be ended.
    pub left: usize,
}

/// Time that a child has to end after TERM.
const AFTER_TERM: Duration = Duration::from_secs(5);
/// Maximum wait when polling the outputs, ms.
const TICK: u16 = 100;
/// Time limit for stopping after INT, even if the profiler still reports progress.
const LONGEST_STOP: Duration = Duration::from_mins(15);
/// Time that the profiler's leftover processes have to end on their own.
const LEFT: Duration = Duration::from_secs(1);
/// Lines longer than this are truncated before they are parsed.
const LINE: usize = 4096;
/// Byte on the lifeline that requests a stop, or the next stage of a stop.
pub const STOP: u8 = b's';
/// Byte on the lifeline that detaches the run.
pub const DETACH: u8 = b'd';

/// Replaces this intermediate process with the profiler. If the supervisor is killed, the kernel also ends the
/// profiler. Returns only if the profiler cannot be started, with the error.
pub fn exec_profiler(argv: &[OsString], supervisor: i32) -> io::Error {
    if let Err(e) = process::end_with_parent(supervisor) {
        return e;
    }
    match argv.split_first() {
        Some((program, arguments)) => Command::new(program).args(arguments).exec(),
        None => io::Error::other("no command"),
    }
}

/// One of the child's outputs.
struct Output<R> {
    from: Option<R>,
    /// Output read so far without a line end.
    rest: Vec<u8>,
    line: Vec<u8>,
}

impl<R: Read> Output<R> {
    fn new(from: Option<R>) -> Self {
        Self { from, rest: Vec::new(), line: Vec::new() }
    }

    /// Reads the available output; complete lines go to the log immediately.
    fn read_available(&mut self, number: usize, log: &mut LogWriter, heard: &mut Heard) {
        let Some(from) = &mut self.from else { return };
        let mut buffer = [0; 16 << 10];
        let n = match from.read(&mut buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => 0,
        };
        if n == 0 {
            self.from = None;
            // The last line may not have a line end.
            if !self.line.is_empty() {
                heard.observe_line(&String::from_utf8_lossy(&std::mem::take(&mut self.line)));
            }
            self.flush_rest(number, log);
            return;
        }
        for &byte in &buffer[..n] {
            match byte {
                b'\n' | b'\r' => {
                    heard.observe_line(&String::from_utf8_lossy(&self.line));
                    self.line.clear();
                }
                _ if self.line.len() < LINE => self.line.push(byte),
                _ => {}
            }
        }
        self.rest.extend_from_slice(&buffer[..n]);
        let whole = self.rest.iter().rposition(|b| matches!(b, b'\n' | b'\r')).map_or(0, |at| at + 1);
        log.write_output(number, &self.rest[..whole]);
        self.rest.drain(..whole);
        if self.rest.len() > LINE {
            self.flush_rest(number, log);
        }
    }

    /// Writes an incomplete line to the log after a pause in the output.
    fn flush_rest(&mut self, number: usize, log: &mut LogWriter) {
        log.write_output(number, &self.rest);
        self.rest.clear();
    }
}

/// State parsed from the child's output.
struct Heard {
    watch: Watch,
    /// Time of the last progress report.
    progress: Instant,
}

impl Heard {
    fn observe_line(&mut self, line: &str) {
        self.watch.observe_line(line);
        if progress::parse_progress(line).is_some() {
            self.progress = Instant::now();
        }
    }
}

/// A stop in progress.
struct Stop {
    stage: Stage,
    since: Instant,
    begun: Instant,
    group: Pid,
    silence_limit: Duration,
}

impl Stop {
    /// Advances to the next stage.
    fn advance_stage(&mut self, log: &mut LogWriter, event: &mut dyn FnMut(Event)) {
        let Some((stage, signal)) = self.stage.next() else { return };
        if self.stage == Stage::Running {
            self.begun = Instant::now();
        }
        (self.stage, self.since) = (stage, Instant::now());
        // The group may already be gone, so errors are ignored.
        let _ = killpg(self.group, signal);
        if stage == Stage::Killed {
            for p in process::descendants(getpid().as_raw()) {
                let _ = kill(Pid::from_raw(p.pid), Signal::SIGKILL);
            }
        }
        log.write_message(match stage {
            Stage::Interrupted => "asked the profiler to stop (INT); it is writing its report",
            Stage::Terminated => "told the profiler to terminate (TERM)",
            _ => "killed the profiler (KILL)",
        });
        event(Event::Stage(stage));
    }

    fn is_due(&self, progress: Instant) -> bool {
        match self.stage {
            Stage::Running | Stage::Killed => false,
            Stage::Interrupted => self.since.max(progress).elapsed() > self.silence_limit || self.begun.elapsed() > LONGEST_STOP,
            Stage::Terminated => self.since.elapsed() > AFTER_TERM,
        }
    }
}

/// Reason why a run could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The profiler did not start.
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    /// Watching the profiler failed, so the supervisor ended it.
    #[error("the profiler could no longer be monitored and was stopped: {0}")]
    Watch(io::Error),
}

/// Runs a profiler to completion. Leaves no process of the run behind, even after an error.
pub fn supervise_run(order: Order<'_>, log: &mut LogWriter, event: &mut dyn FnMut(Event)) -> Result<Outcome, Broken> {
    let not_started = |source| Broken::Start { program: order.argv.first().cloned().unwrap_or_default(), source };
    let mut child = spawn_profiler(&order).map_err(not_started)?;
    watch_child(order, &mut child, log, event).map_err(|e| {
        let _ = killpg(Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX)), Signal::SIGKILL);
        let _ = child.wait();
        end_leftover_processes(Instant::now());
        Broken::Watch(e)
    })
}

fn spawn_profiler(order: &Order<'_>) -> io::Result<Child> {
    // Orphans of the profiler become children of this process, which allows it to find them.
    prctl::set_child_subreaper(true)?;
    let mut words = order.starter.iter().cloned().chain(order.argv.iter().map(OsString::from));
    let program = words.next().ok_or_else(|| io::Error::other("no command"))?;
    Command::new(program)
        .args(words)
        .envs(order.env.iter().map(|(k, v)| (k, v)))
        .current_dir(order.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

fn watch_child(mut order: Order<'_>, child: &mut Child, log: &mut LogWriter, event: &mut dyn FnMut(Event)) -> io::Result<Outcome> {
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    event(Event::Started(pid));
    let mut outs = (Output::new(child.stdout.take()), Output::new(child.stderr.take()));
    let mut heard = Heard { watch: Watch::default(), progress: Instant::now() };
    let now = Instant::now();
    let mut stop = Stop { stage: Stage::Running, since: now, begun: now, group: Pid::from_raw(pid), silence_limit: order.silence_limit };
    // Bypasses stdin's buffer: `poll` does not see buffered bytes.
    let mut lifeline = if order.lifeline { Some(File::from(io::stdin().as_fd().try_clone_to_owned()?)) } else { None };
    let mut signals = 0;
    let mut ended: Option<(std::process::ExitStatus, Instant)> = None;
    let mut swept = Instant::now();
    loop {
        let ready = wait_readable(outs.0.from.as_ref(), outs.1.from.as_ref(), lifeline.as_ref())?;
        if ready[0] {
            outs.0.read_available(0, log, &mut heard);
        } else {
            outs.0.flush_rest(0, log);
        }
        if ready[1] {
            outs.1.read_available(1, log, &mut heard);
        } else {
            outs.1.flush_rest(1, log);
        }
        let mut steps = 0;
        if ready[2]
            && let Some(line) = &mut lifeline
        {
            let mut byte = [0];
            match line.read(&mut byte) {
                Ok(1) if byte[0] == STOP => steps += 1,
                Ok(1) if byte[0] == DETACH => {
                    lifeline = None;
                    log.write_message("detached: the run continues in the background");
                    event(Event::Detached);
                }
                Ok(1) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The other end was closed.
                _ => {
                    lifeline = None;
                    if stop.stage == Stage::Running && ended.is_none() {
                        log.write_message("the process that started the run is gone, so the run is being stopped");
                        steps += 1;
                    }
                }
            }
        }
        let asked = order.signals.load(Ordering::SeqCst);
        steps += asked.saturating_sub(signals);
        signals = asked;
        if ended.is_none() {
            for _ in 0..steps {
                stop.advance_stage(log, event);
            }
            if stop.is_due(heard.progress) {
                stop.advance_stage(log, event);
            }
            ended = child.try_wait()?.map(|s| (s, Instant::now()));
        }
        if swept.elapsed() > Duration::from_secs(1) {
            swept = Instant::now();
            if order.helper.as_ref().is_none_or(JoinHandle::is_finished) {
                reap_orphans(child);
            }
        }
        if let Some((status, at)) = ended {
            let closed = outs.0.from.is_none() && outs.1.from.is_none();
            // Do not wait for a grandchild that holds the outputs open.
            if closed || at.elapsed() > LEFT {
                outs.0.flush_rest(0, log);
                outs.1.flush_rest(1, log);
                // This wait is bounded by the time limit of the helper's queries.
                if let Some(helper) = order.helper.take() {
                    let _ = helper.join();
                }
                let left = end_leftover_processes(at);
                if left > 0 {
                    log.write_message(&format!("terminated {left} leftover process{}", if left == 1 { "" } else { "es" }));
                }
                let exit = Exit { code: status.code(), signal: status.signal(), stopped: stop.stage != Stage::Running };
                return Ok(Outcome { exit, watch: heard.watch, left });
            }
        }
    }
}

/// Waits until an output or the lifeline is readable, for at most one tick.
fn wait_readable(out: Option<&impl AsFd>, err: Option<&impl AsFd>, lifeline: Option<&File>) -> io::Result<[bool; 3]> {
    let mut which = Vec::new();
    let mut fds = Vec::new();
    let fd = |i, fd, which: &mut Vec<usize>, fds: &mut Vec<_>| {
        which.push(i);
        fds.push(PollFd::new(fd, PollFlags::POLLIN));
    };
    if let Some(o) = out {
        fd(0, o.as_fd(), &mut which, &mut fds);
    }
    if let Some(e) = err {
        fd(1, e.as_fd(), &mut which, &mut fds);
    }
    if let Some(l) = lifeline {
        fd(2, l.as_fd(), &mut which, &mut fds);
    }
    let mut ready = [false; 3];
    match poll(&mut fds, PollTimeout::from(TICK)) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => {}
        Ok(_) => {
            for (i, fd) in which.into_iter().zip(&fds) {
                ready[i] = fd.any().unwrap_or(false);
            }
        }
        Err(e) => return Err(e.into()),
    }
    Ok(ready)
}

/// Reaps orphans that became children of this process and have ended, but not the profiler itself.
fn reap_orphans(child: &Child) {
    let mine = getpid().as_raw();
    let profiler = i32::try_from(child.id()).unwrap_or(i32::MAX);
    for p in process::descendants(mine).into_iter().filter(|p| p.parent == mine && p.state == 'Z' && p.pid != profiler) {
        let _ = waitpid(Pid::from_raw(p.pid), Some(WaitPidFlag::WNOHANG));
    }
}

/// Runs a command to completion in the terminal's foreground, and ends its leftover processes. `started` gets the
/// command's process id. When `stop` is incremented, the command is stopped: INT, TERM after `silence_limit`, then
/// KILL.
pub fn run_in_foreground(
    words: &[OsString],
    env: &[(String, String)],
    directory: &Path,
    silence_limit: Duration,
    stop: &AtomicUsize,
    started: impl FnOnce(i32),
) -> io::Result<(std::process::ExitStatus, bool)> {
    prctl::set_child_subreaper(true)?;
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut child = Command::new(program).args(arguments).envs(env.iter().map(|(k, v)| (k, v))).current_dir(directory).spawn()?;
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    started(pid);
    let mut told: Option<(Stage, Instant)> = None;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let due = match told {
            None => stop.load(Ordering::SeqCst) > 0,
            Some((Stage::Interrupted, at)) => at.elapsed() > silence_limit,
            Some((Stage::Terminated, at)) => at.elapsed() > AFTER_TERM,
            Some(_) => false,
        };
        if due && let Some((stage, signal)) = told.map_or(Stage::Running, |t| t.0).next() {
            told = Some((stage, Instant::now()));
            // The terminal's process group contains the shell's entire job; only the run's own processes are signaled.
            for p in process::descendants(getpid().as_raw()) {
                let _ = kill(Pid::from_raw(p.pid), signal);
            }
        }
        std::thread::park_timeout(Duration::from_millis(20));
    };
    end_leftover_processes(Instant::now());
    Ok((status, told.is_some()))
}

/// Ends the processes of a killed supervisor: they became children of this process, which must be a subreaper. They
/// have `silence_limit` to end on their own.
pub fn end_leftovers(silence_limit: Duration) {
    end_leftover_processes(Instant::now() + silence_limit.saturating_sub(LEFT));
}

/// Ends leftover processes of the run: waits for them to end on their own, then sends TERM, then KILL. Returns the
/// number of processes that had to be ended.
fn end_leftover_processes(ended: Instant) -> usize {
    let mine = getpid().as_raw();
    let left = || -> Vec<Process> {
        for p in process::descendants(mine).into_iter().filter(|p| p.parent == mine && p.state == 'Z') {
            let _ = waitpid(Pid::from_raw(p.pid), Some(WaitPidFlag::WNOHANG));
        }
        process::descendants(mine).into_iter().filter(|p| p.state != 'Z').collect()
    };
    let until = |end: Instant| {
        while !left().is_empty() && Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        left()
    };
    let mut found = until(ended + LEFT);
    let count = found.len();
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if found.is_empty() {
            break;
        }
        for p in &found {
            let _ = kill(Pid::from_raw(p.pid), signal);
        }
        found = until(Instant::now() + Duration::from_secs(2));
    }
    count
}
