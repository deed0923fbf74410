//! Contents of a report besides kernels: host calls, waits, memory, counters, threads, collectives. Checked by SQL on
//! the export and by `serde_json` on the trace; also for all reports of the corpus, if there is one.

use super::support::{edited, packed, read, read_as, root, unpacked};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use warpscope::analysis::{GroupBy, Grouping, Paths};
use warpscope::import::{Parts, Wants};
use warpscope::model::range::{NONE, Payload};
use warpscope::model::{CallKind, HostCalls, LaunchId, MemOps, MemoryKind, Profile, RangeOrigin, StackFrame, ThreadState, WaitKind};

/// Result of an SQL count; 0 if the table or column does not exist.
fn count(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |r| r.get::<_, Option<i64>>(0)).ok().flatten().unwrap_or(0)
}

fn size(n: usize) -> i64 {
    i64::try_from(n).unwrap()
}

/// Compares every table of an export with the profile.
fn compare(path: &Path, profile: &Profile) {
    let db = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let rows = |sql: &str| count(&db, sql);
    let name = path.display();
    let all: u64 = profile.calls.names.iter().map(|n| n.count).sum();
    assert_eq!(all.cast_signed(), rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), "{name}: calls");
    let launched_nothing = if rows("SELECT count(*) FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'") > 0 {
        "AND NOT EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL k \
         WHERE k.correlationId = r.correlationId AND k.globalPid / 16777216 = r.globalTid / 16777216)"
    } else {
        ""
    };
    for (kind, like) in [(CallKind::Sync, "%Synchronize%"), (CallKind::Alloc, "cudaMalloc%"), (CallKind::Copy, "cudaMemcpy%")] {
        let sql = format!(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE '{like}' {launched_nothing}"
        );
        let bare = like.trim_matches('%');
        let of_kind = (0..profile.calls.len()).filter(|&i| {
            profile.calls.kind(i) == kind
                && profile
                    .calls
                    .call_name(i)
                    .is_some_and(|n| if like.starts_with('%') { n.name.contains(bare) } else { n.name.starts_with(bare) })
        });
        assert_eq!(size(of_kind.count()), rows(&sql), "{name}: {kind:?}");
    }
    let copies = rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY") + rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET");
    assert_eq!(size(profile.memops.len()), copies, "{name}: memops");
    for op in profile.memops.iter() {
        let Some(call) = op.call else { continue };
        let starts = profile.calls.start[call as usize];
        assert!(starts <= op.start.0.saturating_add(1_000_000), "{name}: a copy at {} before its call at {starts}", op.start.0);
    }
    let starts = |table: &str| rows(&format!("SELECT count(*) FROM {table} WHERE start IS NOT NULL"));
    assert_eq!(size(profile.waits.len()), starts("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), "{name}: waits");
    for (kind, number) in [(WaitKind::Event, 1), (WaitKind::StreamForEvent, 2), (WaitKind::Stream, 3), (WaitKind::Context, 4)] {
        let have = profile.waits.kind.iter().filter(|k| **k == kind).count();
        assert_eq!(
            size(have),
            rows(&format!("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION WHERE syncType = {number}")),
            "{name}: {kind:?}"
        );
    }
    assert_eq!(size(profile.os_calls.start.len()), starts("OSRT_API"), "{name}: OS calls");
    let time: i64 = profile.os_calls.duration.iter().sum();
    assert_eq!(time, rows("SELECT sum(max(end - start, 0)) FROM OSRT_API"), "{name}: time in OS calls");
    assert_eq!(size(profile.states.len()), starts("SCHED_EVENTS"), "{name}: scheduling");
    let running = profile.states.iter().filter(|s| s.state == ThreadState::Running).count();
    assert_eq!(size(running), rows("SELECT count(*) FROM SCHED_EVENTS WHERE isSchedIn = 1"), "{name}: put on a processor");
    assert_eq!(size(profile.samples.samples.len()), starts("COMPOSITE_EVENTS"), "{name}: samples");
    let frames: usize = profile.samples.samples.iter().map(|s| profile.samples.frames_of(s.stack).count()).sum();
    // The marks where nsys stopped unwinding are not frames.
    let chains = "SELECT count(*) FROM SAMPLING_CALLCHAINS WHERE id IN (SELECT id FROM COMPOSITE_EVENTS) AND symbol NOT IN \
         (SELECT id FROM StringIds WHERE value IN ('[Max depth]', '[Broken backtraces]'))";
    assert_eq!(size(frames), rows(chains), "{name}: frames");
    assert_eq!(size(profile.memory.events.len()), starts("CUDA_GPU_MEMORY_USAGE_EVENTS"), "{name}: memory events");
    let given: i64 = profile.memory.events.iter().map(|e| e.bytes).sum();
    let sql = "SELECT sum(CASE memoryOperationType WHEN 1 THEN -bytes ELSE bytes END) FROM CUDA_GPU_MEMORY_USAGE_EVENTS";
    assert_eq!(given, rows(sql), "{name}: bytes in use at the end");
    let values: usize = profile.counters.iter().map(|c| c.values.len()).sum();
    assert_eq!(size(values), rows("SELECT count(*) FROM GPU_METRICS"), "{name}: metrics");
    assert!(profile.counters.iter().all(|c| c.times.is_sorted() && c.times.len() == c.values.len()), "{name}");
    assert_eq!(
        size(profile.counters.len()),
        rows("SELECT count(*) FROM (SELECT DISTINCT typeId, metricId FROM GPU_METRICS)"),
        "{name}: tracks"
    );
    assert_eq!(size(profile.overhead.len()), starts("PROFILER_OVERHEAD") + starts("CUPTI_ACTIVITY_KIND_OVERHEAD"), "{name}: overhead");
    assert_eq!(profile.clock.epoch_ns.unwrap_or(0), rows("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"), "{name}: clock");
    let marked = "FROM NVTX_EVENTS WHERE eventType IN (59, 60, 70, 71) AND start IS NOT NULL";
    assert_eq!(size(profile.ranges.len()), rows(&format!("SELECT count(*) {marked}")), "{name}: ranges");
    let colored = (0..profile.ranges.len()).filter(|&i| profile.ranges.color(i).is_some()).count();
    assert_eq!(size(colored), rows(&format!("SELECT count(*) {marked} AND color <> 0")), "{name}: colours");
    let with_category = (0..profile.ranges.len()).filter(|&i| profile.ranges.category(i).is_some()).count();
    assert_eq!(size(with_category), rows(&format!("SELECT count(*) {marked} AND category > 0")), "{name}: categories");
    for thread in profile.threads.iter().filter(|t| t.name.is_some()) {
        let global = (i64::from(thread.pid) << 24) | i64::from(thread.tid);
        let sql = format!(
            "SELECT count(*) FROM ThreadNames t JOIN StringIds s ON s.id = t.nameId WHERE t.globalTid & 0xffffffffffff = {global} AND s.value = '{}'",
            thread.name.as_deref().unwrap().replace('\'', "''")
        );
        assert!(rows(&sql) > 0, "{name}: {thread:?}");
    }
}

#[test]
fn every_table_of_an_export() {
    for name in
        ["whole_llm", "whole_metrics", "zoo", "zoo_2023", "single", "threads", "procs", "graph_node", "graph_whole", "papi", "ddp_rank0"]
    {
        let path = unpacked(name);
        compare(&path, &read(&path).unwrap());
    }
}

#[test]
fn every_table_of_the_exports_of_the_corpus() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS") else {
        eprintln!("not run: WARPSCOPE_CORPUS is not set");
        return;
    };
    let mut n = 0;
    for folder in ["captures/llm", "captures/zoo", "captures/ddp", "captures/launches", "samples/nsys"] {
        let Ok(files) = fs::read_dir(Path::new(&corpus).join(folder)) else { continue };
        for path in files.filter_map(|f| Some(f.ok()?.path())).filter(|p| p.extension().is_some_and(|e| e == "sqlite")) {
            // Reports without correlation ids or times are left to other tests.
            if let Ok(profile) = read(&path) {
                compare(&path, &profile);
                n += 1;
            }
        }
    }
    assert!(n >= 20, "{n} exports");
}

#[test]
fn scheduling_samples_and_nvtx_details() {
    let thread = (1_i64 << 24) + 7;
    let sql = format!(
        "CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
         INSERT INTO SCHED_EVENTS VALUES (20, 3, 0, {thread}), (10, 3, 1, {thread}), (NULL, 1, 1, {thread});
         INSERT INTO StringIds VALUES (9001, 'inner'), (9002, 'outer'), (9003, '/opt/lib/libx.so'), (9004, 'mine'), (9005, '{{\"a\": 1}}');
         CREATE TABLE COMPOSITE_EVENTS (id INTEGER PRIMARY KEY, start INTEGER, cpu INTEGER, threadState INTEGER, globalTid INTEGER);
         INSERT INTO COMPOSITE_EVENTS VALUES (1, 40, 0, 1, {thread}), (2, 30, 0, 1, {thread}), (3, 50, 0, 1, {thread});
         CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);
         INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 9002, 9003, 1), (1, 9001, 9003, 0), (2, 9001, NULL, 0), (3, 9001, 9003, 0), (3, 9002, 9003, 1);
         DELETE FROM NVTX_EVENTS;
         INSERT INTO NVTX_EVENTS (start, eventType, category, text, globalTid, domainId) VALUES (0, 33, 5, 'mine', {thread}, 0);
         INSERT INTO NVTX_EVENTS (start, end, eventType, category, color, text, globalTid, domainId, jsonTextId) VALUES (1, 9, 59, 5, 4278255360, 'a', {thread}, 0, 9005);
         INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (2, 3, 59, 'b', {thread}, 0);
         INSERT INTO NVTX_EVENTS (start, end, eventType, category, text, globalTid, domainId, doubleValue) VALUES (4, 5, 59, 6, 'c', {thread}, 0, 1.5);
         INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, uint64Value) VALUES (6, 7, 59, 'd', {thread}, 0, -1);"
    );
    let path = edited("zoo", &sql);
    let profile = read(&path).unwrap();
    let states: Vec<_> = profile.states.iter().map(|s| (s.time, s.state, s.cpu, profile.threads[s.thread as usize].tid)).collect();
    assert_eq!(states, [(10, ThreadState::Running, Some(3), 7), (20, ThreadState::Off, Some(3), 7)]);
    let name = |f: &StackFrame| f.file.as_ref().map_or_else(|| f.function.to_string(), |file| format!("{} ({file})", f.function));
    let names = |stack| -> Vec<String> { profile.samples.frames_of(stack).map(name).collect() };
    let samples: Vec<_> = profile.samples.samples.iter().map(|s| (s.time, names(s.stack))).collect();
    assert_eq!(
        samples,
        [(30, vec!["inner"]), (40, vec!["inner (libx.so)", "outer (libx.so)"]), (50, vec!["inner (libx.so)", "outer (libx.so)"])]
            .map(|(time, names)| (time, names.into_iter().map(str::to_owned).collect()))
    );
    assert_eq!(profile.samples.stacks.len(), 3, "stacks are interned");
    let r = &profile.ranges;
    assert_eq!((r.len(), r.color(0), r.color(1)), (4, Some(0xff00_ff00), None));
    let categories: Vec<_> = (0..4).map(|i| r.category(i).map(|c| &**c)).collect();
    assert_eq!(categories, [Some("mine"), None, Some("6"), None]);
    assert_eq!(
        r.payloads.iter().map(|(i, p)| (*i, p.clone())).collect::<Vec<_>>(),
        [(0, Payload::Json("{\"a\": 1}".into())), (2, Payload::Real(1.5)), (3, Payload::Unsigned(u64::MAX))]
    );
    let plain = read_as(&path, Wants::LAUNCHES).unwrap();
    assert!((0..4).all(|i| plain.ranges.color(i).is_none()) && plain.ranges.payloads.is_empty());
    assert!(plain.states.is_empty() && plain.samples.samples.is_empty(), "what nobody asks for is not read");
}

#[test]
fn metrics_have_units_and_devices() {
    let profile = read(&packed("whole_metrics")).unwrap();
    let clock = profile.counters.iter().find(|c| &*c.name == "GPC Clock Frequency").unwrap();
    assert_eq!((&*clock.unit, clock.device), ("MHz", Some(0)));
    assert!(clock.values.iter().all(|v| (100.0..3000.0).contains(v)), "an H200 runs at most at 1980 MHz: {:?}", &clock.values[..3]);
    let busy = profile.counters.iter().find(|c| &*c.name == "SMs Active").unwrap();
    assert!(busy.unit.contains('%') && busy.values.iter().all(|v| (0.0..=100.0).contains(v)), "{:?}", busy.unit);
}

#[test]
fn copies_know_their_calls() {
    let profile = read(&packed("whole_llm")).unwrap();
    let joined: Vec<_> = profile.memops.iter().filter_map(|op| profile.calls.call_name(op.call? as usize)).collect();
    assert!(!joined.is_empty() && joined.iter().all(|n| matches!(n.kind, CallKind::Copy | CallKind::Set)), "{joined:?}");
    assert!(profile.threads.iter().any(|t| t.name.as_deref() == Some("python3")));
    assert_eq!(profile.devices[0].architecture().as_deref(), Some("sm_90"));
}

fn trace(name: &str) -> (PathBuf, Vec<Value>) {
    let path = root().join(format!("fixtures/torch/{name}.pt.trace.json.gz"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    (path, trace["traceEvents"].as_array().unwrap().clone())
}

#[test]
fn every_event_of_a_trace() {
    let (path, events) = trace("whole");
    let profile = read(&path).unwrap();
    let of = |category: &str| events.iter().filter(|e| e["cat"] == category).collect::<Vec<_>>();
    let all = &profile.ranges;
    let ranges = |origin| (0..all.len()).filter(move |&i| all.get(i).origin == origin);
    assert_eq!(ranges(RangeOrigin::Operator).count(), of("cpu_op").len());
    assert_eq!(ranges(RangeOrigin::Python).count(), of("python_function").len());
    for (row, event) in ranges(RangeOrigin::Operator).zip(of("cpu_op")) {
        assert_eq!(profile.ranges.label(profile.ranges.get(row).name), event["name"].as_str().unwrap());
        let operator = profile.ranges.operator(row).unwrap();
        assert_eq!(u64::from(operator.external), event["args"]["External id"].as_u64().unwrap());
        assert_eq!(operator.sequence, event["args"]["Sequence number"].as_u64().map_or(NONE, |n| u32::try_from(n).unwrap()));
        let dims = event["args"]["Input Dims"].as_array().is_some_and(|d| !d.is_empty());
        assert_eq!(profile.ranges.operator_shapes(row).is_some(), dims, "{event}");
    }
    let memory = of("cpu_instant_event");
    assert_eq!(profile.memory.events.len(), memory.len());
    let bytes = |e: &&Value| e["args"]["Bytes"].as_i64().unwrap();
    assert_eq!(profile.memory.events.iter().map(|e| e.bytes).sum::<i64>(), memory.iter().map(bytes).sum::<i64>());
    let on_gpu = memory.iter().filter(|e| e["args"]["Device Type"] == 1).count();
    assert_eq!(profile.memory.events.iter().filter(|e| e.device == Some(0) && e.kind == Some(MemoryKind::Device)).count(), on_gpu);
    assert_eq!(profile.memory.totals.len(), on_gpu);
    assert_eq!(profile.overhead.len(), of("overhead").len());
    assert!(profile.threads.iter().any(|t| t.name.is_some()));
    // It was made on 2026-11-20.
    assert!((1_795_132_800_000_000_000..1_795_219_200_000_000_000).contains(&profile.clock.epoch_ns.unwrap()), "{:?}", profile.clock);

    let explorer = read_as(&path, Wants::LAUNCHES).unwrap();
    assert_eq!(explorer.ranges.len(), of("cpu_op").len());
    let rows = |p: &Profile| {
        format!(
            "{:?}",
            Grouping::from_profile(p, GroupBy::Nvtx, Some(&Paths::from_profile(p))).rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>()
        )
    };
    assert_eq!(rows(&profile), rows(&explorer), "functions of Python enclose launches, but nobody marked them");
    assert!(explorer.memory.events.is_empty() && explorer.ranges.operator(0).is_none(), "what nobody asks for is not read");
}

#[test]
fn collectives_know_their_launch_and_their_group() {
    let (path, events) = trace("ddp_rank0");
    let profile = read(&path).unwrap();
    let want: Vec<_> = events.iter().filter(|e| e["cat"] == "kernel" && !e["args"]["Collective name"].is_null()).collect();
    assert!(!want.is_empty());
    assert_eq!(profile.collectives.len(), want.len());
    for collective in &profile.collectives {
        let launch = collective.launch.expect("its kernel is in the trace");
        let kernel = profile.launches.kernel(launch as usize);
        assert!(profile.kernels[kernel.0 as usize].function().starts_with("nccl"));
        assert_eq!(profile.launches.start(launch as usize), collective.start);
        assert_eq!((&*collective.group, collective.group_size, &*collective.ranks), ("0", Some(2), "[0, 1]"));
        let _ = LaunchId(launch);
    }
    let elements: u64 = want.iter().map(|e| e["args"]["In msg nelems"].as_u64().unwrap()).sum();
    assert_eq!(profile.collectives.iter().filter_map(|c| c.elements_in).sum::<u64>(), elements);
    assert!(read_as(&path, Wants::ALL.without(Parts::COLLECTIVES)).unwrap().collectives.is_empty());
}

#[test]
fn a_collective_is_found_whichever_thread_launched_it() {
    let (_, mut events) = trace("ddp_rank0");
    let of_nccl: Vec<i64> = events
        .iter()
        .filter(|e| e["cat"] == "kernel" && !e["args"]["Collective name"].is_null())
        .map(|e| e["args"]["correlation"].as_i64().unwrap())
        .collect();
    for event in events.iter_mut().filter(|e| e["cat"] == "cuda_runtime" || e["cat"] == "cuda_driver") {
        let correlation = event["args"]["correlation"].as_i64().unwrap_or_default();
        if of_nccl[..of_nccl.len() / 2].contains(&correlation) {
            event["tid"] = 4711.into();
        }
    }
    let path = super::support::scratch().join("two_threads.pt.trace.json");
    fs::write(&path, serde_json::json!({ "schemaVersion": 1, "traceEvents": events }).to_string()).unwrap();
    let profile = read(&path).unwrap();
    let threads: std::collections::BTreeSet<_> = profile
        .collectives
        .iter()
        .map(|c| profile.launches.place(c.launch.unwrap() as usize).and_then(|p| profile.places[p.0 as usize].thread))
        .collect();
    assert!(threads.len() > 1 && threads.contains(&Some(4711)), "{threads:?}");
}

#[test]
fn columns_are_as_small_as_they_say() {
    assert!(HostCalls::bytes_per_call() <= 32 && MemOps::bytes_per_op() <= 48);
    for profile in [read(&packed("whole_llm")).unwrap(), read(&trace("whole").0).unwrap()] {
        assert!(profile.ranges.bytes_per_range() <= 40, "{}", profile.ranges.bytes_per_range());
    }
}
