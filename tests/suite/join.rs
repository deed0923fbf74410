//! Matching ncu results to launches of a timeline: only certain matches are called certain.

use super::support::{edited_profile, packed, read, root};
use warpscope::analysis::flops::{Counted, of_results};
use warpscope::import::{self, Job, Wants};
use warpscope::model::{Metrics, Profile, ResultMetrics};
use warpscope::rerun::match_results::{Sure, join_results};

fn ncu(name: &str) -> Metrics {
    import::ncu::read_metrics(&root().join("fixtures").join(name), &Job::new(Wants::ALL, &|_| {}), None).unwrap()
}

fn sures(profile: &Profile, metrics: &Metrics) -> Vec<(u32, Sure)> {
    join_results(profile, metrics).pairs.iter().map(|p| (p.launch, p.sure)).collect()
}

#[test]
fn the_only_launch_with_a_kernel_and_grid_is_known() {
    let single = read(&packed("single")).unwrap();
    assert_eq!(sures(&single, &ncu("ncu/one.ncu-rep.zst")), [(34, Sure::Only)]);
    assert_eq!(sures(&single, &ncu("ncu/three.ncu-rep.zst")), [(132, Sure::Only), (155, Sure::Only), (157, Sure::Only)]);
}

#[test]
fn of_several_processes_nothing_is_sure() {
    let two = edited_profile("single", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = globalPid + (1 << 24) WHERE rowid % 2");
    let pairs = sures(&two, &ncu("ncu/three.ncu-rep.zst"));
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|p| !p.1.is_exact()), "{pairs:?}");
}

/// As many results as launches: matched in order. With one result missing, only the kernel and configuration are known.
#[test]
fn alike_launches_are_told_apart_by_order_only_when_all_are_there() {
    let single = read(&root().join("fixtures/demo/llm.sqlite.zst")).unwrap();
    let key = |r: &ResultMetrics| (r.kernel.clone(), r.grid, r.block);
    let one = ncu("ncu/one.ncu-rep.zst");
    // A launch that occurs several times in the timeline: matched by kernel and configuration.
    let launches = &single.launches;
    let of = |row: usize| (launches.kernel(row).0, launches.config(row).map(|c| c.0));
    let like = |row: usize| (0..launches.len()).filter(|&r| of(r) == of(row)).collect::<Vec<_>>();
    let rows = (0..launches.len()).map(like).find(|l| l.len() > 1 && l.len() < 50).unwrap();
    let config = &single.configs[launches.config(rows[0]).unwrap().0 as usize];
    let mut result = one.results[0].clone();
    result.kernel = single.kernels[launches.kernel(rows[0]).0 as usize].clone();
    (result.grid, result.block) = (config.grid, config.block);
    let of_many = |n: usize| Metrics { results: vec![result.clone(); n], ..one.clone() };
    assert_eq!(key(&of_many(1).results[0]), key(&result));
    let all: Vec<_> = rows.iter().map(|&r| (u32::try_from(r).unwrap(), Sure::Order)).collect();
    assert_eq!(sures(&single, &of_many(rows.len())), all);
    for n in [rows.len() - 1, rows.len() + 1] {
        let pairs = sures(&single, &of_many(n));
        assert_eq!(pairs.len(), n);
        assert!(pairs.iter().all(|p| p.1 == Sure::Alike(rows.len() as u64)), "{pairs:?}");
    }
}

/// The demo's reports contain the commands that made them. These decide which launches match; other program arguments
/// do not matter.
#[test]
fn the_command_that_made_a_report_counts_to_its_launches() {
    let timeline = read(&root().join("fixtures/demo").join("llm.sqlite.zst")).unwrap();
    let mut gemm = ncu("demo/llm_gemm.ncu-rep.zst");
    let by_command = sures(&timeline, &gemm);
    assert!(!by_command.is_empty() && by_command.iter().all(|p| p.1 == Sure::Command), "{by_command:?}");
    gemm.tool_argv.extend(["-s", "20", "-c", "1", "--kernel-name", "other"].map(str::to_owned));
    assert_eq!(sures(&timeline, &gemm), by_command);
    gemm.tool_argv.clear();
    assert!(sures(&timeline, &gemm).iter().all(|p| p.1 != Sure::Command));
}

/// FLOPs of the run from ncu results: three kernels that multiply 2048 × 2048
/// matrices do 2 × 2048³ operations per launch.
#[test]
fn results_tell_the_floating_point_work_of_all_launches() {
    let timeline = read(&root().join("fixtures/nsys/zoo.sqlite.zst")).unwrap();
    let metrics = std::sync::Arc::new(ncu("hints/zoo_full.ncu-rep.zst"));
    let join = join_results(&timeline, &metrics);
    let joined: Vec<_> = join.pairs.iter().map(|p| (p.launch, metrics.clone(), p.result)).collect();
    let name = |row: usize| timeline.kernels[timeline.launches.kernel(row).0 as usize].function();
    // One second from the first launch on contains all of them, so the rate equals the number.
    let begin = timeline.launches.start(0);
    for kernel in ["matmul_naive", "matmul_tiled", "matmul_wmma"] {
        let of: Vec<_> = joined.iter().filter(|j| name(j.0 as usize) == kernel).cloned().collect();
        let launches = (0..timeline.launches.len()).filter(|&r| name(r) == kernel).count();
        let rate = of_results(&timeline, &of, (begin, begin + 1_000_000_000)).unwrap();
        let want = launches as f64 * 2.0 * 2048f64.powi(3);
        // Address computation and bounds checks of the plain kernels add a few operations.
        assert!((rate.per_second / want - 1.0).abs() < 0.003, "{kernel}: {} of {want}", rate.per_second);
        assert!(matches!(rate.counted, Counted::Results(share) if share > 0.0 && share < 1.0) && rate.peak == Some(989.4e12), "{rate:?}");
    }
    assert_eq!(of_results(&timeline, &[], (begin, begin + 1)), None);
}
