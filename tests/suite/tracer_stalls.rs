//! Stall reasons sampled by the tracer while a program runs, from the CUPTI mock: sampled launch,
//! its values, and messages if sampling fails.

use super::tracer::measured;
use warpscope::cli::details;
use warpscope::import::wstrace::{WarpscopeTrace, read_modules};
use warpscope::import::{Cancel, Importer, Input, Job, Wants, input_if};
use warpscope::model::metrics::SAMPLED_LAUNCHES;
use warpscope::model::sections::InstanceKey;
use warpscope::model::{Metrics, Profile, Value};
use warpscope::rerun::match_results::{Sure, join_results};

const STALLED: &str = "smsp__pcsamp_warps_issue_stalled_";

fn metrics(profile: &Profile) -> &Metrics {
    profile.measured.as_deref().and_then(|m| m.metrics.as_deref()).expect("results")
}

fn input(file: &std::path::Path) -> Input {
    input_if(file, &Job::new(Wants::ALL, &|_| {}), &|i| WarpscopeTrace.knows(i)).unwrap()
}

#[test]
fn the_launch_that_was_asked_for_and_no_other() {
    let (run, profile) = measured("survey 0\nstalls 5 foo\n", &["rate=500", "seconds=1", "kinds=4"], &[]);
    let metrics = metrics(&profile);
    let [result] = &metrics.results[..] else { panic!("{} results", metrics.results.len()) };
    let mine: Vec<String> = run.said("kernel").into_iter().filter(|w| w[1] == "_Z3fooPf").map(|w| w[0].clone()).collect();
    assert_eq!(run.said("sampled").iter().map(|w| w[0].clone()).collect::<Vec<_>>(), [mine[5].clone()]);
    assert_eq!(metrics.value(result, SAMPLED_LAUNCHES).unwrap().to_string(), "6");
    // Nothing was replayed, and nothing is reported missing.
    assert!(metrics.notes.iter().all(|n| !n.text.contains("missing")), "{:?}", metrics.notes);
    assert!(run.said("measured").is_empty() && metrics.number(result, "a__ordinal.sum").is_none());
    // The mock's launch with ordinal 0: one sample issued, three waited (one of them
    // without an issued warp), two waited for memory.
    let number = |name: &str| metrics.number(result, name);
    assert_eq!(number("smsp__pcsamp_sample_count"), Some(6.0));
    for (reason, n) in
        [("selected", 1.0), ("wait", 3.0), ("wait_not_issued", 1.0), ("long_scoreboard", 2.0), ("long_scoreboard_not_issued", 2.0)]
    {
        assert_eq!(number(&format!("{STALLED}{reason}")), Some(n), "{reason}");
    }
    let sampled = result.sampled.as_deref().unwrap();
    let [function] = &sampled.functions[..] else { panic!("{:?}", sampled.functions) };
    assert_eq!(&*function.name, "_Z3fooPf");
    let address = function.address;
    let of = |name: &str| {
        let id = metrics.names.iter().position(|n| **n == *name).unwrap();
        sampled.details.instances[&u32::try_from(id).unwrap()].clone()
    };
    let at = |offset: u64, n: u64| (InstanceKey::Number(address + offset), Value::Integer(n));
    assert_eq!(of("smsp__pcsamp_sample_count"), [at(16, 4), at(32, 2)]);
    assert_eq!(of(&format!("{STALLED}long_scoreboard")), [at(32, 2)]);
    let joined = join_results(&profile, metrics);
    assert!(joined.pairs.len() == 1 && joined.pairs[0].sure == Sure::Measured);
}

#[test]
fn the_module_of_a_sampled_launch_is_kept() {
    let code = "not an ELF file, but whatever CUPTI showed while it was loaded";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cubin");
    std::fs::write(&file, code).unwrap();
    let (run, profile) = measured(
        "survey 0\nstalls 2 foo\nstalls 1 bar\n",
        &["rate=500", "seconds=1", "kinds=4"],
        &[("MOCK_CUBIN", file.to_str().unwrap())],
    );
    let metrics = metrics(&profile);
    assert_eq!(metrics.results.len(), 2);
    let sources: Vec<u64> = metrics.results.iter().flat_map(|r| r.sampled.as_deref().unwrap().details.sources.clone()).collect();
    assert!(sources.len() == 2 && sources[0] == sources[1]);
    let input = input(&run.files()[0]);
    let found = read_modules(&input, &sources).unwrap();
    assert_eq!(found.into_values().collect::<Vec<_>>(), [code.as_bytes()]);
    assert!(read_modules(&input, &[1]).unwrap().is_empty());
    // A module without code gives offsets.
    let listed = details::read_code(|| Ok(input), metrics, 0, &[], &Cancel::default()).unwrap();
    assert!(listed.functions.len() == 1 && listed.functions[0].instructions.is_empty() && !listed.remarks.is_empty());
}

#[test]
fn after_a_replayed_launch_the_next_one_like_it_is_sampled() {
    let (run, profile) = measured("survey 0\nlaunch 5 foo\n", &["rate=500", "seconds=2", "kinds=4"], &[]);
    let metrics = metrics(&profile);
    let [result] = &metrics.results[..] else { panic!("{} results", metrics.results.len()) };
    assert_eq!((run.said("measured").len(), run.said("sampled").len()), (1, 1));
    assert_eq!(metrics.number(result, "a__ordinal.sum"), Some(0.0));
    let later: u64 = metrics.value(result, SAMPLED_LAUNCHES).unwrap().to_string().parse().unwrap();
    assert!(later > 6 && metrics.number(result, "smsp__pcsamp_sample_count") == Some(6.0), "{later}");
}

/// If CUPTI delivers its data in several pieces, or its buffer is full, the data received
/// is kept, and the rest is reported missing.
#[test]
fn pieces_are_put_together_and_a_full_buffer_is_said() {
    let (_, profile) = measured("survey 0\nstalls 5 foo\n", &["rate=500", "seconds=1", "kinds=4"], &[("MOCK_PIECES", "3")]);
    let one = &metrics(&profile).results[0];
    assert_eq!(metrics(&profile).number(one, "smsp__pcsamp_sample_count"), Some(18.0));
    assert_eq!(metrics(&profile).number(one, "smsp__pcsamp_sample_buffer_full"), Some(0.0));
    assert_eq!(metrics(&profile).value(one, SAMPLED_LAUNCHES).unwrap().to_string(), "6");
    let (run, profile) = measured("survey 0\nstalls 5 foo\nstalls 9 foo\n", &["rate=500", "seconds=1", "kinds=4"], &[("MOCK_FULL", "2")]);
    assert_eq!(run.said("sampled").len(), 2);
    let of = metrics(&profile);
    assert_eq!(of.number(&of.results[0], "smsp__pcsamp_sample_buffer_full"), Some(1.0));
    assert!(profile.measured.as_deref().unwrap().notes.iter().any(|n| n.text.starts_with("Some samples of")), "{:?}", of.notes);
}

/// Counters are released while the program launches without a pause: CUPTI waits for a launch in progress, so no launch
/// may wait for the thread that releases them (seen on an H200: the program hung).
#[test]
fn a_program_that_launches_without_a_pause_goes_on() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["rate=40000", "seconds=3", "kinds=3"], &[("MOCK_BUSY", "1")]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    assert_eq!(run.said("sampled").len(), 3);
    assert!(profile.notes.iter().all(|n| !n.text.contains("waited for the profiler")), "{:?}", profile.notes);
}

/// The same with several launching threads: the launches of the other threads proceed meanwhile.
#[test]
fn programs_that_launch_on_several_threads_go_on() {
    let (run, profile) =
        measured("survey 1000\nshare 100\n", &["rate=20000", "seconds=8", "kinds=3", "beside=4"], &[("MOCK_BUSY", "threads")]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    assert!(!metrics(&profile).results.is_empty());
    assert!(profile.notes.iter().all(|n| !n.text.contains("waited for the profiler")), "{:?}", profile.notes);
    // A launch chosen by number is replayed while the other threads wait: their launches are counted, too, so they must
    // not overtake it.
    let (run, profile) =
        measured("survey 0\nlaunch 500 foo\n", &["rate=20000", "seconds=2", "kinds=4", "beside=2"], &[("MOCK_BUSY", "threads")]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    assert_eq!((metrics(&profile).results.len(), run.said("measured").len()), (1, 1));
    assert!(profile.notes.iter().all(|n| !n.text.contains("waited for the profiler")), "{:?}", profile.notes);
}

/// If CUPTI waits for a launch on behalf of the ticker, that launch waits for a bounded time only.
#[test]
fn a_launch_does_not_wait_for_ever_for_the_profiler() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["times=7", "every=1800", "kinds=2"], &[("MOCK_BUSY", "always")]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    let said = |text: &str| profile.notes.iter().any(|n| n.text.contains(text));
    assert!(said("a launch waited for the profiler for too long"), "{:?}", profile.notes);
}

#[test]
fn a_survey_samples_each_kernel_once_after_its_counters() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["rate=2000", "seconds=5", "kinds=3"], &[]);
    let metrics = metrics(&profile);
    assert_eq!((metrics.results.len(), run.said("sampled").len()), (3, 3));
    for result in &metrics.results {
        // The ordinal is the mock's dynamic shared memory.
        let ordinal = metrics.number(result, "launch__shared_mem_per_block_dynamic").unwrap();
        assert_eq!(metrics.number(result, &format!("{STALLED}selected")), Some(ordinal + 1.0));
        assert!(metrics.number(result, "d__inst_executed.sum") == Some(ordinal));
    }
}

#[test]
fn counters_are_measured_where_stalls_cannot_be_sampled() {
    let (run, profile) = measured("survey 0\nlaunch 5 foo\n", &["rate=500", "seconds=2", "kinds=4"], &[("MOCK_SAMPLING", "35")]);
    assert!(run.said("sampled").is_empty() && metrics(&profile).results.len() == 1);
    let notes: Vec<&str> = profile.notes.iter().map(|n| n.text.as_str()).collect();
    assert!(
        notes
            .iter()
            .any(|n| n.starts_with("Stall reasons were not sampled") && n.contains("no permission to access GPU performance counters")),
        "{notes:?}"
    );
    // A requested launch that never happens.
    let (_, profile) = measured("survey 0\nstalls 500 foo\n", &["rate=500", "seconds=1", "kinds=4"], &[]);
    assert!(profile.measured.is_none());
    assert!(profile.notes.iter().any(|n| n.text.contains("launch 501 of foo was not reached")), "{:?}", profile.notes);
}

/// Most frequent reason other than being issued, and hottest line, of each kernel's first result.
fn hottest(file: &std::path::Path) -> std::collections::BTreeMap<String, (String, String)> {
    let profile = super::support::read(file).unwrap();
    let metrics = profile.measured.as_deref().unwrap_or(&profile).metrics.clone().unwrap();
    let mut out = std::collections::BTreeMap::new();
    for (at, result) in metrics.results.iter().enumerate() {
        let input = || input_if(file, &Job::new(Wants::ALL, &|_| {}), &|_| true);
        let values = details::read_details(input, &metrics, at).unwrap();
        let code = details::read_code(input, &metrics, at, &[], &Cancel::default()).unwrap();
        let listing = warpscope::analysis::code::build_listing(&metrics, at, &values, &code, false);
        let reasons =
            metrics.names.iter().filter_map(|n| n.strip_prefix(STALLED)).filter(|r| !r.ends_with("_not_issued") && *r != "selected");
        let first = reasons.max_by_key(|r| metrics.integer(result, &format!("{STALLED}{r}")).unwrap_or(0));
        if let (Some(reason), Some(line)) = (first, listing.lines.first()) {
            out.entry(result.kernel.function().to_owned()).or_insert((reason.to_owned(), format!("{}:{}", line.name, line.line)));
        }
    }
    out
}

#[test]
fn samples_of_a_run_tell_what_ncus_tell() {
    let fixture = |name: &str| super::support::root().join("fixtures").join(name);
    let ours = hottest(&fixture("trace/third_stalls.wstrace.zst"));
    assert_eq!(ours.len(), 36);
    let text = std::fs::read_to_string(fixture("hints/third_samples.toml")).unwrap();
    let words = |l: &str| l.split('"').filter(|w| !w.contains([' ', '[', ']'])).map(str::to_owned).collect::<Vec<_>>();
    let theirs: std::collections::BTreeMap<String, (String, String)> = text
        .lines()
        .filter_map(|l| l.split_once(" = "))
        .map(|(kernel, rest)| (kernel.to_owned(), words(rest)))
        .map(|(kernel, w)| (kernel, (w[0].clone(), w[1].clone())))
        .collect();
    let same = |of: fn(&(String, String)) -> &String| ours.iter().filter(|(k, v)| theirs.get(*k).is_some_and(|t| of(t) == of(v))).count();
    let (reasons, lines) = (same(|v| &v.0), same(|v| &v.1));
    let other: Vec<_> = ours.iter().filter(|(k, v)| theirs.get(*k) != Some(v)).map(|(k, v)| (k, v, theirs.get(k))).collect();
    assert!(reasons >= 33 && lines >= 33, "{reasons} {lines} {other:#?}");
}

#[test]
fn the_source_screen_shows_lines_with_their_reasons() {
    let mut explorer = super::support::Explorer::open(&[super::support::root().join("fixtures/trace/third_stalls.wstrace.zst")], (120, 40));
    for key in ["K", "p", "e"] {
        explorer.press(key);
    }
    assert!(explorer.app.session.reports.iter().all(|r| r.profile.as_ref().unwrap().notes.iter().all(|n| !n.text.contains("missing"))));
    insta::assert_snapshot!("stalls_120x40", explorer.screen());
}
