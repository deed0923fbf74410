//! Records and tables that ROCm 7.2 to 10 write and earlier releases do not. The tests change a database of schema
//! 3.0.0 in the ways in which schemas up to 3.0.5 differ, and write tables with the headers of `rocpd convert` and
//! `rocpd summary`.

use super::rocm::{dispatches, rocpd, table};
use super::support::{read, run};
use rusqlite::Connection;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use warpscope::import::open::{find_importer, open_input};
use warpscope::import::{Job, Wants};
use warpscope::model::{LaunchOrder, Profile, RangeKind};
use warpscope::rerun::{self, Options, Target};

const GUID: &str = "00008f80-5dde-7dde-91c4-960fb6684ffa";

/// A database of schema 3.0.0, changed by `sql`, in which `{u}` stands for the suffix of its tables.
fn changed(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x_results.db");
    rocpd(&path, &[(GUID, 4711, dispatches())]);
    let suffix = format!("_{}", GUID.replace('-', "_"));
    Connection::open(&path).unwrap().execute_batch(&sql.replace("{u}", &suffix)).unwrap();
    (folder, path)
}

fn ranges(profile: &Profile) -> Vec<(String, RangeKind)> {
    profile.ranges.iter().map(|r| (profile.ranges.label(r.name), r.kind)).collect()
}

fn notes(profile: &Profile) -> Vec<&str> {
    profile.notes.iter().map(|n| n.text.as_str()).collect()
}

/// A region has the name of the roctx call; the program's text is the message of its event.
#[test]
fn ranges_have_the_texts_of_the_program() {
    let (_folder, path) = changed(
        r#"ALTER TABLE rocpd_event{u} ADD COLUMN extdata TEXT;
           UPDATE rocpd_string{u} SET string = 'roctxThreadRangeA' WHERE id = 5;
           INSERT INTO rocpd_string{u} VALUES (30, '', 'roctxProcessRangeA'), (31, '', 'layer');
           UPDATE rocpd_event{u} SET extdata = '{"message": "step \"1\""}' WHERE id = 501;
           INSERT INTO rocpd_event{u} VALUES (503, 4, 903, 0, '{"message": "epoch"}'), (504, 4, 904, 0, '{"message": "roctxRangePushA"}'), (505, 4, 905, 0, '{}');
           INSERT INTO rocpd_region{u} VALUES (503, 11, 22, 14000, 66000, 30, 503), (504, 11, 21, 20000, 30000, 31, 504), (505, 11, 21, 21000, 22000, 5, 505);"#,
    );
    let profile = read(&path).unwrap();
    let push = |name: &str| (name.to_owned(), RangeKind::PushPop);
    // In a draft of the schema, the text is the region's name and the call is the message.
    let wanted = [("epoch".to_owned(), RangeKind::StartEnd), push("step \"1\""), push("layer"), push("roctxThreadRangeA")];
    assert_eq!(ranges(&profile), wanted);
}

/// Records that free memory have no agent.
#[test]
fn released_memory_is_that_of_the_allocations_gpu() {
    let (_folder, path) = changed("UPDATE rocpd_memory_allocate{u} SET agent_id = NULL WHERE type = 'FREE';");
    let events = read(&path).unwrap().memory.events;
    assert_eq!(events.iter().map(|e| (e.bytes, e.device)).collect::<Vec<_>>(), [(1024, Some(0)), (-1024, Some(0))]);
    let folder = tempfile::tempdir().unwrap();
    let head = "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp";
    let row = |word: &str, agent: &str, bytes: u32, start: u32| {
        format!("\nMEMORY_ALLOCATION,MEMORY_ALLOCATION_{word},{agent},{bytes},0x00007F0000000000,5,{start},{}", start + 10)
    };
    let allocate = row("ALLOCATE", "\"Agent 2\"", 4096, 100);
    // Duplicate rows come from databases of several processes. The last record frees memory whose allocation was not
    // recorded.
    let text = [head.to_owned(), allocate.clone(), allocate, row("FREE", "\"\"", 0, 900), row("FREE", "\"\"\"\"", 0, 950)].concat();
    table(folder.path(), "out_memory_allocation_trace.csv", &text);
    let profile = read(&kernel_trace(folder.path(), 500)).unwrap();
    assert_eq!(profile.memory.events.iter().map(|e| (e.time, e.bytes)).collect::<Vec<_>>(), [(0, 4096), (800, -4096)]);
    assert!(profile.memory.events.iter().all(|e| e.device == Some(0)) && profile.notes.is_empty(), "{:?}", profile.notes);
}

/// Two launches with the columns of `rocpd convert` from ROCm 7.14, starting at `start`.
fn kernel_trace(folder: &Path, start: i64) -> PathBuf {
    let mut text = "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Graph_Exec_Id,Graph_Node_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Duration,Lds_Block_Size,Scratch_Size,Vgpr_Count,Accum_Vgpr_Count,Sgpr_Count,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z".to_owned();
    for id in 1..=2 {
        let start = start + id * 100;
        write!(
            text,
            "\ng1,KERNEL_DISPATCH,Agent 2,1,0,{},{},70,{id},7,saxpy,{id},{start},{},50,0,0,12,4,48,64,1,1,640,1,1",
            (id - 1) * 9,
            (id - 1) * 5,
            start + 50
        )
        .unwrap();
    }
    table(folder, "out_kernel_trace.csv", &text)
}

/// `rocpd convert` writes all calls and markers into one table since ROCm 7.14, under other names.
#[test]
fn tables_of_the_newest_convert_are_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernels = kernel_trace(at, 1_000);
    let mut calls = "Guid,Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\ng1,MARKER_CORE_RANGE_API,step,4711,70,900,1000,1400".to_owned();
    for id in 1..=2 {
        write!(calls, "\ng1,HIP_RUNTIME_API_EXT,hipLaunchKernel,4711,70,{id},{},{}", 1_000 + id * 20, 1_005 + id * 20).unwrap();
    }
    calls += "\ng1,KFD_PAGE_MIGRATE,ROCPROFILER_KFD_PAGE_MIGRATE_PREFETCH,4711,70,0,1100,1200";
    table(at, "out_regions_trace.csv", &calls);
    let head = "Guid,Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,Lds_Block_Size,Scratch_Size,Vgpr_Count,Accum_Vgpr_Count,Sgpr_Count,Counter_Name,Counter_Value";
    let row = "g1,2,2,Agent 2,1,4711,70,640,7,saxpy,64,0,0,12,4,48";
    table(at, "out_counter_collection_trace.csv", &format!("{head},Start_Timestamp,End_Timestamp\n{row},SQ_WAVES,10.0,1200,1250"));
    // SPM values are samples over time, and not counters of the dispatch.
    table(at, "out_spm_counter_collection_trace.csv", &format!("{head},Timestamp\n{row},SQ_WAVES[XCC: 0],77.0,1210"));
    for path in [at.to_owned(), kernels] {
        let profile = read(&path).unwrap();
        assert_eq!((profile.launches.len(), profile.processes.len(), profile.order), (2, 1, LaunchOrder::Host), "{}", path.display());
        assert_eq!((profile.processes[0].pid, ranges(&profile)), (4711, vec![("step".to_owned(), RangeKind::PushPop)]));
        assert!((0..2).all(|row| profile.launches.call(row).is_some_and(|c| c.1 == 5)));
        assert_eq!((profile.launches.graph_node(0), profile.launches.graph_node(1)), (None, Some(5)));
        assert_eq!(profile.calls.names.iter().map(|n| (&*n.name, n.count)).collect::<Vec<_>>(), [("hipLaunchKernel", 2)]);
        let counted = "Counters were collected for 1 of 2 launches; they are results of these. Kernels run one at a time meanwhile.";
        assert_eq!(notes(&profile), [counted, "1 record of the kernel driver (KFD) is not shown."]);
        let (_, out, _) = run(&["metrics", &path.display().to_string(), "--metric", "SQ_WAVES", "--format", "csv"]);
        assert!(out.contains(",10,") && !out.contains("77"), "{out}");
    }
}

/// A dispatch that ran three times, with a counter in the first two runs and another in the third.
const REPLAYED: &str = "ALTER TABLE rocpd_kernel_dispatch{u} ADD COLUMN replay_pass INTEGER;
         CREATE TABLE rocpd_info_pmc{u} (id INTEGER PRIMARY KEY, name TEXT);
         INSERT INTO rocpd_info_pmc{u} VALUES (1, 'SQ_WAVES'), (2, 'TCC_HIT_sum');
         CREATE TABLE rocpd_pmc_event{u} (id INTEGER PRIMARY KEY, event_id INTEGER, sample_id INTEGER, pmc_id INTEGER, value REAL);
         INSERT INTO rocpd_event{u} VALUES (700, 3, 3, 0), (701, 3, 3, 0);
         INSERT INTO rocpd_kernel_dispatch{u} SELECT 700, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, 31500, 32500, private_segment_size, group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, 700, 1 FROM rocpd_kernel_dispatch{u} WHERE dispatch_id = 3;
         INSERT INTO rocpd_kernel_dispatch{u} SELECT 701, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, 33000, 34000, private_segment_size, group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, 701, 2 FROM rocpd_kernel_dispatch{u} WHERE id = 700;
         INSERT INTO rocpd_pmc_event{u} (event_id, sample_id, pmc_id, value) VALUES (100, NULL, 1, 300.0), (100, NULL, 1, 248.0), (700, NULL, 1, 548.0), (701, NULL, 2, 9.0), (100, 5, 1, 4000.0);";

/// Kernel replay runs a dispatch once for each group of counters, with a row and an event for each run.
#[test]
fn replays_of_a_kernel_are_one_launch() {
    let (_folder, path) = changed(REPLAYED);
    let profile = read(&path).unwrap();
    assert_eq!((profile.launches.len(), profile.order), (7, LaunchOrder::Host));
    assert!(notes(&profile).iter().any(|n| n.ends_with("without 2 further runs of them.")), "{:?}", profile.notes);
    let measured = profile.measured.as_ref().unwrap();
    let metrics = measured.metrics.as_ref().unwrap();
    let of = |name: &str| {
        let number = metrics.names.iter().position(|n| &**n == name).unwrap();
        metrics.results[0].values.iter().find(|v| v.0 as usize == number).map(|v| v.1.to_string())
    };
    assert_eq!((metrics.results.len(), of("SQ_WAVES"), of("TCC_HIT_sum")), (1, Some("548".to_owned()), Some("9".to_owned())));
    let target = Target::Launches(vec![warpscope::model::LaunchId(2)]);
    let command = rerun::plan(&profile, &target, &Options::default()).unwrap().commands.remove(0);
    assert!(command.shell_line().contains("--kernel-iteration-range '[2]'") && command.is_exact(), "{}", command.shell_line());
}

/// Kernels of HIP graphs have the node's number; records of the kernel driver are not calls.
#[test]
fn graph_nodes_and_records_of_the_driver() {
    let (_folder, path) = changed(
        "ALTER TABLE rocpd_kernel_dispatch{u} ADD COLUMN graph_exec_id INTEGER;
         ALTER TABLE rocpd_kernel_dispatch{u} ADD COLUMN graph_node_id INTEGER;
         UPDATE rocpd_kernel_dispatch{u} SET graph_exec_id = 0, graph_node_id = 0;
         UPDATE rocpd_kernel_dispatch{u} SET graph_exec_id = 94, graph_node_id = dispatch_id * 10 WHERE dispatch_id IN (2, 3);
         INSERT INTO rocpd_string{u} VALUES (40, '', 'KFD_PAGE_FAULT'), (41, '', 'ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_MIGRATED');
         INSERT INTO rocpd_event{u} VALUES (510, 40, 0, 0);
         INSERT INTO rocpd_region{u} VALUES (510, 11, 21, 20000, 21000, 41, 510), (511, 11, 21, 22000, 23000, 41, 510);",
    );
    let profile = read(&path).unwrap();
    let nodes: Vec<_> = (0..4).map(|row| profile.launches.graph_node(row)).collect();
    assert_eq!(nodes, [None, Some(20), Some(30), None]);
    assert!(profile.calls.names.iter().all(|n| !n.name.contains("KFD")));
    assert_eq!(notes(&profile), ["2 records of the kernel driver (KFD) are not shown."]);
}

#[test]
fn drafts_of_the_next_schema_are_told() {
    let (_folder, path) = changed("UPDATE rocpd_metadata{u} SET value = '4' WHERE tag = 'schema_version';");
    let profile = read(&path).unwrap();
    assert!(notes(&profile)[0].starts_with("This database has a draft of rocpd's schema 4"), "{:?}", profile.notes);
}

/// Totals from `rocpd summary`, in any of its units.
#[test]
fn totals_of_rocpd_summary() {
    let folder = tempfile::tempdir().unwrap();
    // Tables of other domains have the same columns.
    let other = "Name,Calls,Duration (Nsec),Average (Nsec),Percent (Inc),Min (Nsec),Max (Nsec),Std_Dev\nstep 1,4,80,20,100.0,15,25,2\n";
    assert!(read(&table(folder.path(), "x_markers_summary.csv", other)).is_err());
    assert!(read(&table(folder.path(), "renamed.csv", &other.replace("step 1", "ALLOC"))).is_err());
    for (unit, by) in [("Nsec", 1_000.0), ("usec", 1.0), ("msec", 0.001)] {
        let text = format!(
            "\"Name\",\"Calls\",\"Duration ({unit})\",\"Average ({unit})\",\"Percent (Inc)\",\"Min ({unit})\",\"Max ({unit})\",\"Std_Dev\"\n\"void k<int>(int)\",4,{},1,100.0,{},{},{}\n",
            80.0 * by,
            15.0 * by,
            25.0 * by,
            2.0 * by
        );
        let profile = read(&table(folder.path(), &format!("{unit}_kernels_summary.csv"), &text)).unwrap();
        let total = &profile.totals[0];
        assert_eq!((total.count, total.total.0, total.min.0, total.max.0), (4, 80_000, 15_000, 25_000), "{unit}");
        assert!((total.stddev_ns.unwrap() - 2_000.0).abs() < 1e-6);
    }
}

/// Counters and allocations in JSON; without a kernel trace, the counted dispatches are the launches.
#[test]
fn counters_in_json() {
    let info = |id: u64| {
        format!(
            r#"{{"agent_id":{{"handle":9}},"queue_id":{{"handle":1}},"kernel_id":5,"dispatch_id":{id},"workgroup_size":{{"x":64,"y":1,"z":1}},"grid_size":{{"x":640,"y":1,"z":1}}}}"#
        )
    };
    let dispatch = |id: u64| {
        format!(
            r#"{{"thread_id":70,"correlation_id":{{"internal":{id}}},"start_timestamp":{},"end_timestamp":{},"dispatch_info":{}}}"#,
            id * 1000,
            id * 1000 + 300,
            info(id)
        )
    };
    let counted = |id: u64| {
        let value = |handle: u32, value: u64| format!(r#"{{"counter_id":{{"handle":{handle}}},"value":{value}}}"#);
        format!(
            r#"{{"thread_id":70,"dispatch_data":{},"records":[{},{},{}]}}"#,
            dispatch(id),
            value(100, 3 * id),
            value(100, id),
            value(101, 7)
        )
    };
    let file = |kernels: &str, counters: &str| {
        format!(
            r#"{{"rocprofiler-sdk-tool":[{{"metadata":{{"pid":70}},"agents":[{{"id":{{"handle":9}},"type":2,"name":"gfx942"}}],
            "counters":[{{"id":{{"handle":100}},"agent_id":{{"handle":9}},"name":"SQ_WAVES"}},{{"id":{{"handle":101}},"name":"GRBM_COUNT"}}],
            "strings":{{"buffer_records":[{{"kind":"MEMORY_ALLOCATION","operations":["NONE","MEMORY_ALLOCATION_ALLOCATE","MEMORY_ALLOCATION_FREE"]}}]}},
            "kernel_symbols":[{{"kernel_id":5,"kernel_name":"saxpy.kd","formatted_kernel_name":"saxpy"}}],
            "callback_records":{{"counter_collection":[{counters}]}},
            "buffer_records":{{"kernel_dispatch":[{kernels}],"memory_allocation":[
                {{"kind":0,"operation":1,"start_timestamp":900,"agent_id":{{"handle":9}},"address":"0x7f00","allocation_size":512}},
                {{"kind":0,"operation":2,"start_timestamp":9000,"agent_id":{{"handle":0}},"address":"0x7f00","allocation_size":0}}]}}}}]}}"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let values = |profile: &Profile| {
        let metrics = profile.measured.as_ref().unwrap_or(&std::sync::Arc::new(profile.clone())).metrics.clone().unwrap();
        let of = |r: &warpscope::model::ResultMetrics| {
            r.values
                .iter()
                .filter(|v| matches!(&*metrics.names[v.0 as usize], "SQ_WAVES" | "GRBM_COUNT"))
                .map(|v| v.1.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        metrics.results.iter().map(of).collect::<Vec<_>>()
    };
    let alone = read(&table(folder.path(), "a_results.json", &file("", &[counted(4), counted(6)].join(",")))).unwrap();
    assert_eq!((alone.launches.len(), alone.order, values(&alone)), (2, LaunchOrder::Chosen, vec!["7 16".to_owned(), "7 24".to_owned()]));
    // Invalid values are left out, and the rest is read.
    let odd = counted(4).replace(r#""value":7"#, r#""value":null"#);
    let odd = read(&table(folder.path(), "d_results.json", &file("", &odd).replace(r#""operation":1"#, r#""operation":-1"#))).unwrap();
    assert_eq!((values(&odd), odd.memory.events.len()), (vec!["16".to_owned()], 0));
    let traced = [dispatch(1), dispatch(2), dispatch(3)].join(",");
    // A replayed kernel has the counters of each run.
    let replayed = counted(2) + "," + &counted(2).replace(r#""value":7"#, r#""value":8"#);
    let beside = read(&table(folder.path(), "b_results.json", &file(&traced, &replayed))).unwrap();
    assert_eq!((beside.launches.len(), beside.order, values(&beside)), (3, LaunchOrder::Host, vec!["7 8".to_owned()]));
    assert_eq!(beside.memory.events.iter().map(|e| (e.bytes, e.device)).collect::<Vec<_>>(), [(512, Some(0)), (-512, Some(0))]);
    // The advice for an AMD report without counters does not mention ncu.
    let none = table(folder.path(), "c_results.json", &file(&traced, ""));
    let (code, _, error) = run(&["metrics", &none.display().to_string()]);
    assert!(code != 0 && error.contains("rocprofv3 command that collects them") && !error.contains("ncu"), "{error}");
}

/// Reads with the importer alone, because small files are otherwise read completely.
pub(super) fn read_raw(path: &Path, wants: Wants) -> Profile {
    let job = Job::new(wants, &|_| {});
    let input = open_input(path, &job).unwrap();
    find_importer(&input).unwrap().read(&input, &job).unwrap()
}

/// Name of each launch, whether it has a duration, and the duration; sorted.
pub(super) fn durations(profile: &Profile) -> Vec<(String, bool, i64)> {
    let launches = &profile.launches;
    let name = |row| profile.kernels[launches.kernel(row).0 as usize].demangled().to_owned();
    let mut out: Vec<_> = (0..launches.len()).map(|row| (name(row), launches.has_duration(row), launches.duration(row))).collect();
    out.sort();
    out
}

/// A table of kernels needs durations only. It agrees with the data of the screens, also for merged databases, for rows
/// without times, and for missing or duplicate numbers.
#[test]
fn tables_agree_with_launches() {
    let changes = [
        ("", 0),
        ("UPDATE rocpd_kernel_dispatch{u} SET \"end\" = start + 5000000000 WHERE dispatch_id = 2;", 0),
        ("UPDATE rocpd_kernel_dispatch{u} SET start = NULL WHERE dispatch_id = 7;", 1),
        (
            "UPDATE rocpd_kernel_dispatch{u} SET \"end\" = NULL WHERE dispatch_id = 6; UPDATE rocpd_kernel_dispatch{u} SET \"end\" = 1 WHERE dispatch_id = 5;",
            0,
        ),
        ("DELETE FROM rocpd_kernel_dispatch{u} WHERE dispatch_id IN (2, 3);", 1),
        ("UPDATE rocpd_kernel_dispatch{u} SET dispatch_id = 3 WHERE dispatch_id = 4;", 1),
        ("UPDATE rocpd_kernel_dispatch{u} SET dispatch_id = 4000000000000 WHERE dispatch_id = 4;", 1),
        ("UPDATE rocpd_kernel_dispatch{u} SET kernel_id = 4000000000000 WHERE dispatch_id = 4;", 2),
        ("UPDATE rocpd_kernel_dispatch{u} SET pid = 99 WHERE dispatch_id IN (3, 5);", 0),
        (REPLAYED, 1),
    ];
    for (sql, said) in changes {
        let (_folder, path) = changed(sql);
        let read_with = |wants| read_raw(&path, wants);
        let (table, whole) = (read_with(Wants::TABLE), read_with(Wants::ALL));
        assert_eq!(durations(&table), durations(&whole), "{sql}");
        let of_both = |n: &&str| !n.starts_with("Counters were collected");
        let (of_table, of_whole): (Vec<_>, Vec<_>) =
            (notes(&table).into_iter().filter(of_both).collect(), notes(&whole).into_iter().filter(of_both).collect());
        assert_eq!((of_table.len(), of_table), (said, of_whole), "{sql}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two_results.db");
    rocpd(&path, &[(GUID, 4711, dispatches()), ("00008f81-0000-7000-8000-000000000001", 4712, dispatches())]);
    let read_with = |wants| read_raw(&path, wants);
    assert_eq!((durations(&read_with(Wants::TABLE)).len(), durations(&read_with(Wants::TABLE))), (14, durations(&read_with(Wants::ALL))));
}

/// PC samples: by kernel, instruction, line and stall reason, with hints derived from the waves' wait reasons.
#[test]
fn pc_samples() {
    let folder = tempfile::tempdir().unwrap();
    let head = "\"Sample_Timestamp\",\"Exec_Mask\",\"Dispatch_Id\",\"Instruction\",\"Instruction_Comment\",\"Correlation_Id\"";
    let more = ",\"Wave_Issued_Instruction\",\"Instruction_Type\",\"Stall_Reason\",\"Wave_Count\"";
    let row = |dispatch: u32, text: &str, line: u32, issued: u32, reason: &str| {
        let reason = format!("ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_{reason}");
        let kind = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU";
        format!(
            "\n3464444413017201,65535,{dispatch},\"{text}\",\"/src/k.hip:{line} -> /src/main.hip:9\",{dispatch},{issued},\"{kind}\",\"{reason}\",7"
        )
    };
    let mut text = format!("{head}{more}");
    for _ in 0..6 {
        text += &row(1, "s_waitcnt vmcnt(0)", 12, 0, "WAITCNT");
    }
    text += &row(2, "v_add_f32 v1, v2, v3", 12, 1, "NONE");
    text += &row(1, "v_add_f32 v1, v2, v3", 12, 0, "ALU_DEPENDENCY");
    text += &row(1, "global_load_dword v1, v[2:3], off", 11, 1, "NONE");
    text += &row(1, "s_barrier", 14, 0, "BARRIER_WAIT");
    text += &row(5, "s_endpgm", 3, 1, "NONE");
    // AMD's tool writes the address of instructions that it cannot decode.
    for address in 0..3 {
        text += &row(5, "", 3, 0, "OTHER_WAIT")
            .replace("/src/k.hip:3 -> /src/main.hip:9", &format!("Unrecognized code object id, physical virtual address of PC:{address}"));
    }
    let path = table(folder.path(), "7_pc_sampling_stochastic.csv", &text);
    std::fs::rename(kernel_trace(folder.path(), 1_000), folder.path().join("7_kernel_trace.csv")).unwrap();
    let profile = read(&path).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    let of = |result: usize, name: &str| {
        let number = metrics.names.iter().position(|n| &**n == name).unwrap();
        metrics.results[result].values.iter().find(|v| v.0 as usize == number).map(|v| v.1.to_string())
    };
    let names: Vec<_> = metrics.results.iter().map(|r| r.kernel.demangled()).collect();
    assert_eq!(names, ["saxpy", "(unnamed kernel)"]);
    let sums =
        ["PC_Samples", "PC_Issued", "PC_Stalled", "PC_Stalled: waitcnt", "PC_Stalled: barrier wait", "PC samples at s_waitcnt vmcnt"];
    assert_eq!(sums.map(|name| of(0, name).unwrap()), ["10", "2", "8", "6", "1", "6"]);
    assert_eq!((of(1, "PC_Samples"), of(1, "PC_Stalled: other wait")), (Some("4".to_owned()), Some("3".to_owned())));
    let said = notes(&profile);
    assert!(
        said.iter().any(|n| n.starts_with("The kernels of 4 samples are not known")) && said.iter().all(|n| !n.contains("understood")),
        "{said:?}"
    );
    let file = path.display().to_string();
    let (_, out, _) = run(&["metrics", &file, "--source", "--launch", "0", "--format", "csv"]);
    assert!(out.contains("k.hip") && out.contains("waitcnt"), "{out}");
    let (_, out, _) = run(&["metrics", &file, "--sass", "--launch", "0", "--format", "csv"]);
    let hot = out.lines().nth(1).unwrap();
    assert!(hot.starts_with("0,60,6,waitcnt,100,") && hot.contains("s_waitcnt vmcnt(0)"), "{out}");
    let (_, out, _) = run(&["hints", &file, "--explain"]);
    assert!(out.contains("memory-latency") && out.contains("in 7 of 10 samples (70%), waves are waiting for vector memory"), "{out}");
    // Host-trap samples do not distinguish issued from stalled.
    let plain: String = text.lines().map(|l| l.split(',').collect::<Vec<_>>()).map(|c| c[..c.len() - 4].join(",") + "\n").collect();
    let profile = read(&table(folder.path(), "7_pc_sampling_host_trap.csv", &plain)).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    assert!(metrics.names.iter().all(|n| !n.contains("Issued") && !n.contains("Stalled")), "{:?}", metrics.names);
    assert!(notes(&profile).iter().any(|n| n.starts_with("Host-trap samples")), "{:?}", notes(&profile));
}

/// Ranks in separate containers have the same process and thread ids, but their records are not replays of each other.
#[test]
fn processes_with_one_id_are_several() {
    let folder = tempfile::tempdir().unwrap();
    let mut kernels = "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z".to_owned();
    let mut calls = "Guid,Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp".to_owned();
    for (guid, from) in [("g1", 1_000), ("g2", 50_000)] {
        for id in 1..=3 {
            let start = from + id * 1_000;
            write!(kernels, "\n{guid},KERNEL_DISPATCH,Agent 4,1,0,16,{id},7,saxpy,{id},{start},{},64,1,1,640,1,1", start + 10).unwrap();
            write!(calls, "\n{guid},HIP_RUNTIME_API_EXT,hipLaunchKernel,16,16,{id},{},{}", start - 500, start - 490).unwrap();
        }
    }
    let counters = "Guid,Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let counted = |guid: &str, value: u32| format!("\n{guid},2,2,Agent 4,1,16,16,640,7,saxpy,64,SQ_WAVES,{value},1,2");
    let path = table(folder.path(), "out_kernel_trace.csv", &kernels);
    table(folder.path(), "out_regions_trace.csv", &calls);
    table(folder.path(), "out_counter_collection_trace.csv", &[counters, &counted("g1", 5), &counted("g2", 6)].concat());
    let profile = read(&path).unwrap();
    assert_eq!((profile.launches.len(), profile.processes.len()), (6, 2));
    assert!(notes(&profile).iter().all(|n| !n.contains("replayed")), "{:?}", notes(&profile));
    // The same records under rocprofv3's own names are not read twice.
    table(folder.path(), "out_hip_api_trace.csv", &calls);
    table(folder.path(), "out_counter_collection.csv", &[counters, &counted("g1", 5), &counted("g2", 6)].concat());
    let both = read(folder.path()).unwrap();
    let total = |p: &Profile| p.calls.names.iter().map(|n| n.count).sum::<u64>();
    assert_eq!((both.launches.len(), total(&both), total(&profile)), (6, 6, 6));
}
