//! Lanes that no thread has: blocks that are smaller than a warp, or no multiple of it.

use crate::analysis::hints::case::{Case, pct};
use crate::analysis::hints::demand::Unit;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::facts::Depth;
use crate::analysis::hints::hint::{Hint, LEAST, Sure};

/// Lanes of an NVIDIA GPU's warp.
const WARP: f64 = 32.0;

/// What a launch leaves empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Empty {
    /// Share of the lanes of all warps, 0 to 1.
    pub lanes: f64,
    /// Share of the warps that would go if all were full: of a grid with fewer threads than a warp none would.
    pub warps: f64,
}

/// What blocks of so many threads leave empty in warps of so many lanes; `None` where every warp is full.
#[must_use]
pub fn empty(threads: f64, grid: Option<f64>, warp: f64) -> Option<Empty> {
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

/// It in a sentence, in the words of the GPU's maker.
#[must_use]
pub fn sentence(threads: f64, warp: f64, empty: Empty, (block, lane): (&str, &str), warp_word: &str) -> String {
    let last = threads % warp;
    let never = warp - last;
    let lanes = if never < 1.5 { format!("1 of {warp:.0} lanes never works") } else { format!("{never:.0} of {warp:.0} lanes never work") };
    let plural = if threads < 1.5 { "" } else { "s" };
    if threads < warp {
        format!("{block} of {threads:.0} {lane}{plural}: {lanes}")
    } else {
        format!("{block} of {threads:.0} {lane}s: in the last {warp_word} of each {lanes}, {} of all lanes", pct(empty.lanes))
    }
}

/// `partial-warps`.
pub fn partial(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let threads = f.positive("block_size")?;
    let empty = empty(threads, f.positive("grid_size"), WARP)?;
    let alone = case.depth() == Depth::Timeline;
    // Where all blocks run at once a warp takes as long with its lanes full: only issue slots get free.
    let once = f.positive("waves_per_sm").is_some_and(|w| w <= 1.0);
    let slots = if once { case.demand.get(Unit::Issue).unwrap_or(0.0) } else { 1.0 };
    // What memory moves stays.
    let memory = [Unit::Dram, Unit::L2].into_iter().filter_map(|u| case.demand.get(u)).fold(0.0, f64::max);
    let saved = (case.active * empty.warps * slots).min(1.0 - memory) * ((0.8 - memory) / 0.2).clamp(0.0, 1.0);
    let stake = if alone && once { LEAST.min(empty.warps) } else { saved };
    let sure = match (alone, once) {
        (true, true) => Sure::Possible,
        (true, false) | (false, true) => Sure::Likely,
        (false, false) => Sure::Certain,
    };
    Some(
        Hint::new(Diagnosis::PartialWarps, stake, sentence(threads, WARP, empty, ("blocks", "thread"), "warp"))
            .bound(if alone && once {
                "only counters can tell whether it costs anything: all blocks run at once".to_owned()
            } else {
                format!("the same threads in full warps: {} fewer warps", pct(empty.warps))
            })
            .sure(sure)
            .because([
                case.evidence("block_size", None),
                case.evidence("grid_size", None),
                case.computed("lanes without a thread", empty.lanes * 100.0, "%", None),
                case.evidence("threads_per_inst", None),
                case.evidence("waves_per_sm", None),
            ])
            .change(&[
                "choose a block size that is a multiple of 32, 128 to 256 as a rule, and fewer blocks: one thread for each element, with a check for the end",
                "or let all lanes of a warp share the work of a block: a loop over its elements by lane, then a reduction with warp shuffles",
            ])
            .confirm(&["LaunchStats", "WarpStateStats"], false, "how many threads an instruction has, and what warps wait for"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_warps_of_launches() {
        for (threads, grid, warp, lanes, warps) in [
            (1.0, Some(1e6), 32.0, 31.0 / 32.0, 31.0 / 32.0),
            (16.0, Some(1e6), 32.0, 0.5, 0.5),
            (48.0, None, 32.0, 0.25, 0.25),
            (33.0, Some(64.0), 32.0, 31.0 / 64.0, 1.0 - 66.0 / 128.0),
            (1000.0, None, 32.0, 0.0234, 0.0234),
            (32.0, Some(1e6), 64.0, 0.5, 0.5),
            // There is no more than one warp's work.
            (1.0, Some(1.0), 32.0, 31.0 / 32.0, 0.0),
            (1.0, Some(8.0), 32.0, 31.0 / 32.0, 7.0 / 8.0),
        ] {
            let found = empty(threads, grid, warp).unwrap();
            assert!((found.lanes - lanes).abs() < 1e-3 && (found.warps - warps).abs() < 1e-3, "{threads} {grid:?} {warp}: {found:?}");
        }
        for (threads, warp) in [(32.0, 32.0), (256.0, 32.0), (64.0, 64.0), (1024.0, 32.0), (0.0, 32.0)] {
            assert_eq!(empty(threads, None, warp), None, "{threads} {warp}");
        }
    }

    #[test]
    fn sentences_name_the_lanes() {
        let say = |threads, warp| sentence(threads, warp, empty(threads, None, warp).unwrap(), ("blocks", "thread"), "warp");
        assert_eq!(say(1.0, 32.0), "blocks of 1 thread: 31 of 32 lanes never work");
        assert_eq!(say(31.0, 32.0), "blocks of 31 threads: 1 of 32 lanes never works");
        assert_eq!(say(48.0, 32.0), "blocks of 48 threads: in the last warp of each 16 of 32 lanes never work, 25% of all lanes");
    }
}
