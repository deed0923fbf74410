//! Idle time of the GPU by line of the program: real traces with stacks (`tests/hardware/lines.py`), and CPU samples of
//! nsys.

use super::support::{Explorer, read, root, run, scratch};
use std::path::PathBuf;
use warpscope::analysis::call_tree::CallTree;
use warpscope::analysis::triage::{Cause, Scope, Triage, Verdict, triage_profile};
use warpscope::model::{Activity, CallStack, Cancel, Profile, Sample, Samples, StackFrame};

fn trace(name: &str) -> PathBuf {
    root().join(format!("fixtures/trace/lines_{name}.wstrace.zst"))
}

fn triage(profile: &Profile) -> Triage {
    triage_profile(profile, &Scope::default(), &Cancel::default()).unwrap()
}

/// Trace, verdict, and the function, line and activity that cause it, as known from the program.
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
        let lines = found.host_time.list_lines();
        assert_eq!((lines[0].frame.line, lines[0].activity), (Some(line), activity), "{name}");
        // The samples identify the line, so nothing more needs to be recorded.
        assert!(first.confirm.is_none(), "{name}");
        // All idle time with a cause on the host is attributed to lines, except where there are no samples.
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
        // A node's time is its own time plus that of its callees.
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

/// Samples of one thread that contradict each other, have dangling references, or are out of order.
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
    let head = "function,file,line,depth,idle_ns,share_percent,line_ns,samples,launches,host_ns,cause,activity,inside,gil_holder,longest_ns,longest_start_ns";
    assert_eq!(rows.next(), Some(head));
    assert!(rows.next().unwrap().starts_with("run_loop.<locals>.hog,/home/user/tests/hardware/lines.py,157,0,"));
    let (code, json, _) = run(&["lines", &file, "--format", "json"]);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rows"][0]["gil_holder"], "thread 1096");
    assert_eq!(json["rows"][0]["activity"], "gil");
    // The rows refer to a time window that the reader can open.
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
    let lines = found.host_time.list_lines();
    assert_eq!(lines[0].label(), "prepare_batch (loader.so)");
    let tree = CallTree::from_time(&found.host_time, |_| String::new());
    let labels: Vec<_> =
        tree.listed_nodes(None, 0.0).iter().map(|&id| (tree.nodes[id as usize].depth, tree.nodes[id as usize].label())).collect();
    assert_eq!(labels, [(0, "main (loader.so)".to_owned()), (1, "prepare_batch (loader.so)".to_owned())]);
    // Commands and the explorer read only parts of the report.
    let (code, csv, said) = run(&["lines", path.to_str().unwrap(), "--format", "csv"]);
    assert!(code == 0 && csv.lines().nth(1).unwrap().starts_with("prepare_batch,loader.so,"), "{csv} {said}");
    let (_, json, _) = run(&["triage", path.to_str().unwrap(), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["host_lines"][0]["function"], "prepare_batch");
    let mut explorer = Explorer::open(&[path], (120, 40));
    explorer.press("C");
    assert!(explorer.screen().contains("prepare_batch"), "{}", explorer.screen());
}

/// NVTX marks with Python stacks, as nsys 2023.4 (`--python-sampling=true`) wrote them for two programs, one with a
/// single thread and one with three.
fn python_marks() -> PathBuf {
    let path = tempfile::Builder::new().suffix(".sqlite").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    let packed = std::fs::File::open(root().join("fixtures/nsys/python_marks.sqlite.zst")).unwrap();
    std::fs::write(&path, zstd::stream::decode_all(packed).unwrap()).unwrap();
    path
}

/// Innermost function, line and activity of each sample of a process's main thread.
fn innermost(profile: &Profile, pid: u32) -> Vec<(String, u32, Activity)> {
    let of = |s: &&Sample| profile.threads.get(s.thread as usize).is_some_and(|t| (t.pid, t.tid) == (pid, pid));
    let first = |s: &Sample| {
        let frame = profile.samples.frames_of(s.stack).next().unwrap();
        (frame.function.to_string(), frame.line.unwrap(), s.activity)
    };
    profile.samples.samples.iter().filter(of).map(first).collect()
}

#[test]
fn python_stacks_of_nsys_are_those_of_the_program() {
    let profile = read(&python_marks()).unwrap();
    assert!(!profile.samples.running_only);
    // The program: a sleep of 20 ms on line 8, then the loop on lines 4 and 5, for 3 s at 100 samples per second.
    let alone = innermost(&profile, 30581);
    let count = |of: &[(String, u32, Activity)], function: &str| of.iter().filter(|s| s.0 == function).count();
    assert!((280..=300).contains(&alone.len()), "{}", alone.len());
    assert_eq!((count(&alone, "wait_for_input"), count(&alone, "parse_rows")), (171, 115));
    assert!(alone.iter().filter(|s| s.0 == "wait_for_input").all(|s| s.1 == 8));
    // Names have no HTML escapes, and the outermost frame is the module.
    for sample in &profile.samples.samples {
        let outermost = profile.samples.frames_of(sample.stack).last().unwrap();
        assert_eq!(&*outermost.function, "<module>");
        assert!(outermost.python && outermost.file.is_some());
    }
    // Only the main thread's samples are expected here: one of the other two threads waits all the time, and one is in
    // a comprehension.
    let threaded = innermost(&profile, 13301);
    let waits = threaded.iter().filter(|s| s.0 == "wait").count();
    assert!(count(&threaded, "parse_rows") > 100 && waits == 0, "{threaded:?}");
    // At the end, the main thread waits for the others.
    assert!(threaded.iter().all(|s| (s.0 == "_wait_for_tstate_lock") == (s.2 == Activity::Lock)), "{threaded:?}");
}

#[test]
fn python_stacks_that_make_no_sense_are_left_out() {
    let changed = |sql: &str| {
        let path = python_marks();
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
        read(&path).unwrap()
    };
    let none = [
        // Backtraces of CUDA calls do not count as samples, because they are not taken at regular times.
        "UPDATE NVTX_EVENTS SET binaryData = CAST(substr(binaryData, 1, 36) || x'02000000' || substr(binaryData, 41) AS BLOB);",
        // Truncated in and before the payload, in another domain, and without strings.
        "UPDATE NVTX_EVENTS SET binaryData = CAST(substr(binaryData, 1, length(binaryData) - 1) AS BLOB);",
        "UPDATE NVTX_EVENTS SET binaryData = x'0100' WHERE binaryData IS NOT NULL;",
        "UPDATE NVTX_EVENTS SET text = 'Other' WHERE eventType = 75;",
        "DELETE FROM StringIds;",
        // Two stacks of one thread at a time.
        "INSERT INTO NVTX_EVENTS SELECT * FROM NVTX_EVENTS WHERE eventType = 34;",
    ];
    for sql in none {
        assert!(changed(sql).samples.samples.is_empty(), "{sql}");
    }
    // An export without payloads says how to get them.
    let bare = changed("UPDATE NVTX_EVENTS SET binaryData = NULL;");
    assert!(bare.samples.samples.is_empty());
    assert!(
        bare.notes.iter().any(|n| n.to_sentence().contains("nsys sampled Python stacks") && n.to_sentence().contains("--include-blobs"))
    );
    // A count of more frames than there are bytes, and arbitrary times and ids.
    let wild = changed(
        "UPDATE NVTX_EVENTS SET binaryData = CAST(substr(binaryData, 1, 40) || x'ffffffff' || substr(binaryData, 45) AS BLOB) WHERE rowid % 3 = 0;
         UPDATE NVTX_EVENTS SET start = 9223372036854775807 WHERE rowid % 3 = 1; UPDATE StringIds SET value = '' WHERE id % 2 = 0;",
    );
    assert!(wild.samples.samples.len() < 600);
}

#[test]
fn python_stacks_of_nsys_are_lines() {
    // Stacks of the loop, one in the middle of each pause between two launches on a capture's main thread.
    let path = python_marks();
    let sql = format!(
        "ATTACH '{}' AS marks;
         INSERT INTO StringIds SELECT * FROM marks.StringIds;
         CREATE TABLE IF NOT EXISTS NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER);
         ALTER TABLE NVTX_EVENTS ADD COLUMN marked BLOB;
         CREATE TEMP TABLE pauses AS SELECT row_number() OVER (ORDER BY start) AS id, (end + next) / 2 AS time, globalTid FROM
           (SELECT start, end, globalTid, lead(start) OVER (PARTITION BY globalTid ORDER BY start) AS next FROM CUPTI_ACTIVITY_KIND_RUNTIME) WHERE next - end > 50000;
         CREATE TEMP TABLE loops AS SELECT row_number() OVER (ORDER BY start) AS id, binaryData FROM marks.NVTX_EVENTS
           WHERE eventType = 34 AND (globalTid >> 24) & 0xffffff = 30581 ORDER BY start LIMIT -1 OFFSET 9;",
        path.display()
    );
    let target = scratch().join("host_compute_python.sqlite");
    let packed = std::fs::File::open(root().join("fixtures/triage/host_compute.sqlite.zst")).unwrap();
    std::fs::write(&target, zstd::stream::decode_all(packed).unwrap()).unwrap();
    let db = rusqlite::Connection::open(&target).unwrap();
    let has: bool =
        db.query_row("SELECT count(*) > 0 FROM pragma_table_info('NVTX_EVENTS') WHERE name = 'binaryData'", [], |r| r.get(0)).unwrap();
    let sql = if has { sql.replace("ALTER TABLE NVTX_EVENTS ADD COLUMN marked BLOB;", "") } else { sql.replace("marked", "binaryData") };
    db.execute_batch(&sql).unwrap();
    db.execute_batch(
        "INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) SELECT 0, 75, 'Python Backtrace', globalTid, 9 FROM pauses LIMIT 1;
         INSERT INTO NVTX_EVENTS (start, eventType, globalTid, domainId, binaryData)
           SELECT time, 34, globalTid, 9, binaryData FROM pauses JOIN loops USING (id);",
    )
    .unwrap();
    // The capture's thread is its process's main thread.
    let global: i64 = db.query_row("SELECT globalTid FROM pauses LIMIT 1", [], |r| r.get(0)).unwrap();
    assert_eq!((global >> 24) & 0xff_ffff, global & 0xff_ffff);
    drop(db);
    let profile = read(&target).unwrap();
    assert!(profile.samples.samples.len() > 20, "{}", profile.samples.samples.len());
    let found = triage(&profile);
    let lines = found.host_time.list_lines();
    let labels: Vec<String> = lines.iter().map(|l| l.label()).collect();
    assert!(labels.contains(&"parse_rows (user/pyloop.py:5)".to_owned()), "{labels:?}");
    assert!(labels.contains(&"wait_for_input (user/pyloop.py:8)".to_owned()), "{labels:?}");
    let (code, out, said) = run(&["lines", target.to_str().unwrap(), "--tree", "--format", "csv"]);
    assert!(code == 0 && out.contains("parse_rows") && out.contains("main"), "{out} {said}");
}

/// Since 2025, the marks belong to the sampled thread and have their own domain.
#[test]
fn python_stacks_of_newer_nsys_are_lines() {
    let profile = read(&root().join("fixtures/nsys/python_stacks.sqlite.zst")).unwrap();
    let found = triage(&profile);
    let lines = found.host_time.list_lines();
    assert_eq!(lines[0].label(), "collate (user/stackloop.py:12), inside <genexpr> (user/stackloop.py:12)");
    let known = found.host_time.known();
    assert!(lines[0].ns * 10 > known * 6 && lines[1].label().starts_with("launch_many (user/stackloop.py:15)"), "{}", lines[1].label());
    // Six replays of twelve nodes have the ranges in which the nodes were captured.
    let (code, out, said) = run(&["top", "fixtures/nsys/python_stacks.sqlite.zst", "--by", "nvtx", "--format", "csv"]);
    let captured: u32 =
        out.lines().filter(|l| l.contains("forward › layer")).map(|l| l.split(',').nth(4).unwrap().parse::<u32>().unwrap()).sum();
    assert!(code == 0 && captured == 6 * 12, "{captured} {out} {said}");
}

#[test]
fn the_screen_of_lines_leads_to_the_timeline() {
    let mut explorer = Explorer::open(&[trace("lock_held")], (120, 40));
    assert!(explorer.screen().contains("holds in hog"), "{}", explorer.screen());
    explorer.press("C");
    insta::assert_snapshot!("host_lines", explorer.screen());
    // A caller that makes a single call is merged with it. The call with the most time is selected, and folding its
    // caller hides it.
    assert!(!explorer.screen().contains("Thread._bootstrap ("), "{}", explorer.screen());
    explorer.press("up space");
    assert!(!explorer.screen().contains("▾ hog"), "{}", explorer.screen());
    explorer.press("space / h o g enter");
    let filtered = explorer.screen();
    assert!(filtered.contains("hog") && !filtered.contains("Thread.run ("), "{filtered}");
    explorer.press("enter");
    let timeline = explorer.screen();
    assert!(timeline.contains("interpreter lock (GIL) in work") && timeline.contains("runs in hog"), "{timeline}");
    explorer.press("esc esc");
    assert!(explorer.screen().contains("by call of the host"), "{}", explorer.screen());
    explorer.press("esc");
    assert!(explorer.screen().contains("What limits the run"), "{}", explorer.screen());
    for size in [(80, 24), (200, 50)] {
        let mut explorer = Explorer::open(&[trace("collate")], size);
        explorer.press("C");
        insta::assert_snapshot!(format!("host_lines_{}", size.0), explorer.screen());
    }
}

#[test]
fn a_report_without_stacks_says_how_to_get_them() {
    let mut explorer = Explorer::open(&[root().join("fixtures/trace/llm.wstrace.zst")], (100, 30));
    explorer.press("C");
    let screen = explorer.screen();
    assert!(screen.contains("This report has no stacks of the threads that launch."), "{screen}");
    assert!(!screen.contains("c lines"), "{screen}");
}

/// Samples of a real run that launches kernels one by one, placed where the thread prepares a launch whose function is
/// known: every fourth launch is from `rare`, the others from `often`. Long preparations are sampled more often, so the
/// number of samples alone does not give the number of launches.
fn sampled_launches(name: &str, samples: i64) -> (Profile, [u64; 2]) {
    let mut profile = read(&root().join(format!("fixtures/{name}.wstrace.zst"))).unwrap();
    let launches = &profile.launches;
    let mut calls: Vec<(i64, i64)> = (0..launches.len()).filter_map(|row| launches.call(row)).map(|(s, cost)| (s, s + cost)).collect();
    calls.sort_unstable();
    calls.dedup_by_key(|c| c.0);
    let place = (0..launches.len()).find_map(|row| profile.places.get(launches.place(row)?.0 as usize)).unwrap();
    let (pid, tid) = (place.pid.unwrap(), place.thread.unwrap());
    let thread = u32::try_from(profile.threads.iter().position(|t| (t.pid, t.tid) == (pid, tid)).unwrap()).unwrap();
    let function = |name: &str, line| StackFrame {
        function: name.into(),
        file: Some("/app/loop.py".into()),
        line: Some(line),
        first_line: false,
        python: true,
        ..StackFrame::default()
    };
    let mut made = Samples { frames: vec![function("main", 3), function("often", 7), function("rare", 11)], ..Samples::default() };
    made.stacks = [(None, 0), (Some(0), 1), (Some(0), 2)].map(|(caller, frame)| CallStack { caller, frame }).to_vec();
    let (from, to) = triage(&profile).window;
    let step = ((to - from) / samples).max(1);
    for number in 0..samples {
        // Vary the phase, because samples must not stay in step with a regular loop.
        let time = from + number * step + number.wrapping_mul(7919) % step;
        let launch = calls.partition_point(|c| c.1 <= time);
        let stack = Some(if launch % 4 == 0 { 2 } else { 1 });
        made.samples.push(Sample { time, thread, stack, activity: Activity::Running, holds: false });
    }
    let inside: Vec<usize> = (0..calls.len()).filter(|&i| calls[i].0 >= from && calls[i].0 < to).collect();
    let rare = inside.iter().filter(|&&i| i % 4 == 0).count() as u64;
    profile.samples = made;
    (profile, [inside.len() as u64 - rare, rare])
}

#[test]
fn launches_by_line_are_those_of_the_program() {
    for name in ["whatif/launch-bound", "trace/torch_eager", "whatif/decode-eager"] {
        let (profile, truth) = sampled_launches(name, 4000);
        let found = triage(&profile);
        let of = |function: &str| found.host_time.functions.iter().find(|l| &*l.frame.function == function).unwrap().launching;
        for (function, truth) in [("often", truth[0]), ("rare", truth[1])] {
            let launches = of(function).launches().unwrap() as f64;
            assert!((launches / truth as f64 - 1.0).abs() < 0.25, "{name}, {function}: {launches} of {truth}");
        }
        let all = found.host_time.all_launching();
        assert!(
            (all.launches().unwrap() as f64 / (truth[0] + truth[1]) as f64 - 1.0).abs() < 0.02,
            "{name}: {:?} of {truth:?}",
            all.launches()
        );
        assert_eq!(found.host_time.main_launcher().unwrap().frame.line, Some(7), "{name}");
        // Calls are contained in their callers.
        let tree = CallTree::from_time(&found.host_time, |_| String::new());
        assert_eq!(tree.nodes[tree.roots[0] as usize].launching.launches(), all.launches());
        let host: i64 = found.host_time.functions.iter().filter_map(|l| l.launching.host_ns()).sum();
        let (length, interval) = (found.window.1 - found.window.0, profile.samples.samples[1].time - profile.samples.samples[0].time);
        assert!(host > 0 && host <= length + 2 * interval, "{name}: {host} of {length}");
    }
}

#[test]
fn a_finding_of_launches_names_the_line_that_launches_most() {
    let (profile, _) = sampled_launches("whatif/launch-bound", 4000);
    let found = triage(&profile);
    let first = found.findings.iter().find(|f| f.id == Verdict::LaunchBound).unwrap();
    assert!(first.headline.contains("often (app/loop.py:7) launches most: about "), "{}", first.headline);
    assert!(first.evidence.iter().any(|e| e.name.contains("launches most")), "{:?}", first.evidence);
    // With few samples, no line and no number is given.
    let (profile, _) = sampled_launches("whatif/launch-bound", 12);
    let found = triage(&profile);
    assert!(found.findings.iter().all(|f| !f.headline.contains("launches most")));
    assert!(found.host_time.functions.iter().all(|l| &*l.frame.function != "rare" || l.launching.launches().is_none()));
    assert!(found.host_time.main_launcher().is_none());
}

/// PyTorch records each call of a Python function: launches are counted.
#[test]
fn launches_by_recorded_functions_are_counted() {
    let profile = read(&root().join("fixtures/torch/whole.pt.trace.json.gz")).unwrap();
    let found = triage(&profile);
    let time = &found.host_time;
    assert!(time.exact);
    let calls: std::collections::BTreeSet<i64> =
        (0..profile.launches.len()).filter_map(|row| Some(profile.launches.call(row)?.0)).collect();
    let inside = calls.iter().filter(|&&c| c >= found.window.0 && c < found.window.1).count() as u64;
    let counted: u64 = time.functions.iter().filter_map(|l| l.launching.launches()).sum();
    assert!(counted > 100 && counted <= inside, "{counted} of {inside}");
    let host: i64 = time.functions.iter().filter_map(|l| l.launching.host_ns()).sum();
    assert!(host > 0 && host <= found.window.1 - found.window.0);
    // Methods with the same name in one file are distinguished by the line of their definition.
    let mut keys: Vec<_> = time.functions.iter().map(|l| (l.frame.function.clone(), l.frame.file.clone(), l.frame.line)).collect();
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all);
    let (_, json, _) = run(&["triage", &root().join("fixtures/torch/whole.pt.trace.json.gz").display().to_string(), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["host_lines"].as_array().unwrap().iter().any(|l| l["launches"].as_u64() > Some(10) && l["host_ns"].as_i64() > Some(0)));
    // If there is room, the screen shows launches and host time beside the idle time.
    for (size, both) in [((140, 40), true), ((90, 40), false)] {
        let mut explorer = Explorer::open(&[root().join("fixtures/torch/whole.pt.trace.json.gz")], size);
        explorer.press("C");
        let screen = explorer.screen();
        let head = screen.lines().find(|l| l.contains("GPU idle") && l.contains("self")).unwrap();
        assert_eq!(head.contains("launches") && head.contains("host"), both, "{screen}");
        assert!(screen.contains("It makes 74 launches, in 4.38 ms of the host's time"), "{screen}");
        assert!(!screen.contains("unknown"), "{screen}");
    }
}
