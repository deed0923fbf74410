//! Malformed exports: missing or contradictory data, or other versions; real fixtures with one change each.

use super::support::{edited, edited_profile, packed, read, read_as};
use rusqlite::Connection;
use warpscope::analysis::{GroupBy, Grouping, Limiter, Occupancy, Overview, Paths};
use warpscope::import::{Names, Wants};
use warpscope::model::{CaptureRange, GraphMode, LaunchOrder, NoteKind, Profile, Severity};

const K: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
const R: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";

fn empty_note(profile: &Profile) -> (String, String) {
    let note = profile.notes.iter().find(|n| n.kind == NoteKind::Empty || n.kind == NoteKind::Graphs).expect("a note says why");
    (note.text.clone(), note.fix.clone().unwrap_or_default())
}

#[test]
fn no_kernel_table_and_no_kernels() {
    for sql in [format!("DROP TABLE {K}"), format!("DELETE FROM {K}")] {
        let profile = edited_profile("single", &sql);
        assert!(profile.launches.is_empty());
        let (text, fix) = empty_note(&profile);
        assert!(text.contains("launched 200 kernels, but nsys got no GPU records"), "{text}");
        assert!(fix.contains("as new as the driver"), "{fix}");
    }
}

#[test]
fn calls_without_a_time_are_counted_and_order_nothing() {
    let whole = read(&packed("single")).unwrap();
    let sql = format!(
        "CREATE TABLE loose AS SELECT * FROM {R}; DROP TABLE {R}; ALTER TABLE loose RENAME TO {R}; UPDATE {R} SET start = NULL WHERE rowid IN (SELECT rowid FROM {R} WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE 'cudaLaunchKernel%') LIMIT 3)"
    );
    let profile = edited_profile("single", &sql);
    let calls = |p: &Profile| p.calls.names.iter().map(|n| n.count).sum::<u64>();
    assert_eq!(calls(&profile), calls(&whole));
    assert!(profile.calls.names.iter().all(|n| n.total.0 >= 0 && n.total.0 < 1_000_000_000_000));
    assert_eq!(profile.order, LaunchOrder::Partly(3));
}

#[test]
fn a_function_of_the_host_is_no_kernel() {
    let renamed = "UPDATE StringIds SET value = 'cuLaunchHostFunc' WHERE value LIKE 'cudaLaunchKernel%'";
    let (text, _) = empty_note(&edited_profile("single", &format!("DELETE FROM {K}; {renamed}")));
    assert!(!text.contains("nsys got no GPU records"), "{text}");
    let (text, fix) = empty_note(&edited_profile("zoo", &format!("DELETE FROM {K}; {renamed}")));
    assert!(text.contains("launched no kernel while it was recorded, only") && fix.contains("the part that computes"), "{text} {fix}");
}

#[test]
fn why_a_capture_is_empty() {
    let no_launch_sql = format!("DELETE FROM {K}; DELETE FROM {R} WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE '%Launch%')");
    let (text, fix) = empty_note(&read(&packed("nogpu")).unwrap());
    assert!(text.contains("CUDA was not traced") && fix.contains("--trace=cuda"), "{text} {fix}");

    let cuda_on = "UPDATE META_DATA_CAPTURE SET value='true' WHERE name='PROCESS_0:COLLECT_CUDA_TRACE'; INSERT INTO META_DATA_CAPTURE VALUES ('CAPTURE_EVENT_TYPE','Cuda');";
    let (text, fix) = empty_note(&edited_profile("nogpu", cuda_on));
    assert!(text.contains("No work of a GPU was recorded") && fix.contains("--trace-fork-before-exec=true"), "{text} {fix}");

    let forked =
        format!("{cuda_on} INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,3,2,'CUDA profiling might have not been started correctly.',0)");
    let (text, fix) = empty_note(&edited_profile("nogpu", &forked));
    assert!(text.contains("forked without exec") && fix.contains("--trace-fork-before-exec=true"), "{text} {fix}");

    // Messages of an old nsys on a Jetson, which an export has only among its strings.
    let strings = "DROP TABLE DIAGNOSTIC_EVENT; INSERT INTO StringIds VALUES";
    for (message, says, advice) in [
        ("CUDA trace requires target process to be launched as root.", "runs as root", "sudo nsys profile"),
        ("CUDA profiling stopped unexpectedly: Cannot initialize CUDA event collection.", "could not start it", "nsys status -e"),
    ] {
        let (text, fix) = empty_note(&edited_profile("nogpu", &format!("{cuda_on} {strings} (9001, '{message}')")));
        assert!(text.contains("CUDA was not traced") && text.contains(says) && fix.contains(advice), "{text} {fix}");
    }

    let gated = format!("{cuda_on} UPDATE META_DATA_CAPTURE SET value='CudaProfilerApi' WHERE name='START_TRIGGER'");
    let (text, _) = empty_note(&edited_profile("nogpu", &gated));
    assert!(text.contains("did not begin with the program"), "{text}");

    // Incomplete data that nsys 2025.3 leaves of a forked child that ends by `_exit`.
    let lost = format!("{no_launch_sql}; INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,3,2,'Not all CUDA events might have been collected.',0)");
    let (text, fix) = empty_note(&edited_profile("single", &lost));
    assert!(text.contains("_exit") && fix.contains("exit normally"), "{text} {fix}");

    let dropped = format!("{cuda_on} INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,3,2,'1234 events were dropped.',0)");
    let (text, _) = empty_note(&edited_profile("nogpu", &dropped));
    assert!(text.contains("dropped events"), "{text}");

    let (text, fix) = empty_note(&edited_profile("graph_whole", &format!("DELETE FROM {K}")));
    assert!(text.contains("traced as a whole") && fix.contains("--cuda-graph-trace=node"), "{text} {fix}");

    let no_launch = no_launch_sql;
    let _unused = format!("DELETE FROM {K}; DELETE FROM {R} WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE '%Launch%')");
    let (text, _) = empty_note(&edited_profile("single", &no_launch));
    assert!(text.contains("launched no kernel"), "{text}");

    // Incomplete file that nsys 2023.4 leaves for a 2025.3 report.
    let hollow = super::support::scratch().join("hollow.sqlite");
    Connection::open(&hollow)
        .unwrap()
        .execute_batch("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL); CREATE TABLE ProcessStreams (globalPid INTEGER NOT NULL, filenameId INTEGER NOT NULL, contentId INTEGER NOT NULL)")
        .unwrap();
    let (text, fix) = empty_note(&read(&hollow).unwrap());
    assert!(text.contains("incomplete") && fix.contains("the nsys version that recorded it"), "{text} {fix}");
}

#[test]
fn missing_and_null_names() {
    let unnamed = edited_profile("single", "DELETE FROM StringIds WHERE id IN (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)");
    assert!(unnamed.kernels.iter().all(|k| k.function.is_none()));
    assert!(unnamed.kernels.iter().any(|k| k.function() == "saxpy"), "the function name comes from the demangled one");

    let nameless = edited_profile("single", "DROP TABLE StringIds");
    assert_eq!(nameless.launches.len(), 200);
    assert!(nameless.kernels.iter().all(|k| k.demangled() == "(unnamed kernel)"));

    let unmangled = edited_profile("single", &format!("ALTER TABLE {K} DROP COLUMN mangledName"));
    assert_eq!(Grouping::from_profile(&unmangled, GroupBy::Name, None).rows.len(), 5);
    let path = edited(
        "single",
        "CREATE TABLE k2 AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL; UPDATE k2 SET demangledName = NULL WHERE rowid % 2; DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; ALTER TABLE k2 RENAME TO CUPTI_ACTIVITY_KIND_KERNEL",
    );
    let half = read_as(&path, Wants { names: Names::Demangled, ..Wants::TABLE }).unwrap();
    assert!(half.kernels.iter().all(|k| k.demangled() != "(unnamed kernel)"), "another name stands in");

    let keyless =
        edited_profile("single", "CREATE TABLE s2 AS SELECT * FROM StringIds; DROP TABLE StringIds; ALTER TABLE s2 RENAME TO StringIds");
    assert_eq!(keyless.kernels, read(&packed("single")).unwrap().kernels);
}

#[test]
fn correlation_ids_that_repeat_over_processes() {
    let plain = read(&packed("procs")).unwrap();
    let calls = |p: &Profile| (0..p.launches.len()).map(|r| (p.launches.start(r), p.launches.call(r))).collect::<Vec<_>>();
    // Each process counts from zero.
    let lowest = format!("CREATE TEMP TABLE lowest AS SELECT globalTid >> 24 AS p, min(correlationId) AS low FROM {R} GROUP BY 1;");
    let shifted = edited_profile(
        "procs",
        &format!(
            "{lowest} UPDATE {K} SET correlationId = correlationId - (SELECT low FROM lowest WHERE p = {K}.globalPid >> 24); UPDATE {R} SET correlationId = correlationId - (SELECT low FROM lowest WHERE p = {R}.globalTid >> 24)"
        ),
    );
    assert_eq!(calls(&plain), calls(&shifted));
    let sparse = edited_profile(
        "procs",
        &format!("UPDATE {K} SET correlationId = correlationId * 6000000; UPDATE {R} SET correlationId = correlationId * 6000000"),
    );
    assert_eq!(calls(&plain), calls(&sparse), "ids far apart are joined all the same");
}

#[test]
fn launches_without_their_calls() {
    let none = edited_profile("single", &format!("DROP TABLE {R}"));
    assert_eq!(none.order, LaunchOrder::Device);
    assert!(none.notes.iter().any(|n| n.kind == NoteKind::Order));
    let some = edited_profile("single", &format!("DELETE FROM {R} WHERE rowid % 3 = 0"));
    let LaunchOrder::Partly(missing) = some.order else { panic!("{:?}", some.order) };
    assert_eq!((0..200).filter(|&r| some.launches.call(r).is_none()).count() as u64, missing);
    let ids = edited_profile("single", &format!("UPDATE {K} SET correlationId = NULL"));
    assert_eq!(ids.order, LaunchOrder::Device);
}

#[test]
fn events_out_of_order_and_with_gaps_in_the_rowids() {
    let plain = read(&packed("single")).unwrap();
    let rows = |p: &Profile| {
        (0..p.launches.len())
            .map(|r| (p.launches.start(r), p.launches.duration(r), p.launches.call(r), p.kernels[p.launches.kernel(r).0 as usize].clone()))
            .collect::<Vec<_>>()
    };
    let shuffle = |t: &str| {
        format!("CREATE TABLE x AS SELECT * FROM {t} ORDER BY (start * 7919) % 1009; DROP TABLE {t}; ALTER TABLE x RENAME TO {t};")
    };
    assert_eq!(rows(&plain), rows(&edited_profile("single", &(shuffle(K) + &shuffle(R)))));
    assert_eq!(rows(&plain), rows(&edited_profile("single", &format!("UPDATE {K} SET rowid = -rowid * 1000000007"))), "rowids far apart");
    let deleted = edited_profile("single", &format!("DELETE FROM {K} WHERE rowid BETWEEN 50 AND 99"));
    assert_eq!(deleted.launches.len(), 150);
    let without = edited_profile(
        "single",
        &format!(
            "CREATE TABLE x (n INTEGER PRIMARY KEY, start INTEGER, end INTEGER, demangledName INTEGER) WITHOUT ROWID; INSERT INTO x SELECT rowid, start, end, demangledName FROM {K}; DROP TABLE {K}; ALTER TABLE x RENAME TO {K}"
        ),
    );
    assert_eq!(without.launches.len(), 200);
}

#[test]
fn times_that_make_no_sense() {
    let negative = edited_profile(
        "single",
        "UPDATE NVTX_EVENTS SET start = start - 2000000000000, end = end - 1; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 1000000000000, end = end - 1000000000000",
    );
    assert!(negative.launches.start(0) < 0);
    assert!(!Paths::from_profile(&negative).of_launch.is_empty());
    let backwards = edited_profile("single", &format!("UPDATE {K} SET end = start - 5 WHERE rowid = 3"));
    assert!(backwards.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.text.starts_with("1 kernel without valid times")));
    let extreme = edited_profile(
        "single",
        &format!(
            "UPDATE {K} SET start = -9223372036854775807, end = 9223372036854775807 WHERE rowid = 1; UPDATE {K} SET start = 9223372036854775806, end = 9223372036854775807 WHERE rowid = 2"
        ),
    );
    let overview = Overview::from_profile(&extreme);
    assert!(overview.span.is_some());
    assert_eq!(Grouping::from_profile(&extreme, GroupBy::Device, None).rows.len(), 1);
    let long = edited_profile("single", &format!("UPDATE {K} SET end = start + 10000000000 WHERE start = (SELECT max(start) FROM {K})"));
    assert_eq!((0..200).map(|r| long.launches.duration(r)).max(), Some(10_000_000_000), "a kernel of ten seconds");
}

#[test]
fn ranges_open_unnamed_and_in_domains() {
    let open = edited_profile(
        "zoo",
        "UPDATE NVTX_EVENTS SET end = NULL WHERE text = 'iter0'; UPDATE NVTX_EVENTS SET domainId = 7 WHERE text = 'memory'; INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) SELECT 0, 75, 'mydomain', globalTid, 7 FROM NVTX_EVENTS LIMIT 1",
    );
    let paths = Paths::from_profile(&open);
    let grouping = Grouping::from_profile(&open, GroupBy::Nvtx, Some(&paths));
    assert!(
        grouping.rows.iter().any(|r| r.name == "iter0 › mydomain:memory"),
        "{:?}",
        grouping.rows.iter().map(|r| &r.name).collect::<Vec<_>>()
    );
    let after = grouping.rows.iter().filter(|r| r.name.starts_with("iter0") && r.name.contains("iter1")).count();
    assert!(after > 0, "a range that never ends encloses what follows: {:?}", grouping.rows.iter().map(|r| &r.name).collect::<Vec<_>>());
}

#[test]
fn several_devices_and_visible_devices() {
    let profile = read(&packed("ddp_rank0")).unwrap();
    assert_eq!(profile.devices.len(), 2);
    let mapped = edited_profile("ddp_rank0", "UPDATE TARGET_INFO_CUDA_DEVICE SET gpuId = 1 - gpuId");
    let gpu = |p: &Profile| p.places[p.launches.place(0).unwrap().0 as usize].device;
    assert_eq!((gpu(&profile), gpu(&mapped)), (Some(0), Some(1)), "the ordinal in the process is mapped to the machine's GPU");
    let older = edited_profile("ddp_rank0", "DROP TABLE TARGET_INFO_CUDA_DEVICE; UPDATE TARGET_INFO_GPU SET cuDevice = 1 - id");
    assert_eq!(gpu(&older), Some(1), "older exports name the ordinal at the GPU");
    let unknown = edited_profile("ddp_rank0", "DROP TABLE TARGET_INFO_GPU");
    assert_eq!(gpu(&unknown), None);
    assert_eq!(Grouping::from_profile(&unknown, GroupBy::Device, None).rows[0].name, "device 0");
}

#[test]
fn the_oldest_schema() {
    let old = "ALTER TABLE META_DATA_EXPORT RENAME TO EXPORT_META_DATA; DROP TABLE META_DATA_CAPTURE; DROP TABLE IF EXISTS DIAGNOSTIC_EVENT; DROP TABLE IF EXISTS TARGET_INFO_CUDA_DEVICE";
    let profile = edited_profile("zoo_2023", old);
    assert_eq!(profile.source.schema.as_deref(), Some("3.7.2"));
    assert_eq!(profile.launches.len(), 957);
    assert!(profile.capture.argv.is_empty());
}

#[test]
fn how_the_capture_was_made() {
    let zoo = read(&packed("zoo")).unwrap();
    assert_eq!(zoo.capture.argv, ["./zoo", "3", "300"]);
    assert_eq!(zoo.capture.directory.as_deref(), Some("/tmp/w"));
    assert_eq!((zoo.capture.graphs, zoo.capture.gate.clone()), (Some(GraphMode::Graph), None));
    assert_eq!(read(&packed("papi")).unwrap().capture.gate, Some(CaptureRange::ProfilerApi));
    let late = edited_profile("zoo", "UPDATE DIAGNOSTIC_EVENT SET timestamp = -5 WHERE text LIKE 'CUDA injection init%'");
    assert_eq!(late.capture.gate, Some(CaptureRange::Late), "the program ran before the capture");
    let delayed = edited_profile("zoo", "UPDATE META_DATA_CAPTURE SET value = '1500' WHERE name = 'START_DELAY_MS'");
    assert!(matches!(delayed.capture.gate, Some(CaptureRange::Delay(d)) if d.0 == 1_500_000_000));
    assert!(
        zoo.memops.iter().any(|m| format!("{:?}", m.kind).contains("Pageable"))
            && zoo.memops.iter().any(|m| format!("{:?}", m.kind).contains("Pinned"))
    );
}

#[test]
fn warnings_become_notes_and_equal_ones_are_counted() {
    let profile = edited_profile(
        "zoo",
        "INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,3,2,'Something odd.',0),(1,1,3,2,'Something odd.',0),(1,1,3,3,'Injection failed.',0),(1,1,3,4,'chatter',0)",
    );
    let notes: Vec<_> = profile.notes.iter().map(|n| (n.severity, n.text.as_str())).collect();
    assert_eq!(notes[0], (Severity::Error, "nsys: Injection failed."));
    assert!(notes.contains(&(Severity::Warning, "nsys: Something odd. (×2)")), "{notes:?}");
    assert!(!notes.iter().any(|n| n.1.contains("chatter")));
    let lost = edited_profile("zoo", "INSERT INTO DIAGNOSTIC_EVENT VALUES (0,1,3,2,'Not all CUDA events might have been collected.',0)");
    assert!(lost.notes.iter().any(|n| n.kind == NoteKind::Lost));
}

#[test]
fn views_and_virtual_tables_are_not_run() {
    let endless = format!(
        "DROP TABLE {R}; CREATE VIEW {R} AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS end, x AS correlationId, x AS nameId, x AS globalTid FROM n"
    );
    let profile = edited_profile("single", &endless);
    assert_eq!((profile.launches.len(), profile.order), (200, LaunchOrder::Device));
}

/// A fixture with the first page of a table overwritten.
fn damaged(name: &str, table: &str) -> std::path::PathBuf {
    let path = super::support::unpacked(name);
    let db = Connection::open(&path).unwrap();
    let root: i64 = db.query_row("SELECT rootpage FROM sqlite_master WHERE name = ?1", [table], |r| r.get(0)).unwrap();
    let page: i64 = db.query_row("PRAGMA page_size", [], |r| r.get(0)).unwrap();
    drop(db);
    let (root, page) = (usize::try_from(root).unwrap(), usize::try_from(page).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(root - 1) * page..root * page].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn damage_in_a_table_beside_the_kernels_is_noted_and_the_rest_is_read() {
    for table in ["NVTX_EVENTS", R, "TARGET_INFO_GPU", "DIAGNOSTIC_EVENT"] {
        let profile = read(&damaged("zoo", table)).unwrap();
        assert_eq!(profile.launches.len(), 957, "{table}");
        assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.text.starts_with(table)), "{table}: {:?}", profile.notes);
    }
}

#[test]
fn names_that_cannot_be_read_are_an_error_and_not_one_unnamed_kernel() {
    assert!(read(&damaged("zoo", "StringIds")).unwrap_err().to_string().contains("damaged in StringIds"));
}

#[test]
fn occupancy_is_the_one_that_ncu_computes() {
    let zoo = read(&packed("zoo")).unwrap();
    for (function, registers, warps, shared, percent, waves) in NCU {
        let row = (0..zoo.launches.len()).find(|&r| zoo.kernels[zoo.launches.kernel(r).0 as usize].function() == function).unwrap();
        let place = &zoo.places[zoo.launches.place(row).unwrap().0 as usize];
        let o = Occupancy::from_config(&zoo.configs[zoo.launches.config(row).unwrap().0 as usize], zoo.device_of(place).unwrap()).unwrap();
        let limit = |which| o.limits.iter().find(|l| l.0 == which).unwrap().1;
        assert_eq!(
            (limit(Limiter::Registers), limit(Limiter::Warps), limit(Limiter::Blocks)),
            (Some(registers), Some(warps), Some(32)),
            "{function}"
        );
        assert!((o.percent - percent).abs() < 0.01, "{function}: {} and {percent}", o.percent);
        assert!((o.waves.unwrap() - waves).abs() < 0.006, "{function}: {:?} and {waves}", o.waves);
        // ncu reports the carve-out of its own serialised run, for which the driver may
        // choose a larger one than in the timeline.
        assert!(limit(Limiter::SharedMemory).unwrap() <= shared.max(32), "{function}");
    }
}

/// Values of ncu 2025.3.1 for the same program and GPU: `launch__occupancy_limit_registers`, `…_warps`, `…_shared_mem`,
/// `sm__maximum_warps_per_active_cycle_pct`, `launch__waves_per_multiprocessor`.
const NCU: [(&str, u32, u32, u32, f64, f64); 19] = [
    ("copy_coalesced", 16, 8, 32, 100.0, 2.0),
    ("copy_strided", 10, 8, 32, 100.0, 31.03),
    ("random_gather", 16, 8, 32, 100.0, 62.06),
    ("transpose_conflict", 10, 8, 20, 100.0, 62.06),
    ("transpose_padded", 10, 8, 19, 100.0, 62.06),
    ("pointer_chase", 21, 16, 32, 100.0, 0.06),
    ("matmul_naive", 8, 8, 32, 100.0, 15.52),
    ("matmul_tiled", 2, 2, 3, 100.0, 15.52),
    ("matmul_wmma", 4, 4, 16, 100.0, 1.94),
    ("fma_peak", 16, 8, 32, 100.0, 2.0),
    ("fp64_heavy", 16, 8, 32, 100.0, 1.0),
    ("sfu_heavy", 16, 8, 32, 100.0, 1.0),
    ("divergent", 3, 8, 32, 37.5, 10.34),
    ("spill_regs", 2, 2, 8, 100.0, 1.0),
    ("low_occupancy_smem", 32, 32, 1, 3.125, 2.0),
    ("barrier_heavy", 4, 2, 3, 100.0, 1.0),
    ("atomic_hot", 16, 8, 32, 100.0, 0.97),
    ("tail_wave", 16, 8, 32, 100.0, 1.0),
    ("imbalance", 16, 8, 32, 100.0, 0.5),
];
