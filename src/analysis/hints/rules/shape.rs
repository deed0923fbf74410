//! Rules: SMs without work, because of too few blocks, a mostly empty last wave, or blocks of unequal length.

use crate::analysis::hints::after;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{EMPTY_KERNEL_NS, OCCUPANCY_GAP, TAIL_WAVES, WAVES};
use crate::analysis::hints::rule_context::{Case, discount_note};
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Demand;
use crate::model::units::format_share;

/// Average share of the available warp slots that were empty, 0 to 1, because SMs were idle or their warps had ended. A
/// gap of up to ten points between expected and achieved occupancy, which NVIDIA's `AchievedOccupancy.py` allows for
/// blocks that start and end, does not count; a larger one counts in full.
fn idle_slots(case: &Case<'_>) -> Option<f64> {
    let f = case.facts;
    // Without the SMs' cycles, only the achieved occupancy is known.
    let active = f.active_share().or_else(|| f.get("achieved_occupancy").map(|_| 1.0))?;
    let expected = f.share("theoretical_occupancy").map(|t| t * f.positive_value("waves_per_sm").unwrap_or(1.0).min(1.0));
    let filled = match (f.share("achieved_occupancy"), expected.filter(|e| *e > 0.0)) {
        (Some(achieved), Some(expected)) if (expected - achieved) * 100.0 > OCCUPANCY_GAP.value => (achieved / expected).min(1.0),
        _ => 1.0,
    };
    // Slots are also idle while the kernel starts and ends, which does not count.
    let ends = f.positive_value("sm_active_max").zip(f.positive_value("elapsed_cycles")).map(|(most, all)| (1.0 - most / all).max(0.0));
    let fixed = f.duration_ns().map_or(0.0, |ns| EMPTY_KERNEL_NS / ns).max(ends.unwrap_or(0.0));
    Some((1.0 - active * filled - fixed).max(0.0))
}

/// Time of a block after a change that makes more of them, relative to the time in proportion to its work: smaller
/// blocks also finish faster. With twice as many blocks, a kernel of `fixtures/hints/held_detailed` took 32% of its time.
const SMALLER_BLOCKS: f64 = 0.6;

fn format_blocks(blocks: f64) -> String {
    if blocks < 1.5 { "1 block".to_owned() } else { format!("{blocks:.0} blocks") }
}

/// Rule for `grid-too-small`.
pub fn small_grid(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let (blocks, sms) = (f.positive_value("grid_size")?, f.positive_value("sm_count")?);
    let waves = f.positive_value("waves_per_sm");
    let few = blocks < sms;
    if !few && waves.is_none_or(|w| w > WAVES.value) {
        return None;
    }
    // SMs without a block are idle. On the other SMs, more warps hide more latency until a unit is the limit.
    let filled = if few { (blocks / sms).min(waves.unwrap_or(1.0)) } else { waves.unwrap_or(1.0) };
    let measured = case.facts.active_share();
    // SMs without a block are a certain loss; latency that more warps would hide on the other SMs counts like waiting.
    let empty = if few { 1.0 - blocks / sms } else { 0.0 };
    // More warps do not speed up atomics on a single address.
    let slice = ["l2_atomic_max", "l2_tag_max"].iter().filter_map(|i| f.share(i)).fold(case.peak(), f64::max);
    let hidden = (case.active.min(1.0 - empty) * (1.0 - (filled / (1.0 - empty)).max(slice))).max(0.0) * Demand::waiting_counts(slice);
    let stake = (empty + hidden).min(1.0 - case.demand.peak_share());
    let wave = waves.map_or_else(String::new, |w| format!(", {w:.2} waves"));
    let headline = if few {
        format!("{} for {sms:.0} SMs: {} of the SMs get none", format_blocks(blocks), format_share(1.0 - blocks / sms))
    } else {
        format!("only {}{wave}; the SMs could hold {:.0} times as many", format_blocks(blocks), 1.0 / filled)
    };
    let sure = if few && measured.is_some() { Sure::Certain } else { Sure::Likely };
    // Once all SMs have blocks, each is at worst as fast as those that have blocks now; at best, the next unit is the
    // limit.
    let relief = DemandReduction::bound_only().with_floor(
        SMALLER_BLOCKS * filled,
        format!(
            "{:.1} times as many blocks fill the SMs, and smaller ones may finish up to {:.1} times as fast",
            1.0 / filled.max(1e-6),
            1.0 / SMALLER_BLOCKS
        ),
    );
    let relief = if few && empty >= 0.3 {
        let best = after::next(&relief, case).max(0.8 * (1.0 - empty));
        relief.with_time(best, ((1.0 - empty) / best).max(1.0))
    } else {
        relief
    };
    Some(
        Hint::new(Diagnosis::SmallGrid, stake, headline)
            .with_relief(relief)
            .with_gain_basis(if few && hidden <= 0.0 {
                format!("the {} of the SMs without a block", format_share(empty))
            } else {
                format!(
                    "all SMs filled, up from {} of what they can hold, or {}{}",
                    format_share(filled),
                    case.next_roof(&[]).1,
                    discount_note(Demand::waiting_counts(slice))
                )
            })
            .with_confidence(sure)
            .with_evidence([
                case.metric_evidence("grid_size", None),
                case.metric_evidence("sm_count", None),
                case.metric_evidence("waves_per_sm", Some(WAVES)),
                measured.and_then(|a| case.computed_evidence("cycles in which an SM was active, on average", a * 100.0, "%", None)),
                case.metric_evidence("achieved_occupancy", None),
            ])
            .with_actions(&[
                "make more blocks: smaller tiles, split the inner dimension (split-K), a larger batch",
                "run other kernels concurrently: streams, or one launch for several problems",
                "smaller blocks, if there are fewer blocks than SMs",
            ])
            .with_confirmation(&["SpeedOfLight", "LaunchStats", "Occupancy"], false, "how many SMs were active"),
    )
}

/// Maximum share of the time that the last wave costs, 0 to 1, if all blocks have the same duration.
fn tail_theory(waves: f64) -> f64 {
    if waves <= 1.0 || waves.fract() < 1e-6 { 0.0 } else { 1.0 - waves / waves.ceil() }
}

/// Rule for `tail-effect`.
pub fn tail_effect(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let waves = f.positive_value("waves_per_sm").filter(|w| *w > 1.0 && w.floor() <= TAIL_WAVES)?;
    let theory = tail_theory(waves);
    // Longer blocks fill the gap in the last wave, so the tail costs at most the idle slots that were measured.
    let measured = idle_slots(case);
    let stake = measured.map_or(theory, |m| m.min(theory)).min(1.0 - case.demand.peak_share());
    if stake < 0.02 {
        return None;
    }
    let whole = waves.floor();
    let plural = if whole > 1.0 { "s" } else { "" };
    let headline =
        format!("{waves:.2} waves: after {whole:.0} full wave{plural} the last one fills only {} of the GPU", format_share(waves.fract()));
    Some(
        Hint::new(Diagnosis::Tail, stake, headline)
            .with_gain_basis(if 1.0 - case.demand.peak_share() <= stake + 0.001 {
                case.next_roof(&[]).1
            } else {
                measured.map_or_else(
                || format!("{} waves' time for {waves:.2} waves' work, if all blocks take equally long", waves.ceil()),
                |m| format!("empty warp slots: {}; from the waves alone {}", format_share(m), format_share(theory)),
            )
            })
            .with_relief(
                DemandReduction::bound_only()
                    .with_time(1.0 - stake, 1.2)
                    .with_floor(1.0 - theory, "all waves are full then".to_owned()),
            )
            .with_confidence(if measured.is_some() { Sure::Certain } else { Sure::Likely })
            .with_evidence([
                case.metric_evidence("waves_per_sm", None),
                case.metric_evidence("grid_size", None),
                case.metric_evidence("sm_count", None),
                measured.and_then(|m| case.computed_evidence("empty warp slots", m * 100.0, "%", None)),
                case.metric_evidence("theoretical_occupancy", None),
                case.metric_evidence("achieved_occupancy", None),
            ])
            .with_actions(&[
                "choose the grid so that it fills whole waves: other block sizes or tiles, or a grid-stride loop over as many blocks as fit",
                "use persistent blocks that take tiles from a queue (stream-K)",
                "make blocks smaller, so that the last wave is shorter; or overlap with the next kernel",
            ])
            .with_confirmation(&["SpeedOfLight", "LaunchStats", "Occupancy"], false, "how evenly the SMs were used"),
    )
}

/// Share of the time during which even the least busy SM works, from which the SMs count as equally busy.
const BALANCED: f64 = 0.95;

fn occupancy_gap(case: &Case<'_>) -> Option<f64> {
    Some(case.facts.get("theoretical_occupancy")? - case.facts.get("achieved_occupancy")?)
}

/// Ratio of the least busy SM's cycles to the busiest one's below which the SMs have unequal work.
const UNEQUAL: f64 = 0.8;

/// Rule for `workload-imbalance`.
pub fn workload_imbalance(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let idle = idle_slots(case)?;
    // A short launch is idle at its beginning and end, to a degree that depends on the chip; without the busiest SM's
    // cycles, we cannot separate this.
    if case.is_short() && f.get("sm_active_max").is_none() {
        return None;
    }
    let waves = f.positive_value("waves_per_sm");
    let grid = f.blocks_per_sm().map_or(0.0, |b| (1.0 - b).max(0.0));
    let tail = waves.map_or(0.0, tail_theory);
    // Over many waves, long and short blocks even out, and the remaining empty slots are mostly those between two
    // blocks.
    let many = waves.is_some_and(|w| w > TAIL_WAVES);
    let rest = (idle - grid - tail).max(0.0);
    let stake =
        (rest * if many { 0.5 } else { 1.0 }).min(1.0 - case.demand.peak_share()) * Demand::waiting_counts(case.demand.peak_share());
    let (least, most) = (f.get("sm_active_min"), f.positive_value("sm_active_max"));
    let spread = least.zip(most).map(|(least, most)| least / most);
    // The SMs have equally much to do, so it is the warps of each block that do not.
    let balanced = spread.is_some_and(|s| s >= BALANCED) && f.active_share().is_some_and(|a| a >= BALANCED);
    let sms = spread
        .filter(|s| *s < UNEQUAL && *s > 0.0)
        .map_or_else(String::new, |s| format!("; the least busy SM worked {} as long as the busiest", format_share(s)));
    // Cite the same figures in the headline as in the evidence.
    let headline = match f.share("achieved_occupancy").zip(f.share("theoretical_occupancy")) {
        Some((achieved, theory)) if theory - achieved > 0.005 => format!(
            "achieved occupancy is {} of a theoretical {}, averaged over the kernel{sms}",
            format_share(achieved),
            format_share(theory)
        ),
        _ => format!("{} of the warp slots are empty, averaged over the kernel{sms}", format_share(rest)),
    };
    let sure = if many || waves.is_none() || f.active_share().is_none() {
        Sure::Possible
    } else if spread.is_some_and(|s| s < UNEQUAL) || stake >= 0.3 {
        Sure::Certain
    } else {
        Sure::Likely
    };
    Some(
        Hint::new(Diagnosis::Imbalance, stake, headline)
            .with_gain_basis("the same work on all warp slots from start to end, or until a unit becomes the limit")
            .with_relief(
                DemandReduction::bound_only().with_time(1.0 - stake, 1.35).with_floor(1.0 - idle, "no warp slot is empty then".to_owned()),
            )
            .with_confidence(sure)
            .with_evidence([
                case.computed_evidence("empty warp slots, tail left out", rest * 100.0, "%", None),
                f.active_share().and_then(|a| case.computed_evidence("cycles in which an SM was active, on average", a * 100.0, "%", None)),
                spread.and_then(|s| case.computed_evidence("least busy SM over the busiest", s * 100.0, "%", None)),
                case.metric_evidence("theoretical_occupancy", None),
                case.metric_evidence("achieved_occupancy", None),
                occupancy_gap(case).and_then(|g| {
                    case.computed_evidence("theoretical minus achieved occupancy, in percentage points", g, "", Some(OCCUPANCY_GAP))
                }),
                case.metric_evidence("waves_per_sm", None),
            ])
            .with_actions(if many && spread.is_none_or(|s| s >= UNEQUAL) {
                // A free slot is filled with the next block, so that the length of blocks evens out.
                &[
                    "let each block do more (several elements a thread, fewer blocks): blocks that end as fast as an SM starts new ones leave their slots empty in between",
                    "if blocks are long: give the warps of a block the same work, or make blocks smaller, so that fewer warps wait for the longest one of their block",
                ]
            } else if balanced {
                &[
                    "the SMs are equally busy, so give the warps of a block the same work: those that end first leave their slots empty until the block ends",
                    "make blocks smaller, so that fewer warps wait for the longest one of their block",
                ]
            } else {
                &[
                    "give all blocks the same work: split long rows or lists, sort by length, pair long with short",
                    "let blocks take work from a queue (an atomic counter) instead of a fixed share",
                    "start the longest blocks first",
                ]
            })
            .with_confirmation(&["SpeedOfLight", "Occupancy", "SourceCounters"], false, "how unevenly SMs and slices of memory were used"),
    )
}
