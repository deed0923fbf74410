//! CUPTI is left once nothing is recorded any more, and only where that is known to be safe.

use super::tracer::{built_command, read, told};
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Running {
    folder: TempDir,
    child: Child,
}

impl Running {
    /// Starts a program that launches kernels until it is killed.
    fn start(words: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let words = [&["rate=2000", "seconds=600", "kinds=7"], words].concat();
        let child = built_command(folder.path(), &words, env).spawn().unwrap();
        Self { folder, child }
    }

    fn say(&self, what: &str) -> String {
        told(self.folder.path(), self.child.id(), what)
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join(format!("report.{}.wstrace", self.child.id()))
    }

    /// Number of lines that the mock logged.
    fn logged(&self, line: &str) -> usize {
        std::fs::read_to_string(self.folder.path().join("truth")).map_or(0, |t| t.lines().filter(|l| *l == line).count())
    }

    fn record_until_launches(&self, more_than: usize) -> usize {
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < Duration::from_secs(60), "no launches arrived");
            if self.say("flush") == "flushed\n" {
                let n = read(&self.trace()).launches.len();
                if n > more_than {
                    return n;
                }
            }
        }
    }

    /// The final answer to whether CUPTI was left.
    fn await_left(&self) -> String {
        let since = Instant::now();
        loop {
            let answer = self.say("left");
            if answer != "leaving\n" {
                return answer;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "still leaving");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CLOSED: (&str, &str) = ("WARPSCOPE_TRACE_GATE", "closed");

#[test]
fn recordings_leave_cupti_and_subscribe_again() {
    // The second one begins as a recording of everything, with records of calls instead of callbacks.
    for (env, words) in [(&[CLOSED][..], &["beside=2"][..]), (&[], &[]), (&[CLOSED], &["graphs_here=1"]), (&[], &["graphs_here=1"])] {
        let program = Running::start(words, env);
        let mut seen = 0;
        for round in 1..=3 {
            if round > 1 || !env.is_empty() {
                assert_eq!(program.say("open"), "open\n");
            }
            program.record_until_launches(seen);
            assert_eq!(program.say("close"), "closed\n");
            assert_eq!(program.await_left(), "left\n");
            assert_eq!((program.logged("subscribed"), program.logged("left")), (round, round));
            while program.say("flush") != "flushed\n" {}
            seen = read(&program.trace()).launches.len();
        }
        let profile = read(&program.trace());
        // CUPTI numbered the calls of each round from 1.
        let calls: Vec<_> = (0..profile.launches.len()).filter_map(|i| profile.launches.call(i).map(|c| (i, c))).collect();
        assert!(profile.launches.len() - calls.len() <= 3 * 3, "{} of {}", calls.len(), profile.launches.len());
        let single: Vec<_> = calls.iter().filter(|c| profile.launches.graph_node(c.0).is_none()).map(|c| c.1).collect();
        assert_eq!(single.iter().collect::<HashSet<_>>().len(), single.len(), "each launch has its own call");
        for (launch, call) in calls {
            let after = profile.launches.start(launch) - call.0;
            assert!((0..1_000_000_000).contains(&after), "launch {launch} started {after} ns after its call");
        }
        assert!(profile.notes.iter().all(|n| !n.text.contains("damaged")), "{:?}", profile.notes);
    }
}

#[test]
fn programs_stay_subscribed_where_leaving_may_harm_them() {
    type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);
    let cases: [Case; 5] = [
        (&["beside=2", "graphs_beside=1"], &[], "several threads launch CUDA graphs"),
        (&["waits=0"], &[], "no thread that launches waits for the GPU"),
        (&["graphs_here=1", "graphs_beside=1", "beside=1"], &[], "several threads launch CUDA graphs"),
        (&[], &[("MOCK_FINALIZE", "15")], "cuptiFinalize failed"),
        (&[], &[("MOCK_VERSION", "21")], "this version of CUPTI cannot be left"),
    ];
    for (words, env, why) in cases {
        let program = Running::start(words, &[&[CLOSED], env].concat());
        assert_eq!(program.say("open"), "open\n");
        let seen = program.record_until_launches(0);
        assert_eq!(program.say("close"), "closed\n");
        assert_eq!(program.await_left(), format!("subscribed: {why}\n"));
        // It is recorded again as if nothing had been tried.
        assert_eq!(program.say("open"), "open\n");
        program.record_until_launches(seen + 10);
        assert_eq!((program.logged("subscribed"), program.logged("left")), (1, 0), "{why}");
    }
}

#[test]
fn a_range_that_opens_again_meanwhile_is_recorded() {
    let program = Running::start(&[], &[CLOSED]);
    let mut seen = 0;
    // Openings at all moments of leaving.
    for wait_ms in [0, 300, 600, 900].into_iter().chain((1480..1640).step_by(20)) {
        assert_eq!(program.say("open"), "open\n", "after {wait_ms} ms");
        seen = program.record_until_launches(seen);
        assert_eq!(program.say("close"), "closed\n");
        std::thread::park_timeout(Duration::from_millis(wait_ms));
    }
    assert_eq!(program.await_left(), "left\n");
    assert_eq!(program.logged("left"), program.logged("subscribed"));
}
