//! Live view of a traced program: following a growing trace gives the same result as reading the complete trace, and
//! the screen shows it.

use super::support::{Explorer, read, root};
use insta::assert_snapshot;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use warpscope::analysis::live::{DeviceNow, Judged, KernelNow, Live, Meter};
use warpscope::analysis::live_results::Results;
use warpscope::analysis::triage::{Scope, triage_profile};
use warpscope::app::{self, Effect, KeyScope, Msg, Watched};
use warpscope::import::wstrace::{Follow, is_trace_of, prefix_of_trace};
use warpscope::import::{Job, Wants};
use warpscope::model::ServerSummary;
use warpscope::model::live::{Measuring, NO_KERNEL, Recorder};
use warpscope::model::metrics::{MEASURED_LAUNCHES, SAMPLED_LAUNCHES};
use warpscope::model::{Cancel, Profile};

fn bytes(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(root().join(format!("fixtures/trace/{name}.wstrace.zst"))).unwrap();
    zstd::stream::decode_all(file).unwrap()
}

/// Launches and total time in ns, by function.
fn by_function(profile: &Profile) -> BTreeMap<String, (u64, i64)> {
    let mut out = BTreeMap::new();
    for row in 0..profile.launches.len() {
        let name = profile.kernels[profile.launches.kernel(row).0 as usize].function().to_owned();
        let sum: &mut (u64, i64) = out.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + profile.launches.duration(row));
    }
    out
}

/// JSON for scripts, on one line.
fn live_json(live: &Live) -> serde_json::Value {
    let mut out = Vec::new();
    warpscope::report::live::write_json(&mut out, live).unwrap();
    assert_eq!(out.iter().filter(|&&b| b == b'\n').count(), 1);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn what_is_followed_is_what_is_read() {
    for (name, piece) in [("llm", 7_001), ("special", 101), ("torch_cuda_graph", 4_096), ("torch_eager", 33_333)] {
        let folder = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("run.7.wstrace")).unwrap();
        let mut follow = Follow::new(&folder.path().join("run"));
        assert_eq!(follow.poll_files().unwrap().recorders, []);
        let (mut names, mut found, mut copies) = (Vec::new(), BTreeMap::<String, (u64, i64)>::new(), 0);
        let mut last = Vec::new();
        for part in bytes(name).chunks(piece) {
            file.write_all(part).unwrap();
            let fresh = follow.poll_files().unwrap();
            names.extend(fresh.kernels.iter().map(|n| n.to_string()));
            for ran in &fresh.ran {
                if ran.kernel == NO_KERNEL {
                    copies += 1;
                    continue;
                }
                let sum = found.entry(names[ran.kernel as usize].clone()).or_default();
                *sum = (sum.0 + 1, sum.1 + ran.duration);
            }
            last = fresh.recorders;
        }
        let whole = read(&root().join(format!("fixtures/trace/{name}.wstrace.zst"))).unwrap();
        assert_eq!(found, by_function(&whole), "{name}");
        assert_eq!(copies, whole.memops.len(), "{name}");
        assert!(last.len() == 1 && last[0].ended && last[0].kernels == whole.launches.len() as u64, "{name}: {last:?}");
        // The complete trace, saved again.
        let copy = folder.path().join("copy.wstrace");
        follow.save_trace(None, &copy).unwrap();
        assert!(follow.save_trace(None, &copy).is_err(), "what is there stays");
        let copy = read(&copy).unwrap();
        assert_eq!((by_function(&copy), copy.ranges.len(), &copy.notes), (by_function(&whole), whole.ranges.len(), &whole.notes), "{name}");
    }
}

/// Measured kernels by function, grid, block and counters, without the launches they came from.
fn measured(profile: &Profile) -> Vec<String> {
    let metrics = profile.metrics.as_deref().unwrap();
    let row = |r: &warpscope::model::ResultMetrics| {
        let mut values: Vec<String> = r
            .values
            .iter()
            .map(|(id, value)| (&metrics.names[*id as usize], value))
            .filter(|(name, _)| ![MEASURED_LAUNCHES, SAMPLED_LAUNCHES].contains(&&***name))
            .map(|(name, value)| format!("{name} {value:?}"))
            .collect();
        values.sort();
        format!("{:?} {:?} {:?} {values:?}", r.kernel, r.grid, r.block)
    };
    let mut all: Vec<String> = metrics.results.iter().map(row).collect();
    all.sort();
    all
}

#[test]
fn what_is_measured_in_place_is_known_while_the_program_runs() {
    for name in ["zoo_survey", "third_stalls", "causes_in_place"] {
        let folder = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("run.7.wstrace")).unwrap();
        let mut follow = Follow::new(&folder.path().join("run"));
        let job = Job::new(Wants::TABLE, &|_| {});
        assert!(follow.measured_profile(&job).is_none());
        let (mut news, mut found) = (0, Vec::new());
        for part in bytes(name).chunks(4_999) {
            file.write_all(part).unwrap();
            let fresh = follow.poll_files().unwrap();
            if fresh.measured > news {
                news = fresh.measured;
                found.push(follow.measured_profile(&job).map_or(0, |m| m.metrics.as_ref().unwrap().results.len()));
            }
        }
        let whole = read(&root().join(format!("fixtures/trace/{name}.wstrace.zst"))).unwrap();
        let last = follow.measured_profile(&job).unwrap();
        assert_eq!(measured(&last), measured(whole.measured.as_deref().unwrap()), "{name}");
        assert!(found.len() > 1 && found.is_sorted(), "{name}: they come as the program runs: {found:?}");
    }
}

fn recorder() -> Recorder {
    Recorder {
        pid: 4711,
        program: "python3".into(),
        time: 1_700_000_000_000_000_000,
        started: 1_699_999_950_000_000_000,
        open: true,
        kernels: 1_234_567,
        bytes: 23_456_789,
        cost: 400_000_000,
        ..Recorder::default()
    }
}

/// An LLM decode loop, with the verdict on a real trace.
fn live() -> Live {
    let profile = read(&root().join("fixtures/trace/llm.wstrace.zst")).unwrap();
    let judged = triage_profile(&profile, &Scope::default(), &Cancel::default()).map(Arc::new);
    let kernel = |name: &str, recent: (u64, i64), all: (u64, i64)| KernelNow { name: name.into(), recent, all };
    let wave = |i: u32| f64::from(40 + (i * 7) % 50) / 100.0;
    Live {
        server: Some(ServerSummary {
            requests_running: Some(12.0),
            requests_waiting: Some(3.4),
            kv_cache_used: Some(0.43),
            tokens_per_second: Some(1840.0),
            first_token: Some(0.0812),
            per_token: Some(0.0064),
        }),
        devices: vec![DeviceNow {
            name: "0000:01:00.0 NVIDIA H200".into(),
            busy: (0..48).map(|i| (!(20..24).contains(&i)).then(|| wave(i))).collect(),
        }],
        launches: (0..48_u32).map(|i| (!(20..24).contains(&i)).then(|| u64::from(20_000 + (i * 977) % 9000))).collect(),
        kernels: vec![
            kernel("nvjet_hsh_192x8_64x8_2x1_v_bz_TNT", (41_230, 2_310_000_000), (412_300, 23_310_000_000)),
            kernel("vectorized_elementwise_kernel", (123_456, 910_000_000), (1_234_560, 9_310_000_000)),
            kernel("flash_fwd_splitkv_kernel", (9_800, 402_000_000), (98_000, 4_020_000_000)),
            kernel("reduce_kernel", (0, 0), (1_000, 3_000_000)),
        ],
        recent_ns: 3_622_000_000,
        all_ns: 36_643_000_000,
        count: 1_234_567,
        different: 3,
        seconds: 10,
        began: 1_699_999_950_000_000_000,
        since: 1_699_999_950_000_000_000,
        recorders: vec![recorder()],
        bytes: Some(391_000.0),
        cost: Some(0.008),
        behind: 0,
        now: 1_700_000_000_000_000_000,
        judged: Some(Judged { triage: judged, at: 1_699_999_995_000_000_000 }),
        measured: None,
    }
}

/// An explorer that watches traces of another program.
fn watching(size: (u16, u16)) -> Explorer {
    let mut explorer = Explorer::open(&[], size);
    explorer.app.running.watched = Some(Watched::from_traces("/data/traces/server".into()));
    app::show_watched_run(&mut explorer.app);
    explorer
}

#[test]
fn the_screen_of_a_program_that_runs() {
    let mut explorer = watching((120, 40));
    assert!(explorer.screen().contains("waiting for a process that uses CUDA"));
    explorer.send(Msg::Live(None, Box::new(live())));
    assert_eq!(explorer.app.current_scope(), KeyScope::Run);
    for size in [(80, 24), (120, 40), (200, 50)] {
        explorer.app.session.size = size;
        assert_snapshot!(format!("live_{}x{}", size.0, size.1), explorer.screen());
    }
    // Errors are shown, and unknown values are not drawn.
    let mut wrong = live();
    wrong.judged = None;
    wrong.recorders.push(Recorder {
        pid: 4712,
        not_recorded: Some("another profiler already uses CUPTI".into()),
        ended: true,
        ..Recorder::default()
    });
    wrong.recorders[0] = Recorder { open: false, lost: 12, stopped: Some("the disk was full".into()), ..recorder() };
    explorer.send(Msg::Live(None, Box::new(wrong)));
    explorer.app.session.size = (80, 24);
    let screen = explorer.screen();
    for text in [
        "12 records lost",
        "process 4712 is not recorded: another profiler",
        "the recording has ended",
        "process 4711: the recording has ended: the disk was full",
    ] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
}

/// A survey of a program that has just written its measurements.
fn surveyed() -> Live {
    live_of("zoo_survey")
}

fn live_of(trace: &str) -> Live {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.7.wstrace"), bytes(trace)).unwrap();
    let mut follow = Follow::new(&folder.path().join("run"));
    let mut fresh = follow.poll_files().unwrap();
    let now = fresh.ran.iter().map(|r| r.start + r.duration).max().unwrap() + 2_500_000_000;
    for r in &mut fresh.recorders {
        (r.time, r.started, r.ended, r.open) = (now, now - 12_000_000_000, false, true);
    }
    fresh.states.push((now - 1_000_000_000, true));
    let mut meter = Meter::default();
    meter.add_poll(fresh, now);
    Live {
        measured: Results::from_profile(&follow.measured_profile(&Job::new(Wants::TABLE, &|_| {})).unwrap()).map(Arc::new),
        ..meter.current_state()
    }
}

#[test]
fn kernels_that_were_measured_show_what_limits_them() {
    let mut explorer = watching((120, 40));
    explorer.send(Msg::Live(None, Box::new(surveyed())));
    for size in [(80, 24), (120, 40), (200, 50)] {
        explorer.app.session.size = size;
        assert_snapshot!(format!("live_measured_{}x{}", size.0, size.1), explorer.screen());
    }
    let json = live_json(&surveyed());
    let first = &json["measured"].as_array().unwrap().iter().find(|k| k["kernel"] == "atomic_hot").unwrap();
    assert_eq!((&first["hint"]["id"], &first["launches"]), (&"atomic-contention".into(), &24.into()));
    assert!(first["memory_percent"].as_f64().is_some_and(|p| (p - 2.0).abs() < 0.01), "{first}");
    let line = warpscope::report::live::status_line(&surveyed());
    assert!(line.contains(&format!("{} kernels measured", json["measured"].as_array().unwrap().len())), "{line}");
    // If operations were counted, there is a roofline.
    let mut counted = watching((120, 40));
    counted.send(Msg::Live(None, Box::new(live_of("causes_in_place"))));
    assert_snapshot!("live_measured_roofline_120x40", counted.screen());
    // The selection stays on its kernel when another one takes more time.
    explorer.press("j");
    let selected = |e: &Explorer| e.app.running.watched.as_ref().unwrap().traced.selected_kernel().unwrap().name.clone();
    let name = selected(&explorer);
    // Only an upper bound of its operations is known.
    assert_snapshot!("live_measured_bound_200x50", explorer.screen());
    let mut later = surveyed();
    later.kernels.reverse();
    explorer.send(Msg::Live(None, Box::new(later)));
    assert_eq!(selected(&explorer), name);
    explorer.press("m");
    assert!(matches!(explorer.asked.last(), Some(Effect::Measure(k)) if **k == *name), "{:?}", explorer.asked.last());
    // For a kernel without measurements, the screen says how to get them.
    let mut unknown = surveyed();
    let kept = unknown.measured.take().unwrap();
    let others = kept.kernels.iter().filter(|k| k.name != name).cloned().collect();
    unknown.measured = Some(Arc::new(Results { metrics: kept.metrics.clone(), kernels: others }));
    explorer.send(Msg::Live(None, Box::new(unknown)));
    assert!(explorer.screen().contains("m measures its next launches"), "{}", explorer.screen());
}

#[test]
fn what_keeps_a_program_from_being_measured_is_on_the_screen() {
    let mut explorer = watching((120, 40));
    let mut now = surveyed();
    now.recorders[0].not_measured = Some("another profiler holds the counters".to_owned());
    now.recorders[0].measuring = Some(Measuring { kernel: "gemm".into(), ms: 7400, passes: None });
    let json = live_json(&now);
    assert_eq!(
        (&json["recorders"][0]["measuring"]["kernel"], &json["recorders"][0]["measuring"]["for_ms"]),
        (&"gemm".into(), &7400.into())
    );
    explorer.send(Msg::Live(None, Box::new(now.clone())));
    let screen = explorer.screen();
    assert!(screen.contains("is no longer measured: another profiler holds the counters"), "{screen}");
    assert!(screen.contains("a measured launch of gemm has been running for 7 s: does it wait for another kernel?"), "{screen}");
    // A replay takes time; of several ranks only the first is measured, and the others show no message.
    now.recorders[0].measuring = Some(Measuring { kernel: "gemm".into(), ms: 7400, passes: Some(22) });
    (now.recorders[0].measured, now.recorders[0].rank) = (0, Some(3));
    explorer.send(Msg::Live(None, Box::new(now)));
    let screen = explorer.screen();
    assert!(screen.contains("a launch of gemm has been replayed for 7 s (22 passes in all)"), "{screen}");
    assert!(!screen.contains("measured: another profiler"), "{screen}");
}

#[test]
fn a_program_is_paused_gated_saved_and_left() {
    let mut explorer = watching((120, 40));
    explorer.press("w");
    assert!(explorer.screen().contains("nothing has been recorded yet") && explorer.asked.is_empty());
    explorer.send(Msg::Live(None, Box::new(live())));
    explorer.press("R");
    assert!(matches!(explorer.asked.last(), Some(Effect::Gate(false))), "{:?}", explorer.asked);
    let mut closed = live();
    closed.recorders[0].open = false;
    explorer.send(Msg::Live(None, Box::new(closed)));
    explorer.press("R");
    assert!(matches!(explorer.asked.last(), Some(Effect::Gate(true))));
    explorer.press("m");
    let first =
        explorer.app.running.watched.as_ref().and_then(|w| w.live_view()).and_then(|l| l.kernels.first()).map(|k| k.name.to_string());
    assert!(matches!(explorer.asked.last(), Some(Effect::Measure(k)) if Some(k) == first.as_ref()), "{:?}", explorer.asked.last());
    // Nothing moves while paused.
    explorer.press("space");
    let before = explorer.screen();
    assert!(before.contains("the view is paused"));
    explorer.send(Msg::Live(None, Box::new(Live { count: 2, ..live() })));
    assert_eq!(explorer.screen().lines().nth(20), before.lines().nth(20));
    explorer.press("space");
    explorer.press("X");
    assert!(explorer.screen().contains("did not start this program"));
    explorer.press("w");
    assert!(matches!(explorer.asked.last(), Some(Effect::Snapshot { whole: false })));
    explorer.send(Msg::Snapshot(Err("/data/traces/server-snapshot-1.wstrace: disk full".into())));
    assert!(explorer.screen().contains("disk full"));
    // After the end, the whole trace can be opened.
    let mut ended = live();
    ended.recorders[0].ended = true;
    explorer.send(Msg::Live(None, Box::new(ended)));
    assert!(explorer.screen().contains("every process has ended") || explorer.screen().contains(" ended "));
    explorer.press("enter");
    assert!(matches!(explorer.asked.last(), Some(Effect::Snapshot { whole: true })));
    explorer.send(Msg::Snapshot(Ok(("/data/traces/server-snapshot-1.wstrace".into(), true))));
    assert_eq!(explorer.app.session.reports.len(), 1, "it is opened");
}

/// A report of a trace's last seconds is complete: it has no note about damage.
#[test]
fn the_last_seconds_are_a_report_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.7.wstrace"), bytes("llm")).unwrap();
    let mut follow = Follow::new(Path::new(&folder.path().join("run")));
    while follow.poll_files().unwrap().behind > 0 {}
    let recent = follow.recent_profile(i64::MAX / 2, 500, &Job::new(Wants::TRIAGE, &|_| {})).unwrap();
    assert!(recent.launches.len() <= 500, "{}", recent.launches.len());
    assert!(recent.notes.iter().all(|n| !n.text.contains("damaged")), "{:?}", recent.notes);
}

/// A name may end in a number: `run.5.12.wstrace` belongs to `run.5`, unless its contents say that it is a rotated file
/// of `run`.
#[test]
fn programs_whose_names_end_in_numbers_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (file, name) in [("run.7.wstrace", "llm"), ("run.5.12.wstrace", "special"), ("run.v2.9.wstrace", "torch_eager")] {
        std::fs::write(at(file), bytes(name)).unwrap();
        assert_eq!(prefix_of_trace(&at(file)), Some(at(file.rsplitn(3, '.').last().unwrap())));
    }
    for prefix in ["run", "run.5", "run.v2"] {
        let mut follow = Follow::new(&at(prefix));
        assert_eq!(follow.poll_files().unwrap().recorders.len(), 1, "{prefix}");
    }
    assert!(is_trace_of(&at("run.5"), &at("run.5.12.wstrace")) && !is_trace_of(&at("run"), &at("run.v2.9.wstrace")));
}
