//! Reports of AMD's profilers with missing data, with several kinds of data, or with a request for ncu-only features.

use super::rocm::{corpus, dispatches, rocpd, table};
use super::support::{read, run};
use rusqlite::Connection;
use warpscope::analysis::triage::{Scope, TimeCategory, Verdict, triage_profile};
use warpscope::model::{Cancel, LaunchId, LaunchOrder, NoteKind};
use warpscope::rerun::{self, Collect, Options, Target};

const GUID: &str = "00008f80-5dde-7dde-91c4-960fb6684ffb";

/// A database with the tests' dispatches, changed by `sql`, in which `_U` stands for the suffix of its tables.
fn database(folder: &std::path::Path, sql: &str) -> std::path::PathBuf {
    let path = folder.join("1_results.db");
    rocpd(&path, &[(GUID, 70, dispatches())]);
    let suffix = format!("_{}", GUID.replace('-', "_"));
    Connection::open(&path).unwrap().execute_batch(&sql.replace("_U", &suffix)).unwrap();
    path
}

/// `pmc_perf.csv` is the main table, to which the accumulator files beside it add their counters. The other way round,
/// most counters would be lost.
#[test]
fn a_workload_has_the_counters_of_all_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let columns = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,Kernel_Name";
    let write = |name: &str, counter: &str, rows: &str| {
        table(folder.path(), name, &format!("{columns},{counter},Start_Timestamp,End_Timestamp\n{rows}"));
    };
    write(
        "pmc_perf.csv",
        "SQ_WAVES,SQ_INSTS",
        "0,0,1024,256,0,0,32,0,k(int*),16,100,1000,2000\n1,0,1024,256,0,0,32,0,k(int*),17,101,3000,4000\n1,0,10",
    );
    write(
        "SQ_INST_LEVEL_LDS.csv",
        "SQ_INST_LEVEL_LDS,SQ_WAVES",
        "0,0,1024,256,0,0,32,0,k(int*),5,99,1000,2000\n1,0,1024,256,0,0,32,0,k(int*),6,99,3000,4000\n",
    );
    // This table is from other dispatches, so its counter cannot be attributed.
    write("SQ_IFETCH_LEVEL.csv", "SQ_IFETCH_LEVEL", "0,0,1024,64,0,0,32,0,k(int*),5,1000,2000\n");
    let profile = read(folder.path()).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    let of = |result: usize, name: &str| metrics.number(&metrics.results[result], name);
    assert_eq!(
        (of(0, "SQ_WAVES"), of(1, "SQ_INSTS"), of(0, "SQ_INST_LEVEL_LDS"), of(1, "SQ_INST_LEVEL_LDS")),
        (Some(16.0), Some(101.0), Some(5.0), Some(6.0))
    );
    assert_eq!(of(0, "SQ_IFETCH_LEVEL"), None);
    assert_eq!(metrics.results.len(), 2, "a row that was cut off is none");
    assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Damaged), "and that is said");
}

#[test]
fn a_folder_with_thread_traces_of_several_dispatches_names_them() {
    let folder = tempfile::tempdir().unwrap();
    for dispatch in ["ui_output_agent_1_dispatch_1", "ui_output_agent_1_dispatch_3"] {
        let inner = folder.path().join(dispatch);
        std::fs::create_dir_all(&inner).unwrap();
        table(&inner, "code.json", "{}");
        table(&inner, "filenames.json", "{}");
    }
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("thread traces of 2 dispatches") && error.contains("ui_output_agent_1_dispatch_1"), "{error}");
}

/// Missing agents, invalid times, duplicate ids.
#[test]
fn what_a_database_lacks_is_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "DELETE FROM rocpd_info_agent_U;");
    let profile = read(&path).unwrap();
    let plan = rerun::plan(&profile, &Target::Launches(vec![LaunchId(0)]), &Options::default()).unwrap();
    assert_eq!(plan.commands[0].tool, "rocprofv3", "a database of rocprofv3 is of an AMD GPU");
    let path = database(
        tempfile::tempdir_in(folder.path()).unwrap().keep().as_path(),
        "UPDATE rocpd_kernel_dispatch_U SET \"end\" = start - 5 WHERE dispatch_id = 2; UPDATE rocpd_kernel_dispatch_U SET dispatch_id = 3 WHERE dispatch_id = 4;",
    );
    let profile = read(&path).unwrap();
    assert!(
        profile.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.text.contains("1 kernel without valid times")),
        "{:?}",
        profile.notes
    );
    assert_eq!(profile.order, LaunchOrder::Device, "numbers that come twice are no order");
}

/// Symbols that were loaded but never dispatched are not kernels of the run.
#[test]
fn kernels_are_those_that_ran() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        database(folder.path(), "INSERT INTO rocpd_info_kernel_symbol_U VALUES (99, 11, 'gemm_unused.kd', 'gemm_unused', 1, 0, '{}');");
    let profile = read(&path).unwrap();
    assert!(profile.kernels.iter().all(|k| k.function() != "gemm_unused"));
    assert_eq!(profile.kernels.len(), 4);
}

/// Without copy records a blocking copy is a wait, not a launch; a single one is a one-time delay.
#[test]
fn a_blocking_copy_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "DELETE FROM rocpd_memory_copy_U;
        INSERT INTO rocpd_string_U (id, string) VALUES (8, 'hipMemcpy');
        UPDATE rocpd_kernel_dispatch_U SET start = start + 900000, \"end\" = \"end\" + 900000 WHERE dispatch_id = 7;
        UPDATE rocpd_region_U SET start = start + 900000, \"end\" = \"end\" + 900000 WHERE start > 80000 AND start < 91000;
        INSERT INTO rocpd_region_U VALUES (600, 11, 22, 100000, 980000, 8, 600);
        INSERT INTO rocpd_event_U VALUES (600, 2, 600, 0);";
    let profile = read(&database(folder.path(), sql)).unwrap();
    let scope = Scope { windows: vec![(0, 1_000_000)], ..Scope::default() };
    let found = triage_profile(&profile, &scope, &Cancel::default()).unwrap();
    let first = found.findings.first().unwrap();
    assert_eq!(first.id, Verdict::SingleDelay);
    assert!(first.headline.contains("for hipMemcpy"), "{}", first.headline);
    assert!(
        found.devices.iter().any(|d| d.parts.iter().any(|p| p.0 == TimeCategory::Synchronising && p.1 > 800_000)),
        "{:?}",
        found.devices
    );
}

/// The question decides between counters and a thread trace; ncu sections are not rocprofv3 counters.
#[test]
fn questions_are_asked_of_rocprofv3() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "");
    let profile = read(&path).unwrap();
    let asked = |word: &'static str| {
        let options = Options { collect: Collect::Question(word), ..Options::default() };
        let mut plan = rerun::plan(&profile, &Target::Launches(vec![LaunchId(0)]), &options).unwrap();
        let one = plan.commands.remove(0);
        (one.argv(), one.alternatives)
    };
    let (argv, others) = asked("source");
    assert!(argv.contains(&"--att".to_owned()) && !argv.contains(&"--output-format".to_owned()), "{argv:?}");
    assert!(others.iter().any(|a| a.argv.contains(&"--pmc".to_owned())));
    let (argv, others) = asked("memory");
    assert!(argv.contains(&"FETCH_SIZE".to_owned()) && others.iter().any(|a| a.argv.contains(&"WRITE_SIZE".to_owned())));
    let file = path.display().to_string();
    let (code, _, error) = run(&["rerun", &file, "--launch", "0", "--section", "Occupancy"]);
    assert!(code != 0 && error.contains("is a section of ncu"), "{error}");
    let (code, _, error) = run(&["rerun", &file, "--launch", "0", "--section", "SQ_WAVES"]);
    assert!(code == 0 && !error.contains("not a section"), "{error}");
    let (code, _, error) = run(&["rerun", &file, "--launch", "0", "--set", "full"]);
    assert!(code == 0 && error.contains("a set of ncu's sections"), "{error}");
}

/// Every dispatch of a real analysis database is a launch, with its own duration.
#[test]
fn the_dispatches_of_real_analysis_databases() {
    for path in corpus("rocprof_compute_23ed6f36.db") {
        let profile = read(&path).unwrap();
        let db = Connection::open(&path).unwrap();
        let (count, total): (i64, i64) = db
            .query_row("SELECT count(*), sum(end_timestamp - start_timestamp) FROM compute_dispatch", [], |r| Ok((r.get(0)?, r.get(1)?)))
            .unwrap();
        let sum: i64 = (0..profile.launches.len()).map(|r| profile.launches.duration(r)).sum();
        assert_eq!((i64::try_from(profile.launches.len()).unwrap(), sum), (count, total), "{}", path.display());
        let metrics = profile.metrics.as_ref().unwrap();
        for (row, result) in metrics.results.iter().enumerate() {
            let kernel = &profile.kernels[profile.launches.kernel(row).0 as usize];
            assert_eq!(kernel.demangled(), result.kernel.demangled(), "result {row} stands with a launch of its kernel");
        }
    }
}
