//! The explorer's terminal: reads its bytes with a timeout, and has a separate process restore its modes if the
//! explorer ends without doing so (killed, out of memory, aborted by a library).

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::termios::{self, ControlFlags, InputFlags, LocalFlags, OutputFlags, SetArg, Termios};
use nix::unistd::{getpgrp, tcgetpgrp};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

/// Reader of raw bytes from the terminal on stdin.
#[derive(Debug)]
pub struct Keys(File);

/// Stops the process group, like Ctrl-Z: a script that waits for this program also stops, and the user's shell gets the
/// terminal.
pub fn stop_group() -> io::Result<()> {
    Ok(killpg(getpgrp(), Signal::SIGSTOP)?)
}

#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// Number of bytes read.
    Bytes(usize),
    /// The wait timed out.
    Nothing,
    /// End of input, because the terminal is gone.
    End,
}

impl Keys {
    /// Opens stdin, bypassing its buffer: `poll` does not see buffered bytes.
    pub fn open_stdin() -> io::Result<Self> {
        Ok(Self(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// Waits for bytes, indefinitely or up to a timeout.
    pub fn read_bytes(&mut self, buffer: &mut [u8], wait: Option<Duration>) -> Came {
        let wait = wait.map_or(PollTimeout::NONE, |w| PollTimeout::try_from(w).unwrap_or(PollTimeout::MAX));
        loop {
            match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], wait) {
                Ok(0) => return Came::Nothing,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => return Came::End,
                Ok(_) => {}
            }
            match self.0.read(buffer) {
                Ok(0) => return Came::End,
                Ok(n) => return Came::Bytes(n),
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(_) => return Came::End,
            }
        }
    }
}

/// Messages to the guard: the explorer has taken over the terminal, or restored it.
const TAKEN: u8 = b't';
const GIVEN: u8 = b'g';

/// Process that restores the terminal if this process cannot.
#[derive(Debug)]
pub struct Guard(ChildStdin);

impl Guard {
    /// Starts the guard. `words` are the arguments with which this program runs [`restore_on_exit`]; the terminal's
    /// current modes are appended. Returns `None` on failure (at the process limit, for example); the explorer also
    /// works without a guard.
    pub fn spawn_guard(program: &Path, words: &[&str]) -> Option<Self> {
        let modes = format_modes(&termios::tcgetattr(io::stdin()).ok()?);
        let child = Command::new(program)
            .args(words)
            .args([modes, getpgrp().as_raw().to_string()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            // Keeps the terminal's signals away from the guard.
            .process_group(0)
            .spawn();
        // There is no need to wait: the guard outlives this process.
        child.ok()?.stdin.map(Self)
    }

    /// Tells the guard that the explorer has taken over the terminal.
    pub fn notify_taken(&mut self) {
        // A write error means that the guard has already ended.
        let _ = self.0.write_all(&[TAKEN]);
    }

    /// Tells the guard that the explorer has restored the terminal.
    pub fn notify_restored(&mut self) {
        let _ = self.0.write_all(&[GIVEN]);
    }
}

/// Waits until the process at the other end of stdin ends. If that process still had control of the terminal, restores
/// it: writes `escape`, and sets `modes` unless a shell with job control (a foreground group other than `group`) has
/// already taken the terminal.
pub fn restore_on_exit(modes: &str, group: i32, escape: &[u8]) -> io::Result<()> {
    let (mut taken, mut byte) = (false, [0]);
    loop {
        match io::stdin().read(&mut byte) {
            Ok(0) => break,
            Ok(_) => taken = byte[0] == TAKEN,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if !taken {
        return Ok(());
    }
    // A background process may change the modes only if it blocks SIGTTOU.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTTOU);
    signals.thread_block()?;
    let terminal = io::stdout();
    let shell = tcgetpgrp(&terminal).is_ok_and(|g| g.as_raw() != group);
    if !shell && let Some(before) = termios::tcgetattr(&terminal).ok().and_then(|now| parse_modes(modes, now)) {
        termios::tcsetattr(&terminal, SetArg::TCSANOW, &before)?;
    }
    let mut out = terminal.lock();
    out.write_all(escape)?;
    out.flush()
}

/// Formats modes as one word: the four sets of flags and the control characters, in hexadecimal.
fn format_modes(modes: &Termios) -> String {
    let flags = [modes.input_flags.bits(), modes.output_flags.bits(), modes.control_flags.bits(), modes.local_flags.bits()];
    let characters = modes.control_chars.iter().map(|c| u32::from(*c));
    flags.into_iter().chain(characters).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(":")
}

/// Parses the output of [`format_modes`] on top of the current modes; `None` if it is malformed.
fn parse_modes(word: &str, now: Termios) -> Option<Termios> {
    let mut numbers = word.split(':').map(|n| u32::from_str_radix(n, 16).ok());
    let mut next = || numbers.next().flatten();
    let mut modes = now;
    modes.input_flags = InputFlags::from_bits_retain(next()?);
    modes.output_flags = OutputFlags::from_bits_retain(next()?);
    modes.control_flags = ControlFlags::from_bits_retain(next()?);
    modes.local_flags = LocalFlags::from_bits_retain(next()?);
    for c in &mut modes.control_chars {
        *c = u8::try_from(next()?).ok()?;
    }
    Some(modes)
}
