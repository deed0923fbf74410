//! PyTorch traces: compared with `serde_json`, damaged ones, and the screens.

use super::support::{Explorer, read, root, run, scratch};
use insta::assert_snapshot;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use warpscope::analysis::{GroupBy, Grouping, Paths};
use warpscope::model::{CaptureRange, LaunchOrder, NoteKind, Profile, Vendor, kernel};

fn packed(name: &str) -> PathBuf {
    root().join(format!("fixtures/torch/{name}.pt.trace.json.gz"))
}

fn text(name: &str) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(packed(name)).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn file(name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = scratch().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Converts µs to ns exactly, through the decimal digits.
fn ns(us: &Value) -> i64 {
    let text = us.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{fraction:0<3}").parse().unwrap()
}

/// Kernel rows in trace order, each with the start of its call.
fn kernels(name: &str) -> Vec<(i64, i64, Value)> {
    let trace: Value = serde_json::from_str(&text(name)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let is = |e: &Value, cats: &[&str]| e["ph"] == "X" && cats.iter().any(|c| e["cat"] == **c);
    let mut calls: HashMap<i64, i64> = HashMap::new();
    for e in events.iter().filter(|e| is(e, &["cuda_runtime", "cuda_driver"])) {
        let start = calls.entry(e["args"]["correlation"].as_i64().unwrap()).or_insert(i64::MAX);
        *start = ns(&e["ts"]).min(*start);
    }
    let call = |e: &Value| calls[&e["args"]["correlation"].as_i64().unwrap()];
    let mut out: Vec<_> = events.iter().filter(|e| is(e, &["kernel"])).map(|e| (call(e), ns(&e["ts"]), e.clone())).collect();
    out.sort_by_key(|k| (k.0, k.1));
    out
}

#[test]
fn launches_are_those_of_the_trace_in_the_order_of_their_calls() {
    for (name, order) in [("llm", LaunchOrder::Host), ("ddp_rank0", LaunchOrder::Host)] {
        let profile = read(&packed(name)).unwrap();
        let want = kernels(name);
        assert_eq!((profile.launches.len(), profile.order), (want.len(), order), "{name}");
        let first = want[0].1 - profile.launches.start(0);
        for (row, (call, start, e)) in want.iter().enumerate() {
            let launches = &profile.launches;
            assert_eq!(launches.start(row) + first, *start, "{name} {row}");
            assert_eq!(launches.duration(row), ns(&e["dur"]), "{name} {row}");
            assert_eq!(launches.call(row).unwrap().0 + first, *call, "{name} {row}");
            assert_eq!(profile.kernels[launches.kernel(row).0 as usize].demangled(), e["name"].as_str().unwrap());
            let config = &profile.configs[launches.config(row).unwrap().0 as usize];
            let dims = |v: &Value| v.as_array().map(|a| [0, 1, 2].map(|i| u32::try_from(a[i].as_u64().unwrap()).unwrap()));
            assert_eq!((config.grid, config.block), (dims(&e["args"]["grid"]), dims(&e["args"]["block"])));
            assert_eq!(config.registers.map(u64::from), e["args"]["registers per thread"].as_u64());
            assert_eq!(config.shared_memory().map(|b| b.0), e["args"]["shared memory"].as_u64());
            let place = &profile.places[launches.place(row).unwrap().0 as usize];
            assert_eq!(place.stream.map(u64::from), e["args"]["stream"].as_u64());
            assert!(place.pid.is_some() && place.thread.is_some());
        }
    }
}

#[test]
fn the_table_adds_up() {
    let profile = read(&packed("llm")).unwrap();
    let mut want: BTreeMap<String, (u64, i64)> = BTreeMap::new();
    for (_, _, e) in kernels("llm") {
        let row = want.entry(e["name"].as_str().unwrap().to_owned()).or_default();
        row.0 += 1;
        row.1 += ns(&e["dur"]);
    }
    let rows = Grouping::from_profile(&profile, GroupBy::Demangled, None).rows;
    let have: BTreeMap<String, (u64, i64)> = rows.iter().map(|r| (r.name.clone(), (r.stats.count, r.stats.total))).collect();
    assert_eq!(have, want);
    assert_eq!(profile.memops.len(), 14);
    assert_eq!(profile.devices[0].name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(profile.devices[0].max_blocks_per_sm, Some(32));
}

#[test]
fn function_names_are_ncus() {
    let pairs = fs::read_to_string(root().join("fixtures/torch/functions.tsv")).unwrap();
    let mut n = 0;
    for line in pairs.lines().filter(|l| !l.starts_with('#')) {
        let (torch, ncu) = line.split_once('\t').unwrap();
        assert_eq!(kernel::function_of(torch), ncu, "{torch}");
        n += 1;
    }
    assert_eq!(n, 21);
}

#[test]
fn operators_enclose_launches_and_are_no_nvtx() {
    let profile = read(&packed("llm")).unwrap();
    let paths = Paths::from_profile(&profile);
    let rows = Grouping::from_profile(&profile, GroupBy::Nvtx, Some(&paths)).rows;
    assert_eq!(rows[0].name, "aten::linear › aten::matmul › aten::mm");
    assert!(rows.iter().any(|r| r.name == "aten::cat" && r.stats.count == 96), "the one kernel of torch.cat");
    let file = packed("llm");
    let file = file.to_str().unwrap();
    let (code, _, error) = run(&["rerun", file, "--kernel", "CatArrayBatchedCopy", "--nth", "0", "--within", "aten::cat", "--", "x"]);
    assert!(code != 0 && error.contains("are not NVTX ranges, and ncu does not see them"), "{error}");
}

#[test]
fn a_rerun_goes_by_function_names_and_says_what_is_not_known() {
    let file = packed("llm");
    let file = file.to_str().unwrap();
    let (code, out, error) =
        run(&["rerun", file, "--kernel", "CatArrayBatchedCopy", "--nth", "3", "--base", "demangled", "--", "python3", "x.py"]);
    assert_eq!(code, 0, "{error}");
    assert!(
        out.contains("--kernel-name CatArrayBatchedCopy --launch-skip 3 --launch-count 1") && !out.contains("kernel-name-base"),
        "{out}"
    );
    assert!(error.contains("the capture began after the program"), "{error}");
}

#[test]
fn what_the_recipe_writes_makes_the_count_exact() {
    let words = r#""warpscope": {"argv": ["python3", "train.py", "--lr", "1e-4"], "directory": "/w", "whole": true}, "traceEvents": ["#;
    let path = file("whole.pt.trace.json", text("llm").replacen("\"traceEvents\": [", words, 1));
    let profile = read(&path).unwrap();
    assert_eq!((profile.capture.gate, profile.capture.argv.len()), (None, 4));
    let (code, out, error) = run(&["rerun", path.to_str().unwrap(), "--kernel", "CatArrayBatchedCopy", "--nth", "3"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.trim_end().ends_with("python3 train.py --lr 1e-4"), "{out}");
    assert!(!error.contains("began after"), "{error}");
    assert_eq!(read(&packed("llm")).unwrap().capture.gate, Some(CaptureRange::Late));
}

#[test]
fn amds_kernels_are_shown_and_not_given_to_ncu() {
    let text = text("llm").replace("\"warpSize\": 32", "\"warpSize\": 64").replace("\"NVIDIA H200\"", "\"\"");
    let path = file("amd.pt.trace.json", text);
    let profile = read(&path).unwrap();
    assert_eq!((profile.devices[0].maker, profile.devices[0].compute_capability), (Vendor::Amd, None));
    let (code, out, error) = run(&["rerun", path.to_str().unwrap(), "--launch", "0", "--", "x"]);
    // Without kernel ids the count is a guess.
    assert!(code == 0 && out.starts_with("rocprofv3 --pmc") && error.contains("does not tell kernel symbols apart"), "{out} {error}");
}

#[test]
fn graph_launches_are_told_by_their_call() {
    let event = |cat: &str, name: &str, ts: u32, more: &str, correlation: u32| {
        format!(
            r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": 5, "tid": 5, "ts": {ts}, "dur": 2, "args": {{"correlation": {correlation}{more}}}}}"#
        )
    };
    let on_gpu = |name: &str, ts: u32, more: &str, correlation: u32| {
        event("kernel", name, ts, &format!(r#", "device": 0, "stream": 7{more}"#), correlation)
    };
    // Two launches of one graph with their kernels out of order, one with its own
    // correlation id, and a kernel outside the graph.
    let events = [
        event("cuda_runtime", "cudaGraphLaunch", 10, "", 1),
        on_gpu("second", 40, "", 1),
        on_gpu("first", 20, "", 1),
        on_gpu("numbered", 60, r#", "graph node id": 8"#, 1),
        event("cuda_runtime", "cudaLaunchKernel", 70, "", 2),
        on_gpu("alone", 80, "", 2),
        event("cuda_runtime", "cudaGraphLaunch", 90, "", 3),
        on_gpu("first", 100, "", 3),
        on_gpu("second", 120, "", 3),
    ];
    let profile = read(&file("graphs.pt.trace.json", format!(r#"{{"traceEvents": [{}]}}"#, events.join(", ")))).unwrap();
    let name = |row: usize| profile.kernels[profile.launches.kernel(row).0 as usize].function().to_owned();
    let nodes: Vec<(String, Option<u64>)> = (0..profile.launches.len()).map(|r| (name(r), profile.launches.graph_node(r))).collect();
    let want = [("first", Some(9)), ("second", Some(10)), ("numbered", Some(8)), ("alone", None), ("first", Some(9)), ("second", Some(10))];
    assert_eq!(nodes, want.map(|(n, node)| (n.to_owned(), node)));
    assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Graphs && n.text.starts_with("4 launches")));
}

#[test]
fn hips_calls_tell_an_amd_gpu_without_facts() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 5, "tid": 5, "ts": 1, "dur": 1, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 0, "ts": 3, "dur": 1, "args": {"correlation": 1, "device": 2, "stream": 0}}]}"#;
    let profile = read(&file("hip.json", text)).unwrap();
    assert_eq!((profile.devices[0].id, profile.devices[0].maker), (2, Vendor::Amd));
    // rocprofv3 counts from the start of the program, and the trace began later.
    let rerun = super::rerun::one(&profile, 0, &warpscope::rerun::Options::default());
    assert!(rerun.argv()[0] == "rocprofv3" && !rerun.is_exact(), "{rerun:?}");
    assert!(rerun.warnings.iter().any(|w| w.id == "hidden-launches"), "{:?}", rerun.warnings);
}

/// Computes the data of every screen, which must also work for an incomplete profile.
fn look(profile: &Profile) {
    let paths = Paths::from_profile(profile);
    for by in GroupBy::ALL {
        let _ = Grouping::from_profile(profile, by, Some(&paths));
    }
    let _ = warpscope::analysis::Overview::from_profile(profile);
}

#[test]
fn traces_that_are_no_json_are_repaired_and_say_so() {
    let whole = read(&packed("llm")).unwrap();
    let good = text("llm");
    let kernel = "\"name\": \"nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT\"";
    assert!(good.contains(kernel));
    for (name, broken, bytes) in [
        ("quote", "\"name\": \"say \"hi\" {now\"", None),
        ("control", "\"name\": \"line\nend\u{1}\"", None),
        ("utf8", "\"name\": \"bad\u{1}\"", Some((1_u8, 0xff_u8))),
        ("nan", "\"note\": nan, \"name\": \"n\"", None),
        ("comma", "\"name\": \"n\", \"x\": [1,]", None),
    ] {
        let text = good.replacen(kernel, broken, 1);
        let mut raw = text.into_bytes();
        if let Some((from, to)) = bytes {
            raw.iter_mut().filter(|b| **b == from).for_each(|b| *b = to);
        }
        let profile = read(&file("broken.pt.trace.json", raw)).unwrap();
        assert_eq!(profile.launches.len(), whole.launches.len(), "{name}");
        assert!(profile.notes.iter().any(|n| n.text.starts_with("1 event was not valid JSON")), "{name}: {:?}", profile.notes);
    }
}

#[test]
fn cut_traces_give_what_is_whole() {
    let good = text("llm");
    let mut last = 0;
    for part in 1..=20 {
        let path = file("cut.pt.trace.json", &good.as_bytes()[..good.len() * part / 20 - 1]);
        let profile = read(&path).unwrap();
        assert!(profile.launches.len() >= last);
        last = profile.launches.len();
        assert!(profile.notes.iter().any(|n| n.text.contains("is truncated")), "{part}");
        look(&profile);
    }
    assert_eq!(last, 868);
    // The compressed file without its end gives the same.
    let bytes = fs::read(packed("llm")).unwrap();
    let profile = read(&file("cut.pt.trace.json.gz", &bytes[..bytes.len() * 9 / 10])).unwrap();
    assert!(profile.launches.len() > 100 && profile.notes.iter().any(|n| n.text.contains("is truncated")));
}

#[test]
fn flipped_bytes_give_a_profile_or_a_sentence() {
    let good = text("ddp_rank0").into_bytes();
    let good = &good[..good.len().min(300_000)];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..150 {
        let mut damaged = good.to_vec();
        for _ in 0..=(round % 9) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % damaged.len() as u64).unwrap();
            damaged[at] = *b"\"{}[]\\,:\xff\x00-9e"[..].get((state >> 40) as usize % 14).unwrap_or(&b'n');
        }
        let path = file("flipped.pt.trace.json", &damaged);
        match read(&path) {
            Ok(profile) => look(&profile),
            Err(e) => assert!(!e.to_string().contains('\n')),
        }
    }
}

#[test]
fn other_json_is_refused_and_empty_traces_say_why() {
    let refused = |name: &str, text: &str| read(&file(name, text)).unwrap_err().to_string();
    assert!(refused("et.json", r#"{"schemaVersion": 1, "nodes": []}"#).contains("without traceEvents"));
    assert!(refused("half.json", r#"{"schemaVersion": 1, "deviceProp"#).contains("without its events"));
    assert!(refused("config.json", r#"{"jobs": []}"#).contains("JSON that is not a profile"));
    let text = r#"{"schemaVersion": 1, "ERROR": ["CUPTI\u001b[31m is not there"], "traceEvents": []}"#;
    let profile = read(&file("none.json", text)).unwrap();
    let notes: Vec<&str> = profile.notes.iter().map(|n| n.text.as_str()).collect();
    assert!(notes.iter().any(|n| n.contains("No GPU activity")) && notes.iter().any(|n| n.contains("CUPTI")), "{notes:?}");
    let list = read(&file("list.json", r#"[{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2.5, "pid": 0, "tid": 7},"#)).unwrap();
    assert_eq!((list.launches.len(), list.launches.duration(0), list.order), (1, 2500, LaunchOrder::Device));
}

#[test]
fn its_screens() {
    let files = [PathBuf::from("fixtures/torch/llm.pt.trace.json.gz")];
    for (size, keys, name) in [
        ((80, 24), "", "torch_kernels_80x24"),
        ((120, 40), "", "torch_kernels_120x40"),
        ((120, 40), "g r", "torch_operators"),
        ((100, 30), "n", "torch_notes"),
        ((100, 30), "N", "torch_names"),
        ((120, 40), "enter", "torch_launches"),
    ] {
        let mut explorer = Explorer::open(&files, size);
        if !keys.is_empty() {
            explorer.press(keys);
        }
        assert_snapshot!(name, explorer.screen());
    }
}
