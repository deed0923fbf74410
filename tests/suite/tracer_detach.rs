//! CUPTI is finalized once nothing is recorded any more, but only where that is known to be safe.

use super::tracer::{built, built_command, read, told};
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use warpscope::analysis::run_estimate::RunEstimate;
use warpscope::analysis::{GroupBy, Grouping};
use warpscope::model::GraphMode;

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

    /// Waits until CUPTI was finalized or is known to stay; returns the tracer's answer.
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
    // Without `CLOSED`, the recording is open from the start, and uses call records instead of callbacks.
    let cases: [(&[_], &[_]); 6] = [
        (&[CLOSED], &["beside=2"]),
        (&[], &[]),
        (&[CLOSED], &["graphs_here=1"]),
        (&[], &["graphs_here=1"]),
        (&[CLOSED], &["waits=2"]),
        (&[CLOSED], &["waits=3", "graphs_here=1"]),
    ];
    for (env, words) in cases {
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
        // Recording resumes as if nothing had happened.
        assert_eq!(program.say("open"), "open\n");
        program.record_until_launches(seen + 10);
        assert_eq!((program.logged("subscribed"), program.logged("left")), (1, 0), "{why}");
    }
}

/// Threads that instantiate graphs and the one that subscribes to CUPTI wait for each other: otherwise the mock would
/// abort, as CUPTI 13.0 crashes.
#[test]
fn no_graph_is_instantiated_while_cupti_is_subscribed_to() {
    let preload = ("LD_PRELOAD", built().join("tracer.so").display().to_string());
    let program = Running::start(&["instantiating_beside=1"], &[CLOSED, (preload.0, &preload.1)]);
    let mut seen = 0;
    for round in 1..=4 {
        assert_eq!(program.say("open"), "open\n", "round {round}");
        seen = program.record_until_launches(seen);
        assert_eq!(program.say("close"), "closed\n");
        assert_eq!(program.await_left(), "left\n");
    }
    assert_eq!((program.logged("subscribed"), program.logged("left")), (4, 4));
}

/// Graphs are recorded as a whole in each recording, although the program had instantiated them before the first one:
/// the subscription is made at the start and stays.
#[test]
fn whole_graphs_keep_the_subscription() {
    let whole = ("WARPSCOPE_TRACE_OPTIONS", "graphs=whole");
    let program = Running::start(&["graphs_here=1"], &[CLOSED, whole]);
    let mut seen = 0;
    for _ in 0..2 {
        let graphs = || read(&program.trace()).graphs.len();
        assert_eq!(program.say("open"), "open\n");
        seen = program.record_until_launches(seen);
        assert_eq!(program.say("close"), "closed\n");
        while program.say("flush") != "flushed\n" {}
        let recorded = graphs();
        assert!(recorded > 0);
        assert_eq!(program.await_left(), "subscribed: CUDA graphs are recorded as a whole\n");
        // Replays outside of the recordings are not in the trace.
        while program.say("flush") != "flushed\n" {}
        assert_eq!(graphs(), recorded);
    }
    assert_eq!((program.logged("subscribed"), program.logged("left")), (1, 0));
    let profile = read(&program.trace());
    assert_eq!(profile.capture.graphs, Some(GraphMode::Graph));
    assert!((0..profile.launches.len()).all(|i| profile.launches.graph_node(i).is_none()));
}

#[test]
fn a_range_that_opens_again_meanwhile_is_recorded() {
    let program = Running::start(&[], &[CLOSED]);
    let mut seen = 0;
    // The capture range opens again at various moments while CUPTI is being finalized.
    for wait_ms in [0, 300, 600, 900].into_iter().chain((1480..1640).step_by(20)) {
        assert_eq!(program.say("open"), "open\n", "after {wait_ms} ms");
        seen = program.record_until_launches(seen);
        assert_eq!(program.say("close"), "closed\n");
        std::thread::park_timeout(Duration::from_millis(wait_ms));
    }
    assert_eq!(program.await_left(), "left\n");
    assert_eq!(program.logged("left"), program.logged("subscribed"));
}

/// Short recordings at random times, between which CUPTI is finalized: the totals estimated from them equal those of
/// the program.
#[test]
fn totals_are_estimated_from_short_moments() {
    for waits in ["waits=1", "waits=2"] {
        totals_equal_the_programs(waits);
    }
}

fn totals_equal_the_programs(waits: &str) {
    let folder = tempfile::tempdir().unwrap();
    // 3,000 launches per second for eight seconds; recording may add half of the time, so that there are many moments.
    let words = ["rate=3000", "seconds=8", "kinds=3", waits];
    let done = built_command(folder.path(), &words, &[("WARPSCOPE_TRACE_GATE", "overhead:5000")]).output().unwrap();
    assert_eq!(done.status.code(), Some(5));
    let trace =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).find(|p| p.extension().is_some_and(|e| e == "wstrace"));
    let profile = read(&trace.unwrap());
    let sample = &profile.run_samples[0];
    assert!(sample.moments.len() >= 10, "{sample:?}");
    assert!(sample.moments.iter().all(|m| (90_000_000..2_000_000_000).contains(&(m.1 - m.0))), "{sample:?}");
    let logged = std::fs::read_to_string(folder.path().join("truth")).unwrap();
    let count = |line: &str| logged.lines().filter(|l| *l == line).count();
    assert!(count("left") + 1 >= count("subscribed") && count("left") >= 5, "{} of {}", count("left"), count("subscribed"));
    let grouping = Grouping::from_profile(&profile, GroupBy::Mangled, None);
    let estimate = RunEstimate::from_grouping(&profile, &grouping, None).unwrap();
    let all = estimate.all.count;
    // The mock measures bursts with the clock of a loaded machine, so the interval may be narrower than the variation
    // of its rate.
    assert!((18_000.0..=30_000.0).contains(&all.value) && all.low <= all.value && all.value <= all.high, "{all:?}");
    assert_eq!(estimate.rows.len(), 3);
    for row in &estimate.rows {
        assert!((row.count.value - all.value / 3.0).abs() < all.value / 50.0, "{row:?} of {all:?}");
    }
    assert!(profile.notes.iter().any(|n| n.text.starts_with("The recording is a sample")), "{:?}", profile.notes);
}

/// A program in which CUPTI cannot be finalized is not recorded again: a subscription would exceed the allowed
/// overhead.
#[test]
fn sampling_stops_where_cupti_cannot_be_left() {
    let program = Running::start(&["beside=2", "graphs_beside=1"], &[("WARPSCOPE_TRACE_GATE", "overhead:5000")]);
    let since = Instant::now();
    while !program.say("left").starts_with("subscribed: several threads") {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", program.say("left"));
        std::thread::park_timeout(Duration::from_millis(20));
    }
    // On a loaded machine, moments may have come and gone before the second thread launched its first graph, several of
    // them under one subscription.
    let flushed = || {
        while program.say("flush") != "flushed\n" {}
        read(&program.trace())
    };
    let (subscribed, moments) = (program.logged("subscribed"), flushed().run_samples[0].moments.len());
    assert_eq!(program.logged("left") + 1, subscribed);
    std::thread::park_timeout(Duration::from_millis(1500));
    let profile = flushed();
    assert_eq!((program.logged("subscribed"), profile.run_samples[0].moments.len()), (subscribed, moments));
    assert!(profile.notes.iter().any(|n| n.text.contains("CUPTI cannot be left (several threads")), "{:?}", profile.notes);
}
