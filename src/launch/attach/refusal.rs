//! Reasons why the tracer cannot be attached to a process.

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
    #[error("the kernel does not let this user look into process {pid} (ptrace): {fix}")]
    NotAllowed { pid: i32, fix: String },
    #[error(
        "no thread of process {0} waited in a system call in which it can be used: all of them compute, or are inside of the C library; try again"
    )]
    Busy(i32),
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

/// Explains why ptrace is refused, and how to fix this.
pub fn ptrace_refusal(pid: i32) -> Refusal {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let fix = match scope.trim() {
        "1" => {
            "Yama restricts it (kernel.yama.ptrace_scope = 1): `sudo warpscope attach --pid`, or `sudo sysctl kernel.yama.ptrace_scope=0`"
        }
        "2" => "Yama leaves it to administrators (kernel.yama.ptrace_scope = 2): `sudo warpscope attach --pid`",
        "3" => "Yama forbids it until the machine is started anew (kernel.yama.ptrace_scope = 3): start the program with `warpscope run`",
        _ => {
            "the program may be setuid or have dropped its rights, or a container lacks CAP_SYS_PTRACE (`docker run --cap-add SYS_PTRACE`)"
        }
    };
    Refusal::NotAllowed { pid, fix: fix.to_owned() }
}
