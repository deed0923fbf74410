//! Before a run: only the checks that matter for its profiler.

use super::checks::{CHECKS, Check, State};
use super::machine::Machine;

/// Each profiler and the checks that decide whether it can work.
static MATTERS: &[(&str, &[&str])] = &[
    ("nsys", &["gpus", "nsys", "nsys-importer", "cpu-samples", "tmp", "disk"]),
    (
        "ncu",
        &[
            "gpus",
            "ncu",
            "ncu-chip",
            "counters",
            "container",
            "mig",
            "mps",
            "counter-holders",
            "other-processes",
            "ncu-lock",
            "tmp",
            "disk",
        ],
    ),
    ("trace", &["gpus", "cupti", "disk"]),
    ("torch", &["gpus", "disk"]),
    ("rocprofv3", &["gpus", "rocprofv3", "disk"]),
];

/// What stands in the way of a run, the worst first; empty when nothing does. `samples`: whether the recipe samples the CPU; `needs`: bytes
/// that the report may take, where that is known.
#[must_use]
pub fn preflight(machine: &Machine, tool: &str, samples: bool, needs: Option<u64>) -> Vec<Check> {
    let ids = MATTERS.iter().find(|(t, _)| *t == tool).map_or(&[][..], |(_, ids)| ids);
    let mut found: Vec<Check> = CHECKS
        .iter()
        .filter_map(|look| look(machine))
        .filter(|c| ids.contains(&c.id) && (samples || c.id != "cpu-samples"))
        .filter(|c| c.state >= State::Warning)
        .collect();
    for check in &mut found {
        // A timeline of a program without GPU work is still a timeline.
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

    #[test]
    fn only_what_matters_for_the_profiler_is_said() {
        let nsys = Some(crate::launch::Tool { path: "/usr/bin/nsys".into(), version: None });
        let machine = Machine { paranoid: Some(4), nsys, ..Machine::default() };
        let ids = |tool, samples| preflight(&machine, tool, samples, None).iter().map(|c| (c.id, c.state)).collect::<Vec<_>>();
        assert!(ids("nsys", false).contains(&("gpus", State::Warning)));
        assert!(!ids("nsys", false).iter().any(|c| c.0 == "cpu-samples" || c.0 == "ncu"));
        assert!(ids("nsys", true).iter().any(|c| c.0 == "cpu-samples"));
        assert_eq!(ids("ncu", false)[0].1, State::Blocks);
        assert!(ids("ncu", false).iter().any(|c| c.0 == "ncu") && !ids("ncu", false).iter().any(|c| c.0 == "nsys"));
    }

    #[test]
    fn every_named_check_is_one() {
        let all: Vec<&str> = MATTERS.iter().flat_map(|m| m.1).copied().collect();
        let source = include_str!("checks.rs");
        for id in all {
            assert!(source.contains(&format!("\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn a_large_report_needs_twice_its_room() {
        let mut machine = Machine::default();
        (machine.here.free, machine.here.writable) = (Some(3 << 30), true);
        let disk = |needs| preflight(&machine, "nsys", false, needs).iter().any(|c| c.id == "disk" && c.means.contains("2048 MiB"));
        assert!(disk(Some(2 << 30)) && !disk(Some(1 << 30)) && !disk(None));
    }
}
