//! Coverage of the recording: calls without a record, kernels without times or overlapping later ones, times since
//! 1970, truncated names, and GPUs of other vendors.

use super::rerun::one;
use super::support::{edited, edited_profile, packed, read, root, run, scratch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use warpscope::analysis::triage::{Scope, Sure, Verdict, triage_profile};
use warpscope::analysis::{GroupBy, Grouping, ranks};
use warpscope::model::coverage::{Stretch, Work};
use warpscope::model::digest::Digest;
use warpscope::model::{Cancel, LaunchId, NoteKind, Profile, Vendor};
use warpscope::rerun::{Options, Target, plan};

/// Writes a PyTorch trace with these events.
fn trace(name: &str, devices: Value, events: Vec<Value>) -> PathBuf {
    let path = scratch().join(format!("coverage-{name}.pt.trace.json"));
    std::fs::write(&path, json!({ "schemaVersion": 1, "deviceProperties": devices, "traceEvents": events }).to_string()).unwrap();
    path
}

fn h100() -> Value {
    json!([{ "id": 0, "name": "NVIDIA H100", "numSms": 132, "warpSize": 32, "computeMajor": 9, "computeMinor": 0 }])
}

fn call(name: &str, correlation: u64, ts: f64, dur: f64) -> Value {
    json!({ "ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur, "args": { "correlation": correlation } })
}

fn kernel(name: &str, correlation: u64, ts: f64, dur: f64) -> Value {
    json!({ "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
        "args": { "device": 0, "stream": 7, "correlation": correlation, "grid": [64, 1, 1], "block": [256, 1, 1] } })
}

/// Returns n kernels of 100 µs, one every 110 µs, each launched 20 µs before it starts; `change` may replace start and
/// duration.
fn row(n: u64, change: impl Fn(u64, f64, f64) -> (f64, f64)) -> Vec<Value> {
    let mut out = Vec::new();
    for i in 0..n {
        let ts = 1e9 + i as f64 * 110.0;
        let (start, duration) = change(i, ts, 100.0);
        out.push(call("cudaLaunchKernel", i + 1, ts - 20.0, 5.0));
        out.push(kernel(if i % 2 == 0 { "gemm" } else { "relu" }, i + 1, start, duration));
    }
    out
}

fn judged(profile: &Profile) -> Option<warpscope::analysis::triage::Triage> {
    triage_profile(profile, &Scope::default(), &Cancel::default())
}

/// Healthy reports have no coverage notes.
#[test]
fn whole_reports_lack_nothing() {
    for name in ["single", "threads", "procs", "graph_node", "graph_whole", "papi", "zoo", "zoo_2023", "ddp_rank0", "llm"] {
        let profile = read(&packed(name)).unwrap();
        let c = &profile.coverage;
        assert_eq!((c.describe_losses(), c.untimed, c.untimed_copies, c.overrun), (None, 0, 0, 0), "{name}");
        assert!(c.calls, "{name}");
    }
    let folder = root().join("fixtures/triage");
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if entry.to_string_lossy().ends_with(".toml") || entry.to_string_lossy().ends_with(".py") {
            continue;
        }
        let profile = read(&entry).unwrap();
        let c = &profile.coverage;
        assert_eq!((c.describe_losses(), c.untimed, c.untimed_copies, c.overrun), (None, 0, 0, 0), "{}", entry.display());
    }
}

/// Records removed from a complete report must be reported as missing.
#[test]
fn launches_without_records_by_process_graph_and_time() {
    const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
    let last =
        |share: f64| format!("DELETE FROM {KERNEL} WHERE start > (SELECT min(start) + (max(start) - min(start)) * {share} FROM {KERNEL})");
    let process = format!("DELETE FROM {KERNEL} WHERE globalPid = (SELECT max(globalPid) FROM {KERNEL})");
    let second = format!("DELETE FROM {KERNEL} WHERE rowid % 2 = 0");
    let nodes = format!("DELETE FROM {KERNEL} WHERE graphNodeId IS NOT NULL");
    for (name, sql, work, stretch) in [
        ("procs", process.as_str(), Work::Kernels, Stretch::All),
        ("single", &second, Work::Kernels, Stretch::Parts),
        ("zoo", &last(0.5), Work::Kernels, Stretch::End),
        ("graph_node", &nodes, Work::Graphs, Stretch::All),
    ] {
        let before = read(&packed(name)).unwrap();
        let profile = edited_profile(name, sql);
        let gone = before.launches.len() - profile.launches.len();
        let coverage = &profile.coverage;
        assert!(gone > 0 && coverage.is_inconclusive(), "{name}: {coverage:?}");
        let of: Vec<_> = coverage.unrecorded.iter().filter(|u| u.work == work).collect();
        assert!(!of.is_empty() && of.iter().all(|u| u.stretch == stretch && u.first <= u.last && !u.threads.is_empty()), "{name}: {of:?}");
        if work == Work::Kernels {
            assert_eq!(coverage.lost_calls(work).0 as usize, gone, "{name}");
        }
        let note = profile.notes.iter().find(|n| n.kind == NoteKind::Lost).unwrap();
        assert!(note.fix.is_some(), "{name}");
        if let Some(found) = judged(&profile) {
            assert!(found.findings[0].id == Verdict::ShortCapture, "{name}: {:?}", found.findings[0]);
            assert!(found.findings[1..].iter().all(|f| f.sure == Sure::Possible), "{name}");
        }
    }
}

/// A loop of synchronised graph launches; the kernels of some are missing from the trace.
fn graphs(hip: bool, dropped: impl Fn(u64) -> bool) -> Vec<Value> {
    let (api, mut out) = (if hip { "hip" } else { "cuda" }, Vec::new());
    for step in 0..20_u64 {
        let (t, id) = (1e6 + step as f64 * 4000.0, step * 10 + 1);
        out.push(call(&format!("{api}LaunchKernel"), id, t + 20.0, 8.0));
        out.push(kernel("elementwise", id, t + 40.0, 6.0));
        out.push(call(&format!("{api}GraphLaunch"), id + 1, t + 100.0, 40.0));
        if !dropped(step) {
            out.extend((0..30).map(|k| kernel("gemm", id + 1, t + 150.0 + f64::from(k) * 110.0, 105.0)));
        }
        out.push(call(&format!("{api}StreamSynchronize"), id + 2, t + 150.0, 3330.0));
    }
    out
}

#[test]
fn graphs_whose_kernels_were_dropped() {
    for (name, hip, dropped, lost, says) in [
        ("hip-all", true, (|_| true) as fn(u64) -> bool, 20, "7.2.2"),
        ("hip-half", true, |s| s % 2 == 0, 10, "7.2.2"),
        ("cuda-end", false, |s| s >= 12, 8, "synchronize"),
        ("hip-none", true, |_| false, 0, ""),
        ("cuda-none", false, |_| false, 0, ""),
    ] {
        let devices = if hip { json!([{ "id": 0, "name": "AMD Instinct MI300X", "warpSize": 64 }]) } else { h100() };
        let profile = read(&trace(name, devices, graphs(hip, dropped))).unwrap();
        assert_eq!(profile.coverage.lost_calls(Work::Graphs).0, lost, "{name}");
        assert_eq!(profile.coverage.is_inconclusive(), lost > 0, "{name}");
        let found = judged(&profile).unwrap();
        if lost > 0 {
            assert!(
                found.findings[0].id == Verdict::ShortCapture && found.findings[0].actions[0].contains(says),
                "{name}: {:?}",
                found.findings[0]
            );
            assert!(found.findings[1..].iter().all(|f| f.sure == Sure::Possible), "{name}");
        }
    }
}

/// Kernels without a correlation id account for one call each, and no more.
#[test]
fn records_without_a_call_are_no_proof() {
    for (name, calls, records, lost) in [("few", 40, 8, 32), ("half", 40, 22, 0), ("all", 40, 40, 0), ("none", 40, 0, 40)] {
        let mut events: Vec<Value> = (0..calls).map(|i| call("hipExtLaunchKernel", i + 1, 1e9 + i as f64 * 100.0, 8.0)).collect();
        events.extend((0..records).map(|i| kernel("nccl", 0, 1e9 + 50.0 + i as f64 * 100.0, 40.0)));
        let devices = json!([{ "id": 0, "name": "AMD Instinct MI300X", "warpSize": 64 }]);
        let profile = read(&trace(&format!("uncalled-{name}"), devices, events)).unwrap();
        assert_eq!(profile.coverage.lost_calls(Work::Kernels), (lost, if lost > 0 { calls } else { 0 }), "{name}: {:?}", profile.coverage);
    }
}

/// Calls that do not start work immediately are not losses.
#[test]
fn launches_that_have_a_reason_to_lack_a_record() {
    let base = || row(50, |_, t, d| (t, d));
    let end = 1e9 + 50.0 * 110.0;
    let captured = || {
        let mut out = vec![call("cudaStreamBeginCapture", 900, 1e9 - 500.0, 2.0)];
        out.extend((0..40).map(|i| call("cudaLaunchKernel", 1000 + i, 1e9 - 490.0 + i as f64 * 5.0, 4.0)));
        out.push(call("cudaStreamEndCapture", 901, 1e9 - 200.0, 2.0));
        out.push(call("cudaGraphInstantiate", 902, 1e9 - 190.0, 20.0));
        out
    };
    let in_flight: Vec<Value> = (0..30).map(|i| call("cudaLaunchKernel", 2000 + i, end + i as f64, 0.9)).collect();
    let nested: Vec<Value> = (0..50_u64).map(|i| call("cuLaunchKernel", 3000 + i, 1e9 + i as f64 * 110.0 - 18.0, 2.0)).collect();
    let half_open = captured().split_off(1);
    let functions: Vec<Value> = (0..50_u64).map(|i| call("cudaLaunchHostFunc", 4000 + i, 1e9 + i as f64 * 110.0 - 10.0, 2.0)).collect();
    for (name, more) in [
        ("captured", captured()),
        ("capture-began-before", half_open),
        ("in-flight", in_flight),
        ("nested", nested),
        ("host-functions", functions),
    ] {
        let profile = read(&trace(name, h100(), base().into_iter().chain(more).collect())).unwrap();
        assert_eq!(profile.coverage.describe_losses(), None, "{name}: {:?}", profile.coverage.unrecorded);
    }
    // The same launches at the end, but synchronised.
    let mut waited: Vec<Value> = (0..30).map(|i| call("cudaLaunchKernel", 2000 + i, end + i as f64, 0.9)).collect();
    waited.push(call("cudaDeviceSynchronize", 2100, end + 40.0, 500.0));
    let profile = read(&trace("waited", h100(), base().into_iter().chain(waited).collect())).unwrap();
    assert_eq!(profile.coverage.lost_calls(Work::Kernels), (30, 80));
    assert_eq!(profile.coverage.unrecorded[0].stretch, Stretch::End);
}

/// Kernels without times do not stretch the run, and are left out of all time statistics.
#[test]
fn kernels_without_times_are_left_out_and_said() {
    for (name, every, start, duration) in [
        ("zero", 3, 0.0, 0.0),
        ("zero-start", 4, 0.0, 100.0),
        ("negative", 5, -5000.0, 100.0),
        ("long-before", 7, 1000.0, 90.0),
        ("long-after", 9, 9e12, 100.0),
    ] {
        let events = row(100, |i, t, d| if i % every == 0 { (start, duration) } else { (t, d) });
        let path = trace(name, h100(), events);
        let profile = read(&path).unwrap();
        let bad = 100_u64.div_ceil(every);
        assert_eq!((profile.coverage.untimed, profile.launches.len()), (bad, 100), "{name}");
        let table = Grouping::from_profile(&profile, GroupBy::Name, None);
        assert_eq!(table.launches, 100 - bad, "{name}");
        assert!(table.rows.iter().all(|r| (r.stats.min, r.stats.max) == (100_000, 100_000)), "{name}: {:?}", table.rows[0].stats);
        let found = judged(&profile).unwrap();
        assert!(found.window.1 - found.window.0 < 20_000_000, "{name}: {:?}", found.window);
        let (_, out, _) = run(&["top", path.to_str().unwrap(), "--format", "json"]);
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(out["coverage"][0]["untimed_kernels"], bad, "{name}");
        assert!(out["notes"].to_string().contains("without valid times"), "{name}");
    }
    // nsys: without a start time, or with an end before the start.
    for sql in ["start = 0, end = 0", "end = start - 5", "start = start - 90000000000000, end = end - 90000000000000"] {
        let profile = edited_profile("single", &format!("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {sql} WHERE rowid % 4 = 0"));
        assert!(profile.coverage.untimed > 0 && profile.notes.iter().any(|n| n.text.contains("without valid times")), "{sql}");
        let whole = read(&packed("single")).unwrap();
        let span = |p: &Profile| (0..p.launches.len()).map(|r| p.launches.start(r)).fold((i64::MAX, 0), |(a, b), t| (a.min(t), b.max(t)));
        let (a, b) = (span(&profile), span(&whole));
        assert!(a.0 >= b.0 - 1_000_000_000 && a.1 <= b.1, "{sql}");
    }
}

/// A kernel cannot outlast later kernels of its stream, so its end is cut. Kernels that are launched early by design,
/// and branches of graphs, are left alone.
#[test]
fn kernels_over_later_ones_of_their_stream_are_cut() {
    for (name, rows, cut) in [
        ("long", row(301, |i, t, d| if i == 100 { (t, 2e6) } else { (t, d) }), 1),
        ("few", row(301, |i, t, d| if i == 100 { (t, 700.0) } else { (t, d) }), 1),
        ("three", row(301, |i, t, d| if i % 100 == 50 { (t, 5000.0) } else { (t, d) }), 3),
        ("last", row(301, |i, t, d| if i == 300 { (t, 2e6) } else { (t, d) }), 0),
        // Launched early: waits for the previous kernel and ends after it.
        ("early", row(301, |i, t, d| if i % 2 == 1 { (t - 90.0, d + 90.0) } else { (t, d) }), 0),
        ("clock", row(301, |_, t, d| (t, d + 20.0)), 0),
        ("graphs", graphs(false, |_| false), 0),
    ] {
        let profile = read(&trace(&format!("over-{name}"), h100(), rows)).unwrap();
        assert_eq!(profile.coverage.overrun, cut, "{name}");
        if cut > 0 {
            let most = (0..profile.launches.len()).map(|r| profile.launches.duration(r)).max().unwrap();
            assert!(most <= 110_000, "{name}: {most}");
            assert!(profile.notes.iter().any(|n| n.text.contains("later kernels of the same stream")), "{name}");
        }
    }
}

/// Shifts every time of an export, as `nsys export --ts-normalize=true` does.
fn shifted(name: &str, by: i64) -> PathBuf {
    let path = edited(name, "");
    let db = rusqlite::Connection::open(&path).unwrap();
    let list = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).unwrap();
        statement.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for table in list("SELECT name FROM sqlite_master WHERE type = 'table'") {
        for column in
            list(&format!("SELECT name FROM pragma_table_info('{table}') WHERE name IN ('start', 'end', 'timestamp', 'rawTimestamp')"))
        {
            db.execute_batch(&format!("UPDATE \"{table}\" SET \"{column}\" = \"{column}\" + {by} WHERE typeof(\"{column}\") = 'integer'"))
                .unwrap();
        }
    }
    path
}

#[test]
fn times_since_1970_say_the_same() {
    for (name, by) in [("zoo", 1_790_000_000_000_000_000), ("llm", 1_600_000_000_123_456_789), ("graph_whole", 9_000_000_000_000_000_000)] {
        let (plain, moved) = (read(&packed(name)).unwrap(), read(&shifted(name, by)).unwrap());
        assert_eq!(moved.launches.len(), plain.launches.len());
        let first = moved.launches.start(0) - plain.launches.start(0);
        for row in 0..plain.launches.len() {
            assert_eq!(moved.launches.start(row) - plain.launches.start(row), first, "{name} {row}");
            assert_eq!(moved.launches.duration(row), plain.launches.duration(row), "{name} {row}");
            let since = |p: &Profile| p.launches.call(row).map(|c| p.launches.start(row) - c.0);
            assert_eq!(since(&moved), since(&plain), "{name} {row}");
        }
        assert!(first.abs() < 1_000_000_000_000_000, "{name}: {first}");
        let ids = |p: &Profile| judged(p).unwrap().findings.iter().map(|f| (f.id, f.sure, f.headline.clone())).collect::<Vec<_>>();
        assert_eq!(ids(&moved), ids(&plain), "{name}");
        assert_eq!(moved.clock.epoch_ns.unwrap() + moved.launches.start(0), plain.launches.start(0) + by, "{name}");
    }
}

#[test]
fn a_name_that_was_cut_is_a_pattern() {
    for (short, prefix) in [
        ("__omp_offloading_31_18a80bc__Z_2...", "__omp_offloading_31_18a80bc__Z"),
        ("_ZN12abc$def_17...", "_ZN12abc\\$def"),
        ("kernel_with_a_long_name...", "kernel_with_a_long_name"),
    ] {
        let id = "(SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1)";
        let whole = format!("{}_whole_l17", prefix.replace('\\', ""));
        let sql = format!(
            "INSERT INTO StringIds VALUES (900001, '{short}'), (900002, '{whole}');
             UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = 900001, mangledName = NULL, demangledName = 900001 WHERE demangledName = {id};"
        );
        let profile = edited_profile("single", &sql);
        let row =
            (0..profile.launches.len()).find(|&r| profile.kernels[profile.launches.kernel(r).0 as usize].function() == short).unwrap();
        let rerun = one(&profile, row, &Options::default());
        let argv = rerun.argv();
        assert!(argv.contains(&format!("regex:^{prefix}")), "{argv:?}");
        assert!(!argv.iter().any(|w| w.contains("...")), "{argv:?}");
        let warning = rerun.warnings.iter().find(|w| w.id == "shortened-name").unwrap();
        assert!(!rerun.is_exact() && warning.text.contains(&whole), "{}", warning.text);
        assert!(profile.notes.iter().any(|n| n.text.contains("shortened")));
    }
}

#[test]
fn gpus_of_other_makers_get_no_command() {
    let of = |category: &str, named: Option<&str>| -> (Value, Vec<Value>) {
        let devices = named.map_or(json!([]), |n| json!([{ "id": 0, "name": n }]));
        let mut events = Vec::new();
        for i in 0..30_u64 {
            let t = 1e9 + i as f64 * 400.0;
            events.push(
                json!({ "ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": t - 30.0, "dur": 60, "args": {} }),
            );
            events.push(json!({ "ph": "X", "cat": category, "name": "enqueueKernel", "pid": 9, "tid": 9, "ts": t - 20.0, "dur": 5,
                "args": { "correlation": i + 1 } }));
            events.push(json!({ "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 0, "ts": t, "dur": 90.0,
                "args": { "device": 0, "correlation": i + 1, "l0 queue": "0x55" } }));
        }
        (devices, events)
    };
    for (name, category, device, maker) in [
        ("xpu", "xpu_runtime", Some("Intel(R) Data Center GPU Max 1550"), Vendor::Other),
        ("xpu-driver", "xpu_driver", None, Vendor::Other),
        ("mtia", "mtia_runtime", None, Vendor::Other),
        ("private", "privateuse1_runtime", None, Vendor::Other),
        ("ascend", "cuda_runtime", Some("Ascend910B"), Vendor::Other),
        ("cuda", "cuda_runtime", Some("NVIDIA L4"), Vendor::Nvidia),
        ("hip", "hip_runtime", Some("AMD Instinct MI300X"), Vendor::Nvidia),
    ] {
        let (devices, events) = of(category, device);
        let profile = read(&trace(&format!("maker-{name}"), devices, events)).unwrap();
        assert!((0..30).all(|r| profile.launches.call(r).is_some()), "{name}: calls are joined");
        if name == "hip" {
            assert_ne!(profile.maker(), Vendor::Other);
            continue;
        }
        assert_eq!(profile.maker(), maker, "{name}");
        let planned = plan(&profile, &Target::Launches(vec![LaunchId(3)]), &Options::default());
        assert_eq!(planned.is_err(), maker == Vendor::Other, "{name}: {planned:?}");
        if maker == Vendor::Other {
            let found = judged(&profile).unwrap();
            assert!(found.findings.iter().all(|f| f.confirm.is_none()), "{name}");
            assert!(!profile.notes.iter().any(|n| n.to_sentence().contains("start ncu")), "{name}");
        }
    }
}

#[test]
fn ranks_are_judged_by_what_was_recorded() {
    for (name, dropped, lacks) in [("ranks-hollow", (|_| true) as fn(u64) -> bool, true), ("ranks-whole", |_| false, false)] {
        let profile = read(&trace(name, h100(), graphs(false, dropped))).unwrap();
        let digests = ranks::build_digests(&profile, &judged(&profile).unwrap(), name);
        let back = Digest::from_bytes(&digests[0].to_bytes()).unwrap();
        assert_eq!(back.unrecorded.is_some(), lacks, "{name}");
        let job = ranks::build_job(&[back.clone(), back]);
        assert_eq!(job.remarks.first().is_some_and(|r| r.contains("have no kernels in the report")), lacks, "{name}: {:?}", job.remarks);
        assert!(!lacks || job.findings.iter().all(|f| f.sure == Sure::Possible), "{name}");
    }
}

/// All outputs that mention coverage use the same wording.
#[test]
fn screens_and_scripts_share_one_wording() {
    let path = trace("wording", json!([{ "id": 0, "name": "AMD Instinct MI355X", "warpSize": 64 }]), graphs(true, |_| true));
    let sentence = read(&path).unwrap().coverage.describe_losses().unwrap();
    let file = path.to_str().unwrap();
    for args in [["top", file, "--format", "json"], ["triage", file, "--format", "json"], ["launches", file, "--format", "json"]] {
        let (code, out, _) = run(&args);
        let out: Value = serde_json::from_str(&out).unwrap();
        let of = if out["coverage"].is_array() { &out["coverage"][0] } else { &out["coverage"] };
        assert_eq!((code, &of["text"], &of["enough"]), (0, &json!(sentence), &json!(false)), "{args:?}");
    }
    let (_, out, err) = run(&["triage", file, "--format", "table"]);
    assert!(out.contains("have no kernels in the report") && err.contains(&sentence), "{out}{err}");
    assert!(Path::new(file).exists());
}
