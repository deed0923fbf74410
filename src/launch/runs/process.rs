//! Information about processes from `/proc`.

use std::collections::HashMap;
use std::fs;

/// A process: its parent, its state as one letter, and its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// State: R, S, D, Z …
    pub state: char,
    /// Start time, in clock ticks since boot. Together with the id, it identifies a process, because ids are reused.
    pub started: u64,
}

/// Parses a line of `/proc/PID/stat`. The name in parentheses may contain blanks and parentheses.
fn parse_stat(text: &str) -> Option<Process> {
    let pid = text.split_once(' ')?.0.parse().ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; the state is the third.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, state, started })
}

/// Reads an existing process, including zombies.
pub fn read_process(pid: i32) -> Option<Process> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Ends the remains of a run whose supervisor is gone: the processes in the session that the supervisor created. The id
/// of a session is not reused while the session has members. Sends TERM, and KILL a moment later.
pub fn end_session(session: i32) {
    let members = || -> Vec<i32> {
        let of = |pid: &i32| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // Field 6 of the line; the state is the third.
            let mut fields = text.rsplit_once(')')?.1.split_whitespace();
            let zombie = fields.next()? == "Z";
            (!zombie && fields.nth(2)?.parse::<i32>().ok()? == session).then_some(())
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        all.filter(|pid| of(pid).is_some()).collect()
    };
    for signal in [nix::sys::signal::Signal::SIGTERM, nix::sys::signal::Signal::SIGKILL] {
        for pid in members() {
            // The process may already be gone.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
        }
        let until = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while !members().is_empty() && std::time::Instant::now() < until {
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
    }
}

/// Returns true if the process with that start time is still running.
pub fn is_running(pid: i32, started: u64) -> bool {
    read_process(pid).is_some_and(|p| p.started == started && !matches!(p.state, 'Z' | 'X'))
}

/// All descendants of a process.
pub fn descendants(of: i32) -> Vec<Process> {
    let mut by_parent: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(p) = entry.file_name().to_str().and_then(|n| n.parse().ok()).and_then(read_process) {
            by_parent.entry(p.parent).or_default().push(p);
        }
    }
    let mut out = Vec::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        for child in by_parent.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            out.push(child);
        }
    }
    out
}

/// Leaves the terminal's session, so that neither Ctrl-C nor a hangup of the terminal reaches this process any more.
pub fn start_own_session() -> std::io::Result<()> {
    nix::unistd::setsid()?;
    Ok(())
}

/// Closes the inherited descriptors above stderr, so that this process holds none of its parent's pipes or locks.
pub fn close_inherited_descriptors() {
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|d| *d > 2) {
        // The descriptor of the listed folder is already closed.
        let _ = nix::unistd::close(descriptor);
    }
}

/// Asks the kernel to send TERM to this process when its parent ends, for any reason. Fails if the parent has already
/// ended.
pub fn end_with_parent(parent: i32) -> std::io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM)?;
    if nix::unistd::getppid().as_raw() == parent { Ok(()) } else { Err(std::io::Error::other("the process that started this is gone")) }
}

/// Asks the supervisor of a run to stop the run. Does not signal an unrelated process that has reused the id.
pub fn ask_to_stop(pid: i32, started: u64) -> std::io::Result<()> {
    if !is_running(pid, started) {
        return Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGINT)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_are_no_trap() {
        let line = "42 (a) Z 1 (b) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3";
        assert_eq!(parse_stat(line), Some(Process { pid: 42, parent: 7, state: 'S', started: 987_654 }));
        assert_eq!(parse_stat("42 (a"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_runs_and_no_other_with_its_number() {
        let me = i32::try_from(std::process::id()).unwrap();
        let mine = read_process(me).unwrap();
        assert!(is_running(me, mine.started) && !is_running(me, mine.started + 1));
        assert!(descendants(mine.parent).iter().any(|p| p.pid == me));
    }
}
