//! Memory use: PyTorch snapshots, traces with memory, nsys exports. Problems are
//! named, and healthy programs have no findings.

use super::made_memory::{Allocator, Py, pickle, text};
use super::support::{Explorer, packed, read, root, run, scratch};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::Value;
use std::path::{Path, PathBuf};
use warpscope::analysis::memory::{MemoryVerdict, Usage, analyze_usage as memory_usage};
use warpscope::app::KeyScope;
use warpscope::app::jobs::Curve;
use warpscope::model::{Cancel, Device, MemoryLevel, Vendor};

const MIB: u64 = 1 << 20;

fn fixture(name: &str) -> PathBuf {
    root().join(format!("fixtures/torch/memory/{name}.pickle.gz"))
}

fn json(file: &Path, more: &[&str]) -> Value {
    let args = [&["memory", file.to_str().unwrap(), "--format", "json"], more].concat();
    let (code, out, err) = run(&args);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn usage(bytes: &[u8]) -> Usage {
    let path = tempfile::Builder::new().suffix(".pickle").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&path, bytes).unwrap();
    memory_usage(&read(&path).unwrap(), &Cancel::default()).unwrap()
}

fn first(usage: &Usage) -> Option<MemoryVerdict> {
    usage.main().unwrap().findings.first().map(|f| f.id)
}

/// Name, bytes at the peak and at the end as reported by the process's
/// `torch.cuda.memory_stats()`, and the expected finding.
const LABELS: [(&str, u64, u64, Option<&str>); 3] = [
    ("train", 1_175_651_328, 471_007_232, None),
    ("leak", 1_234_371_584, 538_116_096, Some("growth")),
    ("oom", 129_320_026_112, 129_320_026_112, Some("out-of-memory")),
];

#[test]
fn snapshots_of_known_programs() {
    for (name, peak, end, wrong) in LABELS {
        let found = json(&fixture(name), &[]);
        let near = |field: &str, want: u64| {
            let is = found[field].as_u64().unwrap();
            assert!(is.abs_diff(want) * 1000 <= want, "{name}: {field} is {is}, {want} wanted");
        };
        near("peak_bytes", peak);
        near("end_bytes", end);
        assert!(found["reserved_bytes"].as_u64() >= found["end_bytes"].as_u64(), "{name}");
        assert_eq!(found["findings"][0]["id"].as_str(), wrong, "{name}: {}", found["findings"]);
        // The rows at the peak add up to the peak.
        let rows: u64 = found["rows"].as_array().unwrap().iter().map(|r| r["bytes"].as_u64().unwrap()).sum();
        near("peak_bytes", rows);
    }
    let leak = json(&fixture("leak"), &["--at", "end"]);
    assert!(leak["findings"][0]["sites"][0]["site"].as_str().unwrap().starts_with("leak (mem.py:7)"), "{}", leak["findings"]);
    assert!(leak["rows"].as_array().unwrap().iter().any(|r| r["function"] == "leak" && r["line"] == 7 && r["bytes"] == 64 * MIB));
}

/// Twenty-nine programs on an H100, written by someone other than the author of the rules: the right finding comes
/// first, and the figures equal torch's own. The first version of the rules was right for 24 of them.
#[test]
fn programs_of_known_use() {
    let labels = std::fs::read_to_string(root().join("fixtures/torch/memory/labels.jsonl")).unwrap();
    let mut count = 0;
    for label in labels.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
        let name = label["name"].as_str().unwrap();
        let profile = read(&root().join(format!("fixtures/torch/memory/cases/{name}.pickle.gz"))).unwrap();
        let usage = memory_usage(&profile, &Cancel::default()).unwrap();
        let device = usage.main().unwrap();
        let first = device.findings.first().map_or("none", |f| f.id.id());
        let right = label["accept"].as_array().map_or_else(|| vec![&label["label"]], |a| a.iter().collect());
        assert!(right.iter().any(|r| *r == first), "{name}: {first} is not of {right:?}");
        let figures = [device.peak.1, device.ledger.bytes_at_end(), device.reserved.unwrap()];
        assert_eq!(figures, ["peak", "end", "reserved"].map(|f| label[f].as_u64().unwrap()), "{name}");
        count += 1;
    }
    assert_eq!(count, 29);
}

/// Programs that are healthy although they look unusual: a loaded model, a forward pass inspected
/// halfway, a kept loss, a buffer that fills up.
#[test]
fn nobody_is_wrongly_accused() {
    let mut a = Allocator::new(true);
    for _ in 0..30 {
        step(&mut a, 8);
        a.alloc(8192, 99);
    }
    assert_eq!(first(&usage(&a.written())), None, "a loss that is kept");
    let mut a = Allocator::new(true);
    for i in 0..40 {
        step(&mut a, 8);
        if i < 34 {
            a.alloc(64 * MIB, 99);
        }
    }
    assert_eq!(first(&usage(&a.written())), None, "a buffer that is full");
    // Two blocks cannot share an address: the first one's free is missing.
    let n = Py::Int;
    let alloc = |time| {
        let pairs = vec![
            ("action", text("alloc")),
            ("addr", n(4096)),
            ("size", n(100 << 20)),
            ("stream", n(0)),
            ("time_us", n(time)),
            ("frames", Py::List(vec![])),
        ];
        Py::Dict(pairs)
    };
    let trace = |times: &[i64]| Py::List(times.iter().map(|t| alloc(*t)).collect());
    let bytes =
        pickle(&Py::Dict(vec![("segments", Py::List(vec![])), ("device_traces", Py::List(vec![trace(&[5, 6, 7]), trace(&[1, 9])]))]));
    let found = usage(&bytes);
    let device = |d: usize| (found.devices[d].peak.1, found.devices[d].ledger.bytes_at_end(), found.devices[d].reserved);
    assert_eq!([device(0), device(1)], [(100 * MIB, 100 * MIB, None); 2]);
    // Times start at the earliest event of all devices.
    assert_eq!(found.devices.iter().map(|d| d.ledger.times[0]).collect::<Vec<_>>(), [4_000, 0]);
    let csv = run(&["memory", file("devices.pickle", &bytes).to_str().unwrap(), "--format", "csv"]).1;
    assert!(csv.starts_with("device,") && csv.lines().any(|l| l.starts_with("0,")) && csv.lines().any(|l| l.starts_with("1,")), "{csv}");
    // Sizes whose sum overflows.
    let huge = Py::Dict(vec![
        ("action", text("segment_alloc")),
        ("addr", n(1)),
        ("size", n(i64::MAX)),
        ("time_us", n(i64::MAX)),
        ("frames", Py::List(vec![])),
    ]);
    let again = Py::Dict(vec![
        ("action", text("alloc")),
        ("addr", n(2)),
        ("size", n(i64::MAX)),
        ("time_us", n(i64::MIN)),
        ("frames", Py::List(vec![])),
    ]);
    let bytes = pickle(&Py::Dict(vec![("segments", Py::List(vec![])), ("device_traces", Py::List(vec![Py::List(vec![huge, again])]))]));
    assert_eq!(run(&["memory", file("huge.pickle", &bytes).to_str().unwrap()]).0, 0);
}

/// A trace of steps with a kernel and 2 MiB each, kept if `leaks`.
fn made_up_trace(leaks: bool) -> String {
    let mut events = Vec::new();
    let row = |cat: &str, name: &str, ts: i64, dur: i64, args: Value| serde_json::json!({"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur, "args": args});
    for step in 0..12_i64 {
        let at = 1_000_000 + step * 10_000;
        events.push(row("user_annotation", &format!("ProfilerStep#{step}"), at, 9_900, serde_json::json!({})));
        events.push(row("cuda_runtime", "cudaLaunchKernel", at + 100, 10, serde_json::json!({"correlation": step + 1})));
        events.push(row(
            "kernel",
            "gemm",
            at + 200,
            9_000,
            serde_json::json!({"correlation": step + 1, "device": 0, "context": 1, "stream": 7, "grid": [1, 1, 1], "block": [64, 1, 1]}),
        ));
        let mut memory = |time: i64, bytes: i64, total: i64| {
            events.push(serde_json::json!({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": time,
                "args": {"Total Reserved": 1_i64 << 30, "Total Allocated": total, "Bytes": bytes, "Device Id": 0, "Device Type": 1, "Addr": 4_096 + step * (2 << 20)}}));
        };
        let held = if leaks { step * (2 << 20) } else { 0 };
        memory(at + 150, 2 << 20, (100 << 20) + held + (2 << 20));
        if !leaks {
            memory(at + 9_500, -(2 << 20), 100 << 20);
        }
    }
    serde_json::json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}).to_string()
}

#[test]
fn triage_says_what_is_wrong_with_memory() {
    for (leaks, wanted) in [(true, vec!["growth"]), (false, vec![])] {
        let trace = file("steps.pt.trace.json", made_up_trace(leaks).as_bytes());
        let (code, out, err) = run(&["triage", trace.to_str().unwrap(), "--format", "json"]);
        assert_eq!(code, 0, "{err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        let ids: Vec<&str> = found["memory"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
        assert_eq!(ids, wanted, "{out}");
        let (_, page, _) = run(&["triage", trace.to_str().unwrap(), "--format", "table"]);
        assert_eq!(page.contains("memory: growth: 2 MiB"), leaks, "{page}");
        let mut explorer = Explorer::open(&[trace], (120, 40));
        explorer.press("O");
        let shown = explorer.screen();
        assert_eq!(shown.contains("memory: growth"), leaks, "{shown}");
        explorer.app.session.size = (80, 24);
        assert_eq!(explorer.screen().contains("memory: growth"), leaks, "{}", explorer.screen());
    }
    // A snapshot has no timeline: the error says so and names the right command.
    let (code, _, err) = run(&["triage", fixture("leak").to_str().unwrap()]);
    assert!(code != 0 && err.contains("of memory only") && err.contains("warpscope memory"), "{err}");
}

/// A trace with memory events gives the same findings as the snapshot of the same run.
#[test]
fn traces_with_memory() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS").map(PathBuf::from) else {
        println!("skipped: WARPSCOPE_CORPUS names no folder");
        return;
    };
    let runs = corpus.join("captures/runs");
    let found = json(&runs.join("leak.mem.pt.trace.json.gz"), &[]);
    assert_eq!(found["peak_bytes"], LABELS[1].1);
    assert_eq!(found["end_bytes"], LABELS[1].2);
    assert_eq!(found["findings"][0]["id"], "growth");
    assert!(found["findings"][0]["sites"][0]["site"].as_str().unwrap().starts_with("leak (mem.py:7)"));
    let nsys = json(&runs.join("mem_leak.sqlite.zst"), &[]);
    assert_eq!(nsys["counts"], "driver");
    assert!(nsys["reserved_bytes"].is_null() && nsys["peak_bytes"].as_u64() >= Some(1_378_093_056), "{}", nsys["peak_bytes"]);
    for entry in std::fs::read_dir(corpus.join("samples/torch")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|e| e == "pickle") {
            let found = json(&entry.path(), &[]);
            assert!(found["peak_bytes"].as_u64() >= found["end_bytes"].as_u64(), "{:?}", entry.path());
            assert!(found["findings"].as_array().unwrap().is_empty(), "{:?}: {}", entry.path(), found["findings"]);
        }
    }
}

/// A step: memory allocated in the forward pass is freed in the backward pass.
fn step(a: &mut Allocator, layers: u64) {
    let made: Vec<u64> = (0..layers).map(|l| a.alloc(24 * MIB, 10 + i64::try_from(l % 4).unwrap())).collect();
    for at in made.into_iter().rev() {
        let gradient = a.alloc(24 * MIB, 0);
        a.free(at);
        a.free(gradient);
    }
    a.wait(100);
}

fn model(a: &mut Allocator) -> Vec<u64> {
    (0..8).map(|_| a.alloc(64 * MIB, 5)).collect()
}

#[test]
fn made_up_programs() {
    // Healthy: steps, with the model allocated before or after history was enabled; a
    // forward pass that keeps all activations.
    for early in [true, false] {
        let mut a = Allocator::new(early);
        model(&mut a);
        a.recording = true;
        (0..12).for_each(|_| step(&mut a, 16));
        let (peak, end, reserved) = (a.peak, a.allocated(), a.reserved());
        let usage = usage(&a.written());
        let device = usage.main().unwrap();
        assert_eq!(first(&usage), None, "{:?}", device.findings);
        assert_eq!((device.peak.1, device.ledger.bytes_at_end(), device.reserved), (peak, end, Some(reserved)));
        assert!(device.steps.list.len() >= 10, "{}", device.steps.list.len());
    }
    let mut a = Allocator::new(false);
    model(&mut a);
    a.recording = true;
    for layer in 0..96 {
        a.alloc(8 * MIB, 10 + layer % 6);
        let brief = a.alloc(4 * MIB, 20);
        a.free(brief);
    }
    assert_eq!(first(&usage(&a.written())), None);

    // Each step leaks something.
    let mut a = Allocator::new(true);
    model(&mut a);
    for _ in 0..12 {
        step(&mut a, 16);
        a.alloc(3 * MIB, 99);
    }
    let leak = usage(&a.written());
    assert_eq!(first(&leak), Some(MemoryVerdict::Growth));
    let site = leak.main().unwrap().findings[0].details.sites[0].0;
    assert!(leak.sites.get(site).unwrap().name.starts_with("f99 (train.py:99)"), "{:?}", leak.sites.get(site));

    // Memory is never freed.
    let mut a = Allocator::new(true);
    for _ in 0..20 {
        a.alloc(40 * MIB, 7);
        a.wait(1000);
    }
    assert_eq!(first(&usage(&a.written())), Some(MemoryVerdict::Growth));

    // Every other block is freed, and the gaps are too small for larger blocks.
    let mut a = Allocator::new(true);
    let all: Vec<u64> = (0..160).map(|i| a.alloc(5 * MIB, 30 + i % 2)).collect();
    all.iter().step_by(2).for_each(|&at| a.free(at));
    a.wait(1000);
    let pieces = usage(&a.written());
    assert_eq!(first(&pieces), Some(MemoryVerdict::Fragmentation), "{:?}", pieces.main().unwrap().findings);
    let free = pieces.main().unwrap().free.unwrap();
    assert_eq!((free.split, free.largest), (400 * MIB, 5 * MIB));

    // A request that would fit if the free memory were contiguous.
    let mut a = Allocator::new(true);
    let all: Vec<u64> = (0..160).map(|i| a.alloc(5 * MIB, 30 + i % 2)).collect();
    all.iter().step_by(2).for_each(|&at| a.free(at));
    a.event("oom", 30 * MIB, 300 * MIB, 44);
    let both = usage(&a.written());
    let ids: Vec<_> = both.main().unwrap().findings.iter().map(|f| f.id).collect();
    assert_eq!(ids, [MemoryVerdict::Fragmentation, MemoryVerdict::OutOfMemory]);

    // One step needs much more than the others; every step peaks briefly.
    for once in [true, false] {
        let mut a = Allocator::new(true);
        model(&mut a);
        for i in 0..12 {
            if i == 6 || !once {
                let large = a.alloc(900 * MIB, 77);
                a.free(large);
            }
            step(&mut a, 16);
        }
        let peak = usage(&a.written());
        let found = &peak.main().unwrap().findings;
        assert_eq!(first(&peak), Some(MemoryVerdict::Peak), "{found:?}");
        assert!(found[0].headline.contains("f77 (train.py:77)"), "{}", found[0].headline);
        assert_eq!(found[0].headline.contains("of one step"), once, "{}", found[0].headline);
    }

    // The cache is emptied in the loop.
    let mut a = Allocator::new(true);
    model(&mut a);
    for _ in 0..12 {
        step(&mut a, 16);
        a.empty_cache();
    }
    let written = a.written();
    assert_eq!(first(&usage(&written)), Some(MemoryVerdict::Churn));
    // Advice for a program without a framework's allocator uses the terms of the GPU's vendor.
    let path = tempfile::Builder::new().suffix(".pickle").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&path, written).unwrap();
    for (maker, call) in [(Vendor::Nvidia, "cudaFree"), (Vendor::Amd, "hipFree")] {
        let mut profile = read(&path).unwrap();
        profile.memory.events.retain(|e| e.level == MemoryLevel::Driver);
        profile.memory.state = None;
        profile.devices = vec![Device { maker, ..Device::default() }];
        let found = memory_usage(&profile, &Cancel::default()).unwrap();
        let actions: Vec<String> = found.main().unwrap().findings.iter().flat_map(|f| f.actions.clone()).collect();
        let said = actions.join(" ");
        assert!(said.contains(call) && !said.contains("del,") && !said.contains("torch"), "{said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proptest-regressions/memory.txt")))),
        ..ProptestConfig::default()
    })]
    /// For any sequence of allocations and frees, before and after history is enabled, the ledger read from the
    /// snapshot equals that of the allocator.
    #[test]
    fn the_ledger_is_the_allocators(ops in prop::collection::vec((any::<bool>(), (MIB + 1)..(60 * MIB), 1_i64..9), 1..120), late in 0_usize..60) {
        let mut a = Allocator::new(late == 0);
        let mut open: Vec<u64> = Vec::new();
        let mut seen = Vec::new();
        for (i, (more, size, line)) in ops.into_iter().enumerate() {
            if i == late && !a.recording {
                a.recording = true;
                a.peak = a.allocated();
            }
            if more || open.is_empty() {
                open.push(a.alloc(size, line));
            } else {
                let at = open.swap_remove(usize::try_from(size).unwrap() % open.len());
                a.free(at);
            }
            if a.recording {
                seen.push(a.allocated());
            }
        }
        let (peak, end, reserved) = (a.peak, a.allocated(), a.reserved());
        let found = usage(&a.written());
        let device = found.main().unwrap();
        prop_assert_eq!(device.ledger.bytes_at_end(), end);
        prop_assert_eq!(device.reserved.unwrap_or(reserved), reserved);
        // For a block older than the history and freed in it, the snapshot does not show
        // whether a small remainder stayed with it.
        let unknown = device.ledger.lives.iter().filter(|l| l.is_older() && !l.is_kept()).count() as u64 * MIB;
        prop_assert_eq!(device.ledger.bytes.len(), seen.len());
        if !seen.is_empty() {
            prop_assert!(device.peak.1.abs_diff(peak) <= unknown, "{} {}", device.peak.1, peak);
        }
        for (at, &allocated) in (0_u32..).zip(&seen) {
            let held: u64 = device.ledger.held_at(Some(at)).map(|l| l.bytes).sum();
            prop_assert_eq!(held, device.ledger.bytes[at as usize]);
            prop_assert!(held.abs_diff(allocated) <= unknown, "{held} {allocated}");
        }
    }
}

/// Older snapshots: without history, without block addresses, with sizes only in the history, or with segments alone.
#[test]
fn older_snapshots() {
    let n = Py::Int;
    let block = |size, state: &str, asked| {
        let history = Py::List(vec![Py::Dict(vec![
            ("addr", n(4096)),
            ("real_size", n(asked)),
            ("frames", Py::List(vec![Py::Dict(vec![("name", text("f")), ("filename", text("a.py")), ("line", n(3))])])),
        ])]);
        Py::Dict(vec![("size", n(size)), ("state", text(state)), ("history", history)])
    };
    let segment = Py::Dict(vec![
        ("device", n(0)),
        ("address", n(4096)),
        ("total_size", n(1 << 21)),
        ("segment_type", text("small")),
        ("blocks", Py::List(vec![block(1024, "active_allocated", 1000), block((1 << 21) - 1024, "inactive", 0)])),
    ]);
    let found = usage(&pickle(&Py::List(vec![segment])));
    let device = found.main().unwrap();
    assert_eq!((device.peak.1, device.ledger.bytes_at_end(), device.reserved), (1024, 1024, Some(1 << 21)));
    assert!(device.findings.is_empty());
}

/// Pickles that would run code, are truncated, have another type, or expand far beyond their file size.
#[test]
fn hostile_pickles() {
    let refused = |bytes: &[u8], says: &str| {
        let path = file("hostile.pickle", bytes);
        let (code, out, err) = run(&["memory", path.to_str().unwrap()]);
        assert!(code == 3 && out.is_empty() && err.contains(says) && err.lines().count() == 1, "{code} {err}");
    };
    refused(b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x08segments\x8c\x05posix\x94\x8c\x06system\x94\x93.", "would run code");
    refused(b"\x80\x04}\x8c\x08segmentsK\x01s.", "no memory snapshot");
    refused(b"\x80\x04\x8c\x05hello.", "no memory snapshot");
    let whole = zstd_or_gz(&fixture("oom"));
    refused(&whole[..whole.len() - 40], "ends in the middle");
    // Corrupted bytes: the file opens or gives a one-line error.
    for step in [3, 7, 31, 101] {
        let mut bytes = whole.clone();
        for at in (200..bytes.len()).step_by(step) {
            bytes[at] = bytes[at].wrapping_mul(31).wrapping_add(u8::try_from(step).unwrap());
        }
        let (code, _, err) = run(&["memory", file("damaged.pickle", &bytes).to_str().unwrap()]);
        assert!(code == 0 || code == 3 && err.lines().count() == 1, "{code} {err}");
    }
    // A list of blocks shared by a thousand segments counts once.
    let mut bytes = b"\x80\x04}(X\x08\x00\x00\x00segments](".to_vec();
    let blocks = pickle(&Py::List((0..50).map(|i| Py::Dict(vec![("size", Py::Int(i)), ("state", text("inactive"))])).collect()));
    bytes.extend(&blocks[2..blocks.len() - 1]);
    bytes.extend(b"\x94");
    for _ in 0..1000 {
        bytes.extend(b"}(X\x0a\x00\x00\x00total_sizeK\x09X\x06\x00\x00\x00blocksh\x00u");
    }
    bytes.extend(b"eu.");
    let found = usage(&bytes);
    assert!(found.devices.len() <= 1);
}

fn zstd_or_gz(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()), &mut out).unwrap();
    out
}

#[test]
fn the_command() {
    let leak = fixture("leak");
    let page = |args: &[&str]| run(&[&["memory"], args].concat());
    let (code, out, _) = page(&[leak.to_str().unwrap(), "--format", "table"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("memory_page", out);
    let (_, out, _) = page(&[leak.to_str().unwrap(), "--before", fixture("train").to_str().unwrap(), "--format", "md"]);
    insta::assert_snapshot!("memory_compared", out);
    let (_, out, _) = page(&[leak.to_str().unwrap(), "--at", "end", "--top", "2"]);
    insta::assert_snapshot!("memory_csv", out);
    let (code, _, err) = page(&[leak.to_str().unwrap(), "--fail-on", "growth,peak"]);
    assert!(code == 1 && err.contains("found: growth"), "{code} {err}");
    let (code, _, err) = page(&[packed("single").to_str().unwrap()]);
    assert!(code == 2 && err.contains("nothing is recorded of memory") && err.contains("--cuda-memory-usage"), "{err}");
}

/// A slice of a curve agrees with the whole: same maximum, and the value before the slice carries over.
#[test]
fn a_part_of_the_curve_is_part_of_the_whole() {
    let profile = read(&fixture("leak")).unwrap();
    let usage = memory_usage(&profile, &Cancel::default()).unwrap();
    let device = usage.main().unwrap();
    let (begin, end) = device.ledger.span().unwrap();
    let most = |c: &Curve| c.allocated.iter().copied().max().unwrap();
    assert_eq!(most(&Curve::from_window(device, &usage.sites, (begin, end))), device.peak.1);
    let peak = device.peak_time().unwrap();
    let around = Curve::from_window(device, &usage.sites, (peak - 1000, peak + 1000));
    assert_eq!((most(&around), around.span), (device.peak.1, (peak - 1000, peak + 1000)));
    // Eight blocks of 8 MiB are never freed: the curve of what grows is a staircase that ends with all of them.
    let whole = Curve::from_window(device, &usage.sites, (begin, end));
    assert!(whole.growth.is_sorted() && whole.growth.last() == Some(&(64 << 20)), "{:?}", whole.growth.last());
    for part in 0..50 {
        let (from, to) = (begin + (end - begin) * part / 50, begin + (end - begin) * (part + 1) / 50);
        let curve = Curve::from_window(device, &usage.sites, (from, to));
        let at = device.ledger.times.partition_point(|&t| t < from);
        let inside = device.ledger.times[at..].iter().zip(&device.ledger.bytes[at..]).take_while(|(t, _)| **t <= to).map(|(_, b)| *b);
        assert_eq!(most(&curve), inside.chain([device.ledger.bytes_before(at)]).max().unwrap(), "part {part}");
        let held = device.ledger.reserved.iter().rev().find(|r| r.0 <= from).or(device.ledger.reserved.first()).unwrap().1;
        assert_eq!(curve.reserved.first(), Some(&held).filter(|_| !curve.reserved.is_empty()), "part {part}");
    }
}

#[test]
fn the_screen() {
    let leak = [fixture("leak")];
    for (name, size) in [("memory_80x24", (80, 24)), ("memory_120x40", (120, 40)), ("memory_200x50", (200, 50))] {
        insta::assert_snapshot!(name, Explorer::open(&leak, size).screen());
    }
    let mut explorer = Explorer::open(&leak, (120, 40));
    assert_eq!(explorer.app.current_scope(), KeyScope::Memory);
    explorer.press("left left left");
    assert!(explorer.screen().contains("Held at 4"), "{}", explorer.screen());
    explorer.press("e");
    assert!(explorer.screen().contains("Held at the end  513 MiB"), "{}", explorer.screen());
    // Zoomed in: the cursor stays in view, and moving past the edge scrolls.
    explorer.press(". + + +");
    insta::assert_snapshot!("memory_zoomed_120x40", explorer.screen());
    let only = |e: &mut Explorer| e.screen().lines().find(|l| l.contains("only ")).map(str::to_owned);
    let part = only(&mut explorer).unwrap();
    explorer.press("e");
    assert!(only(&mut explorer).is_some_and(|now| now != part), "it moves to the end");
    explorer.press("- - -");
    assert_eq!(only(&mut explorer), None, "{}", explorer.screen());
    explorer.press(". + + 0");
    assert_eq!(only(&mut explorer), None);
    explorer.press(". down enter");
    // Nothing ran on a GPU: a timeline would be empty. The end and the peak are the places to look at.
    assert_eq!(explorer.app.current_scope(), KeyScope::Memory);
    assert!(explorer.screen().contains("Held at the end"), "{}", explorer.screen());
    explorer.press("enter");
    assert!(explorer.screen().contains("Held at the peak"), "{}", explorer.screen());
    // Compared with another snapshot, at its peak and at its end; no comparison after the last report.
    let both = [fixture("leak"), fixture("train")];
    for (name, size) in [("memory_beside_80x24", (80, 24)), ("memory_beside_120x40", (120, 40))] {
        let mut explorer = Explorer::open(&both, size);
        explorer.press("c");
        insta::assert_snapshot!(name, explorer.screen());
    }
    let mut explorer = Explorer::open(&both, (120, 40));
    explorer.press("c e");
    assert!(explorer.screen().contains("at its end"), "{}", explorer.screen());
    explorer.press("c");
    assert!(!explorer.screen().contains("against"), "{}", explorer.screen());
    let mut alone = Explorer::open(&leak, (120, 40));
    alone.press("c");
    assert!(alone.screen().contains("no other report that is open has memory"), "{}", alone.screen());
    let mut narrow = Explorer::open(&leak, (80, 24));
    narrow.press("tab");
    assert!(narrow.screen().contains("Segments at the end"), "{}", narrow.screen());
    // A run without memory events says so, and how to record them.
    let mut none = Explorer::open(&[packed("single")], (120, 40));
    none.press("E");
    assert!(none.screen().contains("nothing is recorded of memory"), "{}", none.screen());
    let mut oom = Explorer::open(&[fixture("oom")], (120, 40));
    assert!(oom.screen().contains("3 requests refused"), "{}", oom.screen());
}
