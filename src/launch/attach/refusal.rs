//! Reasons why the tracer cannot be attached to a process.

use nix::errno::Errno;
use nix::sys::ptrace;
use std::process::{Command, Stdio};

/// Reason why the tracer cannot be attached.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("process {0} does not exist")]
    Gone(i32),
    #[error("process {pid} belongs to {of}; attach as that user, or as root", of = describe_user(*user))]
    Foreign { pid: i32, user: u32 },
    #[error(
        "process {0} has not loaded the CUDA driver (libcuda.so.1): it does not use the GPU yet; start it with `warpscope run`, or attach later"
    )]
    NoCuda(i32),
    #[error(
        "process {pid} runs in another container: its files are not those of this shell; run `warpscope attach` inside of that container"
    )]
    Container { pid: i32 },
    #[error("process {pid} is not a 64-bit program of this machine's architecture")]
    Architecture { pid: i32 },
    #[error("process {pid} has no dynamic loader of glibc ({what}): the object cannot be loaded into it; start it with another tool")]
    Loader { pid: i32, what: &'static str },
    #[error("process {pid} is stopped; `kill -CONT {pid}` resumes it")]
    Stopped { pid: i32 },
    #[error("{tool} records process {pid} already, and only one profiler can use CUPTI in a process; attach when it has ended")]
    Profiled { pid: i32, tool: &'static str },
    #[error("process {pid} is being traced by process {tracer}, such as a debugger or strace; end that first")]
    Debugged { pid: i32, tracer: i32 },
    #[error(
        "process {0} is closed to other programs of its user (it is setuid, has file capabilities, or has called \
         prctl(PR_SET_DUMPABLE)): `sudo warpscope attach --pid {0}`"
    )]
    Undumpable(i32),
    #[error("the kernel does not let this user look into process {pid} (ptrace): {fix}")]
    NotAllowed { pid: i32, fix: String },
    #[error(
        "no thread of process {0} waited in a system call in which it can be used: all of them compute, or are inside of the C library; try again"
    )]
    Busy(i32),
    #[error("the threads of process {0} are sent signals all the time, and could not be stopped; try again")]
    Signalled(i32),
    #[error("process {0} has been instantiating CUDA graphs for 10 s, during which CUPTI may crash it; attach when it has started up")]
    Instantiating(i32),
    #[error("process {pid} could not load the tracer from {object}: {why}")]
    NotLoaded { pid: i32, object: String, why: &'static str },
    #[error("attaching is for x86-64 and aarch64; on this machine start the program with `warpscope run`")]
    Machine,
    #[error("process {pid}: {source}")]
    System { pid: i32, source: std::io::Error },
}

fn describe_user(user: u32) -> String {
    let known = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(user)).ok().flatten();
    known.map_or_else(|| format!("user {user}"), |u| u.name)
}

/// `CAP_SYS_PTRACE` (capability.h).
const SYS_PTRACE: u64 = 19;

/// Value of a line of `/proc/self/status`.
fn own_status(key: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| Some(l.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned()))
}

/// Returns false if this process may not even trace a child of its own, which only a filter of system calls or a
/// security policy forbids.
fn may_trace_children() -> bool {
    let mut command = Command::new("cat");
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else { return true };
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let refused = matches!(ptrace::seize(pid, ptrace::Options::empty()), Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES));
    // It ends by itself when its standard input is closed.
    let _ = child.kill();
    let _ = child.wait();
    !refused
}

/// Explains why ptrace is refused, and how to fix this.
pub fn ptrace_refusal(pid: i32) -> Refusal {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let capable = own_status("CapEff").and_then(|t| u64::from_str_radix(&t, 16).ok()).is_some_and(|held| held >> SYS_PTRACE & 1 == 1);
    let filtered = own_status("Seccomp").is_some_and(|mode| mode == "2");
    let selinux = std::fs::read_to_string("/sys/fs/selinux/booleans/deny_ptrace").is_ok_and(|t| t.starts_with('1'));
    let fix = match scope.trim() {
        "3" => "Yama forbids it until the machine is started anew (kernel.yama.ptrace_scope = 3): start the program with `warpscope run`",
        "2" if !capable => "Yama leaves it to administrators (kernel.yama.ptrace_scope = 2): `sudo warpscope attach --pid`",
        _ if selinux => "SELinux forbids it (deny_ptrace): `sudo setsebool deny_ptrace off`",
        _ if filtered && !may_trace_children() => {
            "a filter of system calls (seccomp) forbids it, as containers have: start the container with \
             `docker run --cap-add SYS_PTRACE`, or the program with `warpscope run`"
        }
        "1" if !capable => {
            "Yama restricts it (kernel.yama.ptrace_scope = 1): `sudo warpscope attach --pid`, or `sudo sysctl kernel.yama.ptrace_scope=0`"
        }
        _ if capable => "it may run in another user namespace, or in another container: run `warpscope attach` there",
        _ => {
            "the program may be setuid or have dropped its rights, or a container lacks CAP_SYS_PTRACE (`docker run --cap-add SYS_PTRACE`)"
        }
    };
    Refusal::NotAllowed { pid, fix: fix.to_owned() }
}
