//! Workload folders of rocprof-compute, its analysis tables, and the rooflines of both. The tests write the files in
//! AMD's format; with a corpus (`WARPSCOPE_CORPUS`) real ones are compared with each other.

use super::rocm::{corpus, table};
use super::support::{Explorer, read, unpacked};
use warpscope::analysis::hints::{Diagnosis, Subject};
use warpscope::analysis::roofline::{Level, Plot};
use warpscope::model::{Metrics, NoteKind, ResultKind};

const SYSINFO: &str = "gpu_model,gpu_arch,cu_per_gpu,num_xcd,wave_size,max_sclk\nMI300X_A1,gfx942,304,8,64,2100\n";
const TOP: &str = "Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\n\"void attend<float, 128>(float const*, fl\noat*, int) (.kd)\",4.0,200000.0,50000.0,48000.0,90.0\n";
/// A latency-bound kernel: every unit is far from its peak.
const TABLES: [(&str, &str); 6] = [
    (
        "2.1_Speed-of-Light.csv",
        "Metric,Avg,Unit,Peak,Pct of Peak\nVALU FLOPs,2000.0,Gflop,81715.2,2.4\nMFMA FLOPs (BF16),40000.0,Gflop,1307443.2,3.1\nSALU Utilization,3.0,Pct,100.0,3.0\nVALU Utilization,9.0,Pct,100.0,9.0\nMFMA Utilization,6.0,Pct,100.0,6.0\nVALU Active Threads,64.0,Threads,64.0,100.0\nIPC,0.2,Instr/cycle,5.0,4.0\nWavefront Occupancy,4000.0,Wavefronts,9728.0,41.0\nLDS Bank Conflicts/Access,0.0,Conflicts/access,32.0,0.0\nL2 Cache Hit Rate,60.0,Pct,100.0,60.0\nL2-Fabric Read BW,400.0,Gb/s,5324.8,7.5\nL2-Fabric Write BW,100.0,Gb/s,5324.8,1.9\nMFMA FLOPs (F8),,Gflop,2614886.4,\n",
    ),
    (
        "7.1_Wavefront_Launch_Stats.csv",
        "Metric,Avg,Min,Max,Unit\nGrid Size,4980736.0,4980736.0,4980736.0,Work items\nWorkgroup Size,256.0,256.0,256.0,Work items\nVGPRs,96.0,96.0,96.0,Registers\nAGPRs,0.0,0.0,0.0,Registers\nLDS Allocation,0.0,0.0,0.0,Bytes\nScratch Allocation,0.0,0.0,0.0,Bytes/workitem\n",
    ),
    (
        "7.2_Wavefront_Runtime_Stats.csv",
        "Metric,Avg,Min,Max,Unit\nKernel Time (Nanosec),50000.0,48000.0,52000.0,Ns\nWave Cycles,1000.0,900.0,1100.0,Cycles per wave\nDependency Wait Cycles,700.0,600.0,800.0,Cycles per wave\nIssue Wait Cycles,100.0,90.0,110.0,Cycles per wave\nActive Cycles,200.0,190.0,210.0,Cycles per wave\n",
    ),
    ("12.1_Speed-of-Light.csv", "Metric,Avg,Unit\nUtilization,5.0,Pct of peak\nBank Conflict Rate,0.0,Pct of peak\n"),
    ("16.1_Speed-of-Light.csv", "Metric,Avg,Unit\nHit rate,42.0,Pct of peak\nUtilization,20.0,Pct of peak\nCoalescing,80.0,Pct of peak\n"),
    ("18.2_L2_Cache_Hit_Rate_(pct).csv", "Channel,Min,Q1,Median,Q3,Max\n0.0,50.0,59.0,78.2,79.4,92.2\n"),
];

fn folder(top: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in TABLES.into_iter().chain([("0.1_Top_Kernels.csv", top), ("sysinfo.csv", SYSINFO)]) {
        table(folder.path(), name, text);
    }
    folder
}

fn value(metrics: &Metrics, result: usize, name: &str) -> Option<f64> {
    let at = metrics.names.iter().position(|n| &**n == name)?;
    metrics.results[result].values.iter().find(|v| v.0 as usize == at).and_then(|v| v.1.as_number())
}

/// One analysed kernel: its size, totals, hints and roofline.
#[test]
fn tables_of_one_kernel() {
    let folder = folder(TOP);
    let profile = read(folder.path()).unwrap();
    assert_eq!(profile.source.tool, "rocprof-compute");
    // Four dispatches with a mean of 50 µs, as one row.
    let name = profile.kernels[0].demangled();
    assert_eq!(
        (name, profile.launches.len(), profile.launches.duration(0)),
        ("void attend<float, 128>(float const*, float*, int)", 1, 50_000)
    );
    assert!(profile.totals.is_empty() && profile.notes.iter().any(|n| n.text.starts_with("Its 4 dispatches")), "{:?}", profile.notes);
    let mut explorer = Explorer::open(&[folder.path().to_owned()], (120, 40));
    explorer.press("enter");
    assert!(explorer.screen().contains("memory-latency"), "{}", explorer.screen());
    explorer.press("o");
    assert!(explorer.screen().contains("BF16 MFMA"), "{}", explorer.screen());
    let metrics = profile.metrics.as_ref().unwrap();
    let one = &metrics.results[0];
    assert_eq!((one.kind, one.grid, one.block), (ResultKind::Kernel, Some([19456, 1, 1]), Some([256, 1, 1])));
    for (name, wanted) in [
        ("System Speed-of-Light: VALU Utilization", 9.0),
        ("System Speed-of-Light: VALU Utilization (Peak)", 100.0),
        ("vL1D Speed-of-Light: Utilization", 20.0),
        ("LDS Utilization", 5.0),
        ("L2 Cache Hit Rate (pct): 0.0 (Median)", 78.2),
        ("L2-Fabric Read BW", 400e9),
        ("Agent Cu_Count", 304.0),
    ] {
        assert_eq!(value(metrics, 0, name), Some(wanted), "{name}");
    }
    assert_eq!(value(metrics, 0, "MFMA FLOPs (F8)"), None, "an empty cell is no value");
    let hints = Subject::of_metrics(metrics, 0).unwrap().hints;
    assert_eq!(hints.first().map(|h| h.id), Some(Diagnosis::MemoryLatency), "{hints:?}");
    let plot = Plot::from_result(metrics, 0, &[]);
    let words: Vec<(&str, Level)> = plot.points.iter().map(|p| (p.work.as_str(), p.level)).collect();
    assert_eq!(words, [("BF16 MFMA", Level::Dram), ("VALU", Level::Dram)]);
    assert!((plot.points[0].intensity - 80.0).abs() < 1e-9, "40 TFLOP/s over 500 GB/s");
}

/// Averages over several kernels do not describe any single one.
#[test]
fn tables_of_several_kernels_give_no_hint() {
    let folder = folder(&format!("{TOP}copy(float*),1.0,3000.0,3000.0,3000.0,10.0\n"));
    let profile = read(folder.path()).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    assert_eq!((profile.totals.len(), metrics.results[0].kind, metrics.results[0].grid), (2, ResultKind::Range, None));
    assert_eq!((value(metrics, 0, "VALUBusy"), value(metrics, 0, "System Speed-of-Light: VALU Utilization")), (None, Some(9.0)));
    assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Guess && n.text.contains("all 2 kernels")), "{:?}", profile.notes);
    assert!(Subject::of_metrics(metrics, 0).unwrap().hints.is_empty() && Plot::from_result(metrics, 0, &[]).points.is_empty());
}

/// Tables may be truncated anywhere, or missing.
#[test]
fn damaged_tables_open_or_give_one_sentence() {
    for (name, text) in TABLES {
        for cut in (0..text.len()).step_by(53) {
            let folder = folder(TOP);
            table(folder.path(), name, &text[..cut]);
            if let Err(e) = read(folder.path()) {
                assert!(!e.to_string().contains('\n'), "{e}");
            }
        }
    }
    let folder = folder(TOP);
    std::fs::remove_file(folder.path().join("0.1_Top_Kernels.csv")).unwrap();
    assert_eq!(read(folder.path()).unwrap().totals.len(), 0);
}

/// A workload folder opens like its table of counters; the roofline is AMD's.
#[test]
fn a_workload_folder_and_its_roofline() {
    let root = tempfile::tempdir().unwrap();
    let inner = root.path().join("w/MI300X_A1");
    std::fs::create_dir_all(&inner).unwrap();
    table(&inner, "sysinfo.csv", SYSINFO);
    let counters = [
        ("SQ_INSTS_VALU_ADD_F32", 1e6),
        ("SQ_INSTS_VALU_MUL_F32", 1e6),
        ("SQ_INSTS_VALU_TRANS_F32", 0.0),
        ("SQ_INSTS_VALU_FMA_F32", 4e6),
        ("SQ_INSTS_VALU_MFMA_MOPS_F16", 2e7),
        ("FETCH_SIZE", 60_000.0),
        ("WRITE_SIZE", 20_000.0),
        ("TCP_TOTAL_CACHE_ACCESSES_sum", 5e6),
    ];
    let names: Vec<&str> = counters.iter().map(|c| c.0).collect();
    let values: Vec<String> = counters.iter().map(|c| c.1.to_string()).collect();
    let text = format!(
        "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,{},Start_Timestamp,End_Timestamp\n0,0,4980736,256,32768,0,96,0,48,64,attend(float*),{},1000,51000\n",
        names.join(","),
        values.join(",")
    );
    table(&inner, "pmc_perf.csv", &text);
    for path in [root.path(), &inner, &inner.join("pmc_perf.csv")] {
        let profile = read(path).unwrap();
        let metrics = profile.metrics.as_ref().unwrap();
        // 64 × (1 + 1 + 2 × 4) million operations, and 512 × 20 million, in 50 µs.
        assert_eq!(value(metrics, 0, "VALU FLOPs (F32)"), Some(640e6 / 50e-6), "{}", path.display());
        assert_eq!(value(metrics, 0, "MFMA FLOPs (F16)"), Some(10.24e9 / 50e-6));
        assert_eq!(value(metrics, 0, "VALU FLOPs (F64)"), None, "never from absent counters");
        let plot = Plot::from_result(metrics, 0, &[]);
        let of = |work: &str, level| plot.points.iter().find(|p| p.work == work && p.level == level).unwrap();
        let bytes = 80_000.0 * 1024.0;
        assert!((of("F16 MFMA", Level::Dram).intensity - 10.24e9 / bytes).abs() < 1e-6);
        assert!((of("FP32 VALU", Level::L1).intensity - 640e6 / 320e6).abs() < 1e-9);
        assert!(plot.placed.missing.iter().any(|m| m.starts_with("L2 traffic")));
    }
    for (size, name) in [((80, 24), "rocm_roofline_80"), ((120, 40), "rocm_roofline_120"), ((200, 50), "rocm_roofline_200")] {
        let mut explorer = Explorer::open(&[inner.join("pmc_perf.csv")], size);
        explorer.press("enter");
        explorer.press("o");
        insta::assert_snapshot!(name, explorer.screen());
    }
}

/// AMD's tables of a real workload against the counters they were computed from: rates agree to the tables' precision.
#[test]
fn real_tables_agree_with_their_counters() {
    for counters in corpus("compute-csv/pmc_perf.csv") {
        let workload = read(counters.parent().unwrap()).unwrap();
        assert_eq!(workload.launches.len(), 8, "{}", counters.display());
        let copied = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(counters.parent().unwrap()).unwrap().flatten() {
            let name = entry.file_name();
            if name != "pmc_perf.csv" {
                std::fs::copy(entry.path(), copied.path().join(name)).unwrap();
            }
        }
        let tables = read(copied.path()).unwrap();
        let (a, b) = (workload.metrics.as_ref().unwrap(), tables.metrics.as_ref().unwrap());
        let mean = |name: &str| {
            let all: Vec<f64> = (0..a.results.len()).filter_map(|i| value(a, i, name)).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        for (ours, theirs, scale) in [
            ("VALUBusy", "VALU Utilization", 1.0),
            ("SALUBusy", "SALU Utilization", 1.0),
            ("IPC", "IPC", 1.0),
            ("L2CacheHit", "L2 Cache Hit Rate", 1.0),
            ("L2-Fabric Read BW", "L2-Fabric Read BW", 1e9),
            ("L2-Fabric Write BW", "L2-Fabric Write BW", 1e9),
        ] {
            let wanted = value(b, 0, &format!("System Speed-of-Light: {theirs}")).unwrap();
            let found = mean(ours) / scale;
            assert!((found - wanted).abs() < 0.0051 + 2e-5 * wanted, "{ours}: {found}, {theirs}: {wanted}");
        }
        let sum = |p: &warpscope::model::Profile| p.totals.iter().map(|t| t.total.0).sum::<i64>();
        let launches: i64 = (0..8).map(|r| workload.launches.duration(r)).sum();
        assert!((sum(&tables) - launches).abs() <= 8, "{} {launches}", sum(&tables));
    }
}

const DISPATCH: &str =
    "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name";

/// A folder that is not a report itself stands for the one report in it; of several, one has to be named.
#[test]
fn a_folder_stands_for_the_one_report_in_it() {
    let root = tempfile::tempdir().unwrap();
    let text =
        format!("{DISPATCH},SQ_WAVES,Start_Timestamp,End_Timestamp\n0,0,4980736,256,32768,0,96,0,48,64,attend(float*),7,1000,51000\n");
    let workload = |name: &str| {
        let inner = root.path().join("workloads").join(name).join("MI300X_A1");
        std::fs::create_dir_all(&inner).unwrap();
        table(&inner, "sysinfo.csv", SYSINFO);
        table(&inner, "pmc_perf.csv", &text);
    };
    let all = root.path().join("workloads");
    workload("one");
    assert_eq!(read(&all).unwrap().launches.len(), 1);
    workload("two");
    // Neither is chosen without a word.
    let error = read(&all).unwrap_err().to_string();
    assert!(error.contains("a folder with 2 reports; name one of them, such as") && error.ends_with("workloads/one"), "{error}");
    assert_eq!(read(&all.join("two")).unwrap().launches.len(), 1);
    // Single files count like folders, and other files do not count.
    let files = root.path().join("files");
    std::fs::create_dir_all(&files).unwrap();
    table(&files, "sysinfo.csv", SYSINFO);
    assert!(read(&files).unwrap_err().to_string().contains("without pmc_perf.csv"));
    for (name, others) in [("a", 0), ("b", 1)] {
        std::fs::copy(unpacked("single"), files.join(name).with_extension("sqlite")).unwrap();
        let opened = read(&files);
        assert_eq!(opened.is_ok(), others == 0, "{:?}", opened.err().map(|e| e.to_string()));
    }
}

/// After the change, a re-run of a hint measures what the hint is about: the usual counters would not show it. The
/// launch is the one that was judged.
#[test]
fn a_rerun_of_a_hint_collects_its_counters() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "sysinfo.csv", SYSINFO);
    let counters = "GRBM_GUI_ACTIVE,SQ_LDS_UNALIGNED_STALL,SQ_LDS_ADDR_CONFLICT,SQ_LDS_IDX_ACTIVE,SQ_LDS_BANK_CONFLICT";
    let mut text = format!("{DISPATCH},{counters},Start_Timestamp,End_Timestamp\n");
    // The first launch takes longer, as with cold caches.
    for (at, ns) in [90_000, 50_000, 50_010, 50_020, 50_005].into_iter().enumerate() {
        let start = 1000 + at * 200_000;
        text += &format!("{at},0,4980736,256,32768,0,96,0,48,64,attend(float*),800000,18240000,0,21280000,0,{start},{}\n", start + ns);
    }
    let mut explorer = Explorer::open(&[table(folder.path(), "pmc_perf.csv", &text)], (120, 40));
    explorer.press("a");
    let judged = explorer.screen();
    assert!(judged.contains("shared-bandwidth-bound") && judged.contains("result 2"), "{judged}");
    explorer.press("r");
    let rerun = explorer.screen();
    assert!(rerun.contains("launch 2") && rerun.contains("SQ_LDS_UNALIGNED_STALL") && !rerun.contains("SQ_THREAD_CYCLES_VALU"), "{rerun}");
}

/// The checklist of results on an AMD GPU counts AMD's counters, and names AMD's tools.
#[test]
fn the_checklist_of_amd_results_names_amd_s_tools() {
    let folder = folder(TOP);
    let mut explorer = Explorer::open(&[folder.path().to_owned()], (120, 50));
    explorer.press("x");
    let screen = explorer.screen();
    assert!(screen.contains("hot kernels analyzed") && screen.contains("1 of the 1 hottest"), "{screen}");
    for other in ["nsys", "WarpStateStats", "--set roofline"] {
        assert!(!screen.contains(other), "{other}\n{screen}");
    }
}
