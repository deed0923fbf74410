//! Programs that cancel threads, use NVTX and exit in signal handlers, and fork while other threads are busy: each
//! exits as it would untraced, and its trace is complete or says how much is missing.

use super::tracer::{built_command, functions_of, read, strange_command};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use warpscope::launch::tracer::{Silent, send_command};
use warpscope::model::{NoteKind, Profile};

/// Result of a run: its exit code, the counts it printed, and its traces.
struct Run {
    folder: tempfile::TempDir,
    code: Option<i32>,
    told: Vec<usize>,
}

fn traced(words: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let output = strange_command(folder.path(), words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let told = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
    Run { folder, code: output.status.code(), told }
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    all.filter(|p| p.extension().is_some_and(|e| e == suffix)).collect()
}

impl Run {
    /// Reads the trace of the only process, whose sockets must have been removed.
    fn profile(&self) -> Profile {
        let traces = files(self.folder.path(), "wstrace");
        assert_eq!((traces.len(), files(self.folder.path(), "sock").len()), (1, 0), "{traces:?}");
        read(&traces[0])
    }
}

/// Number between two strings in a note; 0 if there is none.
fn number(profile: &Profile, before: &str, after: &str) -> usize {
    let between = |text: &str| text.strip_prefix(before)?.split_once(after)?.0.replace(',', "").parse().ok();
    profile.notes.iter().find_map(|n| between(&n.text)).unwrap_or(0)
}

/// Numbers of NVTX events from signal handlers, and of records, that the trace reports as missing.
fn left_out(profile: &Profile) -> (usize, usize) {
    (number(profile, "", " NVTX event"), number(profile, "The tracer left out ", " record"))
}

fn says(profile: &Profile, words: &str) -> bool {
    profile.notes.iter().any(|n| n.text.contains(words))
}

fn whole(profile: &Profile) -> bool {
    profile.notes.iter().all(|n| !matches!(n.kind, NoteKind::Lost | NoteKind::Damaged))
}

#[test]
fn threads_that_are_cancelled_do_not_hold_up_the_program() {
    for (words, more) in [("cancel", 0), ("cancel-anywhere", 40 * 8)] {
        let run = traced(&[words]);
        let profile = run.profile();
        assert_eq!((run.code, whole(&profile), profile.launches.len()), (Some(5), true, 40), "{words}: {:?}", profile.notes);
        // A thread cancelled anywhere may have ended between a range and its count.
        let extra = profile.ranges.len().checked_sub(run.told[0]);
        assert!(extra.is_some_and(|n| n <= more), "{words}: {} of {}", profile.ranges.len(), run.told[0]);
    }
}

#[test]
fn ranges_of_signal_handlers_are_there_or_counted() {
    for words in ["alarms", "alarms-masked"] {
        let run = traced(&[words]);
        let profile = run.profile();
        let (interrupted, unwritten) = left_out(&profile);
        assert_eq!((run.code, unwritten, profile.launches.len()), (Some(5), 0, run.told[1]), "{words}: {:?}", profile.notes);
        // A range is left out with both of its ends.
        assert_eq!(profile.ranges.len() + interrupted / 2, run.told[0], "{words}: {:?}", profile.notes);
    }
}

/// A range that opens the capture may be entered in a handler that interrupted the
/// driver, although opening calls the driver.
#[test]
fn a_handler_may_open_and_close_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    for gate in ["nvtx::gate", "nvtx#3::gate"] {
        let output = strange_command(folder.path(), &["gate"]).env("WARPSCOPE_TRACE_GATE", gate).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{gate}: {:?}", String::from_utf8_lossy(&output.stderr));
    }
    let traces = files(folder.path(), "wstrace");
    assert_eq!((traces.len(), files(folder.path(), "sock").len()), (2, 0), "{traces:?}");
}

/// If the handler did not interrupt CUPTI, the trace lacks at most the rows that were being written at that moment, and
/// says how many; otherwise it says that the last records are missing. In either case it has an end marker.
#[test]
fn a_program_may_end_in_a_signal_handler() {
    let mut complete = 0;
    for words in ["exit-masked", "exit-quick-masked", "exit", "exit-quick"] {
        for last in ["1", "2", "7", "40", "150", "333"] {
            let run = traced(&[words, last]);
            let profile = run.profile();
            let notes = &profile.notes;
            assert_eq!((run.code, says(&profile, "The trace has no end")), (Some(9), false), "{words} {last}: {notes:?}");
            assert!(!says(&profile, "is damaged") || left_out(&profile).1 > 0, "{words} {last}: {notes:?}");
            if words.ends_with("masked") {
                let (interrupted, unwritten) = left_out(&profile);
                // On a machine so busy that the tracer's thread does not run for a tenth of a second, the exit does not
                // wait for it.
                if says(&profile, "CUPTI was still busy") {
                    assert!(profile.launches.len() <= run.told[1], "{words} {last}: {notes:?}");
                    continue;
                }
                complete += 1;
                assert_eq!(profile.launches.len(), run.told[1], "{words} {last}: {notes:?}");
                assert!(
                    profile.ranges.len() + interrupted + unwritten >= run.told[0],
                    "{words} {last}: {} {notes:?}",
                    profile.ranges.len()
                );
            }
        }
    }
    assert!(complete > 0, "no trace is complete");
}

#[test]
fn children_of_a_busy_program_wait_for_no_thread_of_their_parent() {
    let run = traced(&["forks"]);
    let profile = run.profile();
    assert_eq!((run.code, whole(&profile)), (Some(5), true), "{:?}", profile.notes);
    assert_eq!((profile.ranges.len(), profile.launches.len()), (run.told[0], run.told[1]));
    // Processes that first use CUDA after the fork have their own traces.
    let run = traced(&["early"]);
    let traces = files(run.folder.path(), "wstrace");
    assert_eq!((run.code, traces.len()), (Some(5), 40));
    for trace in traces {
        let profile = read(&trace);
        assert_eq!((profile.launches.len(), profile.ranges.len(), whole(&profile)), (5, 5, true), "{:?}", profile.notes);
    }
}

/// Threads that are cancelled, signals, and children that end in eight ways, at the same time (`stress` in
/// `tests/mock/strange.c`). `tests/hardware/stress.py` does it for minutes.
#[test]
fn a_program_does_the_same_traced_and_untraced() {
    for seed in ["1", "2", "3"] {
        let folder = tempfile::tempdir().unwrap();
        let words = ["stress", seed, "25"];
        let traced = strange_command(folder.path(), &words).output().unwrap();
        let mut plain = strange_command(folder.path(), &words);
        for name in ["LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"] {
            plain.env_remove(name);
        }
        let plain = plain.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&plain.stdout).lines().count(), 25, "{plain:?}");
        assert_eq!((traced.status.code(), traced.stdout), (plain.status.code(), plain.stdout), "{seed}");
        assert_eq!(files(folder.path(), "sock").len(), 0);
        let most = files(folder.path(), "wstrace").iter().map(|f| read(f).launches.len()).max();
        assert!(most.is_some_and(|n| n > 25 * 50), "{most:?}");
    }
}

/// Names of kernels may nest to any depth, and the threads that launch them may have small stacks.
#[test]
fn names_that_nest_deeply_need_no_stack() {
    // Head, part and number of repetitions, tail, and expected name.
    let cases = [
        ("_Z3foo", "", "0", "Pf", "foo"),
        ("_ZN2at6native3barI", "LN1a1bE0E", "1", "EEvv", "bar"),
        ("_ZN2at3barI", "LN1aE0E", "20000", "EEvv", "bar"),
        ("_ZN2at3barI", "LN", "4", "1aE0EE0EE0EE0EEEvv", "bar"),
        ("_ZN2at3barI", "LN", "40000", "EEvv", "all"),
        ("_ZN2at3barI", "Ul", "40000", "EEvv", "all"),
        ("_ZN2at3barI", "Ul", "40000", "", "all"),
        ("_ZN2at3barI", "LNUl", "20000", "EEvv", "all"),
        ("_ZN2at3barI", "I", "40000", "EEvv", "all"),
        ("_ZN2at3barI", "N", "40000", "EEvv", "all"),
    ];
    let words: Vec<&str> = cases.iter().flat_map(|c| [c.0, c.1, c.2, c.3]).collect();
    assert_eq!(functions_of(&words), cases.map(|c| c.4));
}

/// A command to a stopped process reports that it is stopped, even if the connection queue of its socket is full.
#[test]
fn a_process_that_does_not_answer_is_said_to_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = built_command(folder.path(), &["wait=1"], &[("WARPSCOPE_TRACE_GATE", "closed")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let output = folder.path().join("report");
    let said = |word| send_command(&output, word).unwrap();
    assert_eq!(said("state"), [(child.id(), Ok("closed".to_owned()))]);
    let signal = |name: &str| assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
    signal("-STOP");
    // A thread that is still running could receive the first word.
    let stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    while !std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().all(|task| stopped(task.unwrap())) {
        std::thread::yield_now();
    }
    // The connection queue is full after a few connections.
    for _ in 0..8 {
        let begun = Instant::now();
        assert_eq!(said("open"), [(child.id(), Err(Silent::Stopped(child.id())))]);
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert!(Silent::Stopped(7).to_string().contains("it is stopped (SIGSTOP)"));
    signal("-CONT");
    // Words sent meanwhile are not executed later: their senders were told that there was no answer.
    let state = std::iter::repeat_with(|| said("state").remove(0).1).find(Result::is_ok);
    assert_eq!(state, Some(Ok("closed".to_owned())));
    child.stdin.take().unwrap().write_all(b"xx").unwrap();
    child.wait().unwrap();
    assert_eq!(said("state"), []);
}

#[test]
fn sockets_of_something_else_do_no_harm() {
    type Serve = fn(UnixStream);
    let endless: Serve = |mut s| while s.write_all(b"all work and no play ").is_ok() {};
    let drips: Serve = |mut s| {
        s.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        while s.read(&mut [0; 64]).map_or(true, |n| n > 0) && s.write_all(b"x").is_ok() {}
    };
    let closes: Serve = drop;
    // Receive the command before answering: a connection that is closed earlier gives no answer.
    let shouts: Serve = |mut s| {
        assert!(s.read(&mut [0; 64]).is_ok_and(|n| n > 0));
        s.write_all(b"\x1b]0;title\x07open\nand more\n").unwrap();
    };
    let mute: Serve = |mut s| while s.read(&mut [0; 64]).is_ok_and(|n| n > 0) {};
    let own = std::process::id();
    let cases: [(&str, Option<Serve>, Result<&str, Silent>); 6] = [
        ("endless", Some(endless), Err(Silent::Endless)),
        ("drips", Some(drips), Err(Silent::Slow)),
        ("closes", Some(closes), Err(Silent::Closed)),
        ("shouts", Some(shouts), Ok("]0;titleopen")),
        ("mute", Some(mute), Err(Silent::Slow)),
        ("full", None, Err(Silent::Slow)),
    ];
    for (name, serve, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(format!("report.{own}.sock"))).unwrap();
        // Not a socket, a symlink to one, an exited process.
        std::fs::write(folder.path().join("report.1.sock"), "").unwrap();
        std::os::unix::fs::symlink(format!("report.{own}.sock"), folder.path().join("report.2.sock")).unwrap();
        let left_behind = folder.path().join("report.3.sock");
        drop(UnixListener::bind(&left_behind).unwrap());
        // A child that another test is starting holds the listener until it has called exec.
        while UnixStream::connect(&left_behind).is_ok() {
            std::thread::yield_now();
        }
        let mut full = None;
        let served = if let Some(serve) = serve {
            Some(std::thread::spawn(move || serve(listener.accept().unwrap().0)))
        } else {
            // The queue has room for a single connection, which is taken.
            nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
            let first = UnixStream::connect(folder.path().join(format!("report.{own}.sock"))).unwrap();
            full = Some((listener, first));
            None
        };
        let begun = Instant::now();
        let answers = send_command(&folder.path().join("report"), "open").unwrap();
        assert_eq!(answers, [(own, expected.map(str::to_owned))], "{name}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
        drop(full);
        if let Some(served) = served {
            let _ = served.join();
        }
    }
}
