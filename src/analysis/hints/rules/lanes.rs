//! Rule: lanes without a thread, in blocks that are smaller than a warp or not a multiple of it.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, LEAST, Sure};
use crate::analysis::hints::metric_values::Depth;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Lanes per warp on NVIDIA GPUs.
const WARP: f64 = 32.0;
/// Number of 4-byte words in a 32-byte sector.
const WORDS: f64 = 8.0;

/// Lanes that a launch leaves empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Empty {
    /// Share of the lanes in all warps, 0 to 1.
    pub lanes: f64,
    /// Share of the warps that would be saved if all were full; 0 for a grid with fewer threads than a warp.
    pub warps: f64,
}

/// Share of the lanes that blocks of `threads` threads leave empty in warps of `warp` lanes; `None` if every warp is
/// full.
pub fn empty_lanes(threads: f64, grid: Option<f64>, warp: f64) -> Option<Empty> {
    let (threads, warp) = (threads.round(), warp.round());
    if threads < 1.0 || warp < 1.0 || threads % warp == 0.0 {
        return None;
    }
    let each = (threads / warp).ceil();
    let lanes = 1.0 - threads / (each * warp);
    let blocks = grid.filter(|g| *g >= 1.0);
    let warps = blocks.map_or(lanes, |b| 1.0 - (b * threads / warp).ceil() / (b * each));
    Some(Empty { lanes, warps: warps.max(0.0) })
}

/// Describes the empty lanes in a sentence, in the terms of the GPU's vendor.
pub fn describe_lanes(threads: f64, warp: f64, empty: Empty, (block, lane): (&str, &str), warp_word: &str) -> String {
    let last = threads % warp;
    let never = warp - last;
    let lanes = if never < 1.5 { format!("1 of {warp:.0} lanes never works") } else { format!("{never:.0} of {warp:.0} lanes never work") };
    let plural = if threads < 1.5 { "" } else { "s" };
    if threads < warp {
        format!("{block} of {threads:.0} {lane}{plural}: {lanes}")
    } else {
        format!("{block} of {threads:.0} {lane}s: in the last {warp_word} of each, {lanes} ({} of all lanes)", format_share(empty.lanes))
    }
}

/// Rule for `partial-warps`.
pub fn partial_warps(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let threads = f.positive_value("block_size")?;
    let empty = empty_lanes(threads, f.positive_value("grid_size"), WARP)?;
    let alone = case.depth() == Depth::Timeline;
    // If all blocks run at the same time, full warps do not make the kernel shorter; they only free issue slots.
    let once = f.positive_value("waves_per_sm").is_some_and(|w| w <= 1.0);
    let slots = if once { case.demand.get(Unit::Issue).unwrap_or(0.0) } else { 1.0 };
    // Memory traffic stays the same except for sectors that full warps would share: a warp with few lanes fetches a
    // sector that is only partly used.
    let shared = (WARP * (1.0 - empty.lanes) / WORDS).min(1.0);
    let memory = [Unit::Dram, Unit::L2].into_iter().filter_map(|u| case.demand.get(u)).fold(0.0, f64::max) * shared;
    let work = [Unit::Fma, Unit::Fp64, Unit::Xu]
        .into_iter()
        .fold(DemandReduction::bound_only(), |relief, unit| relief.with_left(unit, 1.0 - empty.lanes));
    let saved = (case.active * empty.warps * slots).min(1.0 - memory) * ((0.8 - memory) / 0.2).clamp(0.0, 1.0);
    let stake = if alone && once { LEAST.min(empty.warps) } else { saved };
    let sure = match (alone, once) {
        (true, true) => Sure::Possible,
        (true, false) | (false, true) => Sure::Likely,
        (false, false) => Sure::Certain,
    };
    Some(
        Hint::new(Diagnosis::PartialWarps, stake, describe_lanes(threads, WARP, empty, ("blocks", "thread"), "warp"))
            .with_gain_basis(if alone && once {
                "only counters can tell whether it costs anything: all blocks run at once".to_owned()
            } else {
                format!("the same threads in full warps: {} fewer warps", format_share(empty.warps))
            })
            .with_relief(if alone && once { DemandReduction::unknown() } else { work.with_left(Unit::Dram, shared).with_left(Unit::L2, shared) })
            .with_confidence(sure)
            .with_evidence([
                case.metric_evidence("block_size", None),
                case.metric_evidence("grid_size", None),
                case.computed_evidence("lanes without a thread", empty.lanes * 100.0, "%", None),
                case.metric_evidence("threads_per_inst", None),
                case.metric_evidence("waves_per_sm", None),
            ])
            .with_actions(&[
                "choose a block size that is a multiple of 32, 128 to 256 as a rule, and fewer blocks: one thread for each element, with a check for the end",
                "or let all lanes of a warp share the work of a block: a loop over its elements by lane, then a reduction with warp shuffles",
            ])
            .with_confirmation(&["LaunchStats", "WarpStateStats"], false, "how many threads an instruction has, and what warps wait for"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::hints::{Facts, diagnose};

    #[test]
    fn lanes_and_warps_of_launches() {
        for (threads, grid, warp, lanes, warps) in [
            (1.0, Some(1e6), 32.0, 31.0 / 32.0, 31.0 / 32.0),
            (16.0, Some(1e6), 32.0, 0.5, 0.5),
            (48.0, None, 32.0, 0.25, 0.25),
            (33.0, Some(64.0), 32.0, 31.0 / 64.0, 1.0 - 66.0 / 128.0),
            (1000.0, None, 32.0, 0.0234, 0.0234),
            (32.0, Some(1e6), 64.0, 0.5, 0.5),
            // The grid has work for only one warp.
            (1.0, Some(1.0), 32.0, 31.0 / 32.0, 0.0),
            (1.0, Some(8.0), 32.0, 31.0 / 32.0, 7.0 / 8.0),
        ] {
            let found = empty_lanes(threads, grid, warp).unwrap();
            assert!((found.lanes - lanes).abs() < 1e-3 && (found.warps - warps).abs() < 1e-3, "{threads} {grid:?} {warp}: {found:?}");
        }
        for (threads, warp) in [(32.0, 32.0), (256.0, 32.0), (64.0, 64.0), (1024.0, 32.0), (0.0, 32.0)] {
            assert_eq!(empty_lanes(threads, None, warp), None, "{threads} {warp}");
        }
    }

    /// Each case is a launch of 0.1 s: true if `partial-warps` is its first diagnosis, and the range in which the first
    /// hint's maximum gain must lie, in percent.
    #[test]
    fn lanes_that_never_work_go_first_where_they_cost() {
        let usual = [("duration", 1e8), ("sm_throughput", 15.0), ("memory_throughput", 50.0), ("dram_throughput", 50.0)];
        let limits = [("theoretical_occupancy", 50.0), ("occupancy_limit_blocks", 16.0), ("occupancy_limit_warps", 32.0)];
        for (what, own, first, most) in [
            ("one thread", [("block_size", 1.0), ("grid_size", 1.6e7), ("waves_per_sm", 3e4)], true, (93.0, 97.0)),
            ("half a warp", [("block_size", 16.0), ("grid_size", 1e6), ("waves_per_sm", 2e3)], true, (50.0, 50.0)),
            ("a warp and a half", [("block_size", 48.0), ("grid_size", 1e6), ("waves_per_sm", 2e3)], true, (25.0, 50.0)),
            ("full warps", [("block_size", 64.0), ("grid_size", 1e6), ("waves_per_sm", 2e3)], false, (0.0, 100.0)),
            // No gain, because all warps run at the same time.
            ("one small block", [("block_size", 16.0), ("grid_size", 1.0), ("waves_per_sm", 1e-3)], false, (0.0, 100.0)),
        ] {
            let facts = Facts::from_pairs(&[&usual[..], &limits[..], &own[..]].concat());
            let hints = diagnose(&facts);
            let found = hints.iter().position(|h| h.id == Diagnosis::PartialWarps);
            let at_most = hints.first().map_or(0.0, |h| (h.details.gain.at_most * 100.0).round());
            assert_eq!(found == Some(0), first, "{what}: {hints:?}");
            assert!((most.0..=most.1).contains(&at_most), "{what}: {at_most} {hints:?}");
        }
        // At the roof of device memory, empty lanes do not cost time.
        let roof = [("duration", 1e8), ("sm_throughput", 15.0), ("memory_throughput", 90.0), ("dram_throughput", 90.0)];
        let own = [("block_size", 48.0), ("grid_size", 1e6), ("waves_per_sm", 2e3)];
        let hints = diagnose(&Facts::from_pairs(&[&roof[..], &own[..]].concat()));
        assert_eq!(hints[0].id, Diagnosis::DramBandwidth, "{hints:?}");
    }

    #[test]
    fn sentences_name_the_lanes() {
        let say = |threads, warp| describe_lanes(threads, warp, empty_lanes(threads, None, warp).unwrap(), ("blocks", "thread"), "warp");
        assert_eq!(say(1.0, 32.0), "blocks of 1 thread: 31 of 32 lanes never work");
        assert_eq!(say(31.0, 32.0), "blocks of 31 threads: 1 of 32 lanes never works");
        assert_eq!(say(48.0, 32.0), "blocks of 48 threads: in the last warp of each, 16 of 32 lanes never work (25% of all lanes)");
    }
}
