//! Checks before a run, restricted to those that are relevant to its profiler.

use super::checks::{CHECKS, Check, State};
use super::machine::Machine;
use crate::launch::profiler::find_profiler;

/// The built-in tracer when it measures counters.
pub const MEASURE: &str = "trace, measuring";

/// Checks that are relevant to a run that measures counters.
const MEASURING: &[&str] = &["gpus", "cupti", "counters", "counter-holders", "disk"];

/// Adapts a check to a run that measures counters: if the counters cannot be measured, the program is still traced.
fn adapt_to_measuring(mut check: Check) -> Check {
    match check.id {
        "counters" if check.state == State::Blocks => {
            check.state = State::Warning;
            "the program is still traced, but nothing can be measured in it".clone_into(&mut check.means);
            check.fix = check.fix.map(|f| f.replace(" ncu …", " warpscope run …"));
        }
        "counter-holders" => "while they hold the counters nothing is measured; the program is still traced".clone_into(&mut check.means),
        _ => {}
    }
    check
}

/// Returns the problems of a run, most severe first. `samples` is true if the recipe samples the CPU; `needs` is the
/// number of bytes that the report may take, if known.
pub fn preflight_problems(machine: &Machine, tool: &str, samples: bool, needs: Option<u64>) -> Vec<Check> {
    let ids = if tool == MEASURE { MEASURING } else { find_profiler(tool).map_or(&[][..], |p| p.checks) };
    let mut found: Vec<Check> = CHECKS
        .iter()
        .filter_map(|look| look(machine))
        .filter(|c| ids.contains(&c.id) && (samples || c.id != "cpu-samples"))
        .map(|c| if tool == MEASURE { adapt_to_measuring(c) } else { c })
        .filter(|c| c.state >= State::Warning)
        .collect();
    for check in &mut found {
        // An nsys timeline is useful even without a GPU.
        if tool == "nsys" && check.id == "gpus" && check.state == State::Blocks {
            check.state = State::Warning;
            "the timeline will contain no kernels".clone_into(&mut check.means);
        }
    }
    let free = machine.here.free;
    if let (Some(needs), Some(free)) = (needs, free)
        && free < needs.saturating_mul(2)
    {
        found.push(Check {
            id: "disk",
            what: "report folder",
            state: State::Warning,
            found: format!("{} MiB free in {}", free >> 20, machine.here.path.display()),
            means: format!("the report may take {} MiB, and as much again while it is being written", needs >> 20),
            fix: Some("free space, or put the report elsewhere with -o".to_owned()),
        });
    }
    found.sort_by_key(|c| std::cmp::Reverse(c.state));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::profiler::PROFILERS;

    #[test]
    fn only_what_matters_for_the_profiler_is_said() {
        let nsys = Some(crate::launch::Tool { path: "/usr/bin/nsys".into(), version: None });
        let machine = Machine { paranoid: Some(4), nsys, ..Machine::default() };
        let ids = |tool, samples| preflight_problems(&machine, tool, samples, None).iter().map(|c| (c.id, c.state)).collect::<Vec<_>>();
        assert!(ids("nsys", false).contains(&("gpus", State::Warning)));
        assert!(!ids("nsys", false).iter().any(|c| c.0 == "cpu-samples" || c.0 == "ncu"));
        assert!(ids("nsys", true).iter().any(|c| c.0 == "cpu-samples"));
        assert_eq!(ids("ncu", false)[0].1, State::Blocks);
        assert!(ids("ncu", false).iter().any(|c| c.0 == "ncu") && !ids("ncu", false).iter().any(|c| c.0 == "nsys"));
    }

    #[test]
    fn who_measures_is_told_what_holds_the_counters_and_is_not_stopped() {
        let gpus = Some(vec![crate::launch::doctor::smi::Gpu::default()]);
        let here = crate::launch::doctor::machine::Folder { writable: true, ..Default::default() };
        let counter_holders = vec!["nv-hostengine".to_owned()];
        let machine = Machine { gpus, admin_only: Some(true), counter_holders, here, ..Machine::default() };
        let found = preflight_problems(&machine, MEASURE, false, None);
        let of = |id| found.iter().find(|c| c.id == id).unwrap();
        assert!(found.iter().all(|c| c.state < State::Blocks), "{found:?}");
        assert!(of("counters").fix.as_ref().unwrap().contains("warpscope run") && of("counters").means.contains("is still traced"));
        assert!(of("counter-holders").found.contains("nv-hostengine") && of("counter-holders").means.contains("nothing is measured"));
        assert!(!preflight_problems(&machine, "trace", false, None).iter().any(|c| c.id == "counter-holders" || c.id == "counters"));
    }

    #[test]
    fn every_named_check_is_one() {
        let all: Vec<&str> = PROFILERS.iter().flat_map(|p| p.checks).chain(MEASURING).copied().collect();
        let source = include_str!("checks.rs");
        for id in all {
            assert!(source.contains(&format!("\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn a_large_report_needs_twice_its_room() {
        let mut machine = Machine::default();
        (machine.here.free, machine.here.writable) = (Some(3 << 30), true);
        let disk =
            |needs| preflight_problems(&machine, "nsys", false, needs).iter().any(|c| c.id == "disk" && c.means.contains("2048 MiB"));
        assert!(disk(Some(2 << 30)) && !disk(Some(1 << 30)) && !disk(None));
    }
}
