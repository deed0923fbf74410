//! Control client for running traces: each traced process listens on a socket next to its trace.
//!
//! A process may be stopped, busy or gone, and a socket may belong to something else, so all processes share a time
//! limit of two seconds, and each answer is limited to one line.

use crate::launch::runs::process::read_process;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, getsockopt, send, socket, sockopt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time that a process has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause before retrying a process whose connection queue is full, ms.
const PAUSE: u16 = 20;
/// Maximum size of an answer, which is one line, bytes.
const LONGEST: usize = 4096;

/// Reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Silent {
    #[error("the program does not answer: it is stopped (SIGSTOP); `kill -CONT {0}` resumes it")]
    Stopped(u32),
    #[error("the program does not answer: a debugger has stopped it")]
    Debugged,
    #[error("the program does not answer: it is waiting for a disk or a device")]
    Blocked,
    #[error("the program does not answer")]
    Slow,
    #[error("the program closed the connection without an answer")]
    Closed,
    #[error("what answered is not the tracer: it did not stop talking")]
    Endless,
    #[error("what listens is not the tracer: it belongs to another user")]
    Foreign,
}

/// The line that a process answered, or the reason why it did not answer.
pub type Answer = Result<String, Silent>;

enum Stage {
    Connecting,
    Listening(UnixStream, Vec<u8>),
    Answered(Answer),
    /// The process that owned the socket has ended.
    Gone,
}

struct Talk {
    pid: u32,
    name: OsString,
    /// Owner of the socket file, and thus of the process that created it.
    owner: u32,
    stage: Stage,
}

fn stage_after_error(e: Errno) -> Stage {
    match e {
        // The queue is full, or the call was interrupted by a signal.
        Errno::EAGAIN | Errno::EINTR => Stage::Connecting,
        _ => Stage::Gone,
    }
}

/// Connects without blocking and sends the command.
fn connect_and_send(folder: &File, name: &Path, owner: u32, word: &str) -> Result<Stage, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The path of a socket is limited to 107 bytes, so the folder is passed as a descriptor.
    let address = UnixAddr::new(&Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))?;
    connect(fd.as_raw_fd(), &address)?;
    // The file may have been replaced since it was found.
    if getsockopt(&fd, sockopt::PeerCredentials)?.uid() != owner {
        return Ok(Stage::Answered(Err(Silent::Foreign)));
    }
    let said = send(fd.as_raw_fd(), word.as_bytes(), MsgFlags::MSG_NOSIGNAL);
    let listening = Stage::Listening(UnixStream::from(fd), Vec::new());
    Ok(if said == Ok(word.len()) { listening } else { Stage::Answered(Err(Silent::Closed)) })
}

/// Extracts one line that is safe to print on a terminal.
fn first_safe_line(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let line: String = text.trim().lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if line.is_empty() { Err(Silent::Closed) } else { Ok(line) }
}

/// Reads the available bytes; returns the answer once it is complete.
fn receive_answer(socket: &mut UnixStream, heard: &mut Vec<u8>) -> Option<Answer> {
    let mut bytes = [0; 1024];
    match socket.read(&mut bytes) {
        Ok(0) => Some(first_safe_line(heard)),
        Ok(n) => {
            heard.extend(&bytes[..n]);
            (heard.len() > LONGEST).then_some(Err(Silent::Endless))
        }
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
        // The process answered and closed the socket without having read the whole command.
        Err(_) => Some(first_safe_line(heard)),
    }
}

impl Talk {
    fn advance_stage(&mut self, folder: &File, word: &str) {
        match &mut self.stage {
            Stage::Connecting => {
                self.stage = connect_and_send(folder, Path::new(&self.name), self.owner, word).unwrap_or_else(stage_after_error);
            }
            Stage::Listening(socket, heard) => {
                if let Some(answer) = receive_answer(socket, heard) {
                    self.stage = Stage::Answered(answer);
                }
            }
            Stage::Answered(_) | Stage::Gone => {}
        }
    }

    fn is_pending(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Listening(..))
    }

    fn into_answer(self) -> Option<(u32, Answer)> {
        match self.stage {
            Stage::Answered(answer) => Some((self.pid, answer)),
            Stage::Gone => None,
            Stage::Connecting | Stage::Listening(..) => silence_reason(self.pid).map(|why| (self.pid, Err(why))),
        }
    }
}

/// Reason why a process does not answer; `None` if it has ended.
fn silence_reason(pid: u32) -> Option<Silent> {
    match read_process(pid.cast_signed())?.state {
        'T' => Some(Silent::Stopped(pid)),
        't' => Some(Silent::Debugged),
        'D' => Some(Silent::Blocked),
        'Z' | 'X' => None,
        _ => Some(Silent::Slow),
    }
}

/// Finds the control sockets of traces with the path prefix `output`: those of this user or, for root, of all.
fn find_sockets(output: &Path, folder: &Path) -> io::Result<Vec<Talk>> {
    let stem = output.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let user = nix::unistd::geteuid();
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let pid = text.strip_prefix(&format!("{stem}.")).and_then(|n| n.strip_suffix(".sock")).and_then(|p| p.parse().ok());
        let own = |m: &std::fs::Metadata| m.file_type().is_socket() && (user.is_root() || m.uid() == user.as_raw());
        let (Some(pid), Some(meta)) = (pid, entry.metadata().ok().filter(own)) else { continue };
        out.push(Talk { pid, name, owner: meta.uid(), stage: Stage::Connecting });
    }
    Ok(out)
}

/// Waits until a socket is readable, at most for a short pause.
fn wait_for_answers(talks: &[Talk], until: Instant) {
    let fds = talks.iter().filter_map(|t| if let Stage::Listening(socket, _) = &t.stage { Some(socket.as_fd()) } else { None });
    let mut fds: Vec<PollFd> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    let left = u16::try_from(until.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(PAUSE);
    let _ = nix::poll::poll(&mut fds, PollTimeout::from(left.min(PAUSE)));
}

/// Sends a command (`prepare`, `open`, `close`, `flush`, `state`, `left`, `measure KERNEL`; see `obey` in injection.c) to
/// every process whose trace has that path prefix, and returns the process ids with their answers, or with the reasons why
/// there are none. Skips the sockets of processes that have ended.
pub fn send_command(output: &Path, word: &str) -> io::Result<Vec<(u32, Answer)>> {
    let folder = output.parent().unwrap_or(Path::new("/"));
    let opened = File::open(folder)?;
    let mut talks = find_sockets(output, folder)?;
    let until = Instant::now() + PATIENCE;
    loop {
        for talk in &mut talks {
            talk.advance_stage(&opened, word);
        }
        if !talks.iter().any(Talk::is_pending) || Instant::now() >= until {
            break;
        }
        wait_for_answers(&talks, until);
    }
    let mut out: Vec<_> = talks.into_iter().filter_map(Talk::into_answer).collect();
    out.sort_by_key(|(pid, _)| *pid);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_another_user_gets_no_command() {
        let folder = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join("r.7.sock")).unwrap();
        let opened = File::open(folder.path()).unwrap();
        let mut talks = find_sockets(&folder.path().join("r"), folder.path()).unwrap();
        let me = talks[0].owner;
        for (owner, foreign) in [(me + 1, true), (me, false)] {
            talks[0] = Talk { owner, name: "r.7.sock".into(), pid: 7, stage: Stage::Connecting };
            talks[0].advance_stage(&opened, "state");
            assert_eq!(matches!(talks[0].stage, Stage::Answered(Err(Silent::Foreign))), foreign, "{owner}");
        }
        let heard = [0, 1].map(|_| {
            let mut text = [0; 5];
            listener.accept().unwrap().0.read(&mut text).unwrap()
        });
        assert_eq!(heard, [0, 5], "the command reaches this user's process only");
    }
}
