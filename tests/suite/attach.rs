//! `warpscope attach --pid`: records programs that were started without warpscope, which keep running whatever happens
//! to the recorder.

use super::tracer::{built, built_command};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use warpscope::import::{Job, Wants, open_profile};
use warpscope::model::Profile;

/// Starts the mock program without a tracer. It launches 2,000 kernels per second for a few seconds and exits with code
/// 5.
fn start_program(folder: &Path, words: &[&str]) -> Child {
    let mut command = built_command(folder, words, &[]);
    for name in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "WARPSCOPE_TRACE_OUT"] {
        command.env_remove(name);
    }
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn attach(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
    command.arg("attach").args(arguments).env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Waits until the program has mapped libcuda.so, which means that its own code is running.
fn await_driver(pid: u32) {
    let until = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|m| m.contains("libcuda.so")) {
        assert!(Instant::now() < until, "the program did not start");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Attaches for a limited time; `None` if the kernel forbids attaching (Yama).
fn attach_for(folder: &Path, pid: u32, seconds: &str, again: bool) -> Option<PathBuf> {
    await_driver(pid);
    let out = attach(folder, &["--pid", &pid.to_string(), "--seconds", seconds, "-o", "t"]).output().unwrap();
    if text(&out).contains("(ptrace)") {
        println!("skipped: {}", text(&out));
        return None;
    }
    assert!(out.status.success(), "{}", text(&out));
    // The mock has CUPTI loaded, so the first attach must warn that a profiler started by the program sees no kernels;
    // attaching again must not.
    assert!(text(&out).contains("sees no kernels") != again, "{}", text(&out));
    let named = String::from_utf8(out.stdout).unwrap();
    Some(PathBuf::from(named.lines().last().unwrap()))
}

fn read(trace: &Path) -> Profile {
    open_profile(trace, &Job::new(Wants::ALL, &|_| {})).unwrap()
}

#[test]
fn a_running_program_is_recorded_left_and_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = start_program(folder.path(), &["rate=2000", "seconds=12", "kinds=3", "beside=2"]);
    let Some(trace) = attach_for(folder.path(), program.id(), "1", false) else {
        program.kill().unwrap();
        program.wait().unwrap();
        return;
    };
    let first = read(&trace);
    assert!(first.launches.len() > 200, "{}", first.launches.len());
    assert_eq!(first.kernels.len(), 3);
    // After detaching, nothing is added.
    std::thread::park_timeout(Duration::from_millis(300));
    assert_eq!(read(&trace).launches.len(), first.launches.len());
    assert_eq!(attach_for(folder.path(), program.id(), "1", true), Some(trace.clone()));
    let both = read(&trace);
    assert!(both.launches.len() > first.launches.len() + 200, "{} {}", first.launches.len(), both.launches.len());
    assert_eq!(program.wait().unwrap().code(), Some(5), "the program ends as it would have");
    assert_eq!(read(&trace).launches.len(), both.launches.len());
}

/// A recorder killed at any moment leaves the program running: no thread stays stopped, or halfway through being
/// redirected.
#[test]
fn a_killed_attach_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut started = 0;
    // The later kills land while the recorder holds the program's threads.
    let moments: Vec<u64> = (0..60).step_by(4).chain((100..700).step_by(50)).collect();
    for &wait_ms in &moments {
        let mut program = start_program(folder.path(), &["rate=1000", "seconds=1", "kinds=2", "beside=1"]);
        await_driver(program.id());
        let mut ours = attach(folder.path(), &["--pid", &program.id().to_string(), "--seconds", "9", "-o", "k"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::park_timeout(Duration::from_millis(wait_ms));
        ours.kill().unwrap();
        ours.wait().unwrap();
        assert_eq!(program.wait().unwrap().code(), Some(5), "killed after {wait_ms} ms");
        started += usize::from(folder.path().join(format!("k.{}.wstrace", program.id())).exists());
    }
    println!("{started} of {} were loaded when it was killed", moments.len());
}

/// `attach` does not subscribe to CUPTI while the program instantiates CUDA graphs, as servers do when they start.
#[test]
fn attaching_waits_until_no_graph_is_instantiated() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = start_program(folder.path(), &["instantiating=2500", "rate=1000", "seconds=6", "kinds=3"]);
    let trace = attach_for(folder.path(), program.id(), "1", false);
    assert_eq!(program.wait().unwrap().code(), Some(5));
    assert!(trace.is_none_or(|t| read(&t).launches.len() > 100));
    // Graphs are instantiated during the recording, too, but never at the moment of subscribing to CUPTI: the mock
    // would abort.
    for _ in 0..4 {
        let words = ["instantiating=4000", "seldom=1", "rate=1000", "seconds=2", "kinds=3"];
        let mut program = start_program(folder.path(), &words);
        let _ = attach_for(folder.path(), program.id(), "0.3", false);
        assert_eq!(program.wait().unwrap().code(), Some(5));
    }
    let mut program = start_program(folder.path(), &["instantiating=30000", "rate=1000", "seconds=1"]);
    await_driver(program.id());
    let out = attach(folder.path(), &["--pid", &program.id().to_string(), "--seconds", "1", "-o", "i"]).output().unwrap();
    // On a busy machine, the thread may be stopped between two graphs, in which case attaching succeeds.
    let refused = text(&out).contains("instantiating CUDA graphs") || text(&out).contains("(ptrace)");
    assert!(out.status.code() == Some(if refused { 4 } else { 0 }), "{}", text(&out));
    assert!(program.try_wait().unwrap().is_none(), "the program goes on");
    program.kill().unwrap();
    program.wait().unwrap();
}

/// The thread that is made to load the tracer gets its registers, flags and red zone back unchanged, whichever wait it
/// was taken from.
#[test]
fn a_thread_that_was_redirected_keeps_its_registers() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let mut command = Command::new(built().join("registers"));
        command.arg("3").args((round % 2 == 1).then_some("spin")).current_dir(folder.path()).stdout(Stdio::null());
        let mut program = command.spawn().unwrap();
        await_driver(program.id());
        let out = attach(folder.path(), &["--pid", &program.id().to_string(), "--seconds", "0.2", "-o", "r"]).output().unwrap();
        assert_eq!(program.wait().unwrap().code(), Some(0), "registers changed");
        assert!(out.status.success() || text(&out).contains("(ptrace)"), "{}", text(&out));
    }
}

/// Signals that arrive while threads are being stopped still reach them, including the C library's own signals.
#[test]
fn no_signal_of_the_program_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60"]).arg(built().join("signals")).arg("6").current_dir(folder.path()).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let children = format!("/proc/{0}/task/{0}/children", program.id());
    let pid = loop {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = children.split_whitespace().next() {
            break child.parse::<u32>().unwrap();
        }
        assert!(Instant::now() < until);
        std::thread::park_timeout(Duration::from_millis(5));
    };
    await_driver(pid);
    let mut done = 0;
    while program.try_wait().unwrap().is_none() {
        let out = attach(folder.path(), &["--pid", &pid.to_string(), "--seconds", "0.05", "-o", "s"]).output().unwrap();
        if text(&out).contains("(ptrace): Yama") {
            program.kill().unwrap();
            program.wait().unwrap();
            return;
        }
        // The program may be exiting during this attach.
        assert!(
            out.status.success() || text(&out).contains("does not exist") || !Path::new(&format!("/proc/{pid}/exe")).exists(),
            "{}",
            text(&out)
        );
        done += 1;
    }
    let out = program.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{} after {done} attaches", String::from_utf8_lossy(&out.stdout));
}

#[test]
fn what_cannot_be_attached_to_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let out = attach(folder.path(), arguments).output().unwrap();
        assert_eq!(out.status.code(), Some(4), "{arguments:?}: {}", text(&out));
        text(&out)
    };
    assert!(refused(&["--pid", "2147483647"]).contains("does not exist"));
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let said = refused(&["--pid", &sleeper.id().to_string()]);
    assert!(said.contains("has not loaded the CUDA driver") || said.contains("(ptrace)"), "{said}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let mut program = start_program(folder.path(), &["rate=1000", "seconds=30", "kinds=2"]);
    await_driver(program.id());
    let pid = program.id().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let until = Instant::now() + Duration::from_secs(10);
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ") && Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    assert!(refused(&["--pid", &pid]).contains("kill -CONT"));
    signal("-CONT");
    // A folder that the program cannot write to.
    let said = refused(&["--pid", &pid, "--seconds", "1", "-o", "/proc/t"]);
    assert!(said.contains("did not answer within") || said.contains("(ptrace)"), "{said}");
    program.kill().unwrap();
    program.wait().unwrap();
    let list = attach(folder.path(), &["--pid"]).output().unwrap();
    assert!(matches!(list.status.code(), Some(0 | 4)), "{}", text(&list));
    let wrong = attach(folder.path(), &["--pid", "0"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// Waits are not interrupted, writes to a pipe are hardly ever cut short, and nothing is written below a small stack.
#[test]
fn a_program_does_not_notice_that_its_threads_were_stopped() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["epoll", "pipe", "stack"] {
        let mut program =
            Command::new(built().join("delicate")).args([kind, "4"]).current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        await_driver(program.id());
        for _ in 0..2 {
            let out = attach(folder.path(), &["--pid", &program.id().to_string(), "--seconds", "0.1", "-o", kind]).output().unwrap();
            if text(&out).contains("(ptrace): Yama") {
                program.kill().unwrap();
                break;
            }
        }
        let out = program.wait_with_output().unwrap();
        assert!(out.status.code().is_none_or(|code| code == 0), "{kind}: {}", String::from_utf8_lossy(&out.stdout));
        assert!(out.status.signal().is_none_or(|signal| signal == 9), "{kind}: {:?}", out.status);
    }
}

/// A seccomp filter is reported as such, and not mistaken for Yama or for a program that cannot be inspected.
#[test]
fn a_filter_of_system_calls_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = start_program(folder.path(), &["rate=1000", "seconds=30", "kinds=2"]);
    await_driver(program.id());
    let pid = program.id().to_string();
    // The filter makes the system call fail with EPERM or with ENOSYS.
    for errno in ["1", "38"] {
        let mut command = Command::new(built().join("sandbox"));
        command.arg(errno).arg(assert_cmd::cargo::cargo_bin!("warpscope")).args(["attach", "--pid", &pid, "--seconds", "1"]);
        command.env_clear().env("HOME", folder.path()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        let out = command.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
        assert_eq!(out.status.code(), Some(4), "{}", text(&out));
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        let yama = matches!(scope.trim(), "2" | "3");
        assert!(text(&out).contains("(seccomp) forbids it") || yama, "{errno}: {}", text(&out));
        assert!(text(&out).contains("--cap-add SYS_PTRACE") || yama, "{}", text(&out));
    }
    assert!(program.try_wait().unwrap().is_none(), "the program goes on");
    program.kill().unwrap();
    program.wait().unwrap();
}

/// A program that made itself undumpable, which shuts out its user's other programs, is told apart from a restriction
/// of the system. Root may attach to it.
#[test]
fn a_closed_program_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut closed = start_program(folder.path(), &["undumpable=1", "rate=1000", "seconds=30", "kinds=2"]);
    let (pid, until) = (closed.id().to_string(), Instant::now() + Duration::from_secs(20));
    let named = "is closed to other programs of its user";
    // The program makes itself undumpable soon after it starts.
    let out = loop {
        let out = attach(folder.path(), &["--pid", &pid, "--seconds", "0.1"]).output().unwrap();
        let done = if nix::unistd::geteuid().is_root() { out.status.success() } else { text(&out).contains(named) };
        if done || Instant::now() > until {
            break out;
        }
    };
    if nix::unistd::geteuid().is_root() {
        assert!(out.status.success() || text(&out).contains("(ptrace)"), "{}", text(&out));
    } else {
        assert!(text(&out).contains(named), "{}", text(&out));
    }
    assert!(closed.try_wait().unwrap().is_none(), "the program goes on");
    closed.kill().unwrap();
    closed.wait().unwrap();
}
