//! Generated runs that begin or end in the middle of something: work from before the recording, ranges that stay open, a
//! last step of which only a part was recorded, processes one after the other.

use super::made_runs::{TorchTrace, triage};
use serde_json::json;
use warpscope::analysis::triage::{Cause, StepSource, Verdict};

/// Kernels in an irregular order, each launched while the previous one runs: (name, stream, start, duration) in µs.
fn irregular(trace: &mut TorchTrace, count: u32, mut start: f64, launched: Option<f64>) -> f64 {
    let mut state = 12_345_u32;
    for _ in 0..count {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let name = ["gather", "scan", "sort"][(state >> 16) as usize % 3];
        let duration = 20.0 + f64::from((state >> 8) % 16);
        trace.kernel(name, [132, 1, 1], launched.unwrap_or(start - 15.0), start, duration);
        start += duration + 1.0;
    }
    start
}

#[test]
fn work_from_before_the_recording_is_no_idle_time() {
    let made = |stream: u64| {
        let mut trace = TorchTrace { stream: 9, ..TorchTrace::default() };
        trace.kernel("first", [132, 1, 1], 100.0, 110.0, 4.0);
        trace.stream = stream;
        // Launched at once, and kept waiting for half a second.
        irregular(&mut trace, 60, 500_000.0, Some(150.0));
        triage(&trace.read())
    };
    let found = made(7);
    assert!(found.left_out.iter().any(|l| l.unrecorded && l.end == 499_900_000), "{:?}", found.left_out);
    let verdict = found.verdict().unwrap();
    assert_eq!(verdict.id, Verdict::GpuBound, "{}", verdict.headline);
    assert!(verdict.headline.contains("is not recorded may have run"), "{}", verdict.headline);
    // In a stream that had run before, nothing from before the recording can be in the way.
    let found = made(9);
    assert_eq!(found.verdict().unwrap().id, Verdict::StreamWait);
    assert!(found.left_out.iter().all(|l| !l.unrecorded));
}

#[test]
fn a_range_that_stays_open_does_not_make_its_rest_idle() {
    let made = |closed: bool| {
        let mut trace = TorchTrace::default();
        let last = irregular(&mut trace, 60, 100.0, None);
        trace.add("user_annotation", "step 0", (100, 100), (84.0, 300_000.0), json!({}));
        if closed {
            trace.call("cudaDeviceSynchronize", 310_000.0, 1.0);
        }
        (triage(&trace.read()), last)
    };
    let (found, last) = made(false);
    assert!(((found.window.1 - found.window.0) as f64) < last * 1_000.0, "{:?}", found.window);
    assert!(found.findings.iter().all(|f| f.id != Verdict::HostCompute));
    // If the program goes on after it, the program ended the range.
    let (found, _) = made(true);
    assert_eq!(found.verdict().unwrap().id, Verdict::HostCompute);
}

#[test]
fn a_part_of_a_step_is_no_step() {
    let mut trace = TorchTrace::default();
    for step in 0..12 {
        let start = f64::from(step) * 10_000.0;
        trace.add("user_annotation", "Optimizer.step#SGD.step", (100, 100), (start, 300.0), json!({}));
        trace.kernel("update", [132, 1, 1], start + 5.0, start + 20.0, 200.0);
        if step < 11 {
            trace.kernel("forward", [132, 1, 1], start + 500.0, start + 520.0, 9_000.0);
        }
    }
    let found = triage(&trace.read());
    assert!(matches!(&found.found, Some(StepSource::Ranges(name)) if name.starts_with("Optimizer")), "{:?}", found.found);
    assert_eq!(found.steps.len(), 11, "after the last start, only the update was recorded");
    assert!(found.steps.iter().all(|s| s.length() == 10_000_000));
}

#[test]
fn a_pause_amid_repeated_work_is_a_single_delay() {
    let mut trace = TorchTrace::default();
    let middle = irregular(&mut trace, 80, 100.0, None);
    irregular(&mut trace, 80, middle + 3_000.0, None);
    let found = triage(&trace.read());
    assert_eq!(found.found, None);
    let verdict = found.findings.iter().find(|f| f.id == Verdict::SingleDelay).expect("a pause");
    assert!(verdict.headline.contains("once"), "{}", verdict.headline);
    assert!(found.findings.iter().all(|f| f.id != Verdict::HostCompute));
}

#[test]
fn between_two_processes_no_thread_computes() {
    let mut trace = TorchTrace::default();
    let first = irregular(&mut trace, 40, 100.0, None);
    trace.pid = 200;
    irregular(&mut trace, 40, first + 400_000.0, None);
    let found = triage(&trace.read());
    let of = |cause: Cause| found.devices[0].causes.iter().find(|c| c.0 == cause).map_or(0, |c| c.1);
    assert!((399_000_000..=400_000_000).contains(&of(Cause::Absent)), "{:?}", found.devices[0].causes);
    assert!(found.findings.iter().all(|f| f.id != Verdict::HostCompute));
    assert!(found.missing.iter().any(|m| m.contains("between two processes")), "{:?}", found.missing);
}

#[test]
fn a_gpu_that_is_numbered_otherwise_has_the_name_of_its_kind() {
    let made = |names: &[&str]| {
        let devices: Vec<_> = (0..).zip(names).map(|(id, name): (u32, _)| json!({ "id": id, "name": name, "warpSize": 64 })).collect();
        let mut trace = TorchTrace { device: 9, devices: Some(devices), ..TorchTrace::default() };
        trace.kernel("k", [132, 1, 1], 100.0, 110.0, 4.0);
        trace.read().devices.iter().map(|d| (d.id, d.name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(made(&["AMD Instinct MI300X"; 2]), [(9, Some("AMD Instinct MI300X".to_owned()))]);
    assert_eq!(made(&["AMD Instinct MI300X", "AMD Instinct MI210"]), [(9, None)], "either of them");
}

/// In one gap, the host may compute and then wait: that is one delay, with one length.
#[test]
fn a_single_delay_is_a_gap_and_not_a_cause() {
    let mut trace = TorchTrace::default();
    let mut start = 100.0;
    for launch in 0..120_u32 {
        if launch == 80 {
            // 30 ms outside of CUDA, then a wait for another thread's event.
            start += 50_000.0;
        }
        let name = ["gather", "scan", "sort"][launch as usize % 3];
        trace.kernel(name, [132, 1, 1], start - 15.0, start, 90.0);
        start += 91.0;
    }
    let found = triage(&trace.read());
    let delay = found.findings.iter().find(|f| f.id == Verdict::SingleDelay).unwrap();
    let places: Vec<_> = delay.places.iter().map(|p| (p.start, p.end)).collect();
    let mut distinct = places.clone();
    distinct.dedup();
    assert_eq!(places, distinct, "each gap is listed once");
    let idle = delay.evidence.iter().find(|e| e.name == "idle in these gaps").unwrap().value;
    assert!(delay.headline.contains("50.0 ms") || (idle - 50.0e6).abs() < 1e6, "{} {idle}", delay.headline);
}
