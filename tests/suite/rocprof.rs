//! rocprof (before rocprofv3), summary tables, and reports of several files: processes and passes. With a corpus
//! (`WARPSCOPE_CORPUS`) real databases are compared with SQL, and summaries with their source tables.

use super::rocm::{corpus, dispatches, rocpd, table};
use super::support::{read, run};
use rusqlite::Connection;
use std::path::Path;
use warpscope::model::{CopyKind, Kernel, LaunchOrder, MemOpKind, NoteKind, Profile, RangeOrigin};

const OPERATIONS: &str = r#"("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, "queue-id" INTEGER, "Name" TEXT, "pid" INTEGER, "tid" INTEGER, "roctx-range" TEXT, "stream-id" INTEGER, "Index" INTEGER, "Data" TEXT)"#;
const CALLS: &str =
    r#"("BeginNs" INTEGER, "EndNs" INTEGER, "pid" INTEGER, "tid" INTEGER, "Name" TEXT, "args" TEXT, "Index" INTEGER, "Data" TEXT)"#;

/// Writes a database like rocprof's own script: `--hip-trace` leaves the dispatch table empty.
fn traced(path: &Path) {
    let sql = format!(
        "CREATE TABLE HIP {CALLS}; CREATE TABLE rocTX {CALLS}; CREATE TABLE OPS {OPERATIONS}; CREATE TABLE COPY {OPERATIONS};
         CREATE TABLE KERN (\"Index\" INTEGER, \"KernelName\" TEXT);
         INSERT INTO HIP VALUES (1000, 1500, 7, 8, 'hipMemcpy', '( dst(0x1) src(0x2) sizeBytes(4096) kind(1))', 1, ''),
             (2000, 2100, 7, 8, 'hipLaunchKernel', '( kernel(k(int)) function_address(0x2) numBlocks({{z(1) y(3) x(5}}) dimBlocks({{z(1) y(2) x(64}}) args(0x7) sharedMemBytes(0) stream(1))', 2, ''),
             (2200, 2300, 7, 8, 'hipLaunchKernel', '( kernel(k(int)) function_address(0x2) numBlocks({{z(1) y(3) x(6}}) dimBlocks({{z(1) y(2) x(64}}) args(0x7) sharedMemBytes(0) stream(1))', 3, '');
         INSERT INTO rocTX VALUES (900, 5000, 7, 8, 'step 1', '', 1, '');
         -- The second launch began first, on another queue.
         INSERT INTO OPS VALUES (3000, 3300, 2, 0, 'k(int)', 7, 8, '', 1, 2, ''), (2900, 3100, 2, 1, 'k(int)', 7, 8, '', 2, 3, '');
         INSERT INTO COPY VALUES (1200, 1400, 2, 0, 'CopyHostToDevice', 7, 8, '', 0, 1, '');"
    );
    Connection::open(path).unwrap().execute_batch(&sql).unwrap();
}

fn names(profile: &Profile) -> Vec<&str> {
    (0..profile.launches.len()).map(|r| profile.kernels[profile.launches.kernel(r).0 as usize].demangled()).collect()
}

fn config(profile: &Profile, row: usize) -> ([u32; 3], [u32; 3]) {
    let config = &profile.configs[profile.launches.config(row).unwrap().0 as usize];
    (config.grid.unwrap(), config.block.unwrap())
}

#[test]
fn a_trace_of_rocprof_has_launches_sizes_calls_copies_and_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    traced(&path);
    let profile = read(&path).unwrap();
    assert_eq!((profile.source.tool.as_str(), profile.order, names(&profile)), ("rocprof", LaunchOrder::Host, vec!["k(int)"; 2]));
    // In the order of the launch calls, not of the starts on the GPU.
    assert_eq!((config(&profile, 0), config(&profile, 1)), (([5, 3, 1], [64, 2, 1]), ([6, 3, 1], [64, 2, 1])));
    assert_eq!((profile.launches.duration(0), profile.launches.duration(1)), (300, 200));
    assert_eq!(profile.launches.call(0), Some((1100, 100)), "hipLaunchKernel, from the start of the first call");
    let copy = profile.memops.get(0).unwrap();
    assert!(matches!(copy.kind, MemOpKind::Copy { kind: CopyKind::HostToDevice, .. }) && copy.bytes.map(|b| b.0) == Some(4096), "{copy:?}");
    assert_eq!(profile.ranges.iter().filter(|r| r.origin == RangeOrigin::Roctx).count(), 1);
}

#[test]
fn counters_of_rocprof_are_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.db");
    let facts = r#""Index" INTEGER, "KernelName" TEXT, "gpu-id" INTEGER, "queue-id" INTEGER, "queue-index" INTEGER, "pid" INTEGER, "tid" INTEGER, "grd" INTEGER, "wgr" INTEGER, "lds" INTEGER, "scr" INTEGER, "arch_vgpr" INTEGER, "accum_vgpr" INTEGER, "sgpr" INTEGER, "wave_size" INTEGER, "sig" INTEGER, "obj" INTEGER"#;
    let sql = format!(
        "CREATE TABLE KERN ({facts}, \"SQ_WAVES\" REAL, \"BeginNs\" INTEGER, \"EndNs\" INTEGER);
         INSERT INTO KERN VALUES (0, '\"void k<int>(int) [clone .kd]\"', 8, 0, 0, 7, 7, 1024, 256, 0, 0, 16, 4, 32, 64, '0x0', '0x7f', 16.0, 1000, 3000),
             (1, '\"void k<int>(int) [clone .kd]\"', 8, 0, 1, 7, 7, 2048, 256, 0, 0, 16, 4, 32, 64, '0x0', '0x7f', 32.0, 4000, 7000);"
    );
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    let header =
        "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,SQ_WAVES";
    let rows = "\n0,\"void k<int>(int) [clone .kd]\",8,0,0,7,7,1024,256,0,0,16,4,32,64,0x0,0x7f,16.0000\n1,\"void k<int>(int) [clone .kd]\",8,0,1,7,7,2048,256,0,0,16,4,32,64,0x0,0x7f,32.0000\n";
    let csv = table(folder.path(), "counters.csv", &format!("{header}{rows}"));
    for (path, timed) in [(&path, true), (&csv, false)] {
        let profile = read(path).unwrap();
        assert_eq!((names(&profile), config(&profile, 1)), (vec!["void k<int>(int)"; 2], ([8, 1, 1], [256, 1, 1])), "{path:?}");
        let metrics = profile.metrics.as_ref().unwrap();
        let at = metrics.names.iter().position(|n| &**n == "SQ_WAVES").unwrap() as u32;
        let values: Vec<String> = metrics.results.iter().map(|r| format!("{:?}", r.values.iter().find(|v| v.0 == at).unwrap().1)).collect();
        assert_eq!(values, ["Integer(16)", "Integer(32)"]);
        assert!(!metrics.names.iter().any(|n| n.contains("queue") || n.contains("BeginNs")), "{:?}", metrics.names);
        assert_eq!(profile.launches.duration(1), if timed { 3000 } else { 0 });
        assert_eq!(profile.notes.iter().any(|n| n.text.contains("durations are not known")), !timed);
    }
}

#[test]
fn a_folder_of_databases_is_one_report() {
    let folder = tempfile::tempdir().unwrap();
    for (guid, pid) in [("0000aaaa-1", 900), ("0000bbbb-2", 901)] {
        std::fs::create_dir(folder.path().join(format!("host{pid}"))).unwrap();
        rocpd(&folder.path().join(format!("host{pid}/{pid}_results.db")), &[(guid, pid, dispatches())]);
    }
    let one = read(&folder.path().join("host900/900_results.db")).unwrap();
    let both = read(folder.path()).unwrap();
    assert_eq!(both.launches.len(), 2 * one.launches.len());
    assert_eq!(both.processes.iter().map(|p| p.pid).collect::<Vec<_>>(), [900, 901]);
    let time = |p: &Profile| (0..p.launches.len()).map(|r| p.launches.duration(r)).sum::<i64>();
    assert_eq!(time(&both), 2 * time(&one));
}

#[test]
fn passes_are_joined_where_the_dispatches_are_the_same() {
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    for (second, launches) in [(2048, 2), (4096, 4)] {
        let folder = tempfile::tempdir().unwrap();
        for (pass, counter, grid) in [(1, "SQ_WAVES", 2048), (2, "FETCH_SIZE", second)] {
            let place = folder.path().join(format!("pass_{pass}"));
            std::fs::create_dir(&place).unwrap();
            let row = |id| format!("\n{id},{id},2,1,{},15,{grid},17,f(int),256,0,0,8,16,{counter},{id}0,{id}000,{id}300", 100 + pass);
            table(&place, "out_counter_collection.csv", &format!("{head}{}{}\n", row(1), row(2)));
        }
        let profile = read(folder.path()).unwrap();
        assert_eq!(profile.launches.len(), launches, "{:?}", profile.notes);
        let metrics = profile.metrics.as_ref().unwrap();
        let counters = |i: usize| {
            let named = metrics.results[i].values.iter().map(|v| &*metrics.names[v.0 as usize]);
            named.filter(|n| ["SQ_WAVES", "FETCH_SIZE"].contains(n)).count()
        };
        assert_eq!((0..launches).map(counters).collect::<Vec<_>>(), vec![4 / launches; launches]);
        assert!(profile.notes.iter().any(|n| n.text.contains("2 passes")), "{:?}", profile.notes);
    }
}

#[test]
fn totals_of_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n\"void k<int>(int)\",4,4000,1000.0,80.0,900,1200,12.5\n\"l.kd\",1,1000,1000.0,20.0,1000,1000,0.0\nx,y,z\n";
    let profile = read(&table(folder.path(), "out_kernel_stats.csv", text)).unwrap();
    let of =
        |i: usize| (profile.kernels[i].demangled().to_owned(), profile.totals[i].count, profile.totals[i].total.0, profile.totals[i].max.0);
    assert_eq!([of(0), of(1)], [("void k<int>(int)".to_owned(), 4, 4000, 1200), ("l".to_owned(), 1, 1000, 1000)]);
    assert_eq!(profile.kernels.iter().map(Kernel::function).collect::<Vec<_>>(), ["k", "l"]);
    assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Damaged));
    let calls = table(folder.path(), "out_hip_api_stats.csv", "Name,Calls,TotalDurationNs,AverageNs,Percentage\nhipFree,1,5,5,100\n");
    let (code, _, err) = run(&["top", calls.to_str().unwrap()]);
    assert!(code == 3 && err.contains("without kernels"), "{err}");
}

#[test]
fn real_databases_of_rocprof_agree_with_sql() {
    for path in corpus("results.db")
        .into_iter()
        .filter(|p| !p.to_string_lossy().ends_with("_results.db") || p.to_string_lossy().contains("__results.db"))
    {
        let db = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        if db.prepare("SELECT 1 FROM KERN").is_err() {
            continue;
        }
        let sum = |sql: &str| db.query_row(sql, [], |r| Ok((r.get::<_, i64>(0)?, r.get::<_, Option<i64>>(1)?.unwrap_or(0))));
        let kern = sum("SELECT count(*), 0 FROM KERN").unwrap().0;
        let (count, total) = if kern > 0 {
            sum("SELECT count(*), sum(EndNs - BeginNs) FROM KERN").unwrap()
        } else {
            sum("SELECT count(*), sum(EndNs - BeginNs) FROM OPS").unwrap()
        };
        let profile = read(&path).unwrap();
        let ours: i64 = (0..profile.launches.len()).map(|r| profile.launches.duration(r)).sum();
        assert_eq!((profile.launches.len() as i64, ours), (count, total), "{path:?}");
        if kern > 0 {
            let mut sizes = db.prepare("SELECT grd, wgr FROM KERN ORDER BY \"Index\"").unwrap();
            let sizes = sizes.query_map([], |r| Ok((r.get::<_, u32>(0)?, r.get::<_, u32>(1)?))).unwrap();
            for (row, size) in sizes.enumerate() {
                let (grid, block) = size.unwrap();
                assert_eq!(config(&profile, row), ([grid.div_ceil(block), 1, 1], [block, 1, 1]), "{path:?} {row}");
            }
        }
    }
    // Summaries written by rocprof, and the dispatch table they were computed from.
    for stats in corpus("results.stats.csv") {
        let of = |p: &Profile| p.kernels.iter().map(|k| k.demangled().to_owned()).collect::<Vec<_>>();
        let totals = read(&stats).unwrap();
        let trace = read(Path::new(&stats.to_string_lossy().replace(".stats.csv", ".csv"))).unwrap();
        assert_eq!(totals.totals.iter().map(|t| t.count).sum::<u64>(), trace.launches.len() as u64);
        for (name, total) in of(&totals).iter().zip(&totals.totals) {
            let rows = (0..trace.launches.len()).filter(|&r| of(&trace)[trace.launches.kernel(r).0 as usize] == *name);
            assert_eq!(rows.map(|r| trace.launches.duration(r)).sum::<i64>(), total.total.0, "{name}");
        }
    }
}
