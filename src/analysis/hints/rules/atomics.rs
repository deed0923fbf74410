//! Rule: atomics that wait for each other.

use crate::analysis::hints::after;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, Sure};
use crate::analysis::hints::limits::{ATOMICS, HOT_SLICE, LATENCY, STALL};
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Stalls in which warps wait for atomics: for the queue to memory, for a result, or for their stores to finish.
const WAITS: [&str; 6] = ["lg_throttle", "long_scoreboard", "drain", "mio_throttle", "short_scoreboard", "membar"];

/// NVIDIA's HighPipeUtilization.py considers a unit below 20 % little used.
const LITTLE_USED: f64 = 20.0;

/// Ratio of the busiest L2 slice to the mean, in tags or in atomic units; `None` if that slice is hardly busy.
fn hot_slice(case: &Case<'_>) -> Option<(f64, Option<Evidence>)> {
    let pair = |mean: &str, max: &'static str| {
        let (mean, max_value) = (case.facts.positive_value(mean)?, case.facts.positive_value(max)?);
        // An L2 slice that is as idle as the others does not prove contention.
        (max_value >= LITTLE_USED).then(|| (max_value / mean, case.metric_evidence(max, None)))
    };
    let all = [pair("l2_atomic_mean", "l2_atomic_max"), pair("l2_tag_mean", "l2_tag_max")];
    all.into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Rule for `atomic-contention`.
pub fn atomic_contention(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let global = f.get("atomics_global").into_iter().chain(f.get("atomic_requests")).reduce(f64::max);
    let shared = f.get("atomics_shared");
    let atomics = global.unwrap_or(0.0) + shared.unwrap_or(0.0);
    if atomics <= 0.0 || case.waiting_counts() <= 0.0 {
        return None;
    }
    let accesses = f.get("global_requests")?;
    let share = atomics / (atomics + accesses + f.get("shared_accesses").unwrap_or(0.0));
    let hot = hot_slice(case).filter(|h| h.0 >= HOT_SLICE.value);
    if share * 100.0 < ATOMICS.value && hot.is_none() {
        return None;
    }
    let waiting = case.stalls.as_ref().map(|s| s.summed_share(&WAITS));
    let waits = match waiting {
        Some(w) if w * 100.0 >= STALL.value => w,
        Some(_) => return None,
        // Without stall data, only a slice that receives all atomics is evidence, and the time that warps wait for it
        // remains unknown.
        None => hot.as_ref().map(|_| 1.0)?,
    };
    // Warps also wait for their loads. Atomics therefore account only for their share of the accesses, unless a hot
    // slice proves that they are the cause.
    let part = if hot.is_some() { 1.0 } else { share };
    let stake = case.waiting_gain(waits) * part;
    let slice =
        hot.as_ref().map_or_else(String::new, |(times, _)| format!(", and one slice of L2 gets {times:.0} times as many as the mean"));
    let while_waiting = waiting.map_or_else(String::new, |w| format!(", while warps wait {} of the time", format_share(w)));
    let kind = if shared.unwrap_or(0.0) > global.unwrap_or(0.0) { "shared" } else { "global" };
    let headline =
        format!("{kind} atomics contend with each other: they are {} of the accesses{slice}{while_waiting}", format_share(share));
    // Most of the traffic through L1 and L2 is due to the atomics themselves.
    let relief = DemandReduction::bound_only().without_units(&[Unit::L1, Unit::L2, Unit::Lsu]);
    let relief = if hot.is_some() {
        let best = after::next(&relief, case);
        relief.with_time(best, 2.0)
    } else {
        relief
    };
    Some(
        Hint::new(Diagnosis::Atomics, stake, headline)
            .with_relief(relief)
            .with_gain_basis(case.waiting_bound(waits))
            .with_confidence(match (&hot, waiting) {
                (Some(_), Some(_)) => Sure::Certain,
                (None, Some(_)) => Sure::Likely,
                _ => Sure::Possible,
            })
            .with_evidence([
                case.computed_evidence("accesses that are atomics", share * 100.0, "%", Some(ATOMICS)),
                case.metric_evidence("atomics_global", None),
                case.metric_evidence("atomics_shared", None),
                hot.as_ref().and_then(|h| case.computed_evidence("busiest slice of L2 over the mean", h.0, "", Some(HOT_SLICE))),
                hot.and_then(|h| h.1),
                case.stall_evidence("lg_throttle", None),
                case.stall_evidence("long_scoreboard", None),
                case.metric_evidence("memory_throughput", Some(LATENCY)),
            ])
            .with_actions(&[
                "add within the warp (reduce or shuffles) or the block (shared memory) first; one atomic for the sum",
                "spread over several copies of the counter or histogram, and add those up at the end",
                "sort or group by key, so that few threads hit the same address at a time",
            ])
            .with_confirmation(&["SourceCounters", "WarpStateStats", "MemoryWorkloadAnalysis_Tables"], true, "the lines with the atomics"),
    )
}
