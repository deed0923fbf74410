//! Output of AMD's profilers, and rocprofv3 re-run commands for its launches. The tests write the databases
//! and tables according to AMD's schema and headers; with a corpus (`WARPSCOPE_CORPUS`) real ones are
//! compared with SQL and with their own numbering.

use super::support::{Explorer, read, run, scratch};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use warpscope::analysis::hints::{Diagnosis, Subject};
use warpscope::app::KeyScope;
use warpscope::model::{CopyKind, LaunchId, LaunchOrder, MemOpKind, NoteKind, Profile, RangeOrigin, Value, Vendor};
use warpscope::rerun::{self, OpenedBy, Options, Rerun, Target};

/// One dispatch: kernel id, dispatch id, agent, thread, grid in work-items, workgroup, start, duration.
pub(super) type Dispatch = (u64, u64, u64, u32, [u32; 3], [u32; 3], i64, i64);

/// A kernel symbol: id, name as filters see it, name in the code object.
const SYMBOLS: [(u64, &str, &str); 4] = [
    (1, "__amd_rocclr_fillBufferAligned", "__amd_rocclr_fillBufferAligned.kd"),
    (7, "void gemm<float>(float const*, float*, int)", "_Z4gemmIfEvPKfPfi.kd"),
    (8, "void gemm<int>(int const*, int*, int)", "_Z4gemmIiEvPKiPii.kd"),
    // The same symbol again: from another code object, or on another GPU.
    (9, "void gemm<float>(float const*, float*, int)", "_Z4gemmIfEvPKfPfi.kd"),
];

/// Rows in arbitrary order: sorted neither by dispatch nor by time.
pub(super) fn dispatches() -> Vec<Dispatch> {
    let one = |kernel, id, agent, start| (kernel, id, agent, 70, [1000, 2, 1], [256, 1, 1], start, 1000);
    vec![
        one(7, 3, 2, 30_000),
        one(1, 1, 2, 10_000),
        one(7, 2, 2, 20_000),
        one(8, 4, 2, 40_000),
        // Dispatch 5 is on another GPU, and starts later than dispatch 6.
        one(7, 6, 2, 70_000),
        one(9, 5, 3, 80_000),
        (8, 7, 2, 71, [64, 1, 1], [64, 1, 1], 90_000, 500),
    ]
}

pub(super) fn rocpd(path: &Path, parts: &[(&str, u32, Vec<Dispatch>)]) {
    let db = Connection::open(path).unwrap();
    for (guid, pid, rows) in parts {
        let u = format!("_{}", guid.replace('-', "_"));
        let mut sql = format!(
            "CREATE TABLE rocpd_metadata{u} (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
             INSERT INTO rocpd_metadata{u} (tag, value) VALUES ('schema_version', '3'), ('uuid', '{u}'), ('guid', '{guid}');
             CREATE TABLE rocpd_string{u} (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
             INSERT INTO rocpd_string{u} (id, string) VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API_EXT'), (3, 'KERNEL_DISPATCH'), (4, 'MARKER_CORE_RANGE_API'), (5, 'step 1'), (6, 'MEMORY_COPY_HOST_TO_DEVICE'), (7, 'hipDeviceSynchronize');
             CREATE TABLE rocpd_info_node{u} (id INTEGER PRIMARY KEY, hostname TEXT);
             INSERT INTO rocpd_info_node{u} VALUES (1, 'node7');
             CREATE TABLE rocpd_info_process{u} (id INTEGER PRIMARY KEY, pid INTEGER, command TEXT);
             INSERT INTO rocpd_info_process{u} VALUES (11, {pid}, './app --size 4');
             CREATE TABLE rocpd_info_thread{u} (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, name TEXT);
             INSERT INTO rocpd_info_thread{u} VALUES (21, 11, 70, 'main'), (22, 11, 71, '');
             CREATE TABLE rocpd_info_agent{u} (id INTEGER PRIMARY KEY, type TEXT, type_index INTEGER, name TEXT, product_name TEXT, extdata TEXT);
             CREATE TABLE rocpd_info_kernel_symbol{u} (id INTEGER PRIMARY KEY, pid INTEGER, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, extdata TEXT);
             CREATE TABLE rocpd_event{u} (id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, correlation_id INTEGER);
             CREATE TABLE rocpd_region{u} (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start BIGINT, \"end\" BIGINT, name_id INTEGER, event_id INTEGER);
             CREATE TABLE rocpd_kernel_dispatch{u} (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, \"end\" BIGINT, private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
             CREATE TABLE rocpd_memory_copy{u} (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start BIGINT, \"end\" BIGINT, name_id INTEGER, src_agent_id INTEGER, dst_agent_id INTEGER, size INTEGER, stream_id INTEGER, event_id INTEGER);
             INSERT INTO rocpd_memory_copy{u} VALUES (1, 11, 21, 5000, 7000, 6, 0, 2, 4096, 0, 500);
             CREATE TABLE rocpd_memory_allocate{u} (id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, type TEXT, start BIGINT, address INTEGER, size INTEGER);
             INSERT INTO rocpd_memory_allocate{u} VALUES (1, 11, 2, 'ALLOC', 1000, 77, 1024), (2, 11, 2, 'FREE', 95000, 77, 0);"
        );
        for (agent, kind, index) in [(0, "CPU", 0), (2, "GPU", 0), (3, "GPU", 1)] {
            let fields = format!(
                "{{\"wave_front_size\":64,\"cu_count\":304,\"max_waves_per_cu\":32,\"lds_size_in_kb\":64,\"max_engine_clk_fcompute\":2100,\"location_id\":{},\"workgroup_max_size\":1024}}",
                agent * 256
            );
            write!(
                sql,
                "INSERT INTO rocpd_info_agent{u} VALUES ({agent}, '{kind}', {index}, 'gfx942', 'AMD Instinct MI300X', '{fields}');"
            )
            .unwrap();
        }
        for (id, formatted, raw) in SYMBOLS {
            let extdata = format!("{{\"kernel_id\":{id},\"formatted_kernel_name\":\"{formatted}\"}}");
            // Displayed names follow --kernel-rename, filters do not.
            write!(sql, "INSERT INTO rocpd_info_kernel_symbol{u} VALUES ({id}, 11, '{raw}', 'renamed', 12, 4, '{extdata}');").unwrap();
        }
        for (i, (kernel, id, agent, thread, grid, group, start, duration)) in rows.iter().enumerate() {
            let (event, call) = (100 + 2 * i, 101 + 2 * i);
            let tid = if *thread == 70 { 21 } else { 22 };
            write!(
                sql,
                "INSERT INTO rocpd_event{u} VALUES ({event}, 3, {id}, 0), ({call}, 2, {id}, 0);
                 INSERT INTO rocpd_region{u} VALUES ({call}, 11, {tid}, {}, {}, 1, {call});
                 INSERT INTO rocpd_kernel_dispatch{u} VALUES ({event}, 11, {tid}, {agent}, {kernel}, {id}, 16, 0, {start}, {}, 8, 512, {}, {}, {}, {}, {}, {}, {event});",
                start - 4000, start - 3500, start + duration, group[0], group[1], group[2], grid[0], grid[1], grid[2]
            )
            .unwrap();
        }
        write!(
            sql,
            "INSERT INTO rocpd_event{u} VALUES (500, 2, 900, 0), (501, 4, 901, 0), (502, 2, 902, 0);
             INSERT INTO rocpd_region{u} VALUES (501, 11, 21, 15000, 65000, 5, 501), (502, 11, 21, 91000, 99000, 7, 502);"
        )
        .unwrap();
        db.execute_batch(&sql).unwrap();
    }
}

fn made(name: &str, parts: &[(&str, u32, Vec<Dispatch>)]) -> PathBuf {
    let path = scratch().join(name);
    rocpd(&path, parts);
    path
}

const GUID: &str = "00008f80-5dde-7dde-91c4-960fb6684ffa";

/// Name, grid and start of each launch.
fn launches(profile: &Profile) -> Vec<(&str, [u32; 3], i64)> {
    (0..profile.launches.len())
        .map(|i| {
            let config = &profile.configs[profile.launches.config(i).unwrap().0 as usize];
            (profile.kernels[profile.launches.kernel(i).0 as usize].demangled(), config.grid.unwrap_or_default(), profile.launches.start(i))
        })
        .collect()
}

#[test]
fn a_database_of_rocprofv3() {
    let profile = read(&made("one_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let gemm = "void gemm<float>(float const*, float*, int)";
    // By dispatch id; grids in workgroups, the last of which may be partial; times relative to the first event.
    assert_eq!(
        launches(&profile),
        [
            (SYMBOLS[0].1, [4, 2, 1], 5000),
            (gemm, [4, 2, 1], 15_000),
            (gemm, [4, 2, 1], 25_000),
            (SYMBOLS[2].1, [4, 2, 1], 35_000),
            (gemm, [4, 2, 1], 75_000),
            (gemm, [4, 2, 1], 65_000),
            (SYMBOLS[2].1, [1, 1, 1], 85_000),
        ]
    );
    assert_eq!((profile.order, profile.devices.len()), (LaunchOrder::Host, 2));
    let gpu = &profile.devices[0];
    assert_eq!((gpu.maker, gpu.name.as_deref(), gpu.arch.as_deref()), (Vendor::Amd, Some("AMD Instinct MI300X"), Some("gfx942")));
    assert_eq!((gpu.sm_count, gpu.warp_size, gpu.max_warps_per_sm, gpu.clock_hz), (Some(304), Some(64), Some(32), Some(2_100_000_000)));
    let config = &profile.configs[profile.launches.config(1).unwrap().0 as usize];
    assert_eq!((config.registers, config.static_shared.unwrap().0, config.local_per_thread.unwrap().0), (Some(16), 512, 8));
    // Each launch has its call, found by the shared event and not by the correlation id.
    assert_eq!((0..7).map(|i| profile.launches.call(i)).collect::<Vec<_>>()[1], Some((11_000, 500)));
    assert!((0..7).all(|i| profile.launches.call(i).is_some()));
    assert_eq!(profile.kernels[1].mangled(), "_Z4gemmIfEvPKfPfi");
    let copy = profile.memops.get(0).unwrap();
    assert!(matches!(copy.kind, MemOpKind::Copy { kind: CopyKind::HostToDevice, .. }) && copy.bytes.unwrap().0 == 4096);
    let range = profile.ranges.iter().next().unwrap();
    assert_eq!(
        (profile.ranges.label(range.name), range.origin, range.start, range.end),
        ("step 1".to_owned(), RangeOrigin::Roctx, 10_000, 60_000)
    );
    assert_eq!(profile.memory.events.iter().map(|m| m.bytes).collect::<Vec<_>>(), [1024, -1024]);
    assert_eq!(
        profile.calls.names.iter().map(|n| (&*n.name, n.count)).collect::<Vec<_>>(),
        [("hipDeviceSynchronize", 1), ("hipLaunchKernel", 7)]
    );
    assert_eq!((profile.capture.argv.join(" ").as_str(), profile.rank.host.as_deref()), ("./app --size 4", Some("node7")));
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
}

/// Ids repeat between merged databases.
#[test]
fn databases_that_were_merged() {
    let other = "00008f81-0000-7000-8000-000000000001";
    let path = made("two_results.db", &[(GUID, 4711, dispatches()), (other, 4712, dispatches())]);
    let profile = read(&path).unwrap();
    assert_eq!((profile.launches.len(), profile.processes.len(), profile.devices.len()), (14, 2, 2));
    let rerun = commands(&profile, &[4]).remove(0);
    // The second process's counts do not mix with the first's.
    assert!(
        rerun.shell_line().contains("--kernel-iteration-range '[1]'") || rerun.shell_line().contains("--kernel-iteration-range '[2]'"),
        "{}",
        rerun.shell_line()
    );
    assert!(rerun.warnings.iter().any(|w| w.id == "processes"));
}

fn commands(profile: &Profile, rows: &[u32]) -> Vec<Rerun> {
    let target = Target::Launches(rows.iter().map(|&r| LaunchId(r)).collect());
    rerun::plan(profile, &target, &Options::default()).unwrap().commands
}

/// Cases that a naive command gets wrong.
#[test]
fn commands_that_select_exactly_the_launch() {
    let profile = read(&made("rerun_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let of = |row: u32| commands(&profile, &[row]).remove(0);
    let words = |r: &Rerun| r.argv().join(" ");
    // The second gemm<float>, which is the third dispatch: counted per symbol from 1, with the full name.
    let second = of(2);
    let text = words(&second);
    assert!(
        text.contains(r"--kernel-include-regex ^void gemm<float>\(float const\*, float\*, int\)$ --kernel-iteration-range [2]"),
        "{text}"
    );
    assert!(text.starts_with("rocprofv3 --pmc GRBM_GUI_ACTIVE SQ_WAVES SQ_BUSY_CU_CYCLES"), "{text}");
    assert!(text.ends_with("-- ./app --size 4"), "{text}");
    assert!(second.is_exact() && second.is_runnable());
    // A second symbol with its name was loaded. That symbol is counted separately, and the results are told apart by
    // GPU and sizes.
    let same = second.warnings.iter().find(|w| w.id == "same-name").unwrap();
    assert!(same.to_sentence().contains("keep the result on GPU 0, with grid 4×2 and workgroup 256"), "{}", same.to_sentence());
    assert!(words(&of(4)).contains("--kernel-iteration-range [1]"), "the first of its symbol, on the other GPU");
    assert!(words(&of(5)).contains("--kernel-iteration-range [3]"), "by dispatch, not by start");
    // Two threads launch this symbol, so the count cannot be exact.
    assert!(!of(6).is_exact() && of(6).warnings.iter().any(|w| w.id == "threads"));
    // Several launches of one symbol take one command; launches of two symbols take two.
    assert!(words(&commands(&profile, &[1, 2, 5]).remove(0)).contains("--kernel-iteration-range [1-3]"));
    assert_eq!(commands(&profile, &[1, 3]).len(), 2);
    // A thread trace needs its own command: rocprofv3 drops jobs without counters when other jobs have them.
    let other = &second.alternatives[0];
    assert!(other.argv.contains(&"--att".to_owned()) && !other.argv.contains(&"--pmc".to_owned()), "{:?}", other.argv);
    assert!(second.warnings.iter().any(|w| w.id == "untried"), "what was not run on an AMD GPU is said");
}

pub(super) fn table(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Headers of ROCm 6.2, 6.4 and 7.0, quoted or not; a file is read with its companion files, or alone.
#[test]
fn tables_of_rocprofv3() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let kernels = table(
        at,
        "run_kernel_trace.csv",
        "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n\
         \"KERNEL_DISPATCH\",\"Agent 2\",1,0,70,2,33,\"void f<int, 2>(int*, long)\",12,2000,2600,512,0,12,4,48,256,1,1,1000,1,1\n\
         \"KERNEL_DISPATCH\",\"Agent 2\",1,0,70,1,33,\"void f<int, 2>(int*, long)\",11,1000,1500,512,0,12,4,48,256,1,1,1000,1,1\n",
    );
    table(
        at,
        "run_hip_api_trace.csv",
        "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\nHIP_RUNTIME_API,hipLaunchKernel,70,70,11,900,950\nHIP_RUNTIME_API,hipLaunchKernel,70,70,12,960,990\n",
    );
    table(
        at,
        "run_marker_api_trace.csv",
        "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\"MARKER_CORE_API\",\"layer\",70,70,3,800,3000\n",
    );
    table(
        at,
        "run_agent_info.csv",
        "\"Node_Id\",\"Agent_Type\",\"Wave_Front_Size\",\"Cu_Count\",\"Max_Waves_Per_Simd\",\"Simd_Per_Cu\",\"Name\",\"Product_Name\"\n0,\"CPU\",0,96,0,0,\"EPYC\",\"EPYC\"\n2,\"GPU\",64,304,8,4,\"gfx942\",\"AMD Instinct MI300X\"\n",
    );
    table(
        at,
        "run_memory_copy_trace.csv",
        "\"Kind\",\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",\"Agent 2\",\"Agent 0\",13,2700,2800\n",
    );
    let whole = read(&kernels).unwrap();
    assert_eq!(launches(&whole).iter().map(|l| (l.1, l.2)).collect::<Vec<_>>(), [([4, 1, 1], 200), ([4, 1, 1], 1200)]);
    assert_eq!((whole.launches.call(1), whole.processes[0].pid, whole.ranges.len()), (Some((160, 30)), 70, 1));
    assert_eq!((whole.devices[0].name.as_deref(), whole.devices[0].max_warps_per_sm), (Some("AMD Instinct MI300X"), Some(32)));
    assert_eq!(whole.memops.len(), 1);
    assert_eq!(launches(&read(at).unwrap()), launches(&whole), "the folder is the same report");
    let alone = table(
        &at.join(".."),
        &format!("{}.csv", at.file_name().unwrap().to_string_lossy()),
        "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\nKERNEL_DISPATCH,1,1,69,1,16,\"f(int*, int)\",1451,100,200,16,32,64,1,1,1024,1024,1\nKERNEL_DISPATCH,broken\n",
    );
    let old = read(&alone).unwrap();
    std::fs::remove_file(&alone).unwrap();
    assert_eq!(launches(&old), [("f(int*, int)", [16, 1024, 1], 0)]);
    assert!(old.notes.iter().any(|n| n.text.contains("One row") || n.text.contains("1 row")), "{:?}", old.notes);
}

/// Counters alone are not a trace: the launches before a given one are unknown.
#[test]
fn counters_alone_give_no_exact_count() {
    let folder = tempfile::tempdir().unwrap();
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let row = |id: u32, counter: &str| {
        format!("\n{id},{id},1,1,15,15,1048576,17,\"f(int)\",64,0,0,8,16,{counter},16384.000000,{},{}", id * 1000, id * 1000 + 300)
    };
    let text = [head.to_owned(), row(4, "SQ_WAVES"), row(4, "SQ_INSTS"), row(9, "SQ_WAVES"), row(9, "SQ_INSTS")].concat();
    let profile = read(&table(folder.path(), "x_counter_collection.csv", &text)).unwrap();
    assert_eq!((profile.launches.len(), profile.order), (2, LaunchOrder::Chosen));
    let rerun = commands(&profile, &[1]).remove(0);
    assert!(!rerun.is_exact() && rerun.warnings.iter().any(|w| w.id == "chosen-launches"));
}

/// A missing number between two dispatches is a lost launch, so counts cannot be exact.
#[test]
fn lost_dispatches_are_told() {
    let rows = dispatches().into_iter().filter(|d| d.1 != 3).collect();
    let profile = read(&made("lost_results.db", &[(GUID, 4711, rows)])).unwrap();
    let note = profile.notes.iter().find(|n| n.kind == NoteKind::Lost).unwrap();
    assert!(note.text.starts_with("1 kernel launch of the run"), "{}", note.text);
    let rerun = commands(&profile, &[4]).remove(0);
    assert!(!rerun.is_exact() && rerun.warnings.iter().any(|w| w.id == "lost-events"));
}

/// The rocprofv3 result of a launch is compared with the selected launch; its CSV has sizes only as products.
#[test]
fn results_are_compared_with_the_selection() {
    let db = made("verify_results.db", &[(GUID, 4711, dispatches())]);
    let folder = tempfile::tempdir().unwrap();
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let result = |name: &str, kernel: &str, grid: u32| {
        let text = format!("{head}\n1,1,2,1,15,15,{grid},17,\"{kernel}\",256,0,0,8,16,SQ_WAVES,32,1000,1300\n");
        table(folder.path(), name, &text).display().to_string()
    };
    let of = |file: &str| run(&["rerun", &db.display().to_string(), "--launch", "2", "--verify", file]);
    let gemm = "void gemm<float>(float const*, float*, int)";
    // The CSV's grid is the product of all sizes: 4 × 2 workgroups of 256 work-items.
    let (code, out, err) = of(&result("same_counter_collection.csv", gemm, 2048));
    assert_eq!(
        (code, out.trim_end()),
        (0, "verified: gemm with grid 4×2 and block 256, as selected (2 other launches look the same)"),
        "{err}"
    );
    let (code, out, _) = of(&result("grid_counter_collection.csv", gemm, 4096));
    assert_eq!((code, out.trim_end()), (1, "differs: grid 16 instead of 4×2"));
    let (code, out, _) = of(&result("name_counter_collection.csv", "void gemm<int>(int const*, int*, int)", 2048));
    assert_eq!(
        (code, out.trim_end()),
        (1, "differs: kernel void gemm<int>(int const*, int*, int) instead of void gemm<float>(float const*, float*, int)")
    );
    let trace = table(folder.path(), "t_kernel_trace.csv", &format!("{KERNELS}{}", kernel_row(1, "f(int)")));
    let (code, _, err) = of(&trace.display().to_string());
    assert!(code != 0 && err.contains("without counters; name the counter_collection.csv of the re-run"), "{err}");
}

/// The re-run screen has rocprofv3's fields instead of ncu's, and its result opens with the values of its counters.
#[test]
fn the_screens_are_of_rocprofv3() {
    let mut explorer = Explorer::open(&[made("screens_results.db", &[(GUID, 4711, dispatches())])], (120, 40));
    explorer.press("K M");
    assert!(explorer.screen().contains("the built-in tracer is for NVIDIA GPUs; R profiles"), "{}", explorer.screen());
    explorer.press("r");
    assert_eq!(explorer.app.current_scope(), KeyScope::Rerun);
    insta::assert_snapshot!("rocm_rerun", explorer.screen());
    for ncu_only in ["clocks", "caches", "replay", "not imported", "the program keeps running", ".ncu-rep"] {
        assert!(!explorer.screen().contains(ncu_only), "{ncu_only}");
    }
    let folder = tempfile::tempdir().unwrap();
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let text = format!("{head}\n1,1,2,1,15,15,2048,17,f(int),256,0,0,8,16,SQ_WAVES,32,1000,1300\n");
    let mut explorer = Explorer::open(&[table(folder.path(), "c_counter_collection.csv", &text)], (120, 40));
    explorer.press("enter");
    assert!(explorer.screen().contains("SQ_WAVES"), "{}", explorer.screen());
    explorer.press("a");
    let screen = explorer.screen();
    assert!(!screen.contains("SpeedOfLight") && screen.contains("HIP graph"), "{screen}");
    // A complete workload: bars of the units, wave states, hints in AMD's terms.
    table(folder.path(), "sysinfo.csv", "gpu_model,gpu_arch,cu_per_gpu,num_xcd,wave_size\nMI300X_A1,gfx942,304,8,64\n");
    let text = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,GRBM_GUI_ACTIVE,SQ_ACTIVE_INST_VALU,SQ_ACTIVE_INST_SCA,SQ_VALU_MFMA_BUSY_CYCLES,SQ_LDS_IDX_ACTIVE,SQ_LDS_BANK_CONFLICT,SQ_BUSY_CU_CYCLES,SQ_WAVE_CYCLES,SQ_WAIT_ANY,SQ_WAIT_INST_ANY,SQ_ACTIVE_INST_ANY,SQ_THREAD_CYCLES_VALU,FETCH_SIZE,WRITE_SIZE,Start_Timestamp,End_Timestamp\n\
        0,0,4980736,256,32768,0,96,0,48,64,attend(float*),800000,6080000,1520000,6080000,21280000,13680000,29000000,200000000,110000000,60000000,30000000,380000000,60000,20000,1000,51000\n";
    for (size, name) in [((80, 24), "rocm_hints_80"), ((120, 40), "rocm_hints_120"), ((200, 50), "rocm_hints_200")] {
        let mut explorer = Explorer::open(&[table(folder.path(), "pmc_perf.csv", text)], size);
        explorer.press("enter");
        explorer.press("a");
        insta::assert_snapshot!(name, explorer.screen());
    }
}

const KERNELS: &str = "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Private_Segment_Size,Group_Segment_Size,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z";

fn kernel_row(id: u32, name: &str) -> String {
    format!("\nKERNEL_DISPATCH,\"Agent 4\",1,69,{id},16,\"{name}\",{id},{},{},0,0,64,1,1,1024,1,1", id * 1000, id * 1000 + 100)
}

/// Each process of a folder has its own ids, counts and result files.
#[test]
fn tables_of_several_processes() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (1..=3).map(|id| kernel_row(id, "f(int*, int)")).collect();
    for pid in [4711, 4712] {
        table(folder.path(), &format!("{pid}_kernel_trace.csv"), &format!("{KERNELS}{rows}"));
    }
    let profile = read(folder.path()).unwrap();
    let pids: Vec<u32> = profile.processes.iter().map(|p| p.pid).collect();
    assert_eq!((profile.launches.len(), pids), (6, vec![4711, 4712]));
    assert!(profile.devices.iter().all(|d| d.id == 4), "a GPU is called what the report calls it: {:?}", profile.devices);
    for row in 0..6 {
        let rerun = commands(&profile, &[row]).remove(0);
        let text = rerun.argv().join(" ");
        assert!(text.contains(&format!("--kernel-iteration-range [{}]", row / 2 + 1)) && text.contains("-%pid%"), "{text}");
        assert!(!rerun.is_exact());
    }
}

/// With `--truncate-kernels` names have no parameters, and the table does not record this.
#[test]
fn names_that_may_be_cut_are_not_exact() {
    let folder = tempfile::tempdir().unwrap();
    for (name, exact) in [("gemm_kernel", false), ("__amd_rocclr_fillBufferAligned", true), ("f(int*, int) (.kd)", true)] {
        let path = table(folder.path(), "x_kernel_trace.csv", &format!("{KERNELS}{}", kernel_row(1, name)));
        let rerun = commands(&read(&path).unwrap(), &[0]).remove(0);
        assert_eq!(!rerun.warnings.iter().any(|w| w.id == "names-cut"), exact, "{name}");
        assert!(!rerun.argv().join(" ").contains("kd"), "{name}");
    }
}

/// ncu-only options are not ignored silently.
#[test]
fn options_of_ncu_are_told_to_be_ignored() {
    let profile = read(&made("options_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let target = Target::Launches(vec![LaunchId(2)]);
    let options = Options { kill: true, import_source: true, ..Options::default() };
    let rerun = rerun::plan(&profile, &target, &options).unwrap().commands.remove(0);
    let ignored = rerun.warnings.iter().find(|w| w.id == "ignored").unwrap();
    assert!(ignored.text.ends_with("sources, ending the program."), "{}", ignored.text);
    let late = Options { opened_by: Some(OpenedBy::Late), ..Options::default() };
    assert!(!rerun::plan(&profile, &target, &late).unwrap().commands.remove(0).is_exact());
}

/// rocprof-compute's analysis database: a row and a result for each kernel.
#[test]
fn the_analysis_database_of_rocprof_compute() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rocprof_compute_1.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            r#"CREATE TABLE compute_metadata (id INTEGER, compute_version TEXT);
             INSERT INTO compute_metadata VALUES (1, '3.4.0');
             CREATE TABLE compute_workload (workload_id INTEGER, sys_info_extdata TEXT);
             INSERT INTO compute_workload VALUES (1, '{"command":"./app 4","gpu_model":"MI300X","gpu_arch":"gfx942","cu_per_gpu":304,"wave_size":64,"max_waves_per_cu":32,"max_sclk":2100}');
             CREATE TABLE compute_kernel (kernel_uuid INTEGER, workload_id INTEGER, kernel_name TEXT);
             INSERT INTO compute_kernel VALUES (1, 1, 'void f<int>(int*)'), (2, 1, 'g(float*) [clone .kd]');
             CREATE TABLE compute_dispatch (dispatch_uuid INTEGER, kernel_uuid INTEGER, start_timestamp INTEGER, end_timestamp INTEGER);
             INSERT INTO compute_dispatch VALUES (1, 1, 1000, 1100), (2, 2, 2000, 2050), (3, 1, 3000, 3300);
             CREATE TABLE compute_metric_definition (metric_uuid INTEGER, sub_table_name TEXT, name TEXT, unit TEXT);
             INSERT INTO compute_metric_definition VALUES (10, 'System Speed-of-Light', 'VALU FLOPs', 'Gflop/s'), (11, 'Wavefront', 'VGPRs', 'Registers');
             CREATE TABLE compute_kernel_metric_value (value_uuid INTEGER, metric_uuid INTEGER, kernel_uuid INTEGER, value_name TEXT, value REAL);
             INSERT INTO compute_kernel_metric_value VALUES (1, 10, 1, 'Avg', 12.5), (2, 10, 1, 'Pct of Peak', 4.0), (3, 11, 2, 'Avg', 32), (4, 10, 2, 'Avg', NULL), (5, 99, 1, 'Avg', 1);"#,
        )
        .unwrap();
    let profile = read(&path).unwrap();
    assert_eq!((profile.source.tool.as_str(), profile.source.version.as_deref()), ("rocprof-compute", Some("3.4.0")));
    assert_eq!((profile.devices[0].name.as_deref(), profile.devices[0].sm_count), (Some("MI300X"), Some(304)));
    let rows: Vec<_> = (0..profile.launches.len())
        .map(|r| (profile.kernels[profile.launches.kernel(r).0 as usize].demangled().to_owned(), profile.launches.duration(r)))
        .collect();
    let named = |name: &str, duration: i64| (name.to_owned(), duration);
    assert_eq!(rows, [named("void f<int>(int*)", 100), named("g(float*)", 50), named("void f<int>(int*)", 300)]);
    let metrics = profile.metrics.as_ref().unwrap();
    let of = |i: usize| -> Vec<(String, String, f64)> {
        let named = |(id, value): &(u32, Value)| {
            let at = *id as usize;
            Some((metrics.names[at].to_string(), metrics.units[at].to_string(), value.as_number()?))
        };
        metrics.results[i].values.iter().filter_map(named).collect()
    };
    let row = |name: &str, unit: &str, value: f64| (name.to_owned(), unit.to_owned(), value);
    assert_eq!(
        of(0),
        [
            row("System Speed-of-Light: VALU FLOPs", "Gflop/s", 12.5),
            row("System Speed-of-Light: VALU FLOPs (Pct of Peak)", "%", 4.0),
            row("VALU FLOPs", "flop/second", 12.5e9),
            row("Agent Max_Clock", "hertz", 2.1e9),
            row("Agent Cu_Count", "", 304.0)
        ]
    );
    assert_eq!(of(1)[0], row("Wavefront: VGPRs", "Registers", 32.0));
    assert!(!commands(&profile, &[0])[0].is_exact(), "averages do not say which launch");
}

#[test]
fn the_json_of_rocprofv3() {
    let symbol = |(id, formatted, raw): (u64, &str, &str)| {
        format!(
            "{{\"kernel_id\":{id},\"kernel_name\":\"{raw}\",\"arch_vgpr_count\":12,\"accum_vgpr_count\":4,\"formatted_kernel_name\":\"{formatted}\"}}"
        )
    };
    let dispatch = |(kernel, id, agent, thread, grid, group, start, duration): Dispatch| {
        let three = |d: [u32; 3]| format!("{{\"x\":{},\"y\":{},\"z\":{}}}", d[0], d[1], d[2]);
        format!(
            "{{\"thread_id\":{thread},\"correlation_id\":{{\"internal\":{id},\"external\":0}},\"start_timestamp\":{start},\"end_timestamp\":{},\"dispatch_info\":{{\"agent_id\":{{\"handle\":{agent}}},\"queue_id\":{{\"handle\":16}},\"kernel_id\":{kernel},\"dispatch_id\":{id},\"private_segment_size\":8,\"group_segment_size\":512,\"workgroup_size\":{},\"grid_size\":{}}},\"stream_id\":{{\"handle\":0}}}}",
            start + duration,
            three(group),
            three(grid)
        )
    };
    let call = |id: u64, start: i64| {
        format!(
            "{{\"kind\":1,\"operation\":1,\"thread_id\":70,\"correlation_id\":{{\"internal\":{id}}},\"start_timestamp\":{start},\"end_timestamp\":{}}}",
            start + 500
        )
    };
    let agents: Vec<String> = [(1, 0), (2, 2), (2, 3)].iter().map(|(kind, id)| format!("{{\"id\":{{\"handle\":{id}}},\"type\":{kind},\"name\":\"gfx942\",\"product_name\":\"AMD Instinct MI300X\",\"wave_front_size\":64,\"location_id\":{}}}", id * 256)).collect();
    let text = format!(
        "{{\"rocprofiler-sdk-tool\":[{{\"metadata\":{{\"node\":{{\"hostname\":\"node7\"}},\"pid\":4711,\"command\":[\"./app\",\"--size\",\"4\"],\"init_time\":1}},\"agents\":[{}],\"strings\":{{\"buffer_records\":[{{\"kind\":\"NONE\",\"operations\":[]}},{{\"kind\":\"HIP_RUNTIME_API\",\"operations\":[\"x\",\"hipLaunchKernel\"]}}]}},\"kernel_symbols\":[{}],\"callback_records\":{{\"counter_collection\":[]}},\"buffer_records\":{{\"kernel_dispatch\":[{}],\"hip_api\":[{}]}}}}]}}",
        agents.join(","),
        SYMBOLS.map(symbol).join(","),
        dispatches().into_iter().map(dispatch).collect::<Vec<_>>().join(","),
        dispatches().iter().map(|d| call(d.1, d.6 - 4000)).collect::<Vec<_>>().join(","),
    );
    let folder = tempfile::tempdir().unwrap();
    let json = read(&table(folder.path(), "x_results.json", &text)).unwrap();
    let db = read(&made("json_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let zero = launches(&json)[0].2 - launches(&db)[0].2;
    let moved: Vec<_> = launches(&json).into_iter().map(|(name, grid, start)| (name.to_owned(), grid, start - zero)).collect();
    assert_eq!(moved, launches(&db).into_iter().map(|(n, g, s)| (n.to_owned(), g, s)).collect::<Vec<_>>());
    for row in 0..7 {
        assert_eq!(commands(&json, &[row])[0].shell_line(), commands(&db, &[row])[0].shell_line());
    }
    // Truncated anywhere, it is refused with a one-line error.
    for cut in [text.len() / 2, text.len() - 1] {
        assert!(read(&table(folder.path(), &format!("cut{cut}.json"), &text[..cut])).is_err());
    }
}

pub(super) fn corpus(part: &str) -> Vec<PathBuf> {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS") else {
        println!("not run: WARPSCOPE_CORPUS is not set");
        return Vec::new();
    };
    let mut folders = vec![Path::new(&corpus).join("samples/rocprof")];
    let mut out = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(part) {
                out.push(path);
            }
        }
    }
    out
}

/// Real databases against SQL on their own tables: every launch in order, with its grid and its re-run count.
#[test]
fn real_databases_agree_with_sql() {
    for path in corpus("_results.db") {
        let db = Connection::open(&path).unwrap();
        let Ok(mut statement) = db.prepare(
            "SELECT k.kernel_id, k.end - k.start, k.grid_size_x / k.workgroup_size_x, json_extract(s.extdata, '$.formatted_kernel_name')
             FROM rocpd_kernel_dispatch k JOIN rocpd_info_kernel_symbol s ON s.id = k.kernel_id AND s.guid = k.guid ORDER BY k.dispatch_id",
        ) else {
            continue;
        };
        let rows: Vec<(i64, i64, u32, String)> =
            statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))).unwrap().map(Result::unwrap).collect();
        let profile = read(&path).unwrap();
        assert_eq!(profile.launches.len(), rows.len(), "{}", path.display());
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for (row, (kernel, duration, grid, name)) in rows.iter().enumerate() {
            let config = &profile.configs[profile.launches.config(row).unwrap().0 as usize];
            let found = &profile.kernels[profile.launches.kernel(row).0 as usize];
            assert_eq!((found.demangled(), profile.launches.duration(row), config.grid.unwrap()[0]), (name.as_str(), *duration, *grid));
            assert!(profile.launches.call(row).is_some(), "every launch has its call");
            let n = counts.entry(*kernel).or_default();
            *n += 1;
            if row % 37 == 0 {
                let command = &commands(&profile, &[u32::try_from(row).unwrap()])[0];
                assert!(command.argv().contains(&format!("[{n}]")), "{row}: {}", command.shell_line());
            }
        }
    }
}

/// Rows of a real JSON trace of four threads are not in dispatch order; re-run ordinals follow `dispatch_id`.
#[test]
fn a_real_trace_of_several_threads_is_counted_by_dispatch() {
    for path in corpus("_results.json.gz") {
        let bytes = std::fs::read(&path).unwrap();
        let value: serde_json::Value = serde_json::from_reader(flate2::read::GzDecoder::new(&bytes[..])).unwrap();
        let mut rows: Vec<(u64, u64)> = value["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| (d["dispatch_info"]["dispatch_id"].as_u64().unwrap(), d["dispatch_info"]["kernel_id"].as_u64().unwrap()))
            .collect();
        let in_file = rows.clone();
        rows.sort_unstable();
        assert_ne!(rows, in_file);
        let profile = read(&path).unwrap();
        assert_eq!(profile.launches.len(), rows.len());
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (row, (_, kernel)) in rows.iter().enumerate() {
            let n = counts.entry(*kernel).or_default();
            *n += 1;
            if row % 4001 == 7 {
                let command = &commands(&profile, &[u32::try_from(row).unwrap()])[0];
                assert!(command.argv().contains(&format!("[{n}]")), "{row}: {}", command.shell_line());
            }
        }
    }
}

/// Damage anywhere gives a report or a one-line error.
#[test]
fn damage_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let db = std::fs::read(made("damage_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let csv = b"Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\nKERNEL_DISPATCH,1,1,69,1,16,\"f(int*, int)\",1451,100,200,64,1,1,1024,1024,1\n".to_vec();
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut opened = 0;
    for (name, whole) in [("x_results.db", db), ("x_kernel_trace.csv", csv)] {
        for round in 0..150 {
            let mut bytes = whole.clone();
            if round % 3 == 0 {
                bytes.truncate(next(bytes.len()));
            }
            for _ in 0..=next(6) {
                if !bytes.is_empty() {
                    let at = next(bytes.len());
                    bytes[at] = next(256) as u8;
                }
            }
            let path = table(folder.path(), name, "");
            std::fs::write(&path, &bytes).unwrap();
            match read(&path) {
                Ok(profile) => {
                    opened += 1;
                    for row in 0..profile.launches.len() {
                        let target = Target::Launches(vec![LaunchId(u32::try_from(row).unwrap())]);
                        let _ = rerun::plan(&profile, &target, &Options::default());
                    }
                }
                Err(e) => assert!(!e.to_string().contains('\n'), "{e}"),
            }
        }
    }
    assert!(opened > 50, "{opened}");
}

/// Counters become results, with raw values and AMD's derived metrics; ncu is not mentioned.
#[test]
fn counters_are_results_with_what_amd_derives() {
    let folder = tempfile::tempdir().unwrap();
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let row = |counter: &str, value: f64| format!("\n4,4,Agent 2,1,15,15,1048576,17,\"f(int)\",64,0,0,8,16,{counter},{value:.6},1000,1300");
    // GRBM_GUI_ACTIVE is the sum over 8 XCDs of 1,000 cycles each; the GPU has 304 compute units.
    let values = [
        ("GRBM_GUI_ACTIVE", 8000.0),
        ("SQ_ACTIVE_INST_VALU", 0.5 * 304_000.0),
        ("SQ_VALU_MFMA_BUSY_CYCLES", 0.25 * 4.0 * 304_000.0),
        ("FETCH_SIZE", 10.5),
    ];
    let text = values.iter().fold(head.to_owned(), |text, (name, value)| text + &row(name, *value));
    let path = table(folder.path(), "x_counter_collection.csv", &text);
    table(
        folder.path(),
        "x_agent_info.csv",
        "Node_Id,Agent_Type,Wave_Front_Size,Cu_Count,Num_Xcc,Name,Product_Name\n2,GPU,64,304,8,gfx942,AMD Instinct MI300X\n",
    );
    // A trace next to them is a separate report.
    table(
        folder.path(),
        "x_kernel_trace.csv",
        "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n",
    );
    let profile = read(&path).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    let found: BTreeMap<&str, (String, &str)> = metrics.results[0]
        .values
        .iter()
        .map(|(n, v)| (&*metrics.names[*n as usize], (v.to_string(), &*metrics.units[*n as usize])))
        .collect();
    assert_eq!(found["GRBM_GUI_ACTIVE"], ("8000".to_owned(), ""));
    assert_eq!(found["FETCH_SIZE"], ("10.5".to_owned(), "Kibyte"));
    assert_eq!((found["VALUBusy"].clone(), found["MfmaUtil"].clone()), (("50".to_owned(), "%"), ("25".to_owned(), "%")));
    assert!(!found.contains_key("OccupancyPercent"), "never from absent counters");
    let run = |command: &[&str]| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_warpscope")).args(command).arg(&path).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
    };
    assert!(run(&["metrics", "--format", "table"]).contains("VALUBusy"));
    let hints = run(&["hints", "--explain"]);
    assert!(hints.contains("of others too little was collected to say") && !hints.contains("SpeedOfLight"), "{hints}");
    // 1,048,576 work-items in workgroups of 64, 300 ns.
    assert!(hints.contains("launch-overhead") && hints.contains("HIP graph") && !hints.contains("SMs"), "{hints}");
}

/// `rocpd convert` writes the dispatches of several databases into one table, distinguished by
/// `Guid`: each process is counted separately.
#[test]
fn processes_of_one_table_are_told_apart_by_their_guid() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z".to_owned();
    for (guid, thread, from) in [("00006409-aaaa", 70, 1_000), ("0000640b-bbbb", 80, 900_000)] {
        for id in 1..=4 {
            let start = from + id * 100;
            write!(text, "\n{guid},KERNEL_DISPATCH,Agent 4,1,0,{thread},{id},7,saxpy,{id},{start},{},64,1,1,640,1,1", start + 10).unwrap();
        }
    }
    let path = table(folder.path(), "merged_kernel_trace.csv", &text);
    let profile = read(&path).unwrap();
    let pids: Vec<Option<u32>> = (0..8).map(|r| profile.places[profile.launches.place(r).unwrap().0 as usize].pid).collect();
    assert_eq!((pids, profile.order), ([[Some(70); 4], [Some(80); 4]].concat(), LaunchOrder::Host));
    assert!(profile.notes.iter().any(|n| n.text.contains("told apart by their Guid")), "{:?}", profile.notes);
    let printed = |launch: &str| run(&["rerun", &path.display().to_string(), "--launch", launch]).1;
    assert!(
        printed("5").contains("--kernel-iteration-range '[2]'") && printed("3").contains("--kernel-iteration-range '[4]'"),
        "{}",
        printed("5")
    );
}

/// In the tables that `rocpd convert` writes, only calls have a process id; kernels with the same `Guid` belong to the
/// same process.
#[test]
fn calls_and_kernels_of_a_guid_are_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let calls = "Guid,Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n\
        g1,HIP,hipLaunchKernel,100,171,1,500,600\ng2,HIP,hipLaunchKernel,200,271,1,700,800";
    let kernels = "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z\n\
        g1,KERNEL_DISPATCH,Agent 4,1,0,171,1,7,saxpy,1,1000,1010,64,1,1,640,1,1\ng2,KERNEL_DISPATCH,Agent 4,1,0,271,1,7,saxpy,1,2000,2010,64,1,1,640,1,1";
    let path = table(folder.path(), "m_kernel_trace.csv", kernels);
    table(folder.path(), "m_hip_api_trace.csv", calls);
    let profile = read(&path).unwrap();
    let of = |row: usize| (profile.places[profile.launches.place(row).unwrap().0 as usize].pid, profile.launches.call(row).map(|c| c.1));
    assert_eq!((of(0), of(1)), ((Some(100), Some(100)), (Some(200), Some(100))));
    assert!(!profile.notes.iter().any(|n| n.text.contains("Guid")), "{:?}", profile.notes);
}

/// Counters of some launches of a trace, from the same run: shown, and attached to these launches.
#[test]
fn counters_of_some_launches_of_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = "Kind,Agent_Id,Queue_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Workgroup_Size_X,Workgroup_Size_Y,Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z".to_owned();
    for id in 1..=9 {
        let start = 1_000 + id * 100_000;
        write!(trace, "\nKERNEL_DISPATCH,4,1,70,{id},7,saxpy,{id},{start},{},64,1,1,640,1,1", start + 50_000).unwrap();
    }
    let mut counters = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp".to_owned();
    for id in [6, 8] {
        let start = 1_000 + id * 100_000;
        write!(counters, "\n{id},{id},4,1,99,70,640,7,saxpy,64,0,0,8,16,SQ_WAVES,{},{start},{}", id * 10, start + 50_000).unwrap();
    }
    let path = table(folder.path(), "out_kernel_trace.csv", &trace);
    table(folder.path(), "out_counter_collection.csv", &counters);
    for of in [&path, &folder.path().to_owned()] {
        let profile = read(of).unwrap();
        assert_eq!((profile.launches.len(), profile.metrics.is_none()), (9, true));
        let measured = profile.measured.as_ref().unwrap();
        let metrics = measured.metrics.as_ref().unwrap();
        let joined = warpscope::rerun::match_results::join_results(&profile, metrics);
        assert_eq!(joined.pairs.iter().map(|p| (p.result, p.launch)).collect::<Vec<_>>(), [(0, 5), (1, 7)]);
        assert!(profile.notes.iter().any(|n| n.text.starts_with("Counters were collected for 2 of 9 launches")), "{:?}", profile.notes);
        let (code, out, _) = run(&["metrics", &of.display().to_string(), "--metric", "SQ_WAVES", "--format", "csv"]);
        assert_eq!((code, out.lines().count(), out.contains(",60,") && out.contains(",80,")), (0, 3, true), "{out}");
    }
    // A table of counters alone is unaffected.
    let alone = read(&folder.path().join("out_counter_collection.csv")).unwrap();
    assert_eq!((alone.launches.len(), alone.order, alone.measured.is_none()), (2, LaunchOrder::Chosen, true));
}

/// Counters of a later run belong to the dispatches with the same numbers, if kernel, grid and workgroup agree.
#[test]
fn counters_are_joined_with_their_dispatch() {
    use warpscope::rerun::match_results::{Sure, join_results};
    let timeline = read(&made("join_results.db", &[(GUID, 4711, dispatches())])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let head = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,SGPR_Count,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp";
    let gemm = "void gemm<float>(float const*, float*, int)";
    let row = |id: u32, grid: u32, group: u32, name: &str| {
        format!("\n{id},{id},2,1,99,15,{grid},7,\"{name}\",{group},0,0,8,16,SQ_WAVES,32,1000,1300")
    };
    let text = [head.to_owned(), row(3, 2000, 256, gemm), row(6, 2000, 256, gemm), row(7, 2000, 256, gemm)].concat();
    let counters = read(&table(folder.path(), "c_counter_collection.csv", &text)).unwrap();
    let joined = join_results(&timeline, counters.metrics.as_ref().unwrap());
    let pairs: Vec<_> = joined.pairs.iter().map(|p| (p.result, p.launch, p.sure)).collect();
    // The number of the last one belongs to another kernel in the timeline.
    assert_eq!(pairs, [(0, 2, Sure::Dispatch), (1, 5, Sure::Dispatch)]);
    // If dispatches are missing, their numbers are not evidence.
    let rows = dispatches().into_iter().filter(|d| d.1 != 2).collect();
    let lost = read(&made("join_lost_results.db", &[(GUID, 4711, rows)])).unwrap();
    let joined = join_results(&lost, counters.metrics.as_ref().unwrap());
    assert!(joined.pairs.iter().all(|p| matches!(p.sure, Sure::Alike(_))), "{:?}", joined.pairs);
    let mut explorer = Explorer::open(
        &[made("join_again_results.db", &[(GUID, 4711, dispatches())]), table(folder.path(), "c_counter_collection.csv", &text)],
        (120, 40),
    );
    explorer.press("K");
    assert!(explorer.screen().contains("launch-overhead"), "{}", explorer.screen());
}

/// A rocprof-compute workload: a row per dispatch, a column per counter, instances
/// summed up, the GPU from the table next to it.
#[test]
fn a_workload_of_rocprof_compute() {
    let folder = tempfile::tempdir().unwrap();
    table(
        folder.path(),
        "sysinfo.csv",
        "workload_name,command,gpu_model,gpu_arch,cu_per_gpu,num_xcd,wave_size,max_waves_per_cu,max_sclk,hbm_bw\nw,./copy -n 3,MI300X_A1,gfx942,304,8,64,32,2100,5324.8\n",
    );
    let text = "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Kernel_ID,GRBM_GUI_ACTIVE,SQ_ACTIVE_INST_VALU,TCC_HIT[0],TCC_HIT[1],TCC_MISS_sum,TCC_MISS[0],Kernel_ID_1,SQ_ACCUM_PREV_HIRES,FETCH_SIZE,WRITE_SIZE,SQC_DCACHE_REQ_READ_16,Start_Timestamp,End_Timestamp\n\
        0,4,77824,256,0,0,12,4,48,64,__amd_rocclr_fillBufferAligned.kd,10,8000.0,3040.0,3.0,6.0,3.0,1.0,10,5.0,1024.0,2048.0,7.0,1000.16,3000.46\n\
        1,4,600000,256,32768,16,128,128,48,64,\"void f<2u, 3u>(int)\",11,8000.0,243200.0,0.0,,1.0,1.0,11,5.0,4096.0,4096.0,7.0,4000.16,6000.2\n";
    let path = table(folder.path(), "pmc_perf.csv", text);
    table(folder.path(), "roofline.csv", "device,HBMBw,HBMBwLow\n0,4233.5,4232\n1,4216.0,4214\n");
    let profile = read(&path).unwrap();
    assert_eq!(profile.source.tool, "rocprof-compute");
    assert_eq!(launches(&profile), [("__amd_rocclr_fillBufferAligned", [304, 1, 1], 0), ("void f<2u, 3u>(int)", [2344, 1, 1], 3000)]);
    let gpu = profile.devices.iter().find(|d| d.id == 4).unwrap();
    assert_eq!((gpu.maker, gpu.sm_count, gpu.arch.as_deref()), (Vendor::Amd, Some(304), Some("gfx942")));
    assert_eq!((gpu.memory_bandwidth, &profile.capture.argv[..]), (Some(5_324_800_000_000), &["./copy", "-n", "3"].map(str::to_owned)[..]));
    let metrics = profile.metrics.as_ref().unwrap();
    let value = |row: usize, name: &str| {
        let at = metrics.names.iter().position(|n| &**n == name)?;
        metrics.results[row].values.iter().find(|v| v.0 as usize == at).and_then(|v| v.1.as_number())
    };
    assert_eq!((value(0, "TCC_HIT_sum"), value(0, "TCC_MISS_sum"), value(0, "L2CacheHit")), (Some(9.0), Some(3.0), Some(75.0)));
    assert_eq!((value(0, "VALUBusy"), value(1, "VALUBusy")), (Some(1.0), Some(80.0)));
    assert_eq!(value(0, "HBMBw"), Some(4_233_500_000_000.0));
    // 1 MiB in 2,000 ns.
    assert_eq!(value(0, "L2-Fabric Read BW"), Some(1024.0 * 1024.0 / 2000.0 * 1e9));
    assert_eq!((value(0, "SQC_DCACHE_REQ_READ_16"), value(0, "SQ_ACCUM_PREV_HIRES"), value(0, "Kernel_ID_1")), (Some(7.0), None, None));
    assert_eq!((value(1, "VGPR_Count"), value(1, "Scratch_Size")), (Some(256.0), Some(16.0)));
    // Damage gives a report or a one-line error.
    for cut in (0..text.len()).step_by(37) {
        std::fs::write(&path, &text[..cut]).unwrap();
        if let Err(e) = read(&path) {
            assert!(!e.to_string().contains('\n'), "{e}");
        }
    }
}

/// AMD's derived metrics for a real MI300X workload, averaged over the dispatches of each
/// kernel as rocprof-compute 3.3 printed them.
#[test]
fn a_real_workload_has_the_values_that_amd_prints() {
    // File and kernel; then our name, AMD's name, and the factor from AMD's value to ours.
    let printed = [("bmm2_analyze_kernel0.txt", "batched_matrix"), ("bmm2_analyze_kernel1.txt", "__amd_rocclr_fillBufferAligned")];
    let names = [
        ("VALUBusy", "VALU Utilization", 1.0),
        ("SALUBusy", "SALU Utilization", 1.0),
        ("MfmaUtil", "MFMA Utilization", 1.0),
        ("VALUUtilization", "VALU Active Threads", 100.0 / 64.0),
        ("IPC", "IPC", 1.0),
        ("L2CacheHit", "L2 Cache Hit Rate", 1.0),
        ("L2-Fabric Read BW", "L2-Fabric Read BW", 1e9),
        ("L2-Fabric Write BW", "L2-Fabric Write BW", 1e9),
        ("Bank Conflicts/Access", "LDS Bank Conflicts/Access", 1.0),
        ("MFMA FLOPs (BF16)", "MFMA FLOPs (BF16)", 1e9),
        ("MFMA FLOPs (F16)", "MFMA FLOPs (F16)", 1e9),
    ];
    for (path, (analysis, kernel)) in corpus("bmm2/MI300X_A1/pmc_perf.csv").iter().flat_map(|p| printed.map(|k| (p, k))) {
        let profile = read(path).unwrap();
        let metrics = profile.metrics.as_ref().unwrap();
        let text = std::fs::read_to_string(&corpus(analysis)[0]).unwrap();
        let mut compared = 0;
        for (ours, theirs, scale) in names {
            let line = text.lines().find(|l| l.contains("│ 2.1.") && l.split('│').nth(2).is_some_and(|c| c.trim() == theirs)).unwrap();
            let Ok(wanted) = line.split('│').nth(3).unwrap().trim().parse::<f64>() else { continue };
            let at = metrics.names.iter().position(|n| &**n == ours).unwrap();
            let of = metrics.results.iter().filter(|r| r.kernel.function().starts_with(kernel));
            let all: Vec<f64> = of.filter_map(|r| r.values.iter().find(|v| v.0 as usize == at)?.1.as_number()).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64 / scale;
            // AMD's times have fractions of a nanosecond, ours do not.
            let rounding = if scale > 1e6 { 2e-5 * wanted } else { 0.0 } + 0.0051;
            assert!((mean - wanted).abs() < rounding, "{kernel}: {ours} {mean}, {theirs} {wanted}");
            compared += 1;
        }
        assert!(compared >= 8, "{kernel}: {compared}");
    }
}

/// Appends a protobuf varint.
fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 128 {
        out.push((n & 127) as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

fn number(field: u64, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(n, &mut out);
    out
}

fn bytes(field: u64, b: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(b.len() as u64, &mut out);
    out.extend(b);
    out
}

/// A Perfetto trace as rocprofv3 writes it: names and keys interned until the
/// sequence is reset, all data as annotations.
#[test]
fn a_perfetto_trace_of_rocprofv3() {
    let named = |field: u64, id: u64, text: &str| bytes(field, &[number(1, id), bytes(2, text.as_bytes())].concat());
    let keys = [
        "begin_ns",
        "end_ns",
        "corr_id",
        "tid",
        "queue",
        "kernel_id",
        "workgroup_size",
        "grid_size",
        "VGPR_Count",
        "Accum_VGPR_Count",
        "agent",
    ];
    let interned = |kernel: &str| {
        let mut data: Vec<u8> = keys.iter().zip(1..).flat_map(|(k, id)| named(3, id, k)).collect();
        data.extend(named(1, 1, "kernel_dispatch"));
        data.extend(named(1, 2, "hip_api"));
        data.extend(named(2, 1, kernel));
        data.extend(named(2, 2, "hipLaunchKernel"));
        bytes(12, &data)
    };
    let annotation = |key: u64, n: u64| bytes(4, &[number(1, key), number(2, n)].concat());
    let event = |category: u64, name: u64, facts: &[(u64, u64)]| {
        let mut e = [number(9, 1), number(3, category), number(10, name)].concat();
        e.extend(facts.iter().flat_map(|(k, n)| annotation(*k, *n)));
        e.extend(bytes(4, &[number(1, 11), bytes(6, b"Agent-2")].concat()));
        bytes(11, &e)
    };
    let packet = |parts: &[Vec<u8>]| bytes(1, &[number(10, 2), parts.concat()].concat());
    let kernel = |start: u64, corr: u64| {
        event(1, 1, &[(1, start), (2, start + 500), (3, corr), (4, 70), (5, 15), (6, 7), (7, 256), (8, 1000), (9, 12), (10, 4)])
    };
    let call = |start: u64, corr: u64| event(2, 2, &[(1, start), (2, start + 50), (3, corr), (4, 70)]);
    let process = bytes(60, &[number(1, 9), bytes(3, &[number(1, 4711), bytes(2, b"./app"), bytes(2, b"-x")].concat())].concat());
    let trace = [
        packet(&[number(13, 1), interned("void f<int>(int*) [clone .kd]"), process]),
        packet(&[call(1000, 1)]),
        packet(&[call(1100, 2)]),
        packet(&[kernel(4000, 2)]),
        packet(&[kernel(3000, 1)]),
        // After the reset the same ids have other meanings.
        packet(&[number(13, 1), interned("g(float*).kd"), kernel(9000, 3)]),
        bytes(1, &bytes(35, &bytes(1, &[number(3, 2), number(18, 5)].concat()))),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x_results.pftrace");
    std::fs::write(&path, &trace).unwrap();
    let profile = read(&path).unwrap();
    assert_eq!(
        launches(&profile),
        [("void f<int>(int*)", [4, 1, 1], 2000), ("void f<int>(int*)", [4, 1, 1], 3000), ("g(float*)", [4, 1, 1], 8000)]
    );
    assert_eq!(
        (profile.launches.call(0), profile.processes[0].pid, profile.capture.argv.join(" ").as_str()),
        (Some((0, 50)), 4711, "./app -x")
    );
    assert_eq!(profile.configs[0].registers, Some(16));
    assert!(profile.notes.iter().any(|n| n.text.contains("lost 7 chunks")), "{:?}", profile.notes);
    assert!(!commands(&profile, &[1])[0].is_exact(), "there are no dispatch ids, and something was lost");
    for cut in [trace.len() / 2, trace.len() - 3] {
        std::fs::write(&path, &trace[..cut]).unwrap();
        assert!(read(&path).unwrap().notes.iter().any(|n| n.text.contains("ends in the middle")));
    }
}

/// The same run as a database and as a Perfetto trace (converted from the same records by AMD's writer).
#[test]
fn a_perfetto_trace_has_the_launches_of_its_database() {
    for path in corpus("bmm_20251219_0708.pftrace") {
        let db = corpus("16_results.db").into_iter().find(|p| p.to_string_lossy().contains("bmm_20251219_0708")).unwrap();
        let (db, trace) = (read(&db).unwrap(), read(&path).unwrap());
        let of = |p: &Profile| {
            (0..p.launches.len())
                .map(|i| (p.kernels[p.launches.kernel(i).0 as usize].demangled().to_owned(), p.launches.start(i), p.launches.duration(i)))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&db), of(&trace));
    }
}

/// A folder of a decoded thread trace: two waves that load, wait and finish.
fn thread_trace(folder: &Path) -> PathBuf {
    let folder = folder.join("ui_output_agent_7_dispatch_3");
    std::fs::create_dir_all(&folder).unwrap();
    let code = r#"{"code": [
        ["; _Z4loadPf", 0, 0, "load(float*)", 2, 4096, 0, 0, 0, 0],
        ["s_load_dwordx2 s[0:1], s[0:1], 0x0", 0, 1, "/src/load.hip:3", 2, 4096, 2, 8, 0, 400],
        ["s_waitcnt lgkmcnt(0)", 0, 2, "/src/load.hip:3", 2, 4104, 2, 100, 100, 0],
        ["global_load_dword v1, v0, s[0:1]", 0, 3, "/src/load.hip:4", 2, 4108, 2, 8, 0, 0],
        ["s_waitcnt vmcnt(0)", 0, 4, "/src/load.hip:4 -> /src/load.hip:9", 2, 4116, 2, 1400, 1392, 0],
        ["v_add_f32_e32 v1, 1.0, v1", 0, 5, "/src/load.hip:5", 2, 4120, 2, 8, 0, 0],
        ["s_barrier", 0, 6, "", 2, 4124, 2, 68, 60, 0],
        ["s_endpgm", 0, 7, "/src/load.hip:6", 2, 4128, 2, 8, 0, 0]
    ], "header": "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle", "version": "3"}"#;
    table(
        &folder,
        "filenames.json",
        r#"{"gfxip":9,"gfxv":"vega","version":"3.0.0","wave_filenames":{"0":{"0":{"0":{"0":["w0.json",1000,2000]},"1":{"0":["w1.json",1000,2000]}},"1":{"0":{"0":["../../outside.json",1,2],"1":["link.json",1,2]}}}}}"#,
    );
    // Files elsewhere and links are not read.
    std::os::unix::fs::symlink("w0.json", folder.join("link.json")).unwrap();
    for (slot, wave) in ["w0.json", "w1.json"].iter().enumerate() {
        let instructions = "[[1200,1,0,4,1],[1204,9,50,50,2],[1254,3,0,46,3],[1300,9,696,700,4]]";
        let timeline = "[[1,200],[2,100],[3,700]]";
        let of = format!(r#""begin":1000,"end":2000,"cu":1,"simd":2,"slot":{slot},"id":{slot}"#);
        let text = format!(r#"{{"duration":1000,"name":"SE0","wave":{{{of},"instructions":{instructions},"timeline":{timeline}}}}}"#);
        table(&folder, wave, &text);
    }
    // A wave on another CU started before the trace.
    table(
        &folder,
        "occupancy.json",
        r#"{"0":[[1000,1,2,0,1,1],[1000,1,2,1,1,1],[1500,4,0,0,0,1],[2000,1,2,0,0,1],[2000,1,2,1,0,1]],"dispatches":{"1":"load"}}"#,
    );
    table(&folder, "wstates3.json", r#"{"name":"wstates3.json","state":[2,0],"time":[1300,2000]}"#);
    table(&folder, "realtime.json", r#"{"SE0":[[1000,500],[3000,20500]],"metadata":{"frequency":100000000}}"#);
    table(&folder, "snapshots.json", r#"{"/":{"src":{"load.hip":"source_0_load.hip"}}}"#);
    table(&folder, "source_0_load.hip", "a\nb\nload\nread\nadd\nend\n");
    table(&folder, "code.json", code)
}

/// Waves that are idle where the code enters a cache line wait for the code; idle cycles all over the code have other
/// reasons.
#[test]
fn waves_wait_for_code_at_the_start_of_cache_lines() {
    for (at_lines, elsewhere, wanted) in [(80, 0, true), (20, 4, false), (0, 5, false)] {
        let folder = tempfile::tempdir().unwrap();
        let row = |n: u64| {
            let (address, idle) = (4_096 + n * 8, if n.is_multiple_of(8) { at_lines } else { elsewhere });
            format!(r#"["v_add_f32 v{n}, v0, v1",0,{n},"",2,{address},8,8,0,{idle}]"#)
        };
        let rows: Vec<String> =
            std::iter::once(r#"["; straight",0,0,"straight()",2,4096,0,0,0,0]"#.to_owned()).chain((0..160).map(row)).collect();
        let code = table(folder.path(), "code.json", &format!(r#"{{"code":[{}],"version":"3"}}"#, rows.join(",")));
        let profile = read(&code).unwrap();
        let subject = Subject::of_metrics(profile.metrics.as_ref().unwrap(), 0).unwrap();
        let found = subject.hints.iter().any(|h| h.id == Diagnosis::InstructionCache);
        assert_eq!(found, wanted, "{at_lines} {elsewhere}: {:?}", subject.hints);
    }
}

/// A thread trace is a result: every cycle of the waves, their wait reasons, instructions and lines.
#[test]
fn a_thread_trace() {
    let folder = tempfile::tempdir().unwrap();
    let code = thread_trace(folder.path());
    for path in [&code, &code.parent().unwrap().to_owned()] {
        let profile = read(path).unwrap();
        // The trace has two clocks: 2,000 cycles take 20,000 ticks of 10 ns.
        assert_eq!((profile.launches.len(), profile.launches.duration(0), profile.kernels[0].function()), (1, 100_000, "load"));
        let metrics = profile.metrics.as_ref().unwrap();
        let value = |name: &str| {
            let at = metrics.names.iter().position(|n| &**n == name)?;
            metrics.results[0].values.iter().find(|v| v.0 as usize == at).and_then(|v| v.1.as_number())
        };
        assert_eq!((value("Latency"), value("Idle"), value("Wave cycles")), (Some(1600.0), Some(400.0), Some(2000.0)));
        assert_eq!(
            (value("Latency of s_waitcnt vmcnt"), value("Latency of s_barrier"), value("Waves")),
            (Some(1400.0), Some(68.0), Some(2.0))
        );
        let run = |words: &[&str]| {
            let out = std::process::Command::new(env!("CARGO_BIN_EXE_warpscope")).args(words).arg(path).output().unwrap();
            String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
        };
        let hints = run(&["hints", "--explain"]);
        assert!(hints.contains("1. memory-latency") && hints.contains("70% of their cycles"), "{hints}");
        let lines = run(&["metrics", "--source", "--format", "csv"]);
        assert!(lines.lines().nth(1).is_some_and(|l| l.contains("load.hip,4") && l.contains("1408")), "{lines}");
        let instructions = run(&["metrics", "--sass", "--format", "csv"]);
        assert!(instructions.lines().nth(1).is_some_and(|l| l.contains("s_waitcnt vmcnt(0)") && l.contains("1400")), "{instructions}");
    }
    let mut explorer = Explorer::open(&[code.parent().unwrap().to_owned()], (120, 40));
    explorer.press("enter");
    explorer.press("a");
    insta::assert_snapshot!("rocm_thread_trace_hints", explorer.screen());
    explorer.press("T");
    insta::assert_snapshot!("rocm_thread_trace_timeline", explorer.screen());
    waves_over_time(&read(&code).unwrap());
    // Damage gives a report or a one-line error.
    let whole = std::fs::read_to_string(&code).unwrap();
    for (cut, at) in (0..whole.len()).step_by(53).enumerate() {
        let text = if cut % 2 == 0 {
            whole[..at].to_owned()
        } else {
            whole.replacen("1400", &"9".repeat(cut), 1).replace(" 8,", " 18446744073709551615,")
        };
        std::fs::write(&code, text).unwrap();
        if let Err(e) = read(&code) {
            assert!(!e.to_string().contains('\n'), "{e}");
        }
    }
}

/// PC samples have the form of a thread trace without cycles, and are judged like other samples.
#[test]
fn pc_samples_as_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let head = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle, PC_Issued, PC_Stalled, Stall_Reasons";
    let row = |text: &str, address: u32, issued: u32, stalled: u32| {
        format!(r#"["{text}", 0, 1, "/src/load.hip:4", 2, {address}, 0, 0, 0, 0, {issued}, {stalled}, [0, {stalled}, 0]]"#)
    };
    let rows = [
        r#"["; _Z4loadPf", 0, 0, "load(float*)", 2, 4096, 0, 0, 0, 0, 0, 0, [0, 0, 0]]"#.to_owned(),
        row("global_load_dword v1, v0, s[0:1]", 4096, 40, 60),
        row("s_waitcnt vmcnt(0)", 4104, 10, 790),
        row("v_add_f32_e32 v1, 1.0, v1", 4108, 90, 10),
    ];
    let path = table(folder.path(), "code.json", &format!(r#"{{"code": [{}], "header": "{head}", "version": "3"}}"#, rows.join(", ")));
    let profile = read(&path).unwrap();
    assert_eq!(profile.source.tool, "rocprofv3 PC samples");
    let metrics = profile.metrics.as_ref().unwrap();
    let value = |name: &str| {
        let at = metrics.names.iter().position(|n| &**n == name)?;
        metrics.results[0].values.iter().find(|v| v.0 as usize == at).and_then(|v| v.1.as_number())
    };
    let names = ["PC_Samples", "PC_Issued", "PC_Stalled", "PC samples at s_waitcnt vmcnt", "PC samples at VALU", "Latency"];
    assert_eq!(names.map(value), [Some(1000.0), Some(140.0), Some(860.0), Some(800.0), Some(100.0), None]);
    let run = |words: &[&str]| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_warpscope")).args(words).arg(&path).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let hints = run(&["hints", "--explain"]);
    assert!(hints.contains("1. memory-latency") && hints.contains("in 900 of 1,000 samples (90%)"), "{hints}");
    assert!(hints.contains("waves: of their samples, vmcnt 80%"), "{hints}");
    let instructions = run(&["metrics", "--sass", "--format", "csv"]);
    assert!(instructions.lines().nth(1).is_some_and(|l| l.contains("s_waitcnt vmcnt(0)") && l.contains("800")), "{instructions}");
}

/// Each slot of a SIMD is a row: its waves, their states and instructions, with the curves
/// next to them. 2,000 cycles are 200 µs here.
fn waves_over_time(profile: &Profile) {
    let of_slot = |tid: u32| {
        let ranges = profile.ranges.iter().filter(|r| profile.ranges.threads[r.thread as usize].1 == tid);
        ranges.map(|r| (profile.ranges.label(r.name), r.start / 100, r.end / 100)).collect::<Vec<_>>()
    };
    let expected = [
        ("wave 1", 0, 1000),
        ("idle", 0, 200),
        ("executing", 200, 300),
        ("waiting", 300, 1000),
        ("s_load_dwordx2 s[0:1], s[0:1], 0x0", 200, 204),
        ("s_waitcnt lgkmcnt(0)", 204, 254),
        ("global_load_dword v1, v0, s[0:1]", 254, 300),
        ("s_waitcnt vmcnt(0)", 300, 1000),
    ];
    assert_eq!(of_slot(2), expected.map(|(name, start, end)| (name.to_owned(), start, end)));
    assert_eq!(profile.threads[1].name.as_deref(), Some("SE0 CU1 SIMD2 slot 1"));
    let curves: Vec<_> = profile.counters.iter().map(|c| (&*c.name, c.times.clone(), c.values.clone())).collect();
    let at = |cycles: &[i64]| cycles.iter().map(|c| c * 100).collect::<Vec<_>>();
    assert_eq!(curves, [("SE0 waves", at(&[0, 500, 1000]), vec![3.0, 2.0, 0.0]), ("waiting waves", at(&[300, 1000]), vec![2.0, 0.0])]);
}

/// Real thread traces: cycles of all instructions add up to those of the waves, and each row equals AMD's statistics.
#[test]
fn real_thread_traces_account_for_every_cycle() {
    for path in corpus("/code.json") {
        if !path.to_string_lossy().contains("ui_output") {
            continue;
        }
        let profile = read(&path).unwrap();
        let metrics = profile.metrics.as_ref().unwrap();
        let value = |name: &str| {
            let at = metrics.names.iter().position(|n| &**n == name).unwrap();
            metrics.results[0].values.iter().find(|v| v.0 as usize == at).unwrap().1.as_number().unwrap()
        };
        let (own, waves) = (value("Latency") + value("Idle"), value("Wave cycles"));
        assert!((own - waves).abs() / waves < 0.002, "{}: {own} {waves}", path.display());
        let states: f64 = ["Waves idle", "Waves executing", "Waves waiting", "Waves stalled"].map(value).iter().sum();
        assert!((states - waves).abs() / waves < 0.002, "{states} {waves}");
        let folder = path.parent().unwrap();
        let stats = folder.with_file_name(format!("stats_{}.csv", folder.file_name().unwrap().to_string_lossy()));
        let Ok(mut stats) = csv::Reader::from_path(stats) else { continue };
        let sums = stats.records().flatten().fold([0.0; 4], |mut sum, row| {
            for (i, s) in sum.iter_mut().enumerate() {
                *s += row[i + 3].parse::<f64>().unwrap();
            }
            sum
        });
        assert_eq!(sums, ["Hitcount", "Latency", "Stall", "Idle"].map(value), "{}", path.display());
    }
}
