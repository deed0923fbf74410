//! Captures of one job that begin at different steps, and ranks that are late repeatedly: generated traces of PyTorch's
//! profiler with one all-reduce per step.

use super::support::{run, scratch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A job, with the compute time of each rank in each step, µs.
struct Job<'a> {
    ranks: usize,
    steps: usize,
    computes: &'a dyn Fn(usize, usize) -> i64,
    /// Offset of each rank's clock, µs.
    ahead: &'a [i64],
    /// Steps in each capture: from, to.
    held: &'a [(usize, usize)],
    /// Number of a capture's first step, if each capture restarts the count.
    anew: Option<usize>,
}

/// Writes the captures; returns their paths.
fn written(folder: &Path, job: &Job<'_>) -> Vec<PathBuf> {
    let mut lists: Vec<Vec<Value>> = vec![Vec::new(); job.ranks];
    let mut t = 1_000_000_i64;
    for step in 0..job.steps {
        let ready: Vec<i64> = (0..job.ranks).map(|r| t + 50 + (job.computes)(r, step)).collect();
        let end = ready.iter().max().unwrap() + 800;
        for rank in 0..job.ranks {
            let (from, to) = job.held[rank];
            if !(from..=to).contains(&step) {
                continue;
            }
            let ahead = job.ahead[rank];
            let number = job.anew.map_or(step, |first| step - from + first);
            let pid = 4_000 + rank;
            let list = &mut lists[rank];
            list.push(json!({"ph": "X", "cat": "user_annotation", "name": format!("ProfilerStep#{number}"), "pid": pid, "tid": pid,
                "ts": t + ahead, "dur": end + 30 - t, "args": {}}));
            let mut launch = |name: &str, at: i64, called: i64, dur: i64, correlation: usize, more: Value| {
                list.push(json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid,
                    "ts": called + ahead, "dur": 8, "args": {"correlation": correlation}}));
                let mut args = json!({"device": rank, "stream": if more.is_null() { 7 } else { 20 }, "correlation": correlation,
                    "grid": [64, 1, 1], "block": [256, 1, 1], "context": 1});
                if let (Some(args), Some(more)) = (args.as_object_mut(), more.as_object()) {
                    args.extend(more.clone());
                }
                list.push(
                    json!({"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": 7, "ts": at + ahead, "dur": dur, "args": args}),
                );
            };
            let compute = ready[rank] - t - 50;
            for part in 0..4 {
                launch("gemm", t + 50 + compute * part / 4, t + part * 8, compute / 4, step * 5 + part as usize + 1, Value::Null);
            }
            let of = json!({"Collective name": "allreduce", "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "Group size": job.ranks,
                "dtype": "Float", "Process Group Name": "0"});
            launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", ready[rank], t + 40, end - ready[rank], step * 5 + 5, of);
        }
        t = end + 30;
    }
    lists
        .into_iter()
        .enumerate()
        .map(|(rank, list)| {
            let path = folder.join(format!("rank{rank}.pt.trace.json"));
            let trace = json!({"schemaVersion": 1, "deviceProperties": [{"id": rank, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.ranks}, "traceEvents": list,
                "baseTimeNanoseconds": 1_700_000_000_000_000_000_i64});
            std::fs::write(&path, trace.to_string()).unwrap();
            path
        })
        .collect()
}

/// Output of `warpscope ranks`: JSON and text.
fn ranks(job: &Job<'_>) -> (Value, String) {
    let folder = tempfile::tempdir_in(scratch()).unwrap().keep();
    let files = written(&folder, job);
    let names: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
    let said = |format| {
        let (code, out, err) = run(&[&["ranks"], &names[..], &["--format", format]].concat());
        assert_eq!(code, 0, "{err}");
        out
    };
    (serde_json::from_str(&said("json")).unwrap(), said("table"))
}

/// Irregular compute time, as for sequences of varying length.
fn irregular(step: usize) -> i64 {
    8_000 + (step as i64 * 7_919) % 6_000
}

#[test]
fn captures_that_begin_at_different_steps_are_laid_over_each_other() {
    let slow = |rank: usize, step: usize| irregular(step) + if rank == 2 { 2_500 } else { 0 };
    let regular = |rank: usize, _: usize| 10_000 + if rank == 2 { 2_500 } else { 0 };
    let even = |rank: usize, step: usize| irregular(step) + (rank * 13 + step * 7) as i64 % 40;
    let held: &[(usize, usize)] = &[(1, 10), (3, 12), (2, 11), (5, 14)];
    let uneven: &[(usize, usize)] = &[(1, 10), (3, 14), (2, 9), (5, 14)];
    let far: &[i64] = &[0, 7_000_000, -300_000, 1_234];
    type Computes<'a> = &'a dyn Fn(usize, usize) -> i64;
    /// Name, compute times, steps of each capture, clock offsets, and the slow rank.
    type Case<'a> = (&'a str, Computes<'a>, &'a [(usize, usize)], &'a [i64], Option<i64>);
    let cases: [Case<'_>; 7] = [
        ("one clock", &slow, held, &[0; 4], Some(2)),
        ("one clock, captures of other lengths", &slow, uneven, &[0; 4], Some(2)),
        ("clocks that are seconds apart", &slow, held, far, Some(2)),
        ("regular steps, one clock", &regular, held, &[0; 4], Some(2)),
        ("regular steps, clocks that are seconds apart", &regular, held, far, Some(2)),
        ("all begin together", &slow, &[(1, 14); 4], far, Some(2)),
        ("no rank is slow", &even, held, &[0; 4], None),
    ];
    for (what, computes, held, ahead, straggler) in cases {
        let (found, page) = ranks(&Job { ranks: 4, steps: 16, computes, ahead, held, anew: None });
        assert_eq!(found["straggler"]["rank"].as_i64(), straggler, "{what}: {page}");
    }
    // Step numbers that restart in each capture, against clocks that are seconds apart: the
    // first line must not contradict the second.
    let (found, page) = ranks(&Job { ranks: 4, steps: 16, computes: &slow, ahead: far, held, anew: Some(0) });
    let first = page.lines().nth(1).unwrap();
    let none = found["straggler"].is_null();
    assert!(!none || first.contains("is not known") && !page.contains("for rank"), "{page}");
}

#[test]
fn who_is_late_again_and_again_is_a_straggler() {
    let late = |steps: &'static [usize], ms: i64| {
        move |rank: usize, step: usize| {
            let noise = (rank * 37 + step * 11 + rank * step * 5) as i64 % 90;
            10_000 + noise + if rank == 1 && steps.contains(&step) { ms * 1_000 } else { 0 }
        }
    };
    for (what, ranks_of, steps, delays, straggler) in [
        ("every fifth of ten", 2, 10, &[3, 8][..], true),
        ("every fifth of fifteen", 2, 15, &[4, 9, 14], true),
        ("twice in fifteen", 2, 15, &[4, 9], true),
        ("every fifth of twenty, four ranks", 4, 20, &[3, 8, 13, 18], true),
        ("every fifth from the first", 2, 10, &[0, 5], true),
        ("once", 2, 15, &[7], false),
        ("once, and the step after", 4, 20, &[9, 10], false),
        ("never", 2, 15, &[], false),
    ] {
        let computes = late(delays, 30);
        let held = vec![(0, steps); ranks_of];
        let ahead = vec![0; ranks_of];
        let (found, page) = ranks(&Job { ranks: ranks_of, steps, computes: &computes, ahead: &ahead, held: &held, anew: None });
        let rank = found["straggler"]["rank"].as_i64();
        assert_eq!(rank, straggler.then_some(1), "{what}: {page}");
        assert_eq!(page.contains("single delays"), !straggler && !delays.is_empty() && delays.len() == 1, "{what}: {page}");
    }
}
