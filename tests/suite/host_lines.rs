//! Idle time of the GPU by line of the program: real traces with stacks (`tests/hardware/lines.py`), and CPU samples of
//! nsys.

use super::support::{Explorer, read, root, run, scratch};
use std::path::PathBuf;
use warpscope::analysis::call_tree::CallTree;
use warpscope::analysis::triage::{Cause, Scope, Triage, Verdict, triage_profile};
use warpscope::model::{Activity, Cancel, Profile, Sample};

fn trace(name: &str) -> PathBuf {
    root().join(format!("fixtures/trace/lines_{name}.wstrace.zst"))
}

fn triage(profile: &Profile) -> Triage {
    triage_profile(profile, &Scope::default(), &Cancel::default()).unwrap()
}

/// Trace, verdict, and the function, line and activity behind it, as they stand in the program.
const RUNS: [(&str, Verdict, &str, u32, Activity); 3] = [
    ("collate", Verdict::HostCompute, "collate", 56, Activity::Running),
    ("lock_held", Verdict::HostCompute, "hog", 157, Activity::InterpreterLock),
    ("socket", Verdict::InputWait, "receive", 132, Activity::Read),
];

#[test]
fn the_verdict_names_the_line_of_real_runs() {
    for (name, verdict, function, line, activity) in RUNS {
        let found = triage(&read(&trace(name)).unwrap());
        let first = found.verdict().unwrap();
        assert_eq!(first.id, verdict, "{name}");
        assert!(first.headline.contains(&format!("in {function} (hardware/lines.py:{line})")), "{}", first.headline);
        let lines = found.host_time.lines(&[]);
        assert_eq!((lines[0].frame.line, lines[0].activity), (Some(line), activity), "{name}");
        // The samples say which line it is: there is nothing more to record.
        assert!(first.confirm.is_none(), "{name}");
        // Idle time of the host is divided without a rest.
        let idle: i64 = Cause::ALL
            .into_iter()
            .filter(|c| c.is_of_host())
            .flat_map(|c| found.devices[0].causes.iter().filter(move |d| d.0 == c))
            .map(|d| d.1)
            .sum();
        let tree = CallTree::from_time(&found.host_time, |_| "another".to_owned());
        let roots: i64 = tree.roots.iter().map(|&r| tree.nodes[r as usize].ns).sum();
        for sum in [lines.iter().map(|l| l.ns).sum::<i64>(), tree.known, roots] {
            let rounding = i64::try_from(found.host_time.times.len()).unwrap();
            assert!((sum + found.host_time.unknown - idle).abs() <= rounding.max(idle / 100), "{name}: {sum} of {idle}");
        }
        // A node has the time of its calls and its own.
        for node in &tree.nodes {
            let calls: i64 = node.children.iter().map(|&c| tree.nodes[c as usize].ns).sum();
            assert!((node.ns - node.own_ns - calls).abs() <= 1 + i64::try_from(node.children.len()).unwrap(), "{}", node.label());
        }
    }
}

#[test]
fn too_few_samples_name_no_line() {
    let mut profile = read(&trace("collate")).unwrap();
    let whole = triage(&profile);
    let (from, to) = whole.window;
    let mut kept = 0;
    profile.samples.samples.retain(|s| {
        kept += usize::from(s.time >= from && s.time < to);
        kept < 10
    });
    let found = triage(&profile);
    assert!(!found.verdict().unwrap().headline.contains("collate"), "{}", found.verdict().unwrap().headline);
    assert!(found.host_time.main_lines(3).is_empty());
}

/// Samples of one thread that contradict each other, refer to nothing, or come in no order.
#[test]
fn samples_that_make_no_sense_change_no_sum() {
    let profile = read(&trace("collate")).unwrap();
    let idle = |t: &Triage| t.devices.iter().flat_map(|d| &d.causes).map(|c| c.1).sum::<i64>();
    let whole = idle(&triage(&profile));
    let changes: [fn(&mut Sample); 4] =
        [|s| s.stack = Some(u32::MAX), |s| s.thread = 77, |s| s.activity = Activity::InterpreterLock, |s| s.time = i64::MAX];
    for change in changes {
        let mut changed = profile.clone();
        changed.samples.samples.iter_mut().step_by(3).for_each(change);
        changed.samples.samples.sort_by_key(|s| s.time);
        let found = triage(&changed);
        assert_eq!(idle(&found), whole);
        let tree = CallTree::from_time(&found.host_time, |_| String::new());
        assert!(tree.nodes.iter().all(|n| n.ns >= 0 && n.own_ns >= 0));
    }
}

#[test]
fn lines_as_tables() {
    let file = trace("lock_held").display().to_string();
    let (code, csv, _) = run(&["lines", &file, "--format", "csv"]);
    assert_eq!(code, 0);
    let mut rows = csv.lines();
    let head =
        "function,file,line,depth,idle_ns,share_percent,line_ns,samples,cause,activity,inside,gil_holder,longest_ns,longest_start_ns";
    assert_eq!(rows.next(), Some(head));
    assert!(rows.next().unwrap().starts_with("run_loop.<locals>.hog,/home/user/tests/hardware/lines.py,157,0,"));
    let (code, json, _) = run(&["lines", &file, "--format", "json"]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"][0]["gil_holder"], "thread 1096");
    assert_eq!(json["rows"][0]["activity"], "gil");
    // The rows' times are of a window that a reader can find again.
    let (start, end) = (json["window"]["start_ns"].as_i64().unwrap(), json["window"]["end_ns"].as_i64().unwrap());
    let idle: i64 = json["rows"].as_array().unwrap().iter().map(|row| row["idle_ns"].as_i64().unwrap()).sum();
    assert!(idle > 0 && idle <= end - start);
    assert_eq!(idle, json["idle_ns"].as_i64().unwrap());
    assert!(json["samples"].as_u64().unwrap() > 0);
    let (_, tree, _) = run(&["lines", &file, "--tree", "--depth", "2", "--format", "table"]);
    assert!(tree.lines().nth(2).unwrap().starts_with("interpreter lock (GIL), held by thread 1096"), "{tree}");
    assert!(tree.lines().nth(3).unwrap().starts_with("  Thread._bootstrap (threading.py:"), "{tree}");
    let (_, json, _) = run(&["triage", &file, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["host_lines"][0]["function"], "run_loop.<locals>.hog");
    // A report without stacks says how to get them.
    let (code, _, error) = run(&["lines", &root().join("fixtures/trace/llm.wstrace.zst").display().to_string()]);
    assert_eq!(code, 2);
    assert!(error.contains("`warpscope run -- PROGRAM` samples their Python stacks"), "{error}");
}

#[test]
fn cpu_samples_of_nsys_are_lines_too() {
    // One sample in the middle of each pause between two launches of the capture's thread.
    let sql = "CREATE TABLE IF NOT EXISTS COMPOSITE_EVENTS (id INTEGER, start INTEGER, cpu INTEGER, threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER);
         CREATE TABLE IF NOT EXISTS SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, kernelMode INTEGER, stackDepth INTEGER, unresolved INTEGER, originalIP INTEGER, thumbCode INTEGER);
         DELETE FROM COMPOSITE_EVENTS; DELETE FROM SAMPLING_CALLCHAINS;
         INSERT INTO StringIds (id, value) VALUES (900001, 'prepare_batch'), (900002, 'main'), (900003, '/opt/app/loader.so');
         INSERT INTO COMPOSITE_EVENTS (id, start, globalTid)
           SELECT row_number() OVER (ORDER BY start), (end + next) / 2, globalTid FROM
             (SELECT start, end, globalTid, lead(start) OVER (PARTITION BY globalTid ORDER BY start) AS next FROM CUPTI_ACTIVITY_KIND_RUNTIME) WHERE next - end > 200000;
         INSERT INTO SAMPLING_CALLCHAINS (id, symbol, module, stackDepth) SELECT id, 900001, 900003, 0 FROM COMPOSITE_EVENTS;
         INSERT INTO SAMPLING_CALLCHAINS (id, symbol, module, stackDepth) SELECT id, 900002, 900003, 1 FROM COMPOSITE_EVENTS;";
    let path = scratch().join("host_compute_samples.sqlite");
    let packed = std::fs::File::open(root().join("fixtures/triage/host_compute.sqlite.zst")).unwrap();
    std::fs::write(&path, zstd::stream::decode_all(packed).unwrap()).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let profile = read(&path).unwrap();
    assert!(profile.samples.samples.len() > 20);
    let found = triage(&profile);
    let lines = found.host_time.lines(&[]);
    assert_eq!(lines[0].label(), "prepare_batch (loader.so)");
    let tree = CallTree::from_time(&found.host_time, |_| String::new());
    let labels: Vec<_> =
        tree.listed_nodes(None, 0.0).iter().map(|&id| (tree.nodes[id as usize].depth, tree.nodes[id as usize].label())).collect();
    assert_eq!(labels, [(0, "main (loader.so)".to_owned()), (1, "prepare_batch (loader.so)".to_owned())]);
}

#[test]
fn the_screen_of_lines_leads_to_the_timeline() {
    let mut explorer = Explorer::open(&[trace("lock_held")], (120, 40));
    assert!(explorer.screen().contains("holds in hog"), "{}", explorer.screen());
    explorer.press("c");
    insta::assert_snapshot!("host_lines", explorer.screen());
    // The call with most of the time is selected; folding its caller hides it.
    explorer.press("up space");
    assert!(!explorer.screen().contains("▸ hog") && explorer.screen().contains("▸ Thread.run"), "{}", explorer.screen());
    explorer.press("space / h o g enter");
    let filtered = explorer.screen();
    assert!(filtered.contains("hog") && !filtered.contains("Thread.run ("), "{filtered}");
    explorer.press("enter");
    let timeline = explorer.screen();
    assert!(timeline.contains("interpreter lock (GIL) in work") && timeline.contains("runs in hog"), "{timeline}");
    explorer.press("esc esc");
    assert!(explorer.screen().contains("while the host was in"), "{}", explorer.screen());
    explorer.press("esc");
    assert!(explorer.screen().contains("Where the time went"), "{}", explorer.screen());
    for size in [(80, 24), (200, 50)] {
        let mut explorer = Explorer::open(&[trace("collate")], size);
        explorer.press("c");
        insta::assert_snapshot!(format!("host_lines_{}", size.0), explorer.screen());
    }
}

#[test]
fn a_report_without_stacks_says_how_to_get_them() {
    let mut explorer = Explorer::open(&[root().join("fixtures/trace/llm.wstrace.zst")], (100, 30));
    explorer.press("c");
    let screen = explorer.screen();
    assert!(screen.contains("This report has no stacks of the threads that launch."), "{screen}");
    assert!(!screen.contains("c lines"), "{screen}");
}
