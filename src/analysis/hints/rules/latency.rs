//! Rules: waiting for memory, or for the previous instruction, while no unit is near its peak.

use crate::analysis::hints::after;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{LATENCY, STALL};
use crate::analysis::hints::metric_values::Depth;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Share of its peak from which device memory is assumed to serve a stream of independent loads.
const STREAMS: f64 = 0.3;

/// Rule for `memory-latency`.
pub fn memory_latency(case: &Case<'_>) -> Option<Hint> {
    let Some(stalls) = &case.stalls else { return from_throughputs(case) };
    let reasons = ["long_scoreboard", "drain", "membar"];
    let share = stalls.summed_share(&reasons);
    if stalls.share("long_scoreboard") * 100.0 < STALL.value && share * 100.0 < STALL.value {
        return None;
    }
    let cycles = case.facts.get("stall_long_scoreboard").map_or_else(String::new, |c| format!(", {c:.0} cycles per instruction"));
    // Warps that wait for loads while device memory or L2 is at its limit wait for bandwidth.
    let known = [Unit::Dram, Unit::L2, Unit::Memory].iter().any(|u| case.demand.get(*u).is_some());
    let unknown = if known { "" } else { "; how busy L2 and device memory are was not measured, and they may be the limit" };
    let peak = case
        .demand
        .busiest_unit()
        .map_or_else(String::new, |b| format!("; the busiest unit is {} at {}", b.unit.display_name(), format_share(b.share)));
    // The loads of a stream are independent: more can be in flight until device memory is the limit. Chains of
    // dependent addresses, or cache hits, may have nothing left to gain.
    let streams = case.demand.busiest_unit().is_some_and(|b| b.unit == Unit::Dram && b.share >= STREAMS);
    let relief = DemandReduction::bound_only();
    let relief = if streams {
        let best = after::next(&relief, case);
        relief.with_time(best, 1.5)
    } else {
        relief
    };
    Some(
        Hint::new(
            Diagnosis::MemoryLatency,
            case.waiting_gain(share),
            format!("warps wait for memory {} of the time{cycles}{peak}{unknown}", format_share(share)),
        )
        .with_gain_basis(case.waiting_bound(share))
        .with_relief(relief)
        .with_confidence(match case.waiting_counts() >= 1.0 {
            _ if !known => Sure::Possible,
            true => Sure::Certain,
            false => Sure::Likely,
        })
        .with_evidence([
            case.stall_evidence("long_scoreboard", Some(STALL)),
            case.unit_evidence(Unit::Dram, Some(LATENCY)),
            case.unit_evidence(Unit::L2, Some(LATENCY)),
            case.metric_evidence("l1_hit_rate", None),
            case.metric_evidence("l2_hit_rate", None),
            case.metric_evidence("achieved_occupancy", None),
            case.metric_evidence("eligible_warps", None),
        ])
        .with_actions(&[
            "start loads earlier and more of them: unroll, prefetch into registers, cp.async or TMA into shared memory",
            "break chains in which one load gives the address of the next; follow several at once",
            "bring the data nearer: reuse in L1 or shared memory, smaller working sets",
            "run more warps, if occupancy is low",
        ])
        .with_confirmation(
            &["SourceCounters", "MemoryWorkloadAnalysis_Tables"],
            true,
            "the loads that warps wait for, and where they hit",
        ),
    )
}

/// Without stall data, this is only a guess: memory is busier than compute, and no unit is near its peak.
fn from_throughputs(case: &Case<'_>) -> Option<Hint> {
    let (memory, sm) = (case.facts.share("memory_throughput")?, case.facts.share("sm_throughput")?);
    // Below a tenth of its peak, memory hardly contributes to the time. It must also be clearly (twice) as busy as
    // compute.
    if case.depth() > Depth::Basic || memory < 0.1 || memory < 2.0 * sm || case.is_short() {
        return None;
    }
    let stake = case.waiting_gain(1.0) * 0.5;
    let headline =
        format!("memory is at {} and compute at {} of their peaks: probably warps wait for loads", format_share(memory), format_share(sm));
    Some(
        Hint::new(Diagnosis::MemoryLatency, stake, headline)
            .with_gain_basis("half of the time that no unit's demand explains; stalls were not collected")
            .with_confidence(Sure::Possible)
            .with_evidence([case.metric_evidence("memory_throughput", Some(LATENCY)), case.metric_evidence("sm_throughput", Some(LATENCY))])
            .with_actions(&["start loads earlier and more of them: unroll, prefetch, cp.async"])
            .with_confirmation(&["SpeedOfLight", "SchedulerStats", "WarpStateStats"], false, "what warps wait for"),
    )
}

/// Rule for `dependency-latency`.
pub fn dependency_latency(case: &Case<'_>) -> Option<Hint> {
    let stalls = case.stalls.as_ref()?;
    let reasons = ["wait", "short_scoreboard", "math_pipe_throttle", "dispatch_stall"];
    let (fixed, short) = (stalls.share("wait"), stalls.share("short_scoreboard"));
    let share = fixed + short;
    if share * 100.0 < STALL.value {
        return None;
    }
    let top = stalls.largest_reason(&reasons).replace('_', " ");
    let warps = case.facts.get("active_warps_scheduler").or_else(|| case.facts.get("achieved_warps").map(|w| w / 4.0));
    let warps_text = warps.map_or_else(String::new, |w| format!(" with {w:.1} warps per scheduler"));
    let headline = format!("instructions wait for the previous one {} of the time ({top}){warps_text}", format_share(share));
    Some(
        Hint::new(Diagnosis::Dependencies, case.waiting_gain(share), headline)
            .with_gain_basis(case.waiting_bound(share))
            .with_confidence(if case.is_short() { Sure::Likely } else { Sure::Certain })
            .with_evidence([
                case.stall_evidence("wait", Some(STALL)),
                case.stall_evidence("short_scoreboard", Some(STALL)),
                case.unit_evidence(Unit::Issue, Some(LATENCY)),
                case.metric_evidence("eligible_warps", None),
                case.metric_evidence("active_warps_scheduler", None),
            ])
            .with_actions(&[
                "give each thread independent work: several accumulators, unrolled loops, more elements",
                "run more warps: larger grid or blocks, fewer registers or less shared memory for each",
                "shorten dependency chains: tree sums instead of running sums, precomputed values",
            ])
            .with_confirmation(&["SourceCounters", "InstructionStats"], true, "the instructions that warps wait for"),
    )
}
