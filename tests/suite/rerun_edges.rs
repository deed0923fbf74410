//! Reports with misleading counts: each must be refused, or marked as inexact.

use super::rerun::one;
use super::support::{edited_profile, packed, probe, read};
use warpscope::model::{LaunchId, Profile};
use warpscope::rerun::{self, Options, Target, Within, nvtx};

fn refused(profile: &Profile, launch: u32, options: &Options) -> String {
    rerun::plan(profile, &Target::Launches(vec![LaunchId(launch)]), options).unwrap_err()
}

fn within(profile: &Profile, label: &str, instance: Option<u32>) -> Options {
    Options { within: Within::Range(nvtx::ranges_by_label(profile, label)[0], instance), ..Options::default() }
}

const DROP_CALL: &str =
    "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId = (SELECT correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = ";

#[test]
fn a_range_number_of_several_processes_or_threads_is_refused() {
    let procs = read(&packed("procs")).unwrap();
    let first = (0..procs.launches.len()).find(|&r| !nvtx::enclosing_ranges(&procs, r).is_empty()).unwrap();
    let e = nvtx::enclosing_ranges(&procs, first)[0];
    let options = Options { within: Within::Range(e.range, Some(e.instance + 1)), ..Options::default() };
    assert!(refused(&procs, u32::try_from(first).unwrap(), &options).contains("2 threads enter"));
    let single = read(&packed("single")).unwrap();
    assert!(refused(&single, 61, &within(&single, "inner", Some(7))).contains("number 2, counted from 1, not in number 7"));
}

#[test]
fn a_range_inside_the_one_that_opened_the_capture_is_refused() {
    let step = probe("step", "");
    assert!(refused(&step, 10, &within(&step, "inner", None)).contains("opened by the NVTX range \"step1\""));
    assert!(one(&step, 10, &within(&step, "step1", None)).is_exact());
}

#[test]
fn launches_without_a_call_make_the_count_a_guess() {
    // Two launches that lost their call: an earlier one inside the range, and an earlier one that starts on the device
    // after the wanted one was called.
    let profile = probe("nvtx", &format!("{DROP_CALL}3)"));
    let at = (0..profile.launches.len())
        .find(|&r| !nvtx::enclosing_ranges(&profile, r).is_empty() && profile.launches.start(r) > profile.launches.start(3))
        .unwrap();
    assert!(profile.launches.call(at).is_some());
    let around = nvtx::enclosing_ranges(&profile, 14);
    let a = around.iter().find(|e| profile.ranges.label(e.range.name) == "A").unwrap();
    let rerun = one(&profile, 14, &Options { within: Within::Range(a.range, None), ..Options::default() });
    assert!(!rerun.is_exact() && rerun.warnings.iter().any(|w| w.id == "device-order"), "{:?}", rerun.warnings);
    let profile = probe("seq", &format!("{DROP_CALL}7)"));
    let first = one(&profile, 0, &Options::default());
    assert!(!first.is_exact(), "the launch without a call may have come before");
}

#[test]
fn lost_launches_of_every_kind_are_noticed() {
    let gone = "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 3;";
    for call in
        ["cudaLaunchKernel_ptsz_v7000", "cuLaunchKernelEx_ptsz", "cudaLaunchCooperativeKernelMultiDevice_v9000", "cudaGraphLaunch_v10000"]
    {
        let sql = format!("{gone} UPDATE StringIds SET value = '{call}' WHERE value LIKE 'cudaLaunchKernel%'");
        let rerun = one(&probe("seq", &sql), 8, &Options::default());
        assert!(rerun.warnings.iter().any(|w| w.id == "launches-without-kernel"), "{call}: {:?}", rerun.warnings);
    }
    // Lost launches in another process count as well.
    let lost = probe("procs", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 102");
    let rerun = one(&lost, 6, &Options::default());
    assert!(rerun.warnings.iter().any(|w| w.id == "launches-without-kernel"), "{:?}", rerun.warnings);
}

#[test]
fn streams_of_one_number_on_two_devices_are_two() {
    let sql =
        "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 1, contextId = 2 WHERE gridX % 2 = 0";
    assert!(one(&probe("seq", sql), 8, &Options::default()).warnings.iter().any(|w| w.id == "device-order"));
}

#[test]
fn a_kernel_named_graph_among_whole_graphs_is_refused() {
    let profile = edited_profile("graph_whole", "UPDATE StringIds SET value = 'graph' WHERE value = 'saxpy'");
    let row = (0u32..).find(|&r| profile.kernels[profile.launches.kernel(r as usize).0 as usize].function() == "graph").unwrap();
    assert!(refused(&profile, row, &Options::default()).contains("cannot be told apart from them"));
    // With the graphs included it can be counted.
    let plan = rerun::plan(&profile, &Target::Graph(0), &Options::default()).unwrap();
    let before = (0..profile.launches.len())
        .filter(|&r| {
            profile.kernels[profile.launches.kernel(r).0 as usize].function() == "graph"
                && profile.launches.order_key(r).0 < profile.graphs[0].call.unwrap()
        })
        .count();
    assert!(before > 0 && plan.commands[0].shell_line().contains(&format!("--launch-skip {before} ")), "{}", plan.commands[0].shell_line());
}

#[test]
fn graphs_in_gated_and_doubtful_captures() {
    let late = edited_profile("graph_whole", "UPDATE META_DATA_CAPTURE SET value = '60000' WHERE name = 'START_DELAY_MS'");
    assert!(!rerun::plan(&late, &Target::Graph(1), &Options::default()).unwrap().commands[0].is_exact());
    let trigger = "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid) SELECT 1, timestampType, source, 1, 'Starting the profiling session using NVTX trigger.', globalPid FROM DIAGNOSTIC_EVENT LIMIT 1";
    let nvtx = edited_profile("graph_whole", trigger);
    assert!(rerun::plan(&nvtx, &Target::Graph(1), &Options::default()).unwrap_err().contains("an NVTX range opened this capture"));
    let whole = read(&packed("graph_whole")).unwrap();
    let step = within(&whole, "step0", None);
    assert!(rerun::plan(&whole, &Target::Graph(1), &step).unwrap_err().contains("cannot be counted inside an NVTX range"));
    let blind = edited_profile(
        "graph_whole",
        "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE nameId IN (SELECT id FROM StringIds WHERE value LIKE 'cudaGraphLaunch%')",
    );
    assert!(!rerun::plan(&blind, &Target::Graph(1), &Options::default()).unwrap().commands[0].is_exact());
    let sure = rerun::plan(&whole, &Target::Graph(1), &Options::default()).unwrap();
    assert!(sure.commands[0].is_exact() && sure.commands[0].warnings.is_empty());
}

#[test]
fn names_that_the_importer_made_up_are_no_filters() {
    let unnamed = edited_profile(
        "single",
        "UPDATE NVTX_EVENTS SET text = NULL, textId = 987654 WHERE text = 'inner' OR textId IN (SELECT id FROM StringIds WHERE value = 'inner')",
    );
    let around = nvtx::enclosing_ranges(&unnamed, 61);
    let made_up = around.iter().find(|e| unnamed.ranges.label(e.range.name) == "(unnamed range)").unwrap();
    assert_eq!(nvtx::filter_expression(&unnamed, made_up.range), None);
    let options = Options { within: Within::Range(made_up.range, None), ..Options::default() };
    assert!(refused(&unnamed, 61, &options).contains("no syntax"));
}

#[test]
fn lost_ranges_matter_inside_ranges_only() {
    let lost = edited_profile(
        "single",
        "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid) SELECT 1, timestampType, source, 2, 'Not all NVTX events might have been collected.', globalPid FROM DIAGNOSTIC_EVENT LIMIT 1",
    );
    assert!(one(&lost, 61, &Options::default()).is_exact());
    assert!(!one(&lost, 61, &within(&lost, "inner", None)).is_exact());
}

/// Concurrent processes are distinguished if they run different programs.
#[test]
fn a_process_with_a_program_of_its_own_is_filtered_by_name() {
    // The parent's third launch call lasts until the end of the capture.
    let race = "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = (SELECT MAX(end) FROM CUPTI_ACTIVITY_KIND_RUNTIME) WHERE EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE k.gridX = 3 AND k.correlationId = CUPTI_ACTIVITY_KIND_RUNTIME.correlationId AND k.globalPid >> 24 = globalTid >> 24);";
    let named = |names: &str| probe("procs", &format!("{race} {names}"));
    let worker =
        "UPDATE PROCESSES SET name = CASE pid WHEN (SELECT MIN(pid) FROM PROCESSES) THEN '/opt/app/server' ELSE '/opt/app/worker' END;";
    let p = named(worker);
    let server = one(&p, 0, &Options::default());
    assert!(
        server.shell_line().contains("--target-processes all --target-processes-filter server ") && server.is_exact(),
        "{}",
        server.shell_line()
    );
    assert!(server.shell_line().contains("--launch-skip 0 "), "only its own launches count");
    // Two workers are indistinguishable, and the filter does not accept the name.
    assert!(one(&p, 4, &Options::default()).wrapper.is_some());
    let odd = named("UPDATE PROCESSES SET name = CASE pid WHEN (SELECT MIN(pid) FROM PROCESSES) THEN 'exclude:server' ELSE 'worker' END;");
    assert!(one(&odd, 0, &Options::default()).wrapper.is_some());
}

/// Launches of a kernel whose overloads are picked together: no alternative may select other launches.
#[test]
fn no_symbol_is_offered_for_launches_of_two_overloads() {
    let single = read(&packed("single")).unwrap();
    let saxpy: Vec<LaunchId> = (0u32..200)
        .filter(|&r| single.kernels[single.launches.kernel(r as usize).0 as usize].function() == "saxpy")
        .step_by(3)
        .map(LaunchId)
        .collect();
    let plan = rerun::plan(&single, &Target::Launches(saxpy), &Options::default()).unwrap();
    assert!(
        !plan.commands[0].alternatives.iter().any(|a| a.argv.iter().any(|w| w.contains("_Z5saxpy"))),
        "{:?}",
        plan.commands[0].alternatives
    );
}

/// Launches in several ranges of a capture that began late: each counts in its own range.
#[test]
fn several_launches_of_a_late_capture() {
    let late = edited_profile("single", "UPDATE META_DATA_CAPTURE SET value = '60000' WHERE name = 'START_DELAY_MS'");
    let plan = rerun::plan(&late, &Target::Launches(vec![LaunchId(16), LaunchId(55), LaunchId(110)]), &Options::default()).unwrap();
    assert_eq!(plan.commands.len(), 3);
    for (command, step) in plan.commands.iter().zip(["step0/", "step1/", "step2/"]) {
        assert!(command.shell_line().contains(step) && !command.is_exact(), "{}", command.shell_line());
    }
}
