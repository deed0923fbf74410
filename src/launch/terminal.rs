//! The terminal beneath the explorer: its bytes, read with patience, and its modes, given back by a process of its own when the explorer ends
//! without a chance to do so (killed, out of memory, aborted by a library).

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

/// The terminal that stdin is, to read bytes from as they come.
#[derive(Debug)]
pub struct Keys(File);

/// Stops the process group, as the terminal's own key does: a script that waits for this program stops as well, and its shell gets the terminal.
pub fn stop_group() -> io::Result<()> {
    Ok(killpg(getpgrp(), Signal::SIGSTOP)?)
}

#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// So many bytes.
    Bytes(usize),
    /// Nothing, for as long as was to be waited.
    Nothing,
    /// The end: the terminal is gone.
    End,
}

impl Keys {
    /// Of stdin. Not through its buffer: what waits in there, `poll` does not see.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// Waits for bytes, for ever or for a time.
    pub fn read(&mut self, buffer: &mut [u8], wait: Option<Duration>) -> Came {
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

/// Bytes to the guard: the terminal is taken, or given back.
const TAKEN: u8 = b't';
const GIVEN: u8 = b'g';

/// The process that gives the terminal back when this one cannot.
#[derive(Debug)]
pub struct Guard(ChildStdin);

impl Guard {
    /// Starts it: `words` are this program's own command for [`guard`], which gets the terminal's modes as they are now. Without one (no more
    /// processes, say) the explorer works as well.
    #[must_use]
    pub fn start(program: &Path, words: &[&str]) -> Option<Self> {
        let modes = written(&termios::tcgetattr(io::stdin()).ok()?);
        let child = Command::new(program)
            .args(words)
            .args([modes, getpgrp().as_raw().to_string()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            // The terminal's keys are not for it.
            .process_group(0)
            .spawn();
        // It is not waited for: it ends with this process.
        child.ok()?.stdin.map(Self)
    }

    /// The terminal is taken from now on.
    pub fn taken(&mut self) {
        // Whoever cannot be told guards nothing any more.
        let _ = self.0.write_all(&[TAKEN]);
    }

    /// The terminal was given back.
    pub fn given(&mut self) {
        let _ = self.0.write_all(&[GIVEN]);
    }
}

/// Waits until whoever holds the other end of stdin is gone; if it had the terminal then, gives that back: `escape` is written to it, and its
/// modes are those of `modes`, unless a shell with job control (a foreground group other than `group`) already has it.
pub fn guard(modes: &str, group: i32, escape: &[u8]) -> io::Result<()> {
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
    // A process in the background may not change the modes, unless it does not hear that it may not.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTTOU);
    signals.thread_block()?;
    let terminal = io::stdout();
    let shell = tcgetpgrp(&terminal).is_ok_and(|g| g.as_raw() != group);
    if !shell && let Some(before) = termios::tcgetattr(&terminal).ok().and_then(|now| read(modes, now)) {
        termios::tcsetattr(&terminal, SetArg::TCSANOW, &before)?;
    }
    let mut out = terminal.lock();
    out.write_all(escape)?;
    out.flush()
}

/// Modes as a word: the four sets of flags and the control characters, in hexadecimal.
fn written(modes: &Termios) -> String {
    let flags = [modes.input_flags.bits(), modes.output_flags.bits(), modes.control_flags.bits(), modes.local_flags.bits()];
    let characters = modes.control_chars.iter().map(|c| u32::from(*c));
    flags.into_iter().chain(characters).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(":")
}

/// The modes that were written, on top of those of now; `None` when the word is no such.
fn read(word: &str, now: Termios) -> Option<Termios> {
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
