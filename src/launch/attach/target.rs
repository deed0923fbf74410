//! The process to attach the tracer to, and the reasons against doing so.

use super::memory_map::{Mapping, read_map};
use super::refusal::{Refusal, ptrace_refusal};
use crate::launch::runs::process::read_process;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// A process. Its start time distinguishes it from a later process with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub pid: i32,
    started: u64,
    pub user: u32,
}

/// Other profilers that a process may have been started with, by the start of their library's name.
const PROFILERS: [(&str, &str); 4] = [
    ("libToolsInjection64", "nsys"),
    ("libcuda-injection.so", "ncu"),
    ("libsanitizer-collection", "compute-sanitizer"),
    ("libInterceptorInjectionTarget", "ncu"),
];

/// ELF machine number: x86-64 or aarch64.
const MACHINE: u8 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

fn effective_user(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

/// Thread that traces a thread.
pub fn tracer_of(pid: i32, tid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let tracer = status.lines().find_map(|l| l.strip_prefix("TracerPid:"))?.trim().parse().ok()?;
    (tracer != 0).then_some(tracer)
}

pub(super) fn seconds_since(ticks: u64) -> Option<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    // Clock ticks in /proc are hundredths of a second on all platforms (USER_HZ).
    Some((uptime - ticks as f64 / 100.0).max(0.0) as u64)
}

impl Target {
    /// Checks that a process can be attached to, to the extent that this can be determined without touching it.
    pub fn find(pid: i32) -> Result<Self, Refusal> {
        let process = read_process(pid).filter(|p| p.state != 'Z').ok_or(Refusal::Gone(pid))?;
        // The kernel gives the files of a process that is not dumpable to root, but not their folder (task_dump_owner in
        // fs/proc/base.c).
        let owner = std::fs::metadata(format!("/proc/{pid}/stat")).map_err(|_| Refusal::Gone(pid))?.uid();
        let user = effective_user(pid).unwrap_or(owner);
        let target = Self { pid, started: process.started, user };
        let own = nix::unistd::geteuid();
        if !own.is_root() && own.as_raw() != user {
            return Err(Refusal::Foreign { pid, user });
        }
        if !own.is_root() && owner != user {
            return Err(Refusal::Undumpable(pid));
        }
        if matches!(process.state, 'T' | 't') {
            return Err(target.debugger().map_or(Refusal::Stopped { pid }, |tracer| Refusal::Debugged { pid, tracer }));
        }
        if let Some(tracer) = target.debugger() {
            return Err(Refusal::Debugged { pid, tracer });
        }
        let map = target.map()?;
        target.check_executable()?;
        let namespace = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/mnt")).ok();
        if namespace(&pid.to_string()).is_some_and(|theirs| namespace("self").is_some_and(|ours| ours != theirs)) {
            return Err(Refusal::Container { pid });
        }
        if !map.iter().any(|m| m.name().starts_with("libcuda.so")) {
            return Err(Refusal::NoCuda(pid));
        }
        if let Some((_, tool)) = PROFILERS.iter().find(|(library, _)| map.iter().any(|m| m.name().starts_with(library))) {
            return Err(Refusal::Profiled { pid, tool });
        }
        Ok(target)
    }

    /// Fails if the process has ended, because its id may now belong to another process.
    pub fn check_alive(&self) -> Result<(), Refusal> {
        match read_process(self.pid) {
            Some(p) if p.started == self.started && p.state != 'Z' => Ok(()),
            _ => Err(Refusal::Gone(self.pid)),
        }
    }

    /// Reads the memory map of the process.
    pub(super) fn map(&self) -> Result<Vec<Mapping>, Refusal> {
        match read_map(self.pid) {
            Ok(map) => Ok(map),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(ptrace_refusal(self.pid)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(Refusal::Gone(self.pid)),
            Err(source) => Err(Refusal::System { pid: self.pid, source }),
        }
    }

    /// Time since the process started.
    pub fn age(&self) -> Option<Duration> {
        seconds_since(self.started).map(Duration::from_secs)
    }

    /// Returns true if the process has loaded CUPTI: it may start a profiler of its own, such as torch.profiler.
    pub fn has_cupti(&self) -> bool {
        self.map().is_ok_and(|map| map.iter().any(|m| m.name().starts_with("libcupti.so")))
    }

    /// Process that is tracing this one.
    fn debugger(&self) -> Option<i32> {
        tracer_of(self.pid, self.pid)
    }

    /// Checks the class and the machine of the executable (ELF specification, figure 4-3).
    fn check_executable(&self) -> Result<(), Refusal> {
        let mut head = [0_u8; 20];
        let file = std::fs::File::open(format!("/proc/{}/exe", self.pid));
        match file.and_then(|mut f| io::Read::read_exact(&mut f, &mut head)) {
            Ok(()) => {}
            // A process that is ending has no executable any more, some time before it is a zombie.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Refusal::Gone(self.pid)),
            Err(_) => {
                self.check_alive()?;
                return Err(ptrace_refusal(self.pid));
            }
        }
        if head[..4] == *b"\x7fELF" && head[4] == 2 && head[18] == MACHINE { Ok(()) } else { Err(Refusal::Architecture { pid: self.pid }) }
    }

    /// If the process already contains a tracer, returns the path of its traces without process id and suffix, which is
    /// derived from the file that it is writing.
    pub fn trace_prefix(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).ok()?;
        let ending = format!(".{}.wstrace", self.pid);
        entries.flatten().find_map(|e| {
            let path = std::fs::read_link(e.path()).ok()?;
            let path = path.to_str()?;
            let prefix = path.strip_suffix(" (deleted)").unwrap_or(path).strip_suffix(&ending)?.to_owned();
            Some(PathBuf::from(prefix))
        })
    }
}
