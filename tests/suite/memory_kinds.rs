//! Kinds of memory problems, each in several generated snapshots: reasons for a refused request, growth,
//! steps, causes of a peak, and fragmentation.

use super::made_memory::{Allocator, Py, pickle, text};
use super::support::{read, root, run, scratch};
use serde_json::Value;
use std::path::PathBuf;
use warpscope::analysis::memory::{Category, MemoryFinding, MemoryVerdict, Usage, analyze_usage as memory_usage, held_rows};
use warpscope::model::Cancel;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn file(bytes: &[u8]) -> PathBuf {
    let path = tempfile::Builder::new().suffix(".pickle").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn usage(bytes: &[u8]) -> Usage {
    memory_usage(&read(&file(bytes)).unwrap(), &Cancel::default()).unwrap()
}

fn ids(usage: &Usage) -> Vec<MemoryVerdict> {
    usage.main().unwrap().findings.iter().map(|f| f.id).collect()
}

/// A stack as lines of one file, innermost frame first.
fn frames(functions: &[(&str, i64)]) -> Py {
    let frame = |(name, line): &(&str, i64)| {
        Py::Dict(vec![("name", text(name)), ("filename", text("/home/me/serve.py")), ("line", Py::Int(*line))])
    };
    Py::List(functions.iter().map(frame).collect())
}

/// A segment of equal blocks, with the use of each from the segment's start.
struct Segment {
    pool: (i64, i64),
    stream: i64,
    block: u64,
    used: &'static [bool],
}

const FULL: &[bool] = &[true];
const FREE: &[bool] = &[false];

fn segment(block: u64, used: &'static [bool]) -> Segment {
    Segment { pool: (0, 0), stream: 0, block, used }
}

/// A snapshot written when a request is refused, with the history of its segments; the
/// request is for the default pool and stream.
fn refused(asked: u64, free: u64, segments: &[(usize, Segment)], settings: &str) -> Vec<u8> {
    let int = |n: u64| Py::Int(i64::try_from(n).unwrap());
    let (mut list, mut trace, mut next) = (Vec::new(), Vec::new(), 1_u64 << 40);
    let mut time = 0;
    let mut event = |action: &str, key: &'static str, address: u64, size: u64, of: (i64, (i64, i64)), by: &[(&str, i64)]| {
        time += 10;
        let pool = Py::List(vec![Py::Int(of.1.0), Py::Int(of.1.1)]);
        trace.push(Py::Dict(vec![
            ("action", text(action)),
            (key, int(address)),
            ("size", int(size)),
            ("stream", Py::Int(of.0)),
            ("pool_id", pool),
            ("time_us", Py::Int(1_700_000_000_000_000 + time)),
            ("frames", frames(by)),
        ]));
    };
    for (count, s) in segments {
        for _ in 0..*count {
            let of = (s.stream, s.pool);
            let by: &[(&str, i64)] = if s.pool == (0, 0) { &[("load", 7), ("main", 1)] } else { &[("capture", 412), ("main", 1)] };
            let size = s.block * s.used.len() as u64;
            event("segment_alloc", "addr", next, size, of, by);
            let mut blocks = Vec::new();
            for (i, &used) in s.used.iter().enumerate() {
                let at = next + s.block * i as u64;
                event("alloc", "addr", at, s.block, of, by);
                let state = if used { "active_allocated" } else { "inactive" };
                blocks.push(Py::Dict(vec![
                    ("address", int(at)),
                    ("size", int(s.block)),
                    ("requested_size", int(s.block)),
                    ("state", text(state)),
                    ("frames", frames(by)),
                ]));
            }
            for (i, _) in s.used.iter().enumerate().filter(|u| !u.1) {
                let at = next + s.block * i as u64;
                event("free_requested", "addr", at, s.block, of, &[]);
                event("free_completed", "addr", at, s.block, of, &[]);
            }
            list.push(Py::Dict(vec![
                ("device", Py::Int(0)),
                ("address", int(next)),
                ("total_size", int(size)),
                ("stream", Py::Int(s.stream)),
                ("segment_type", text("large")),
                ("segment_pool_id", Py::List(vec![Py::Int(s.pool.0), Py::Int(s.pool.1)])),
                ("blocks", Py::List(blocks)),
            ]));
            next += size + GIB;
        }
    }
    event("oom", "device_free", free, asked, (0, (0, 0)), &[("logits", 9), ("main", 1)]);
    pickle(&Py::Dict(vec![
        ("segments", Py::List(list)),
        ("device_traces", Py::List(vec![Py::List(trace)])),
        ("allocator_settings", Py::Dict(vec![("PYTORCH_CUDA_ALLOC_CONF", text(settings))])),
    ]))
}

/// The reason given for a refused request depends on the place in which memory is free.
#[test]
fn out_of_memory_has_kinds() {
    use MemoryVerdict::{Fragmentation, OutOfMemory};
    const HOLES: &[bool] = &[true, false, true, false, true, false, true, false, true, false];
    let private = |n: usize, used| (n, Segment { pool: (0, 1), ..segment(GIB, used) });
    let other = |n: usize, used| (n, Segment { stream: 77, ..segment(GIB, used) });
    let held = |n: usize| (n, segment(2 * GIB, FULL));
    for (what, asked, free, segments, settings, kind, first, says) in [
        (
            "the device had room",
            2 * MIB,
            203 * GIB,
            vec![held(34), (7, segment(2 * GIB, FREE))],
            "",
            "driver-refused",
            OutOfMemory,
            "203 GiB was free",
        ),
        ("the device had room, nothing is free", 4 * GIB, 60 * GIB, vec![held(5)], "", "driver-refused", OutOfMemory, "60 GiB was free"),
        (
            "a limit that is set",
            4 * GIB,
            60 * GIB,
            vec![held(5)],
            "per_process_memory_fraction:0.2",
            "process-limit",
            OutOfMemory,
            "may not have more",
        ),
        (
            "no limit is set",
            4 * GIB,
            60 * GIB,
            vec![held(5)],
            "per_process_memory_fraction:1.0",
            "driver-refused",
            OutOfMemory,
            "60 GiB was free",
        ),
        (
            "a private pool",
            12 * GIB,
            8 * GIB,
            vec![held(20), private(30, FREE)],
            "",
            "private-pools",
            OutOfMemory,
            "private pool (0, 1), made by capture (serve.py:412)",
        ),
        ("another stream", 12 * GIB, 8 * GIB, vec![held(20), other(10, &[true, false])], "", "other-streams", OutOfMemory, "other streams"),
        ("more than there is", 40 * GIB, 8 * GIB, vec![held(30)], "", "too-much", OutOfMemory, "60 GiB was held"),
        (
            "more than there is, with a small pool",
            40 * GIB,
            8 * GIB,
            vec![held(30), private(2, FREE)],
            "",
            "too-much",
            OutOfMemory,
            "60 GiB was held",
        ),
        (
            "holes",
            2 * GIB,
            100 * MIB,
            vec![held(20), (8, segment(100 * MIB, HOLES))],
            "",
            "fragmented",
            Fragmentation,
            "in pieces below 2 GiB",
        ),
        (
            "holes that would not do",
            30 * GIB,
            100 * MIB,
            vec![held(20), (8, segment(100 * MIB, HOLES))],
            "",
            "too-much",
            OutOfMemory,
            "was held",
        ),
        (
            "pool and holes that are small",
            12 * GIB,
            8 * GIB,
            vec![held(20), (1, segment(100 * MIB, HOLES)), private(30, FREE)],
            "",
            "private-pools",
            OutOfMemory,
            "private pool",
        ),
    ] {
        let found = usage(&refused(asked, free, &segments, settings));
        let list: &[MemoryFinding] = &found.main().unwrap().findings;
        let own = list.iter().find(|f| f.id == OutOfMemory).unwrap();
        assert_eq!((own.details.kind, list[0].id), (Some(kind), first), "{what}: {list:?}");
        assert!(own.headline.contains(says), "{what}: {}", own.headline);
        // Advice against fragmentation only if fragmentation is the cause.
        let advice = list.iter().flat_map(|f| &f.actions).any(|a| a.contains("expandable_segments"));
        assert_eq!(advice, first == Fragmentation, "{what}: {list:?}");
    }
}

/// A refusal that the program caught: free memory is reported as of that moment, not the end.
#[test]
fn what_was_free_is_that_of_the_moment() {
    let mut a = Allocator::new(true);
    let all: Vec<u64> = (0..160).map(|i| a.alloc(5 * MIB, 30 + i % 2)).collect();
    all.iter().step_by(2).for_each(|&at| a.free(at));
    a.event("oom", 10 * MIB, 30 * MIB, 44);
    all.iter().skip(3).step_by(2).for_each(|&at| a.free(at));
    a.empty_cache();
    let found = usage(&a.written());
    assert_eq!(ids(&found), [MemoryVerdict::Fragmentation, MemoryVerdict::OutOfMemory], "{:?}", found.main().unwrap().findings);
}

/// Refusals at different sizes, all just above the memory in use, show a limit; one below a later use shows none.
#[test]
fn refusals_show_a_limit() {
    for (later, kind) in [(0, "process-limit"), (40, "driver-refused")] {
        let mut a = Allocator::new(true);
        (0..100).for_each(|_| {
            a.alloc(20 * MIB, 5);
        });
        a.event("oom", 70 * GIB, 40 * MIB, 44);
        a.alloc(20 * MIB, 5);
        a.event("oom", 70 * GIB, 30 * MIB, 44);
        (0..later).for_each(|_| {
            a.alloc(20 * MIB, 5);
        });
        let found = usage(&a.written());
        assert_eq!(found.main().unwrap().findings[0].details.kind, Some(kind), "{:?}", found.main().unwrap().findings);
    }
}

/// One forward pass of 12 layers, from a public snapshot: everything is freed.
#[test]
fn layers_of_one_pass_are_no_steps() {
    let found = memory_usage(&read(&root().join("fixtures/torch/memory/layers.pickle.gz")).unwrap(), &Cancel::default()).unwrap();
    let device = found.main().unwrap();
    assert_eq!((device.ledger.before, device.ledger.bytes_at_end()), (525_286_400, 525_286_400));
    assert!(device.findings.is_empty() && device.steps.list.is_empty(), "{:?} {:?}", device.findings, device.steps.found);
    // No evidence that gradients were computed.
    let of_peak = held_rows(device, &found.sites, device.peak.0);
    assert!(of_peak.iter().all(|r| r.category != Category::Gradients), "{of_peak:?}");
}

/// A trace of allocations and frees with stacks, as PyTorch writes it.
#[derive(Default)]
struct Trace {
    entries: Vec<Py>,
    time: i64,
    next: i64,
}

impl Trace {
    fn event(&mut self, action: &str, at: i64, size: u64, by: &[(&str, i64)]) {
        self.time += 10;
        self.entries.push(Py::Dict(vec![
            ("action", text(action)),
            ("addr", Py::Int(at)),
            ("size", Py::Int(size as i64)),
            ("stream", Py::Int(0)),
            ("time_us", Py::Int(self.time)),
            ("frames", frames(by)),
        ]));
    }

    fn alloc(&mut self, size: u64, by: &[(&str, i64)]) -> (i64, u64) {
        self.next += 1 << 30;
        let at = self.next;
        self.event("alloc", at, size, by);
        (at, size)
    }

    fn free(&mut self, of: (i64, u64)) {
        self.event("free_requested", of.0, of.1, &[]);
        self.event("free_completed", of.0, of.1, &[]);
    }

    fn written(self) -> Vec<u8> {
        pickle(&Py::Dict(vec![("segments", Py::List(vec![])), ("device_traces", Py::List(vec![Py::List(self.entries)]))]))
    }
}

/// A forward pass through this many layers, each keeping something until the end, then the
/// head. With `keep` the caller keeps it all.
fn pass(t: &mut Trace, layers: usize, keep: bool) {
    let model = |line| [("forward", line), ("run", 3), ("main", 1)];
    let layer = |line| [("forward", line), ("forward", 56), ("run", 3), ("main", 1)];
    let first = t.alloc(8 * MIB, &model(36));
    let mut kept = vec![first];
    for _ in 0..layers {
        let brief: Vec<_> = (0..4).map(|i| t.alloc(16 * MIB, &layer(120 + i))).collect();
        kept.push(t.alloc(12 * MIB, &layer(130)));
        brief.into_iter().for_each(|b| t.free(b));
    }
    let head = t.alloc(40 * MIB, &model(60));
    t.free(head);
    kept.into_iter().for_each(|k| t.free(k));
    if keep {
        t.alloc(6 * MIB, &[("remember", 99), ("main", 1)]);
    }
}

#[test]
fn only_what_stays_from_step_to_step_grows() {
    for (what, passes, layers, keep, grows) in [
        ("one pass of 12 layers", 1, 12, false, false),
        ("one pass of 48 layers", 1, 48, false, false),
        ("passes that keep nothing", 12, 4, false, false),
        ("passes that keep something", 12, 4, true, true),
    ] {
        let mut t = Trace::default();
        (0..passes).for_each(|_| pass(&mut t, layers, keep));
        let found = usage(&t.written());
        let device = found.main().unwrap();
        assert_eq!(ids(&found).contains(&MemoryVerdict::Growth), grows, "{what}: {:?} {:?}", device.findings, device.steps.found);
        if passes == 1 {
            assert!(device.steps.list.is_empty(), "{what}: {:?}", device.steps.found);
        }
    }
}

/// Without timestamps the event's index is used as its time, everywhere.
#[test]
fn snapshots_without_times() {
    let int = Py::Int;
    let event = |action: &str, at: i64, size: i64| {
        Py::Dict(vec![("action", text(action)), ("addr", int(at)), ("size", int(size)), ("stream", int(0))])
    };
    let large = 100 << 20;
    let mut trace: Vec<Py> = (0..20).map(|i| event("alloc", (i + 1) << 32, large)).collect();
    trace.extend([
        event("alloc", 99 << 32, 4 * (1 << 30)),
        event("free_requested", 99 << 32, 4 * (1 << 30)),
        event("free_completed", 99 << 32, 4 * (1 << 30)),
    ]);
    trace.extend((0..9).flat_map(|i| [event("alloc", (i + 100) << 32, large), event("free_requested", (i + 100) << 32, large)]));
    let path = file(&pickle(&Py::Dict(vec![("segments", Py::List(vec![])), ("device_traces", Py::List(vec![Py::List(trace)]))])));
    let name = path.to_str().unwrap();
    let (code, out, err) = run(&["memory", name, "--format", "json"]);
    assert_eq!(code, 0, "{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["peak_ns"].is_null() && found["at_ns"].is_null() && found["peak_event"] == 21, "{out}");
    assert!(found["notes"].as_array().unwrap().iter().any(|n| n["text"].as_str().unwrap().contains("no times")), "{out}");
    assert_eq!(found["findings"][0]["id"], "peak", "{out}");
    assert!(
        found["findings"].as_array().unwrap().iter().flat_map(|f| f["evidence"].as_array().unwrap()).all(|e| e["unit"] != "ns"),
        "{out}"
    );
    let page = run(&["memory", name, "--format", "table"]).1;
    assert!(page.contains("at event 21") && !page.contains(" ns") && !page.contains(" µs"), "{page}");
    let (code, _, err) = run(&["memory", name, "--at", "5us"]);
    assert!(code != 0 && err.contains("no times"), "{err}");
}

/// One short-lived block alone makes the peak, independent of host pauses and other allocations of the same line.
#[test]
fn a_temporary_that_alone_makes_the_peak() {
    for (what, parameters, large, wait, line, wanted) in [
        ("at once", 10, GIB, 0, 77, true),
        ("while the host waits", 10, GIB, 1_000_000, 77, true),
        ("by the line of the parameters", 10, GIB, 0, 5, true),
        ("in a large program", 90, GIB, 0, 77, true),
        ("small beside the rest", 200, 400 * MIB, 0, 77, false),
    ] {
        let mut a = Allocator::new(true);
        (0..parameters).for_each(|_| {
            a.alloc(20 * MIB, 5);
        });
        for _ in 0..8 {
            let brief = a.alloc(4 * MIB, 9);
            a.free(brief);
        }
        let temporary = a.alloc(large, line);
        a.wait(wait);
        a.free(temporary);
        for _ in 0..8 {
            let brief = a.alloc(4 * MIB, 9);
            a.free(brief);
        }
        let found = usage(&a.written());
        let findings = &found.main().unwrap().findings;
        assert_eq!(ids(&found).first() == Some(&MemoryVerdict::Peak), wanted, "{what}: {findings:?}");
    }
}

/// Alternating kept and freed blocks fragment memory. One large free block is not fragmentation but a reserve, and so
/// are free ends of segments.
#[test]
fn alternating_blocks_leave_pieces() {
    for (what, count, stays, goes, fragmented) in [
        ("like sizes", 160, 5 * MIB, 5 * MIB, true),
        ("small blocks stay", 60, 3 * MIB / 2, 9 * MIB / 2, true),
        ("a small program", 40, 3 * MIB / 2, 3 * MIB / 2, true),
        ("few of them", 6, 3 * MIB / 2, 3 * MIB / 2, false),
        ("little goes", 60, 9 * MIB, MIB + MIB / 2, false),
    ] {
        let mut a = Allocator::new(true);
        let mut gone = Vec::new();
        for _ in 0..count {
            a.alloc(stays, 31);
            gone.push(a.alloc(goes, 32));
        }
        gone.into_iter().for_each(|at| a.free(at));
        a.wait(1000);
        let found = usage(&a.written());
        let findings = &found.main().unwrap().findings;
        assert_eq!(
            ids(&found).contains(&MemoryVerdict::Fragmentation),
            fragmented,
            "{what}: {findings:?} {:?}",
            found.main().unwrap().free
        );
    }
    let mut a = Allocator::new(true);
    (0..10).for_each(|_| {
        a.alloc(20 * MIB, 5);
    });
    let large = a.alloc(GIB, 77);
    a.free(large);
    (0..4).for_each(|_| {
        a.alloc(30 * MIB, 8);
    });
    let found = usage(&a.written());
    assert!(!ids(&found).contains(&MemoryVerdict::Fragmentation), "a reserve: {:?}", found.main().unwrap().findings);
}

/// Blocks without a stack count as gradients only if a stack shows an earlier `backward()`.
#[test]
fn gradients_only_where_they_are_proved() {
    for (what, backward, wanted) in [("inference", false, false), ("training", true, true)] {
        let mut t = Trace::default();
        for _ in 0..6 {
            t.alloc(64 * MIB, &[("forward", 36), ("main", 1)]);
        }
        if backward {
            let at = t.next + (1 << 30);
            t.event("alloc", at, 512, &[]);
            if let Some(Py::Dict(pairs)) = t.entries.last_mut() {
                let frame = Py::Dict(vec![
                    ("name", text("backward")),
                    ("filename", text("/usr/lib/python3/site-packages/torch/_tensor.py")),
                    ("line", Py::Int(625)),
                ]);
                pairs.retain(|p| p.0 != "frames");
                pairs.push(("frames", Py::List(vec![frame])));
            }
            t.next = at;
        }
        (0..6).for_each(|_| {
            t.alloc(64 * MIB, &[]);
        });
        let found = usage(&t.written());
        let device = found.main().unwrap();
        let any = held_rows(device, &found.sites, device.peak.0).iter().any(|r| r.category == Category::Gradients && r.bytes >= 64 * MIB);
        assert_eq!(any, wanted, "{what}");
    }
}
