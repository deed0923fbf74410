//! A program that profiles itself with CUPTI, as PyTorch does with kineto, while it is traced: both record everything.

use super::tracer::{built, in_folder, read, told};
use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const CLOSED: (&str, &str) = ("WARPSCOPE_TRACE_GATE", "closed");
/// Launches before, during and after each profile of the mock (`tests/mock/client.c`).
const BEFORE: usize = 30;
const DURING: usize = 100;

/// Fields of the log lines of one kind.
fn lines<'a>(text: &'a str, kind: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    text.lines().map(|l| l.split(' ').collect::<Vec<_>>()).filter(move |w| w[0] == kind).map(|w| w[1..].to_vec())
}

fn number(word: &str) -> i64 {
    word.parse().unwrap()
}

fn command(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(built().join("client"));
    in_folder(command.args(words), folder);
    command.env("LD_PRELOAD", built().join("tracer.so")).envs(env.iter().copied());
    command
}

/// Checks the client's records against those made by the CUPTI mock: kernels and driver calls of each profile, at their
/// times on the client's own clock.
fn assert_client_saw(printed: &str, truth: &str, profiles: &[usize]) {
    // CUPTI numbers calls from 1 again after it was finalized, so several kernels may have the same number.
    let mut kernels: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for w in lines(truth, "kernel") {
        kernels.entry(number(w[0])).or_default().push((number(w[4]), number(w[5])));
    }
    for (profile, launches) in profiles.iter().enumerate() {
        let seen: Vec<Vec<&str>> = lines(printed, "record").filter(|w| w[0] == profile.to_string()).collect();
        let of_kind = |kind: &'static str| seen.iter().filter(move |w| w[1] == kind);
        assert_eq!(of_kind("10").count(), *launches, "profile {profile}: {printed}");
        for w in of_kind("10") {
            let (start, end) = (number(w[3]), number(w[4]));
            // The clocks are read one after the other, and a thread may be descheduled in between.
            let fits = |(began, took): &(i64, i64)| (start - began).abs() < 5_000_000 && (end - start - took).abs() < 10_000;
            assert!(kernels[&number(w[2])].iter().any(fits), "{w:?} {:?}", kernels[&number(w[2])]);
        }
        // Most launches are followed by a wait, which both the driver and the runtime record.
        let calls = launches + DURING;
        assert_eq!((of_kind("4").count(), of_kind("5").count()), (calls, calls), "profile {profile}");
    }
    assert!(printed.ends_with(&format!("heard {} wrong 0\n", 2 * DURING * profiles.len())), "{printed}");
}

struct Traced {
    folder: TempDir,
    printed: String,
    truth: String,
}

fn traced(words: &[&str], env: &[(&str, &str)]) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let done = command(folder.path(), words, env).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let truth = std::fs::read_to_string(folder.path().join("truth")).unwrap();
    Traced { printed: String::from_utf8(done.stdout).unwrap(), folder, truth }
}

impl Traced {
    fn file(&self) -> std::path::PathBuf {
        let mut all = std::fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().path());
        all.find(|p| p.extension().is_some_and(|e| e == "wstrace")).unwrap()
    }
}

#[test]
fn a_profiler_in_the_program_and_the_tracer_both_record() {
    for (profiles, order, options) in
        [(1, "", ""), (3, "", ""), (1, "", "lean"), (1, "", "api=all"), (2, "", "memory"), (2, "order=1", ""), (2, "serial=1", "")]
    {
        let run = traced(&[&format!("profiles={profiles}"), order], &[("WARPSCOPE_TRACE_OPTIONS", options)]);
        assert_client_saw(&run.printed, &run.truth, &vec![DURING; profiles]);
        let profile = read(&run.file());
        assert_eq!(profile.launches.len(), (2 * BEFORE + DURING) * profiles, "{options}");
        // Each launch has its call, recorded once: before the profile by CUPTI, afterwards by callbacks.
        if options != "lean" {
            let calls: Vec<_> = (0..profile.launches.len()).filter_map(|i| profile.launches.call(i)).collect();
            let distinct: HashSet<_> = calls.iter().collect();
            assert_eq!((calls.len(), distinct.len()), (profile.launches.len(), profile.launches.len()), "{options}");
        }
    }
}

#[test]
fn a_profiler_that_was_there_first_keeps_its_records() {
    // The client's subscription precedes the tracer's, and its first profile precedes the first launch.
    let run = traced(&["first=1", "profiles=2"], &[]);
    assert_client_saw(&run.printed, &run.truth, &[BEFORE + DURING, DURING]);
    assert_eq!(read(&run.file()).launches.len(), 2 * (2 * BEFORE + DURING));
    // A recording that is never opened leaves CUPTI entirely to the client.
    for order in ["", "order=1"] {
        let run = traced(&["profiles=2", order], &[CLOSED]);
        assert_client_saw(&run.printed, &run.truth, &[DURING; 2]);
        assert_eq!(read(&run.file()).launches.len(), 0);
    }
}

#[test]
fn a_recording_opens_and_closes_beside_a_profiler_that_holds_cupti() {
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        command(folder.path(), &["profiles=3", "wait=1"], &[CLOSED]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut printed = String::new();
    let mut until_pause = || loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).unwrap() > 0, "{printed}");
        if line == "pause\n" {
            return;
        }
        printed += &line;
    };
    let say = |what: &str| told(folder.path(), child.id(), what);
    // The first profile belongs to the program alone, the second is recorded by both, and the third is no longer
    // recorded.
    for answer in [None, Some(("open", "open\n")), Some(("close", "closed\n"))] {
        until_pause();
        if let Some((what, expected)) = answer {
            assert_eq!(say(what), expected);
        }
        to.write_all(b"\n").unwrap();
    }
    until_pause();
    let since = Instant::now();
    while say("left") == "leaving\n" {
        assert!(since.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(say("left"), "subscribed: another profiler in the program uses CUPTI, too\n");
    to.write_all(b"\n").unwrap();
    for line in from.lines() {
        printed += &(line.unwrap() + "\n");
    }
    assert!(child.wait().unwrap().success());
    let truth = std::fs::read_to_string(folder.path().join("truth")).unwrap();
    assert_client_saw(&printed, &truth, &[DURING; 3]);
    let trace = folder.path().join(format!("report.{}.wstrace", child.id()));
    assert_eq!(read(&trace).launches.len(), 2 * BEFORE + DURING);
}

#[test]
fn a_profiler_that_leaves_cupti_does_not_end_the_recording() {
    // The program finalizes CUPTI, as kineto does with TEARDOWN_CUPTI=1.
    let run = traced(&["profiles=2", "finalize=1"], &[]);
    assert_eq!(lines(&run.printed, "finalize").collect::<Vec<_>>(), [["0"]]);
    assert_client_saw(&run.printed, &run.truth, &[DURING; 2]);
    assert_eq!(read(&run.file()).launches.len(), 2 * (2 * BEFORE + DURING));
    // If nothing is recorded, CUPTI is really finalized, and used again.
    let run = traced(&["profiles=2", "finalize=1"], &[CLOSED]);
    assert_client_saw(&run.printed, &run.truth, &[DURING; 2]);
    assert_eq!(run.truth.lines().filter(|l| *l == "left").count(), 1);
}

/// A copy of the CUPTI mock, as Triton ships one; with `newer`, its version differs from that of the tracer's library.
fn copied_library(folder: &Path, newer: bool) -> String {
    let copy = folder.join("libcupti-copy.so");
    if newer {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock/cupti.c");
        let done = Command::new("cc").args(["-fPIC", "-shared", "-DNEWER", "-lpthread", "-o"]).args([&copy, &source]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    } else {
        std::fs::copy(built().join("libcupti.so.13"), &copy).unwrap();
    }
    format!("looked={}", copy.display())
}

#[test]
fn a_profiler_that_looks_up_cupti_shares_it() {
    // The program looks up the functions, as JAX and Triton do.
    let library = format!("looked={}", built().join("libcupti.so.13").display());
    for words in [&["profiles=2"][..], &["profiles=2", "early=1"], &["profiles=2", "first=1", "early=1"], &["profiles=2", "finalize=1"]] {
        let run = traced(&[words, &[&library]].concat(), &[]);
        let early = if words.contains(&"first=1") { BEFORE } else { 0 };
        assert_client_saw(&run.printed, &run.truth, &[DURING + early, DURING]);
        assert_eq!(read(&run.file()).launches.len(), 2 * (2 * BEFORE + DURING), "{words:?}");
        let lookups: Vec<_> = lines(&run.printed, "lookup").collect();
        assert_eq!(lookups, [vec!["next", "tracer.so"], vec!["of", "nothing", "0", "1"]], "{words:?}");
    }
    let run = traced(&["profiles=2", &library], &[CLOSED]);
    assert_client_saw(&run.printed, &run.truth, &[DURING; 2]);
    assert_eq!(read(&run.file()).launches.len(), 0);
}

#[test]
fn a_profiler_with_a_copy_of_cupti_gets_the_tracers() {
    let folder = tempfile::tempdir().unwrap();
    let copy = copied_library(folder.path(), false);
    for words in [&["profiles=2"][..], &["profiles=2", "early=1"]] {
        let run = traced(&[words, &[&copy]].concat(), &[]);
        assert_client_saw(&run.printed, &run.truth, &[DURING; 2]);
        assert_eq!(read(&run.file()).launches.len(), 2 * (2 * BEFORE + DURING), "{words:?}");
    }
    // Its records might be longer than those of an older library, so each library keeps its own.
    let newer = copied_library(folder.path(), true);
    let run = traced(&["profiles=1", &newer], &[]);
    assert_eq!(lines(&run.printed, "record").count(), 0, "{}", run.printed);
    assert_eq!(read(&run.file()).launches.len(), 2 * BEFORE + DURING);
}
