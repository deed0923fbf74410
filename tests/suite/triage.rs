//! Limits of a run: labelled runs, an independent computation of the same figures, and no claims about unrecorded data.

use super::support::{Explorer, demo_files, packed, read_as, root, run, scratch};
use insta::assert_snapshot;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use warpscope::analysis::flops::Operators;
use warpscope::analysis::name_pattern::name_pattern;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::analysis::triage::{Scope, StepSource, Sure, TimeCategory, Triage, VERDICTS, Verdict, triage_profile};
use warpscope::analysis::{Overview, Paths};
use warpscope::config::ColorMode;
use warpscope::import::Wants;
use warpscope::model::{Cancel, Profile};

fn folder() -> PathBuf {
    root().join("fixtures/triage")
}

pub fn judge(profile: &Profile) -> Triage {
    triage_profile(profile, &Scope::default(), &Cancel::default()).expect("something ran")
}

/// An unpacked run, changed by SQL.
fn changed(name: &str, sql: &str) -> PathBuf {
    let file = tempfile::Builder::new().prefix(name).suffix(".sqlite").tempfile_in(scratch()).unwrap();
    let path = file.into_temp_path().keep().unwrap();
    let packed = std::fs::File::open(folder().join(format!("{name}.sqlite.zst"))).unwrap();
    std::fs::write(&path, zstd::stream::decode_all(packed).unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    path
}

fn of(name: &str, sql: &str) -> (Profile, Triage) {
    let profile = read_as(&changed(name, sql), Wants::TRIAGE).unwrap();
    let found = judge(&profile);
    (profile, found)
}

fn ids(t: &Triage) -> Vec<&'static str> {
    t.findings.iter().map(|f| f.id.id()).collect()
}

fn adds_up(t: &Triage, what: &str) {
    for d in &t.devices {
        assert_eq!(d.parts.iter().map(|p| p.1).sum::<i64>(), t.length(), "{what}");
        let idle: i64 = d.parts.iter().filter(|p| p.0.is_idle()).map(|p| p.1).sum();
        assert_eq!(d.causes.iter().map(|c| c.1).sum::<i64>(), idle, "{what}");
        assert_eq!(d.busy + idle, t.length(), "{what}");
    }
    // The chart of steps shows the same idle time, even where steps begin and end within it.
    let contiguous = t.steps.iter().map(|s| s.end - s.start).sum::<i64>() == t.length();
    if contiguous && t.step_idle.len() == t.steps.len() {
        let devices = i64::try_from(t.devices.len()).unwrap();
        let idle: i64 = t.devices.iter().flat_map(|d| &d.causes).map(|c| c.1).sum();
        let in_steps: i64 = t.step_idle.iter().map(|s| s.0 * devices).sum();
        assert!((0..=devices * i64::try_from(t.steps.len()).unwrap()).contains(&(idle - in_steps)), "{what}: {idle} and {in_steps} ns");
    }
}

/// A run whose slow steps write a file: its recording has the calls, so that no other recording is needed to see it.
#[test]
fn calls_in_slow_steps_are_named() {
    let call = |name: &str, id: i64, at: &str, ms: i64| {
        format!(
            "INSERT INTO OSRT_API SELECT {at} + 5100000, {at} + 5100000 + {ms} * 1000000, 27, globalTid, {id}, 0, 0, 0
             FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1; INSERT OR IGNORE INTO StringIds VALUES ({id}, '{name}');"
        )
    };
    let steps = ["386400000", "182600000", "47500000", "250700000", "318600000"];
    let in_steps = |name: &str, ms| steps.iter().map(|at| call(name, 990_001, at, ms)).collect::<String>();
    let stall = |sql: &str| {
        let (_, found) = of("eval_stall", sql);
        found.findings.into_iter().find(|f| f.id == Verdict::PeriodicStall).unwrap()
    };
    let (wrote, polled, plain) = (stall(&in_steps("pwrite64", 24)), stall(&in_steps("poll", 24)), stall(""));
    assert!(
        wrote.headline.ends_with(" in pwrite64") && wrote.actions[0].starts_with("Write from a background thread"),
        "{}",
        wrote.headline
    );
    assert!(polled.headline.ends_with(" in poll") && !polled.actions[0].starts_with("Write"), "{}", polled.headline);
    assert!(!plain.headline.contains(" in ") && !plain.actions[0].starts_with("Write"), "{}", plain.headline);
}

#[test]
fn labelled_runs_get_their_verdicts() {
    let labels: toml::Table = std::fs::read_to_string(folder().join("labels.toml")).unwrap().parse().unwrap();
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (name, label) in &labels {
        let texts = |key: &str| -> Vec<String> {
            label.get(key).and_then(|v| v.as_array()).into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
        };
        for ending in ["sqlite.zst", "pt.trace.json.gz", "wstrace.zst"] {
            let file = folder().join(format!("{name}.{ending}"));
            if !file.exists() {
                continue;
            }
            let t = judge(&read_as(&file, Wants::TRIAGE).unwrap());
            adds_up(&t, &format!("{name}.{ending}"));
            judged += 1;
            // The command that would confirm a finding is valid.
            for argv in t.findings.iter().filter_map(|f| f.confirm.as_ref()).map(|c| &c.argv) {
                let recipe = (argv[1] == "run").then(|| argv[3].as_str());
                assert!(recipe.is_none_or(|r| warpscope::rerun::recipes::built_in_recipes().any(|known| known.id == r)), "{argv:?}");
            }
            let found = ids(&t);
            let also = texts("also").iter().all(|a| found.iter().take(3).any(|f| f == a));
            let first = t.findings.first();
            let right = first.is_some_and(|f| texts("accept").iter().any(|a| a == f.id.id()));
            // Formats that do not record a cause never claim it.
            let unknown = texts("unknown").iter().any(|form| ending.contains(form.as_str()));
            let open = first.is_some_and(|f| f.sure == Sure::Possible || f.id == Verdict::ShortCapture);
            if !also || !(right || unknown && open) {
                wrong.push(format!("{name}.{ending}: {found:?}"));
            }
        }
    }
    assert_eq!(judged, 19 + 13 + 2 * 35);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Time covered by operations of these tables between two times, ns: sorted by SQLite, counted by depth.
fn covered(db: &Connection, tables: &[&str], (begin, end): (i64, i64)) -> i64 {
    let there = |t: &&&str| db.prepare(&format!("SELECT start FROM {t}")).is_ok();
    let all: Vec<String> = tables
        .iter()
        .filter(there)
        .map(|t| format!("SELECT max(start, {begin}) a, min(end, {end}) b FROM {t} WHERE end > {begin} AND start < {end}"))
        .collect();
    if all.is_empty() {
        return 0;
    }
    // Edges with +1 and -1; time at a positive depth is covered.
    let sql = format!(
        "WITH ops AS ({}), edges AS (SELECT a t, 1 d FROM ops UNION ALL SELECT b, -1 FROM ops),
         at AS (SELECT t, sum(d) d FROM edges GROUP BY t),
         run AS (SELECT t, sum(d) OVER (ORDER BY t) depth, lead(t) OVER (ORDER BY t) next FROM at)
         SELECT coalesce(sum(next - t), 0) FROM run WHERE depth > 0",
        all.join(" UNION ALL ")
    );
    db.query_row(&sql, [], |r| r.get(0)).unwrap()
}

#[test]
fn sql_gives_the_same_busy_exposed_and_idle() {
    const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
    const MEM: [&str; 2] = ["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"];
    for name in [
        "tiny_ops",
        "item_loop",
        "host_compute",
        "input_wait",
        "pageable_h2d",
        "pinned_h2d",
        "empty_cache",
        "gemm_healthy",
        "overlap_healthy",
        "graph_tiny",
        "jit_variants",
        "small_copies",
        "two_causes",
    ] {
        let path = changed(name, "");
        let t = judge(&read_as(&path, Wants::TRIAGE).unwrap());
        let db = Connection::open(&path).unwrap();
        let kernels = covered(&db, &[KERNEL], t.window);
        let all = covered(&db, &[KERNEL, MEM[0], MEM[1]], t.window);
        let ns = |part: TimeCategory| t.devices[0].parts[part as usize].1;
        assert_eq!(t.devices.len(), 1);
        assert_eq!((ns(TimeCategory::Kernels), ns(TimeCategory::Copies)), (kernels, all - kernels), "{name}");
        let idle: i64 = TimeCategory::ALL.into_iter().filter(|p| p.is_idle()).map(ns).sum();
        assert_eq!(idle, t.length() - all, "{name}");
    }
}

#[test]
fn steps_are_found_without_ranges_too() {
    for (name, steps) in
        [("tiny_ops", 40), ("pageable_h2d", 20), ("two_causes", 20), ("pinned_h2d", 30), ("small_copies", 20), ("graph_tiny", 40)]
    {
        let (_, with) = of(name, "");
        assert!(matches!(with.found, Some(StepSource::Ranges(_))), "{name}");
        let (_, without) = of(name, "DELETE FROM NVTX_EVENTS");
        // `the first 6 steps: warm-up`
        let number = |text: &str| text.split(' ').find_map(|w| w.parse::<usize>().ok()).unwrap_or(1);
        let warm: usize = without.left_out.iter().filter(|l| l.what.contains("warm-up")).map(|l| number(&l.what)).sum();
        let found = without.steps.len() + warm;
        assert!(found.abs_diff(steps) * 10 <= steps, "{name}: {found} of {steps}, {:?}", without.found);
        assert_eq!(ids(&with)[0], ids(&without)[0], "{name}");
    }
}

#[test]
fn what_was_not_recorded_is_named_and_not_guessed() {
    // Without OS calls, waiting cannot be distinguished from computing.
    let (_, t) = of("input_wait", "DROP TABLE OSRT_API");
    assert_eq!(ids(&t)[0], "host-compute");
    assert_eq!(t.findings[0].sure.as_str(), "possible");
    assert!(t.part_percent(TimeCategory::Waiting) == 0.0 && t.part_percent(TimeCategory::Other) > 80.0);
    assert!(t.missing.iter().any(|m| m.contains("OS calls were not recorded")), "{:?}", t.missing);
    // Without any data about the host.
    let (_, t) = of("tiny_ops", "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME");
    assert_eq!(ids(&t)[0], "short-capture");
    assert!(!ids(&t).contains(&"launch-bound"), "{:?}", ids(&t));
    adds_up(&t, "without calls");
    // A rule about copies reports nothing without copies, and so on.
    let (_, t) = of("gemm_healthy", "");
    let silent =
        ["small-copies", "copy-bound", "comm-bound", "allocation", "graph-recapture", "compilation", "unified-memory", "straggler"];
    assert!(ids(&t).iter().all(|id| !silent.contains(id)), "{:?}", ids(&t));
}

#[test]
fn a_report_without_work_has_no_verdict() {
    let profile = read_as(&packed("nogpu"), Wants::TRIAGE).unwrap();
    assert_eq!(triage_profile(&profile, &Scope::default(), &Cancel::default()), None);
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(triage_profile(&read_as(&packed("llm"), Wants::TRIAGE).unwrap(), &Scope::default(), &cancel), None);
}

#[test]
fn busy_agrees_with_the_header() {
    for name in ["llm", "zoo", "ddp_rank0", "graph_whole"] {
        let profile = read_as(&packed(name), Wants::TRIAGE).unwrap();
        let header = Overview::from_profile(&profile);
        let scope = Scope { windows: header.span.into_iter().collect(), ..Scope::default() };
        let t = triage_profile(&profile, &scope, &Cancel::default()).unwrap();
        let idle: f64 = TimeCategory::ALL.into_iter().filter(|p| p.is_idle()).map(|p| t.part_percent(p)).sum();
        assert!((idle - header.idle_percent.unwrap()).abs() < 0.01, "{name}: {idle} {:?}", header.idle_percent);
    }
}

#[test]
fn ids_are_unique_and_explained() {
    let mut all: Vec<&str> = VERDICTS.iter().map(|v| v.id).collect();
    assert_eq!(all.len(), 27);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 27);
    assert!(VERDICTS.iter().all(|v| Verdict::from_id(v.id) == Some(v.verdict) && v.verdict.meaning() == v.meaning));
}

fn file(name: &str) -> String {
    folder().join(name).to_string_lossy().into_owned()
}

#[test]
fn stdout_for_people_scripts_and_ci() {
    let two = file("two_causes.sqlite.zst");
    let (code, out, _) = run(&["triage", &two, "--format", "json"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    let first = &json["findings"][0];
    assert_eq!(first["id"], "pageable-copies");
    for key in ["id", "severity", "sure", "headline", "share_percent", "bound", "evidence", "where", "actions", "confirm"] {
        assert!(first.get(key).is_some(), "{key}");
    }
    assert!(json["ranks"].is_null() && json["straggler"].is_null(), "absent parts are null");
    let parts: f64 = json["devices"][0]["attribution"].as_array().unwrap().iter().map(|a| a["share_percent"].as_f64().unwrap()).sum();
    assert!((parts - 100.0).abs() < 0.1, "{parts}");
    assert_eq!(json["window"]["steps"], 20);
    let (code, out, _) = run(&["triage", &two, "--format", "table"]);
    assert!(code == 0 && out.contains("pageable-copies: ") && out.contains("idle: host computes"), "{out}");
    let (code, out, _) = run(&["triage", &two, "--format", "md"]);
    assert!(code == 0 && out.starts_with("### two"), "{out}");
    let (code, out, _) = run(&["triage", &two, &file("tiny_ops.sqlite.zst"), "--format", "csv"]);
    assert!(code == 0 && out.lines().count() >= 4 && out.starts_with("file,rank,id,"), "{out}");
    let (code, _, err) = run(&["triage", &two, "--fail-on", "host-compute,launch-bound"]);
    assert_eq!((code, err.contains("found: host-compute")), (1, true), "{err}");
    let (code, ..) = run(&["triage", &two, "--fail-on", "launch-bound"]);
    assert_eq!(code, 0);
    // A measured kernel may come first: its cause has a number, and scripts can ask for it.
    let (code, out, err) = run(&["triage", "fixtures/trace/zoo_survey.wstrace.zst", "--fail-on", "atomic-contention", "--format", "table"]);
    assert!(code == 1 && err.contains("found: atomic-contention") && out.contains("1. atomic-contention (high, measured"), "{out}{err}");
    let (code, _, err) = run(&["triage", &two, "--fail-on", "no-such"]);
    assert_eq!((code, err.contains("launch-bound")), (2, true), "{err}");
    let (code, _, err) = run(&["triage", "fixtures/ncu/one.ncu-rep.zst"]);
    assert_eq!((code, err.contains("warpscope hints")), (2, true), "{err}");
    let (code, _, err) = run(&["triage", &two, "--device", "7"]);
    assert_eq!((code, err.contains("device 7")), (2, true), "{err}");
}

/// Pairs of ranks with known problems (`ranks.py`): none; rank 1 computes 12 more products per step; rank 0's host
/// sleeps 8 ms per step.
#[test]
fn the_rank_that_makes_the_others_wait_is_named() {
    for (name, straggler) in [("balanced", None), ("slow_rank", Some((1, "compute"))), ("late_host", Some((0, "host")))] {
        let files = [file(&format!("{name}_rank0.sqlite.zst")), file(&format!("{name}_rank1.sqlite.zst"))];
        let (code, out, err) = run(&["triage", &files[0], &files[1], "--format", "json"]);
        assert_eq!(code, 0, "{err}");
        let json: Value = serde_json::from_str(&out).expect("the ranks of a job are one object");
        assert_eq!((json["source"].as_array().unwrap().len(), json["ranks"].as_array().unwrap().len()), (2, 2));
        let found = json["straggler"].as_object().map(|s| (s["rank"].as_i64().unwrap(), s["cause"].as_str().unwrap()));
        assert_eq!(found, straggler, "{name}");
        let first = json["findings"][0]["id"].as_str().unwrap();
        let right = if straggler.is_some() { first == "straggler" } else { ["gpu-bound", "comm-exposed"].contains(&first) };
        assert!(right, "{name}: {first}");
        let (code, ..) = run(&["triage", &files[0], &files[1], "--fail-on", "straggler"]);
        assert_eq!(code, i32::from(straggler.is_some()), "{name}");
    }
    // A rank without the others, or beside a rank of another run, is neither late nor on time.
    let (slow, other) = (file("slow_rank_rank1.sqlite.zst"), file("late_host_rank0.sqlite.zst"));
    for args in [
        &["triage", &slow, "--fail-on", "straggler"][..],
        &["ranks", &slow, "--fail-on", "straggler"],
        &["ranks", &slow, &slow, "--fail-on", "straggler"],
        &["ranks", &slow, &other, "--fail-on", "straggler"],
    ] {
        let (code, _, err) = run(args);
        assert!(code == 2 && err.contains("straggler is neither found nor ruled out: "), "{args:?}: {code} {err}");
    }
    // Findings of a single rank, and runs without collectives, are judged.
    for args in [&["triage", &slow, "--fail-on", "launch-bound"][..], &["triage", &file("tiny_ops.sqlite.zst"), "--fail-on", "straggler"]] {
        let (code, _, err) = run(args);
        assert_eq!(code, 0, "{args:?}: {err}");
    }
    // Waiting in collectives is not a change of the kernels.
    let (fast, slow) = (file("slow_rank_rank0.sqlite.zst"), file("slow_rank_rank1.sqlite.zst"));
    let (code, _, err) = run(&["diff", &fast, &slow, "--fail-above", "5%"]);
    assert!(code == 1 && err.contains("kernel time a step without collectives grew by 2"), "{code} {err}");
    let (code, _, err) = run(&["diff", &slow, &fast, "--fail-above", "5%"]);
    assert_eq!(code, 0, "{err}");
    // Two recorders of one program: what only one of them records is no change.
    let (_, _, err) = run(&["diff", &file("host_compute.sqlite.zst"), &file("host_compute.pt.trace.json.gz")]);
    assert!(err.contains("different tools (nsys, torch)"), "{err}");
    assert!(!run(&["diff", &slow, &fast]).2.contains("different tools"));
    // Unrelated reports are judged separately.
    let (code, out, _) = run(&["triage", &file("tiny_ops.sqlite.zst"), &file("item_loop.sqlite.zst"), "--format", "json"]);
    assert_eq!((code, out.lines().count()), (0, 2));
}

#[test]
fn a_range_and_a_device_are_judged_alone() {
    let host = file("host_compute.sqlite.zst");
    let window = |args: &[&str]| -> (i64, usize) {
        let (code, out, err) = run(&[&["triage", host.as_str(), "--format", "json"], args].concat());
        assert_eq!(code, 0, "{err}");
        let json: Value = serde_json::from_str(&out).unwrap();
        (
            json["window"]["end_ns"].as_i64().unwrap() - json["window"]["start_ns"].as_i64().unwrap(),
            json["window"]["steps"].as_u64().unwrap_or(0) as usize,
        )
    };
    let all = window(&[]);
    let one = window(&["--range", "step 3"]);
    let every = window(&["--range", "step #"]);
    assert!(one.0 * 20 < all.0 && every.0 > all.0 / 2, "{one:?} {every:?} {all:?}");
    let (code, _, err) = run(&["triage", &host, "--range", "nothing"]);
    assert_eq!((code, err.contains("warpscope ranges")), (2, true), "{err}");
    let (code, out, _) = run(&["triage", &file("uneven_devices.sqlite.zst"), "--device", "1", "--format", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, json["devices"].as_array().unwrap().len()), (0, 1));
    assert_eq!(json["devices"][0]["device"], 1);
}

/// Every launch has the path found by the other method, with counts and times as in SQL.
#[test]
fn the_tree_of_ranges_has_every_launch_where_it_was_made() {
    let torch = |name: &str| root().join(format!("fixtures/torch/{name}.pt.trace.json.gz"));
    for path in [packed("llm"), packed("zoo"), packed("threads"), folder().join("eval_stall.sqlite.zst"), torch("ddp_rank0")] {
        let profile = read_as(&path, Wants::LAUNCHES).unwrap();
        let (tree, paths) = (RangeTree::from_profile(&profile, &Cancel::default()).unwrap(), Paths::from_profile(&profile));
        let mut inside = 0;
        for row in 0..profile.launches.len() {
            let want: Vec<String> =
                paths.launch_path(row).map(|p| paths.path_names(&profile, p)).unwrap_or_default().iter().map(|n| name_pattern(n)).collect();
            let node = tree.of_launch[row];
            let got: Vec<String> = tree.path_from_root(node).into_iter().map(|n| name_pattern(&tree.nodes[n as usize].name)).collect();
            // Work that another thread launched while the thread of a range waited is in that range, too.
            let helped = want.is_empty() && tree.nodes.get(node as usize).is_some_and(|n| n.helped > 0);
            assert!(helped || got == want, "{} launch {row}: {got:?}, {want:?}", path.display());
            inside += usize::from(!got.is_empty());
        }
        assert!(inside > 0, "{}", path.display());
        for n in &tree.nodes {
            assert!(n.busy <= n.projected && n.own <= n.wall && n.min <= n.max && n.own >= 0, "{n:?}");
        }
    }
    let path = changed("eval_stall", "");
    let tree = RangeTree::from_profile(&read_as(&path, Wants::EXPLORER).unwrap(), &Cancel::default()).unwrap();
    let db = Connection::open(&path).unwrap();
    let (count, wall): (i64, i64) = db
        .query_row("SELECT count(*), sum(end - start) FROM NVTX_EVENTS WHERE text LIKE 'step %'", [], |r| Ok((r.get(0)?, r.get(1)?)))
        .unwrap();
    let step = tree.nodes.iter().find(|n| n.name == "step #").unwrap();
    assert_eq!((i64::try_from(step.count).unwrap(), step.wall), (count, wall));
}

#[test]
fn backward_operators_stand_under_their_forward_ones() {
    let tree = |path: &std::path::Path| {
        let profile = read_as(path, Wants::EXPLORER).unwrap();
        RangeTree::from_profile(&profile, &Cancel::default()).unwrap()
    };
    let path_to = |tree: &RangeTree, text: &str| -> Vec<String> {
        let (id, _) = (0..).zip(&tree.nodes).find(|(_, n)| n.name.contains(text) && n.name.starts_with("autograd")).unwrap();
        tree.path_from_root(id).into_iter().map(|n| tree.nodes[n as usize].name.clone()).collect()
    };
    let train = tree(&folder().join("conv_train.pt.trace.json.gz"));
    let path = path_to(&train, "ConvolutionBackward");
    assert!(path.len() > 1 && path.iter().any(|n| n == "aten::conv2d"), "{path:?}");
    // A range that was marked around the forward pass alone does not contain the backward pass.
    let ddp = tree(&root().join("fixtures/torch/ddp_rank0.pt.trace.json.gz"));
    assert_eq!(path_to(&ddp, "AddmmBackward").len(), 1);
    let forward = ddp.nodes.iter().find(|n| n.name == "DistributedDataParallel.forward").unwrap();
    assert_eq!((forward.kernels, forward.helped), (96, 0));
}

#[test]
fn ranges_on_stdout() {
    let (code, out, _) = run(&["ranges", "fixtures/demo/llm.sqlite.zst", "--format", "json"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    let decode = json["rows"].as_array().unwrap().iter().find(|r| r["name"] == "decode#").unwrap();
    assert_eq!((decode["count"].as_u64(), decode["kernels"].as_u64(), decode["path"].as_array().unwrap().len()), (Some(98), Some(9702), 2));
    let (code, out, _) = run(&["ranges", "fixtures/demo/llm.sqlite.zst", "--format", "table", "--depth", "1"]);
    assert!(code == 0 && out.contains("LLM@prefill ×7") && !out.contains("decode# "), "{out}");
    let (code, _, err) = run(&["ranges", "fixtures/triage/serial_legacy.sqlite.zst"]);
    assert_eq!((code, err.contains("it has no ranges")), (2, true), "{err}");
}

fn opened(files: &[PathBuf], size: (u16, u16)) -> Explorer {
    let mut e = Explorer::open(files, size);
    e.press("O");
    e
}

#[test]
fn a_diff_says_how_the_parts_of_the_time_changed() {
    let (before, after) = (file("item_loop.sqlite.zst"), file("tiny_ops.sqlite.zst"));
    let (code, out, _) = run(&["diff", &before, &after, "--format", "table"]);
    assert!(code == 0 && out.contains("idle: launching: 0 ns → 1.26 ms a step"), "{out}");
    assert!(out.contains("findings: host-sync → launch-bound"), "{out}");
    let (code, out, _) = run(&["diff", &before, &after, "--format", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, json["findings_before"][0].as_str(), json["findings_after"][0].as_str()),
        (0, Some("host-sync"), Some("launch-bound"))
    );
}

#[test]
fn the_kernels_of_a_phase_are_those_of_the_explorer() {
    let report = file("item_loop.sqlite.zst");
    let count = |args: &[&str]| {
        let (code, out, err) = run(&[&["top", &report, "--format", "json"], args].concat());
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(code, 0, "{err}");
        json["rows"][0]["count"].as_u64()
    };
    assert_eq!((count(&[]), count(&["--phase", "steady"])), (Some(300), Some(290)), "the first of 30 steps is the warm-up");
    let (code, _, err) = run(&["top", &report, "--phase", "ending"]);
    assert!(code == 2 && err.contains("no ending was found"), "{err}");
}

/// nsys recorded ranges of ten iterations, torch.profiler only the kernels, of which three repeat: the gate compared one
/// of the ten with all ten, and passed or failed by the order of the files.
#[test]
fn steps_of_another_kind_are_not_compared() {
    let files = [file("item_loop.sqlite.zst"), file("item_loop.pt.trace.json.gz")];
    for (before, after) in [(&files[0], &files[1]), (&files[1], &files[0])] {
        let (code, out, err) = run(&["diff", before, after, "--fail-above", "5%", "--format", "text"]);
        assert!(code == 0 && err.contains("not of the same kind") && !out.contains("a step"), "{out}{err}");
    }
    let (copies, pageable) = (file("pinned_h2d.sqlite.zst"), file("pageable_h2d.sqlite.zst"));
    let (code, out, _) = run(&["diff", &copies, &pageable, "--format", "text"]);
    assert!(code == 0 && out.contains("copies exposed: 2.42 ms → 10.2 ms a step"), "{out}");
}

/// FLOPs of matrix products from their shapes, summed from the trace's own JSON.
#[test]
fn operators_have_their_floating_point_work() {
    let path = root().join("fixtures/torch/whole.pt.trace.json.gz");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()), &mut text).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let dims = |e: &Value| -> Vec<Vec<f64>> {
        let shapes = e["args"]["Input Dims"].as_array().into_iter().flatten();
        shapes.map(|s| s.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()).collect()
    };
    let (mut want, mut n) = (0.0, 0);
    for e in trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == "cpu_op") {
        let d = dims(e);
        let flops = match e["name"].as_str().unwrap() {
            "aten::mm" => 2.0 * d[0][0] * d[0][1] * d[1][1],
            "aten::addmm" => 2.0 * d[1][0] * d[1][1] * d[2][1],
            "aten::bmm" => 2.0 * d[0][0] * d[0][1] * d[0][2] * d[1][2],
            name if name.starts_with("aten::_scaled_dot_product_") && name.ends_with("_attention") => {
                2.0 * d[0][0] * d[0][1] * d[0][2] * d[1][2] * (d[0][3] + d[2][3])
            }
            _ => continue,
        };
        want += flops;
        n += 1;
    }
    let profile = read_as(&path, Wants::EXPLORER).unwrap();
    assert!(n > 5);
    let work = Operators::from_profile(&profile).work_between(&profile, (i64::MIN, i64::MAX)).unwrap();
    assert_eq!((work.flops, work.operators), (want, n));
    // With the user's figure of four products of size 8192 per step: 680 TFLOP/s of an H200.
    let (code, out, _) = run(&["triage", &file("gemm_healthy.sqlite.zst"), "--flops", "4.398046511104e12", "--format", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let (rate, mfu) = (json["flops"]["per_second"].as_f64().unwrap() / 1e12, json["flops"]["mfu_percent"].as_f64().unwrap());
    assert!(code == 0 && (600.0..800.0).contains(&rate) && (50.0..80.0).contains(&mfu), "{rate} {mfu}");
    let (_, out, _) = run(&["triage", &file("tiny_ops.sqlite.zst"), "--format", "json"]);
    assert!(serde_json::from_str::<Value>(&out).unwrap()["flops"].is_null(), "what is not known is null");
    let (code, _, err) = run(&["triage", &file("tiny_ops.sqlite.zst"), "--flops", "many"]);
    assert_eq!((code, err.contains("6.2e15")), (2, true), "{err}");
}

/// Counts by PyTorch itself in this run: `torch.utils.flop_counter.FlopCounterMode`, torch 2.11; `mm` to
/// `baddbmm` agree with the profiler's `with_flops`.
#[test]
fn operators_count_what_pytorch_counts() {
    let counted = [
        ("aten::convolution", 426_528_768.0),
        // Corrected for the weight gradient of a convolution with 4 groups, which PyTorch
        // counts as if it had none: 4 × 57,802,752.
        ("aten::convolution_backward", 1_026_465_792.0 - 3.0 * 57_802_752.0),
        ("aten::mm", 234_881_024.0),
        ("aten::addmm", 67_108_864.0),
        ("aten::bmm", 11_796_480.0),
        ("aten::baddbmm", 2_359_296.0),
        ("aten::_scaled_dot_product_cudnn_attention", 67_108_864.0),
        ("aten::_scaled_dot_product_cudnn_attention_backward", 167_772_160.0),
    ];
    let profile = read_as(&folder().join("flops.pt.trace.json.gz"), Wants::EXPLORER).unwrap();
    let mut operators = Operators::from_profile(&profile);
    let mut found = std::collections::BTreeMap::new();
    for (row, range) in profile.ranges.iter().enumerate() {
        if let Some(flops) = operators.operator_flops(row, range.name) {
            *found.entry(profile.ranges.label(range.name)).or_insert(0.0) += flops;
        }
    }
    assert_eq!(found, counted.iter().map(|(name, flops)| ((*name).to_owned(), *flops)).collect());
    // All of them were called in the only step or in its backward pass.
    let tree = RangeTree::from_profile(&profile, &Cancel::default()).unwrap();
    let node = |name: &str| tree.nodes.iter().find(|n| n.name == name).unwrap();
    assert!((node("step").flops - counted.iter().map(|c| c.1).sum::<f64>()).abs() < 1.0);
    let rate = node("products").flops / (node("products").projected as f64 / 1e9);
    let (_, out, _) = run(&["ranges", &file("flops.pt.trace.json.gz"), "--format", "json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    let row = json["rows"].as_array().unwrap().iter().find(|r| r["name"] == "products").unwrap();
    assert!((row["flops_per_second"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9, "{row}");
    assert!((row["mfu_percent"].as_f64().unwrap() - rate / 989.4e12 * 100.0).abs() < 5e-5, "{row}");
}

#[test]
fn the_overview_at_three_sizes() {
    for (size, name) in [((80, 24), "overview_80x24"), ((120, 40), "overview_120x40"), ((200, 50), "overview_200x50")] {
        assert_snapshot!(name, opened(&demo_files(), size).screen());
    }
}

#[test]
fn the_overview_of_a_run_on_two_devices_and_of_a_healthy_one() {
    assert_snapshot!("overview_two_devices", opened(&[folder().join("uneven_devices.sqlite.zst")], (120, 40)).screen());
    assert_snapshot!("overview_healthy", opened(&[folder().join("gemm_healthy.sqlite.zst")], (100, 30)).screen());
    assert_snapshot!("overview_nothing", opened(&[packed("nogpu")], (80, 24)).screen());
}

#[test]
fn the_overview_without_colours_or_blocks_tells_parts_by_letters() {
    let mut e = opened(&[folder().join("two_causes.sqlite.zst")], (100, 30));
    let buffer = e.buffer("mono", ColorMode::None);
    let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.contains("C copies") && text.contains("H idle: host computes") && !text.contains('■'));
    e.view.ascii = true;
    assert!(e.screen().is_ascii(), "{}", e.screen());
    assert!(e.screen().contains("C copies"));
}

#[test]
fn a_finding_leads_to_its_place_and_back() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("i");
    assert!(e.screen().contains("What to do"), "{}", e.screen());
    e.press("esc enter");
    assert!(e.screen().contains("the host: perhaps compiling"), "{}", e.screen());
    e.press("esc V");
    assert!(e.screen().contains("GPU idle") && e.screen().contains("decode#"), "{}", e.screen());
    assert_snapshot!("ranges_120x40", e.screen());
    // Enter lists the work of the call; a second enter shows one of them in the kernel table.
    e.press("enter");
    assert!(e.screen().contains("launched inside this range"), "{}", e.screen());
    e.press("enter");
    assert!(e.screen().contains("group kernel"), "{}", e.screen());
    e.press("O K");
    assert!(e.screen().contains("group kernel"));
    e.press("V esc");
    assert!(e.screen().contains("group kernel"));
}

#[test]
fn the_tree_folds_sorts_filters_and_profiles_again_inside_a_range() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("V");
    let rows = |e: &mut Explorer| {
        let screen = e.screen();
        let table = screen.lines().take_while(|l| !l.contains("GPU work inside"));
        table.filter(|l| l.contains("LLM@") || l.contains("decode#")).count()
    };
    assert_eq!(rows(&mut e), 3);
    e.press("space");
    assert_eq!(rows(&mut e), 2, "{}", e.screen());
    e.press("space / d e c o d e # enter");
    assert!(e.screen().contains("filter decode#"), "{}", e.screen());
    e.press("r");
    let screen = e.screen();
    assert!(screen.contains("--nvtx-include") || screen.contains("nvtx"), "{screen}");
    e.press("esc");
    e.press("esc s");
    assert!(e.screen().contains("sort by"), "{}", e.screen());
    e.press("h");
    assert!(e.screen().contains("sort host"), "{}", e.screen());
    e.press("y");
    assert!(e.screen().contains("copy"), "{}", e.screen());
}

/// A window with one end goes to the begin or the end of the GPU's work, and one without work is refused.
#[test]
fn windows_may_be_open_at_one_end() {
    let file = folder().join("item_loop.sqlite.zst").display().to_string();
    let window = |args: &[&str]| {
        let (code, out, err) = run(&[&["triage", &file, "--format", "json"], args].concat());
        assert_eq!(code, 0, "{err}");
        let json: Value = serde_json::from_str(&out).unwrap();
        (json["window"]["start_ns"].as_i64().unwrap(), json["window"]["end_ns"].as_i64().unwrap(), json["findings"][0]["id"].to_string())
    };
    // By SQL over kernels, copies and memsets.
    let (first, last) = (window(&["--to", "25ms"]), window(&["--from", "25ms"]));
    assert_eq!((first.0, first.1), (12_512_084, 25_000_000));
    assert_eq!((last.0, last.1), (25_000_000, 37_961_966));
    assert!(first.2.contains("host-sync") && last.2.contains("host-sync"), "{first:?} {last:?}");
    for args in [["--from", "5s"], ["--to", "1ns"]] {
        let (code, _, err) = run(&["triage", &file, args[0], args[1]]);
        assert!(code == 2 && err.contains("nothing ran on a GPU"), "{code} {err}");
    }
    // Inside of one gap, nothing runs either.
    let (code, _, err) = run(&["triage", &file, "--from", "37780us", "--to", "37820us"]);
    assert!(code == 2 && err.contains("begins and ends with work"), "{code} {err}");
    assert_eq!(run(&["lines", &file, "--to", "25ms"]).0, 2, "no stacks, but no crash either");
}

#[test]
fn the_next_step_of_the_table_comes_from_the_first_finding() {
    let mut e = Explorer::open(&[folder().join("two_causes.sqlite.zst")], (120, 30));
    assert!(e.screen().contains("next: O shows what limits the run: pageable-copies, 69%"), "{}", e.screen());
    let mut e = Explorer::open(&[folder().join("gemm_healthy.sqlite.zst")], (120, 30));
    assert!(!e.screen().contains("limits the run: gpu-bound"), "{}", e.screen());
}

#[test]
fn public_reports_add_up_and_take_no_time() {
    let Ok(corpus) = std::env::var("WARPSCOPE_CORPUS") else {
        eprintln!("WARPSCOPE_CORPUS is not set: only fixtures were judged");
        return;
    };
    let mut judged = 0;
    for folder in ["samples/nsys", "samples/torch"] {
        for entry in std::fs::read_dir(Path::new(&corpus).join(folder)).unwrap().flatten() {
            let path = entry.path();
            let Ok(profile) = read_as(&path, Wants::TRIAGE) else { continue };
            if profile.metrics.is_some() {
                continue;
            }
            if let Some(t) = triage_profile(&profile, &Scope::default(), &Cancel::default()) {
                adds_up(&t, &path.display().to_string());
                judged += 1;
            }
            RangeTree::from_profile(&profile, &Cancel::default()).unwrap();
        }
    }
    assert!(judged >= 15, "{judged}");
}

/// If all kernels of a run were measured, the remaining time does not represent the run.
#[test]
fn a_run_that_was_mostly_measured_is_judged_with_doubt() {
    let of = |name: &str| judge(&read_as(&root().join("fixtures/trace").join(name), Wants::TRIAGE).unwrap());
    let told = |t: &Triage| t.doubt.iter().any(|m| m.contains("of the kernels ran while counters or stall reasons were measured"));
    for name in ["third_stalls.wstrace.zst", "third_in_place.wstrace.zst"] {
        let triage = of(name);
        assert!(told(&triage), "{name}: {:?}", triage.doubt);
        assert!(!triage.findings.is_empty() && triage.findings.iter().all(|f| f.sure == Sure::Possible), "{name}");
    }
    let survey = of("zoo_survey.wstrace.zst");
    assert!(!told(&survey) && survey.findings.iter().any(|f| f.sure == Sure::Certain));
}

/// Cause of a delay between two kernels if the second one was already queued: a host function, another device,
/// or the operation that an event waits for.
#[test]
fn an_operation_that_waits_in_its_queue_says_for_what() {
    let mut reasons = Vec::new();
    for between in ["cudaLaunchHostFunc", "cudaStreamWaitEvent", "other device", ""] {
        let mut events = vec![
            json!({"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 0, "dur": 60000}),
        ];
        let mut kernel = |n: u64, device: u32, name: &str, called: u64, start: u64, dur: u64| {
            let id = n * 10 + u64::from(device) + u64::from(name == "after") * 2;
            events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": called, "dur": 5,
                "args": {"correlation": id}}));
            events.push(json!({"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7, "ts": start, "dur": dur,
                "args": {"correlation": id, "device": device, "stream": 7, "grid": [64, 1, 1], "block": [128, 1, 1]}}));
        };
        for n in 0..30_u64 {
            let at = n * 2000;
            kernel(n, 0, "before", at, at + 10, 300);
            if between == "other device" {
                kernel(n, 1, "beside", at + 10, at + 20, 975);
            }
            kernel(n, 0, "after", at + 40, at + 1000, 200);
        }
        if between.starts_with("cuda") {
            events.extend((0..30_u64).map(|n| {
                json!({"ph": "X", "cat": "cuda_runtime", "name": between, "pid": 7, "tid": 7, "ts": n * 2000 + 20, "dur": 3,
                    "args": {"correlation": 5000 + n}})
            }));
        }
        let trace =
            json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}, {"id": 1, "name": "H100"}], "traceEvents": events});
        let file = scratch().join(format!("queued-{}.pt.trace.json", between.replace(' ', "-")));
        std::fs::write(&file, trace.to_string()).unwrap();
        let profile = read_as(&file, Wants::TRIAGE).unwrap();
        let found = judge(&profile);
        let said = found.findings.iter().find(|f| f.id == Verdict::StreamWait).unwrap();
        assert_eq!(said.sure == Sure::Possible, between.is_empty(), "{}", said.headline);
        reasons.push(said.headline.split_once(": ").unwrap().1.to_owned());
    }
    assert_eq!(
        reasons,
        [
            "it may have waited for a host function that was launched before it (100%)",
            "it may have waited for an event that its stream was told to wait for (100%)",
            "it may have waited for work of another device, which ended just before (100%)",
            "it waited for another stream, device or host function, which was not recorded",
        ]
    );
}

/// The cost of launching is divided among the kernels by their launches, if it limits the run.
#[test]
fn kernels_share_the_cost_of_launching() {
    let mut bound = 0;
    for run in ["tiny_ops.sqlite.zst", "decode_eager.wstrace.zst", "gemm_healthy.sqlite.zst"] {
        let profile = super::support::read(&root().join("fixtures/triage").join(run)).unwrap();
        let t = judge(&profile);
        let costs = t.launch_costs(&profile);
        let first = t.verdict().unwrap();
        if first.id != Verdict::LaunchBound {
            assert!(costs.is_empty(), "{run}");
            continue;
        }
        bound += 1;
        let sum: f64 = costs.values().sum();
        assert!((sum - first.stake).abs() < 1e-9 && costs.values().all(|c| *c > 0.0), "{run}: {sum} of {}", first.stake);
    }
    assert!(bound > 0);
}
