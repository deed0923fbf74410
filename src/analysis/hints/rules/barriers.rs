//! Rule: warps that wait for each other at barriers.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, LATENCY, STALL};
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Share of the warps' cycles from which the most frequent stall reason is reported even below NVIDIA's threshold: a
/// fifth.
const FIFTH: f64 = 0.2;

const FEWER: &str = "do more between two barriers: larger tiles, double buffering, so that there are fewer of them";
const EVEN: &str = "even out the work of the warps before a barrier; let idle warps do something else";
const NARROWER: &str = "synchronize less: __syncwarp or named barriers for part of a block; smaller blocks, more of them to an SM";

/// Rule for `barrier-stalls`.
pub fn barrier_stalls(case: &Case<'_>) -> Option<Hint> {
    let stalls = case.stalls.as_ref()?;
    let share = stalls.share("barrier");
    // Barriers must take either NVIDIA's 30 %, or at least a fifth if they are the most frequent reason.
    let first = stalls.ranked_reasons().iter().find(|r| !matches!(r.0, "selected" | "not_selected")).is_some_and(|r| r.0 == "barrier");
    if share * 100.0 < STALL.value && !(first && share >= FIFTH) {
        return None;
    }
    let block = case.facts.get("block_size").map_or_else(String::new, |b| format!(", in blocks of {b:.0} threads"));
    // If the pipe that executes barriers is at its limit, only fewer of them help.
    let saturated = case.demand.get(Unit::Adu).is_some_and(|adu| AT_LIMIT.is_met(adu * 100.0));
    // Fewer barriers eliminate waiting, and also the work that warps do only to reach a barrier.
    let stake = case.waiting_gain(share);
    let relief = DemandReduction::bound_only().with_time(0.85 * (1.0 - stake), 1.4);
    Some(
        Hint::new(Diagnosis::Barriers, stake, format!("warps wait at barriers {} of the time{block}", format_share(share)))
            .with_gain_basis(case.waiting_bound(share))
            .with_relief(relief)
            .with_confidence(if case.waiting_counts() >= 1.0 { Sure::Certain } else { Sure::Likely })
            .with_evidence([
                case.stall_evidence("barrier", Some(STALL)),
                case.unit_evidence(Unit::Issue, Some(LATENCY)),
                saturated.then(|| case.unit_evidence(Unit::Adu, Some(AT_LIMIT))).flatten(),
                case.metric_evidence("block_size", None),
                case.metric_evidence("achieved_occupancy", None),
            ])
            .with_actions(if saturated { &[FEWER, NARROWER] } else { &[FEWER, EVEN, NARROWER] })
            .with_confirmation(&["SourceCounters"], true, "the barriers that warps wait at"),
    )
}
