//! Every re-run warning: a report that triggers it, and one that does not.

use super::rerun::one;
use super::support::{edited_profile, packed, probe, read, root};
use warpscope::model::{Profile, Severity};
use warpscope::rerun::warnings::CHECKS;
use warpscope::rerun::{Options, Rerun, Warning};

fn ids(rerun: &Rerun) -> Vec<&'static str> {
    rerun.warnings.iter().map(|w| w.id).collect()
}

fn plain(profile: &Profile, launch: usize) -> Rerun {
    one(profile, launch, &Options::default())
}

fn warned<'a>(rerun: &'a Rerun, id: &str) -> &'a Warning {
    rerun.warnings.iter().find(|w| w.id == id).unwrap_or_else(|| panic!("no {id} in {:?}", ids(rerun)))
}

fn calm(rerun: &Rerun, id: &str) {
    assert!(!ids(rerun).contains(&id), "{:?}", rerun.warnings);
}

/// Ordinary reports give commands without warnings.
#[test]
fn a_plain_report_gives_no_warning() {
    for fixture in ["single", "llm", "papi", "zoo", "graph_node"] {
        let profile = read(&packed(fixture)).unwrap();
        let step = (profile.launches.len() / 25).max(1);
        for launch in (0..profile.launches.len()).step_by(step) {
            let rerun = plain(&profile, launch);
            assert!(rerun.warnings.is_empty() && rerun.is_exact() && rerun.is_runnable(), "{fixture} {launch}: {:?}", rerun.warnings);
        }
    }
}

#[test]
fn every_check_is_in_a_test_here_or_beside() {
    let mut text = String::new();
    for file in ["rerun_warnings.rs", "probe.rs", "rerun.rs", "shell.rs", "coverage.rs"] {
        text += &std::fs::read_to_string(root().join("tests/suite").join(file)).unwrap();
    }
    for (id, _) in CHECKS {
        assert!(text.contains(&format!("\"{id}\"")), "{id}");
    }
}

const DELAYED: &str = "UPDATE META_DATA_CAPTURE SET value = '60000' WHERE name = 'START_DELAY_MS';";

#[test]
fn chosen_launches() {
    // An ncu report without its command line warns; one whose command skipped nothing does not,
    // nor does one whose command is understood.
    let mut profile = read(&root().join("fixtures/ncu/three.ncu-rep.zst")).unwrap();
    let w = plain(&profile, 1);
    assert!(warned(&w, "chosen-launches").inexact && !w.is_exact());
    profile.order = warpscope::model::LaunchOrder::Host;
    calm(&plain(&profile, 1), "chosen-launches");
    calm(&plain(&read(&root().join("fixtures/demo/llm_gemm.ncu-rep.zst")).unwrap(), 1), "chosen-launches");
}

/// Results are comparable only under the same clocks.
#[test]
fn clocks_are_controlled_as_in_the_report_of_ncu() {
    let mut profile = read(&root().join("fixtures/demo/llm_gemm.ncu-rep.zst")).unwrap();
    let metrics = profile.metrics.take().unwrap();
    for (locked, free) in [(Some(true), false), (Some(false), true), (None, false)] {
        let mut metrics = (*metrics).clone();
        metrics.results.iter_mut().for_each(|r| r.clocks_locked = locked);
        profile.metrics = Some(metrics.into());
        assert_eq!(plain(&profile, 0).shell_line().contains("--clock-control none"), free, "{locked:?}");
        let said = Options { clock: Some(warpscope::rerun::ClockControl::Base), ..Options::default() };
        assert!(!one(&profile, 0, &said).shell_line().contains("--clock-control"));
    }
    // A timeline says nothing about clocks.
    assert!(!plain(&read(&packed("single")).unwrap(), 3).shell_line().contains("--clock-control"));
}

/// ncu and CUPTI no longer support old GPUs.
#[test]
fn gpus_that_ncu_does_not_support() {
    let on = |major: u32, minor: u32| {
        let mut profile = read(&packed("single")).unwrap();
        profile.devices[0].compute_capability = Some((major, minor));
        plain(&profile, 57)
    };
    let in_place = |r: &Rerun| r.alternatives.iter().any(|a| a.why.starts_with("Without ncu"));
    let pascal = on(6, 0);
    let w = warned(&pascal, "unsupported-gpu");
    assert!(w.severity == Severity::Error && w.text.contains("6.0") && !pascal.is_exact() && !in_place(&pascal), "{w:?}");
    let volta = on(7, 0);
    let w = warned(&volta, "unsupported-gpu");
    assert!(w.severity == Severity::Info && w.fix.as_deref().unwrap().contains("2025.2") && volta.is_exact() && !in_place(&volta), "{w:?}");
    for (major, minor) in [(7, 5), (9, 0), (12, 0)] {
        calm(&on(major, minor), "unsupported-gpu");
    }
    assert!(in_place(&on(9, 0)));
}

#[test]
fn hidden_launches() {
    // Inside a range that occurs once: the count in that range is offered, with a condition.
    let profile = edited_profile("single", DELAYED);
    let rerun = plain(&profile, 57);
    let w = warned(&rerun, "hidden-launches");
    assert!(w.severity == Severity::Warning && w.inexact && w.text.contains("step1"), "{w:?}");
    assert!(rerun.shell_line().contains("--nvtx --nvtx-include step1/ "), "{}", rerun.shell_line());
    // Exact alternatives are offered.
    let rerun = plain(&profile, 61);
    let exact: Vec<_> = rerun.alternatives.iter().filter(|a| a.why.starts_with("Exact if")).collect();
    assert!(exact.iter().any(|a| a.argv.contains(&"--profile-from-start".to_owned())), "{exact:?}");
    assert!(exact.iter().any(|a| a.why.contains("inner")), "{exact:?}");
    // Inside repeated ranges, and outside all ranges: no exact count.
    let again =
        edited_profile("single", &format!("{DELAYED} UPDATE NVTX_EVENTS SET text = 'step' WHERE text LIKE 'step%' OR text = 'inner';"));
    let w = plain(&again, 57);
    assert!(warned(&w, "hidden-launches").text.contains("No exact count is possible") && !w.is_exact());
    let bare = edited_profile("single", &format!("{DELAYED} DELETE FROM NVTX_EVENTS;"));
    let w = plain(&bare, 57);
    let hidden = warned(&w, "hidden-launches");
    assert!(hidden.severity == Severity::Error && hidden.fix.as_deref().unwrap().contains("NVTX range"), "{hidden:?}");
    // A run under the same capture range does not reach launches made before the range opened.
    calm(&plain(&read(&packed("single")).unwrap(), 57), "hidden-launches");
    let said = Options { opened_by: Some(warpscope::rerun::OpenedBy::Start), ..Options::default() };
    calm(&one(&bare, 57, &said), "hidden-launches");
}

#[test]
fn launches_from_before_the_capture_are_not_reached() {
    let profile = edited_profile(
        "papi",
        "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId = (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName = (SELECT id FROM StringIds WHERE value = 'CatArrayBatchedCopy') ORDER BY start LIMIT 1)",
    );
    let row = (0..profile.launches.len()).find(|&r| profile.launches.call(r).is_none()).unwrap();
    let target = warpscope::rerun::Target::Launches(vec![warpscope::model::LaunchId(u32::try_from(row).unwrap())]);
    let refused = warpscope::rerun::plan(&profile, &target, &Options::default()).unwrap_err();
    assert!(refused.contains("before the capture opened"), "{refused}");
    // It is not counted for other launches of that name.
    let name = profile.kernels[profile.launches.kernel(row).0 as usize].clone();
    let before = read(&packed("papi")).unwrap();
    let third = |p: &Profile| {
        let is = |r: &usize| p.kernels[p.launches.kernel(*r).0 as usize].function() == name.function();
        let mut rows: Vec<usize> = (0..p.launches.len()).filter(is).collect();
        rows.sort_by_key(|&r| p.launches.start(r));
        plain(p, rows[2]).shell_line()
    };
    assert!(third(&before).contains("--launch-skip 2 "), "{}", third(&before));
    assert!(third(&profile).contains("--launch-skip 1 "), "{}", third(&profile));
}

#[test]
fn lost_events() {
    let lost = edited_profile(
        "single",
        "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid) SELECT 1, timestampType, source, 2, '1,024 CUDA events were dropped', globalPid FROM DIAGNOSTIC_EVENT LIMIT 1",
    );
    let rerun = plain(&lost, 9);
    assert!(warned(&rerun, "lost-events").text.contains("lower bound") && !rerun.is_exact());
    // nsys prints "Not all CUDA events might have been collected" for every capture that ends before its program.
    calm(&plain(&read(&packed("papi")).unwrap(), 9), "lost-events");
}

#[test]
fn launches_without_kernel() {
    let profile = probe("seq", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 3");
    let grid = |row: usize| profile.configs[profile.launches.config(row).unwrap().0 as usize].grid.unwrap()[0];
    let at = |g: u32| (0..profile.launches.len()).find(|&r| grid(r) == g).unwrap();
    let rerun = plain(&profile, at(9));
    assert!(warned(&rerun, "launches-without-kernel").text.starts_with("1 launch call before"), "{:?}", rerun.warnings);
    assert!(!rerun.is_exact());
    calm(&plain(&profile, at(2)), "launches-without-kernel");
    // Calls captured into a graph launch no kernel by design.
    let graph = probe("graph", "");
    calm(&plain(&graph, 8), "launches-without-kernel");
    calm(&plain(&read(&packed("graph_node")).unwrap(), 60), "launches-without-kernel");
}

#[test]
fn names_missing() {
    let profile = edited_profile("single", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET mangledName = NULL WHERE gridX < 30 AND gridX % 2 = 0");
    let base = super::rerun::based(warpscope::model::NameForm::Mangled);
    let row = (0..profile.launches.len()).rfind(|&r| profile.kernels[profile.launches.kernel(r).0 as usize].mangled.is_some()).unwrap();
    let rerun = one(&profile, row, &base);
    assert!(warned(&rerun, "names-missing").text.contains("mangled name") && !rerun.is_exact());
    // All function names are present.
    calm(&plain(&profile, row), "names-missing");
}

#[test]
fn threads() {
    // Sequential, or alternating in long turns: only an info message.
    let turns = read(&packed("threads")).unwrap();
    let rerun = plain(&turns, 80);
    assert!(warned(&rerun, "threads").severity == Severity::Info && rerun.is_exact());
    // In quick alternation, or with overlapping calls.
    let quick = probe("threads", "");
    let rerun = plain(&quick, 3);
    assert!(warned(&rerun, "threads").severity == Severity::Warning && !rerun.is_exact());
    let race = edited_profile("threads", "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = end + 10000000000");
    assert!(!plain(&race, 80).is_exact());
    // Other threads that launch other kernels do not matter.
    let ddp = read(&packed("ddp_rank0")).unwrap();
    let thread = |r: usize| ddp.places[ddp.launches.place(r).unwrap().0 as usize].thread;
    let function = |r: usize| ddp.kernels[ddp.launches.kernel(r).0 as usize].function().to_owned();
    let rows = || 0..ddp.launches.len();
    assert!(rows().any(|r| thread(r) != thread(0)));
    let lone = rows().rfind(|&r| rows().all(|o| function(o) != function(r) || thread(o) == thread(r))).unwrap();
    calm(&plain(&ddp, lone), "threads");
}

#[test]
fn device_order() {
    let blind = edited_profile("single", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME");
    let rerun = plain(&blind, 9);
    assert!(warned(&rerun, "device-order").text.contains("several streams") && !rerun.is_exact());
    // On one stream the device's order is the host's.
    calm(&plain(&probe("seq", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"), 9), "device-order");
    let partly = edited_profile(
        "single",
        "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId IN (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX IN (12, 23))",
    );
    assert!(warned(&plain(&partly, 50), "device-order").text.starts_with("2 of the counted"));
}

#[test]
fn graph_branches() {
    let beside = probe(
        "graph",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = (SELECT start FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE k.gridX = 10 AND k.correlationId = CUPTI_ACTIVITY_KIND_KERNEL.correlationId) + 1 WHERE gridX = 12",
    );
    let rerun = plain(&beside, 1);
    assert!(warned(&rerun, "graph-branches").inexact);
    calm(&plain(&probe("graph", ""), 1), "graph-branches");
    // The branches do not matter if the whole graph is profiled.
    calm(&one(&beside, 1, &Options { whole_graph: true, ..Options::default() }), "graph-branches");
}

#[test]
fn waits_for_others() {
    let profile = read(&packed("ddp_rank0")).unwrap();
    let of = |part: &str| {
        (0..profile.launches.len()).find(|&r| profile.kernels[profile.launches.kernel(r).0 as usize].function().contains(part)).unwrap()
    };
    let rerun = plain(&profile, of("ncclDevKernel"));
    assert!(warned(&rerun, "waits-for-others").text.contains("collective"));
    assert!(
        rerun.shell_line().contains("--replay-mode app-range") && !rerun.shell_line().contains("--kernel-name"),
        "{}",
        rerun.shell_line()
    );
    // ncu does not take --profile-from-start there.
    assert!(
        !rerun.shell_line().contains("--profile-from-start") && rerun.shell_line().contains("--range-filter :1:"),
        "{}",
        rerun.shell_line()
    );
    assert!(rerun.selects.is_empty());
    // Its other kernels can be replayed alone, but the program does not start without the other ranks.
    let gemm = plain(&profile, of("nvjet"));
    calm(&gemm, "waits-for-others");
    assert!(warned(&gemm, "processes").text.contains("not in this report") && !gemm.is_runnable() && gemm.is_exact(), "{gemm:?}");
    let script = gemm.wrapper.as_deref().unwrap();
    assert!(script.contains("if [ \"$rank\" = 0 ]") && script.contains("--kernel-name nvjet"), "{script}");
    // A process with the GPUs of all its peers needs no launcher.
    let together = edited_profile("ddp_rank0", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = correlationId % 2");
    assert!(plain(&together, of("nvjet")).wrapper.is_none());
    // Forced to replay it alone, the command carries an error.
    let alone = one(&profile, of("ncclDevKernel"), &Options { replay: Some(warpscope::rerun::Replay::Kernel), ..Options::default() });
    let script = alone.wrapper.as_deref().unwrap();
    assert!(warned(&alone, "waits-for-others").severity == Severity::Error && script.contains("--kernel-name ncclDevKernel"));
    // Without a range there is nothing to measure.
    let bare = edited_profile(
        "ddp_rank0",
        "DELETE FROM NVTX_EVENTS; DELETE FROM DIAGNOSTIC_EVENT; UPDATE META_DATA_CAPTURE SET value = 'Immediate' WHERE name = 'START_TRIGGER'",
    );
    let nccl =
        (0..bare.launches.len()).find(|&r| bare.kernels[bare.launches.kernel(r).0 as usize].function().contains("ncclDevKernel")).unwrap();
    assert!(warned(&plain(&bare, nccl), "no-range").severity == Severity::Error);
}

#[test]
fn cooperative() {
    let sql = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET launchType = 2 WHERE gridX = 20;";
    let two = "INSERT INTO TARGET_INFO_GPU SELECT * FROM TARGET_INFO_GPU; UPDATE TARGET_INFO_GPU SET id = 1, cuDevice = 1 WHERE rowid = 2; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1 WHERE gridX > 100; DELETE FROM TARGET_INFO_CUDA_DEVICE;";
    let several = edited_profile("single", &format!("{sql}{two}"));
    assert!(warned(&plain(&several, 19), "cooperative").fix.as_deref().unwrap().contains("app-range"));
    calm(&plain(&several, 18), "cooperative");
    calm(&plain(&edited_profile("single", sql), 19), "cooperative");
}

#[test]
fn autotuning() {
    let named = "UPDATE StringIds SET value = 'triton_poi_fused_add_0' WHERE value IN ('saxpy', 'saxpy(float *)', 'saxpy(double *)', '_Z5saxpyPf', '_Z5saxpyPd');";
    let tuned = edited_profile(
        "single",
        &format!("{named} UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET blockX = 32 * (1 << (gridX % 4)) WHERE gridX < 60;"),
    );
    let rerun = plain(&tuned, 144);
    assert!(warned(&rerun, "autotuning").text.contains("block shapes") && !rerun.is_exact());
    // A single block shape is not a search.
    calm(&plain(&edited_profile("single", named), 144), "autotuning");
    // Any kernel whose code was compiled in several ways, in bursts.
    let names = "shortName, demangledName, mangledName";
    let one =
        format!("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET ({names}) = (SELECT {names} FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 60);");
    let registers = |of: &str| format!("{one} UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = {of};");
    let rerun = plain(&edited_profile("single", &registers("CASE WHEN gridX < 40 THEN 16 ELSE 32 END")), 144);
    assert!(warned(&rerun, "autotuning").text.contains("compiled in 2 ways") && !rerun.is_exact());
    calm(&plain(&edited_profile("single", &registers("16 + gridX % 2")), 144), "autotuning");
}

#[test]
fn serving() {
    let served = edited_profile(
        "single",
        "UPDATE META_DATA_CAPTURE SET value = '/usr/bin/vllm' WHERE name = 'PROCESS_0:COMMAND'; UPDATE META_DATA_CAPTURE SET value = 'serve' WHERE name = 'PROCESS_0:ARGUMENT_0'",
    );
    let rerun = plain(&served, 9);
    assert!(warned(&rerun, "serving").text.starts_with("vllm batches") && !rerun.is_exact());
    // A script that only has the word in its arguments is not a server.
    let script =
        edited_profile("single", "UPDATE META_DATA_CAPTURE SET value = '--out=/tmp/vllm-notes' WHERE name = 'PROCESS_0:ARGUMENT_0'");
    calm(&plain(&script, 9), "serving");
}
