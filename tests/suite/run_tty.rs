//! Runs in the real explorer in a pseudo-terminal, with stand-ins for the profilers: record, look, pick, run again, compare; and leaving.

use super::runs::{Home, pid_in, until};
use super::support::root;
use super::tty::Session;
use nix::sys::signal::Signal;
use warpscope::launch::runs::process;

fn start(home: &Home, args: &[&str], size: (u16, u16), more: &[(&str, &str)]) -> Session {
    let env = home.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).chain(more.iter().copied()).collect();
    Session::start(args, size, &env)
}

#[test]
fn record_look_pick_run_again_and_find_both_in_the_library() {
    let home = Home::new();
    let result = root().join("fixtures/demo/llm_gemm.ncu-rep.zst");
    let mut s = start(&home, &["run", "--", "true"], (120, 40), &[("STANDIN_RESULT", &result.to_string_lossy())]);
    s.wait("CatArrayBatchedCopy");
    s.wait("next:");
    s.keys("/192x128\r");
    s.wait("1 of 18");
    s.keys("r");
    s.wait("exact");
    s.keys("R");
    // The result is joined, compared with the launch that was meant (a stand-in's is another), and its hints are on.
    s.wait("shared-bandwidth-bound");
    s.wait("differs: ");
    s.keys("L");
    s.wait("run library");
    s.wait("2 runs");
    s.keys("i");
    s.wait("re-run of");
    s.wait("run 1");
    s.keys("\u{1b}");
    s.wait_until("the facts closed", |t| !t.contains("about this run"));
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn quitting_asks_what_becomes_of_the_run() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::process(pid).unwrap().started;
    s.wait("running");
    s.keys("q");
    s.wait("a run is under way");
    s.keys("s");
    assert_eq!(s.end(), 0);
    s.assert_restored();
    assert!(s.text().contains("is being stopped"), "{}", s.text());
    until("the profiler to end", || !process::runs(pid, started));
}

#[test]
fn a_detached_run_survives_the_session_and_is_attached_again() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::process(pid).unwrap().started;
    s.wait("running");
    s.keys("d");
    s.wait("detached");
    // The ssh session ends.
    s.signal(Signal::SIGHUP);
    s.end();
    assert!(process::runs(pid, started), "it goes on");
    let mut s = start(&home, &["attach"], (100, 30), &[]);
    s.wait("detached");
    s.keys("\u{1b}");
    // Its report is opened.
    s.wait("CatArrayBatchedCopy");
    s.keys("q");
    assert_eq!(s.end(), 0);
    assert!(!process::runs(pid, started));
}

#[test]
fn a_hangup_ends_a_run_that_was_not_detached() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::process(pid).unwrap().started;
    s.wait("running");
    s.signal(Signal::SIGHUP);
    s.end();
    until("the profiler to end", || !process::runs(pid, started));
}

#[test]
fn without_a_report_the_library_is_home() {
    let home = Home::new();
    let mut s = start(&home, &[], (80, 24), &[]);
    s.wait("Nothing was recorded yet.");
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn a_program_may_have_the_terminal_to_itself() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--tty", "--", "sh", "-c", "printf 'name? '; read name; echo hello $name"], (100, 30), &[]);
    s.wait("name?");
    s.keys("ann\n");
    s.wait("CatArrayBatchedCopy");
    s.keys("q");
    assert_eq!(s.end(), 0);
}
