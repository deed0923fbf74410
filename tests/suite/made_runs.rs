//! Generated runs with a single known cause, which reproduce properties of users' files that the captures do not have.

use super::support::{edited_profile, packed, read};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use warpscope::analysis::flops::{Counted, Operators, Rate};
use warpscope::analysis::triage::{Scope, StepSource, Sure, Triage, Verdict, triage_profile};
use warpscope::model::{Cancel, LaunchId, Profile};
use warpscope::rerun::select_launches;

pub fn triage(profile: &Profile) -> Triage {
    triage_profile(profile, &Scope::default(), &Cancel::default()).unwrap()
}

/// A torch.profiler trace; times in microseconds.
pub struct TorchTrace {
    pub events: Vec<Value>,
    pub correlation: u64,
    /// Process of calls, and device and stream of kernels.
    pub pid: u64,
    pub device: u32,
    pub stream: u64,
    /// List of devices; one NVIDIA GPU if `None`.
    pub devices: Option<Vec<Value>>,
}

impl Default for TorchTrace {
    fn default() -> Self {
        Self { events: Vec::new(), correlation: 0, pid: 100, device: 0, stream: 7, devices: None }
    }
}

impl TorchTrace {
    pub fn add(&mut self, category: &str, name: &str, (pid, tid): (u64, u64), (start, duration): (f64, f64), args: Value) {
        let event = json!({ "ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args });
        self.events.push(event);
    }

    pub fn call(&mut self, name: &str, start: f64, duration: f64) -> u64 {
        self.correlation += 1;
        self.add("cuda_runtime", name, (self.pid, self.pid), (start, duration), json!({ "correlation": self.correlation }));
        self.correlation
    }

    /// A call of 5 µs that starts at `called`, and the kernel that it launches.
    pub fn kernel(&mut self, name: &str, grid: [u32; 3], called: f64, start: f64, duration: f64) {
        let correlation = self.call("cudaLaunchKernel", called, 5.0);
        let args = json!({ "device": self.device, "context": 1, "stream": self.stream, "correlation": correlation, "grid": grid, "block": [256, 1, 1] });
        self.add("kernel", name, (0, self.stream), (start, duration), args);
    }

    pub fn read(self) -> Profile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.pt.trace.json");
        let devices = self.devices.unwrap_or_else(|| vec![json!({ "id": 0, "name": "NVIDIA H100", "numSms": 132 })]);
        let trace = json!({ "schemaVersion": 1, "deviceProperties": devices, "traceEvents": self.events });
        std::fs::write(&path, trace.to_string()).unwrap();
        read(&path).unwrap()
    }
}

const KERNELS: &str = "\"Guid\",\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Lds_Block_Size\",\"Scratch_Size\",\"Vgpr_Count\",\"Accum_Vgpr_Count\",\"Sgpr_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n";

/// A rocprofv3 kernel table: process, name, correlation, start and end in ns.
fn read_dispatches(folder: &Path, rows: &[(u32, &str, usize, i64, i64)]) -> Profile {
    let mut text = KERNELS.to_owned();
    for (number, (process, name, correlation, start, end)) in rows.iter().enumerate() {
        writeln!(text, "\"0000{process}-aaaa\",\"KERNEL_DISPATCH\",\"Agent 4\",\"1\",\"1\",\"{}\",\"{}\",\"10\",\"{name}\",\"{correlation}\",\"{start}\",\"{end}\",0,0,0,0,0,256,1,1,1000000,1,1", 1000 + process, number + 1).unwrap();
    }
    let path = folder.join("out_kernel_trace.csv");
    std::fs::write(&path, text).unwrap();
    read(&path).unwrap()
}

#[test]
fn a_gpu_is_busy_while_any_process_uses_it() {
    // Two processes take turns without any gap.
    let folder = tempfile::tempdir().unwrap();
    let turns: Vec<_> =
        (0..4000).map(|i| (u32::from(i % 2 == 1), "k", i as usize, 10_000_000 + i * 42_000, 10_042_000 + i * 42_000)).collect();
    let found = triage(&read_dispatches(folder.path(), &turns));
    assert_eq!(found.devices.len(), 1);
    assert_eq!(found.devices[0].busy, 4000 * 42_000);
    let share = |id| found.findings.iter().find(|f| f.id == id).map(|f| f.stake);
    assert_eq!((share(Verdict::GpuBound), share(Verdict::HostSync)), (Some(1.0), None));
}

#[test]
fn a_grid_of_zeros_is_not_known() {
    // A ROCm kernel as kineto writes it if the launch configuration was not recorded.
    for (grid, empty) in [([0, 0, 0], false), ([1, 1, 1], true)] {
        let mut trace = TorchTrace::default();
        (0..20).for_each(|i| trace.kernel("attn_fwd", grid, f64::from(i) * 10.0, 100.0 + f64::from(i) * 1000.0, 1000.0));
        let found = triage(&trace.read());
        let headline = &found.verdict().unwrap().headline;
        assert_eq!(headline.contains("SMs"), empty, "{headline}");
    }
}

#[test]
fn operators_count_if_their_kernels_ran() {
    let product = |trace: &mut TorchTrace, start: f64| {
        let args =
            json!({ "Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"], "External id": trace.correlation + 1 });
        trace.add("cpu_op", "aten::mm", (100, 100), (start, 20.0), args);
    };
    let work = |profile: &Profile| Operators::from_profile(profile).work_between(profile, (i64::MIN, i64::MAX));
    let flops = |profile: &Profile| work(profile).map(|w| (w.flops, w.operators));
    let products = || {
        let mut eager = TorchTrace::default();
        for i in 0..10 {
            product(&mut eager, f64::from(i) * 100.0);
            eager.kernel("gemm", [132, 1, 1], f64::from(i) * 100.0 + 5.0, f64::from(i) * 100.0 + 20.0, 50.0);
        }
        eager
    };
    let eager = products().read();
    assert_eq!(flops(&eager), Some((10.0 * 2.0 * 1024.0_f64.powi(3), 10)));
    assert!(work(&eager).unwrap().unknown.abs() < 1e-9);
    // A kernel whose work is not known takes half as long again; copies do no arithmetic.
    let mut mixed = products();
    for (name, start) in [("fused_moe", 1100.0), ("copy_kernel", 1400.0)] {
        mixed.kernel(name, [132, 1, 1], start, start + 20.0, 250.0);
    }
    let mixed = work(&mixed.read()).unwrap();
    assert!(mixed.operators == 10 && (mixed.unknown - 0.25).abs() < 1e-9, "{mixed:?}");
    let rate = Rate { per_second: 1.0, peak: Some(2.0), counted: Counted::Operators { count: 10, unknown: mixed.unknown } };
    assert_eq!(rate.utilization(), None);
    assert_eq!(Rate { counted: Counted::Operators { count: 10, unknown: 0.1 }, ..rate }.utilization(), Some(0.5));
    // Captured operators launch nothing, and the graph's kernels have their own call.
    let mut captured = TorchTrace::default();
    for i in 0..10 {
        product(&mut captured, f64::from(i) * 100.0);
        captured.kernel("gather", [132, 1, 1], f64::from(i) * 100.0 + 50.0, f64::from(i) * 100.0 + 60.0, 5.0);
    }
    assert_eq!(flops(&captured.read()), None);
    // It is unknown which operators launched a graph's kernels.
    let mut replayed = TorchTrace::default();
    for i in 0..10 {
        product(&mut replayed, f64::from(i) * 100.0);
        replayed.kernel("gemm", [132, 1, 1], f64::from(i) * 100.0 + 5.0, f64::from(i) * 100.0 + 20.0, 5.0);
        replayed.add(
            "kernel",
            "gemm",
            (0, 7),
            (f64::from(i) * 100.0 + 30.0, 60.0),
            json!({ "device": 0, "stream": 7, "grid": [132, 1, 1] }),
        );
    }
    assert_eq!(flops(&replayed.read()), None);
}

#[test]
fn reductions_on_one_gpu_are_no_collectives() {
    let rename = |name: &str| {
        format!("UPDATE StringIds SET value = '{name}' WHERE value LIKE '%tiny%' OR value LIKE '%gemm%' OR value LIKE '%saxpy%'")
    };
    for (name, collective) in [("block_all_reduce_sum_f32", false), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", true)] {
        let found = triage(&edited_profile("single", &rename(name)));
        let time: i64 = found.devices.iter().map(|d| d.collectives).sum();
        assert_eq!(time > 0, collective, "{name}: {time}");
    }
}

#[test]
fn polling_for_the_gpu_is_waiting_for_it() {
    for poll in ["cudaEventQuery", "cudaStreamQuery", "hipEventQuery"] {
        let mut trace = TorchTrace::default();
        for i in 0..100 {
            let at = f64::from(i) * 250.0;
            trace.kernel("work", [1320, 1, 1], at, at + 8.0, 200.0);
            for k in 0..25 {
                trace.call(poll, at + 10.0 + f64::from(k) * 8.0, 2.0);
            }
        }
        let found = triage(&trace.read());
        let first = found.findings.iter().find(|f| f.id != Verdict::GpuBound).unwrap();
        assert_eq!(first.id, Verdict::HostSync, "{poll}: {}", first.headline);
        assert!(first.headline.contains("99 times") || first.headline.contains("100 times"), "{}", first.headline);
    }
    // A memory allocator polls each of its events once, without waiting.
    let mut trace = TorchTrace::default();
    for i in 0..100 {
        let at = f64::from(i) * 20.0;
        trace.call("cudaEventQuery", at, 1.0);
        trace.kernel("work", [1320, 1, 1], at + 2.0, at + 10.0, 2.0);
    }
    let found = triage(&trace.read());
    assert_eq!(found.verdict().unwrap().id, Verdict::LaunchBound, "{}", found.verdict().unwrap().headline);
}

#[test]
fn copy_kernels_of_the_runtime_are_copies() {
    let folder = tempfile::tempdir().unwrap();
    let mut calls =
        "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n".to_owned();
    let mut rows = Vec::new();
    for i in 0..100_i64 {
        let (at, number) = (10_000_000 + i * 1_000_000, 2 * i as usize + 1);
        writeln!(calls, "\"HIP_RUNTIME_API\",\"hipMemcpyAsync\",\"77\",\"1000\",\"{number}\",\"{}\",\"{}\"", at - 50_000, at - 45_000)
            .unwrap();
        writeln!(
            calls,
            "\"HIP_RUNTIME_API\",\"hipLaunchKernel\",\"77\",\"1000\",\"{}\",\"{}\",\"{}\"",
            number + 1,
            at - 40_000,
            at - 35_000
        )
        .unwrap();
        rows.push((0, "__amd_rocclr_copyBuffer", number, at, at + 900_000));
        rows.push((0, "work", number + 1, at + 900_000, at + 990_000));
    }
    std::fs::write(folder.path().join("out_hip_api_trace.csv"), calls).unwrap();
    let profile = read_dispatches(folder.path(), &rows);
    let found = triage(&profile);
    let first = found.verdict().unwrap();
    assert_eq!(first.id, Verdict::CopyBound, "{}", first.headline);
    assert!(first.headline.contains("100 copies") && first.headline.contains("by the runtime's own kernels"), "{}", first.headline);
    assert!(profile.notes.iter().all(|n| !n.text.contains("Memory copies were not recorded")));
}

#[test]
fn a_copy_ends_before_the_next_kernel_of_its_stream() {
    let whole = read(&packed("zoo")).unwrap();
    let sql =
        "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET end = end + 3000000000 WHERE rowid = (SELECT min(rowid) FROM CUPTI_ACTIVITY_KIND_MEMCPY)";
    let cut = edited_profile("zoo", sql);
    assert_eq!(cut.coverage.overrun_copies, 1);
    assert!(cut.notes.iter().any(|n| n.text.contains("1 copy or set is recorded as running over later kernels")), "{:?}", cut.notes);
    let length = |p: &Profile| p.memops.iter().map(|m| m.duration.0).max().unwrap();
    assert!(length(&cut) < 1_000_000_000 && length(&whole) < 1_000_000_000);
}

#[test]
fn functions_of_one_thread_say_nothing_of_another() {
    // The launching thread has no samples of its own, but another thread does.
    let make = |tid: u64| {
        let mut trace = TorchTrace::default();
        for i in 0..50 {
            let at = f64::from(i) * 1000.0;
            trace.kernel("work", [1320, 1, 1], at, at + 8.0, 100.0);
            trace.add("python_function", "train.py(7): step", (100, tid), (at, 900.0), json!({}));
        }
        triage(&trace.read())
    };
    let (own, other) = (make(100), make(200));
    let first = |t: &Triage| t.findings.iter().find(|f| f.id == Verdict::HostCompute).map(|f| (f.sure, f.headline.clone())).unwrap();
    assert!(first(&own).1.contains("runs host code"), "{}", first(&own).1);
    assert_eq!(first(&other).0, Sure::Possible, "{}", first(&other).1);
    assert!(first(&other).1.contains("no function of that thread was recorded"), "{}", first(&other).1);
}

#[test]
fn a_wait_is_told_with_its_own_share() {
    // Idle time longer than the GPU could have been busy belongs to the finding about launches.
    let mut trace = TorchTrace::default();
    for i in 0..200 {
        let at = f64::from(i) * 100.0;
        trace.kernel("work", [1320, 1, 1], at, at + 8.0, 10.0);
        trace.call("cudaDeviceSynchronize", at + 6.0, 13.0);
    }
    let found = triage(&trace.read());
    for f in &found.findings {
        let said = f.headline.split("idle for ").nth(1).and_then(|rest| rest.split('%').next()).and_then(|n| n.parse::<f64>().ok());
        if let Some(said) = said {
            assert!((said - f.stake * 100.0).abs() < 1.0, "{said} of {}: {}", f.stake * 100.0, f.headline);
        }
    }
    let sum: f64 = found.findings.iter().map(|f| f.stake).sum();
    assert!(sum <= 1.01, "{sum}");
}

#[test]
fn what_the_profiler_takes_is_its_own() {
    let make = |flushes: bool| {
        let mut trace = TorchTrace::default();
        for i in 0..100 {
            let at = f64::from(i) * 200.0;
            trace.kernel("work", [1320, 1, 1], at, at + 8.0, 50.0);
            if flushes {
                trace.add("overhead", "Buffer Flush", (100, 100), (at + 60.0, 135.0), json!({}));
            }
        }
        triage(&trace.read())
    };
    let said = |t: &Triage| t.missing.iter().any(|m| m.contains("the profiler handed over its records"));
    let (plain, flushed) = (make(false), make(true));
    assert!(!said(&plain) && said(&flushed), "{:?}", flushed.missing);
    let idle = |t: &Triage| t.findings.iter().find(|f| f.id != Verdict::GpuBound).map(|f| f.sure);
    assert_eq!(idle(&flushed), Some(Sure::Possible), "{:?}", flushed.verdict().map(|f| &f.headline));
}

#[test]
fn a_trace_of_rocprof_1_is_one_of_its_gpu() {
    // Writes `results.json` as `rocprof --hip-trace` does: numbers are strings, and copies have their own process.
    let meta = |pid: u32, name: &str| json!({ "ph": "M", "pid": pid, "name": "process_name", "args": { "name": name } });
    let event = |pid: &str, tid: &str, name: &str, begin: i64, end: i64| {
        json!({ "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": (begin / 1000).to_string(), "dur": ((end - begin) / 1000).to_string(),
            "args": { "BeginNs": begin.to_string(), "EndNs": end.to_string(), "dev-id": "4", "queue-id": "0", "DurationNs": (end - begin).to_string() } })
    };
    let mut events = vec![json!({}), meta(2, "CPU HIP API"), meta(1, "COPY"), meta(6, "GPU0"), meta(10, "GPU4")];
    events.push(event("2", "77", "hipMemcpy", 1_000_000, 93_000_000));
    events.push(event("1", "0", "CopyHostToDevice", 1_100_251, 92_900_698));
    events.push(event("10", "1", "vector_add(float*, int)", 93_100_111, 96_531_722));
    events.push(event("1", "0", "CopyDeviceToHost", 97_000_001, 185_500_009));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    std::fs::write(&path, json!({ "traceEvents": events }).to_string()).unwrap();
    let profile = read(&path).unwrap();
    let launches = &profile.launches;
    assert_eq!((launches.len(), launches.duration(0), profile.kernels[0].function()), (1, 3_431_611, "vector_add"));
    let copies: Vec<_> = profile.memops.iter().map(|m| m.duration.0).collect();
    assert_eq!(copies, [91_800_447, 88_500_008]);
    let gpus: Vec<_> =
        profile.places.iter().filter_map(|p| p.device.and_then(|d| profile.devices.get(d as usize)).map(|d| d.id).or(p.ordinal)).collect();
    assert!(gpus.iter().all(|&gpu| gpu == 4) && !gpus.is_empty(), "{gpus:?}");
    assert!(profile.calls.names.iter().any(|n| &*n.name == "hipMemcpy"));
}

/// Graphs of three kernels, with a kernel outside of the graphs after each of them. The trace does not identify the
/// graphs, which may be pieces of a model: they are steps only if the host waits between them.
#[test]
fn graphs_that_are_not_identified_are_steps_only_between_waits() {
    let found = |waits: bool| {
        let mut trace = TorchTrace::default();
        let mut at = 1000.0;
        for _ in 0..64 {
            let correlation = trace.call("cudaGraphLaunch", at, 8.0);
            for node in 0..3 {
                let args =
                    json!({ "device": 0, "context": 1, "stream": 7, "correlation": correlation, "grid": [64, 1, 1], "block": [256, 1, 1] });
                let start = at + 12.0 + 20.0 * f64::from(node);
                trace.add("kernel", ["norm", "gemm", "rope"][node as usize], (0, 7), (start, 18.0), args);
            }
            trace.kernel("attention", [64, 1, 1], at + 10.0, at + 74.0, 10.0);
            if waits {
                trace.call("cudaStreamSynchronize", at + 16.0, 69.0);
            }
            at += 90.0;
        }
        triage(&trace.read()).found
    };
    assert!(!matches!(found(false), Some(StepSource::Graphs)), "{:?}", found(false));
    assert_eq!(found(true), Some(StepSource::Graphs));
}

#[test]
fn the_median_launch_is_one_of_the_configuration_that_takes_most_of_the_time() {
    let mut run = TorchTrace::default();
    // A reduction in two passes: many blocks, then one.
    for (i, (grid, us)) in [(256, 468.0), (1, 118.0), (256, 335.0), (1, 115.0), (1, 116.0)].into_iter().enumerate() {
        let at = i as f64 * 1000.0;
        run.kernel("reduce", [grid, 1, 1], at, at + 5.0, us);
    }
    let profile = run.read();
    let all: Vec<LaunchId> = (0..profile.launches.len() as u32).map(LaunchId).collect();
    let median = select_launches::median(&profile, &all).unwrap();
    assert_eq!(profile.launches.duration(median.0 as usize), 335_000);
}
