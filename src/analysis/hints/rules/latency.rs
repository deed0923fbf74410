//! Rules: waiting for memory, or for the previous instruction, with no unit near its peak.

use crate::analysis::hints::after;
use crate::analysis::hints::case::{Case, pct};
use crate::analysis::hints::demand::Unit;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::facts::Depth;
use crate::analysis::hints::gain::Relief;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{LATENCY, STALL};

/// Share of its peak from which device memory is streamed through.
const STREAMS: f64 = 0.3;

/// `memory-latency`.
pub fn memory(case: &Case<'_>) -> Option<Hint> {
    let Some(stalls) = &case.stalls else { return from_throughputs(case) };
    let reasons = ["long_scoreboard", "drain", "membar"];
    let share = stalls.sum(&reasons);
    if stalls.share("long_scoreboard") * 100.0 < STALL.value && share * 100.0 < STALL.value {
        return None;
    }
    let cycles = case.facts.get("stall_long_scoreboard").map_or_else(String::new, |c| format!(", {c:.0} cycles per instruction"));
    let peak = case.demand.busiest().map_or_else(String::new, |b| format!("; the busiest unit is {} at {}", b.unit.word(), pct(b.share)));
    // Loads of a stream can be in flight until device memory is the limit; chains of addresses and cache hits may have
    // nothing left to gain.
    let streams = case.demand.busiest().is_some_and(|b| b.unit == Unit::Dram && b.share >= STREAMS);
    let relief = Relief::bound();
    let relief = if streams {
        let best = after::next(&relief, case);
        relief.time(best, 1.5)
    } else {
        relief
    };
    Some(
        Hint::new(Diagnosis::MemoryLatency, case.waiting(share), format!("warps wait for memory {} of the time{cycles}{peak}", pct(share)))
            .bound(case.waiting_bound(share))
            .relief(relief)
            .sure(if case.waiting_counts() >= 1.0 { Sure::Certain } else { Sure::Likely })
            .because([
                case.stall("long_scoreboard", Some(STALL)),
                case.busy(Unit::Dram, Some(LATENCY)),
                case.busy(Unit::L2, Some(LATENCY)),
                case.evidence("l1_hit_rate", None),
                case.evidence("l2_hit_rate", None),
                case.evidence("achieved_occupancy", None),
                case.evidence("eligible_warps", None),
            ])
            .change(&[
                "start loads earlier and more of them: unroll, prefetch into registers, cp.async or TMA into shared memory",
                "break chains in which one load gives the address of the next; follow several at once",
                "bring the data nearer: reuse in L1 or shared memory, smaller working sets",
                "run more warps, if occupancy is low",
            ])
            .confirm(&["SourceCounters", "MemoryWorkloadAnalysis_Tables"], true, "the loads that warps wait for, and where they hit"),
    )
}

/// Only a guess without stalls: memory is busier than compute, and no unit is near its peak.
fn from_throughputs(case: &Case<'_>) -> Option<Hint> {
    let (memory, sm) = (case.facts.share("memory_throughput")?, case.facts.share("sm_throughput")?);
    // Below a tenth of its peak, memory hardly contributes to the time. It must be twice as busy as compute,
    // not merely on par.
    if case.depth() > Depth::Basic || memory < 0.1 || memory < 2.0 * sm || case.short() {
        return None;
    }
    let stake = case.waiting(1.0) * 0.5;
    let headline = format!("memory is at {} and compute at {} of their peaks: probably warps wait for loads", pct(memory), pct(sm));
    Some(
        Hint::new(Diagnosis::MemoryLatency, stake, headline)
            .bound("half of the time that no unit's demand explains; stalls were not collected")
            .sure(Sure::Possible)
            .because([case.evidence("memory_throughput", Some(LATENCY)), case.evidence("sm_throughput", Some(LATENCY))])
            .change(&["start loads earlier and more of them: unroll, prefetch, cp.async"])
            .confirm(&["SpeedOfLight", "SchedulerStats", "WarpStateStats"], false, "what warps wait for"),
    )
}

/// `dependency-latency`.
pub fn dependencies(case: &Case<'_>) -> Option<Hint> {
    let stalls = case.stalls.as_ref()?;
    let reasons = ["wait", "short_scoreboard", "math_pipe_throttle", "dispatch_stall"];
    let (fixed, short) = (stalls.share("wait"), stalls.share("short_scoreboard"));
    let share = fixed + short;
    if share * 100.0 < STALL.value {
        return None;
    }
    let top = stalls.largest(&reasons).replace('_', " ");
    let warps = case.facts.get("active_warps_scheduler").or_else(|| case.facts.get("achieved_warps").map(|w| w / 4.0));
    let warps_text = warps.map_or_else(String::new, |w| format!(" with {w:.1} warps per scheduler"));
    let headline = format!("instructions wait for the previous one {} of the time ({top}){warps_text}", pct(share));
    Some(
        Hint::new(Diagnosis::Dependencies, case.waiting(share), headline)
            .bound(case.waiting_bound(share))
            .sure(if case.short() { Sure::Likely } else { Sure::Certain })
            .because([
                case.stall("wait", Some(STALL)),
                case.stall("short_scoreboard", Some(STALL)),
                case.busy(Unit::Issue, Some(LATENCY)),
                case.evidence("eligible_warps", None),
                case.evidence("active_warps_scheduler", None),
            ])
            .change(&[
                "give each thread independent work: several accumulators, unrolled loops, more elements",
                "run more warps: larger grid or blocks, fewer registers or less shared memory for each",
                "shorten dependency chains: tree sums instead of running sums, precomputed values",
            ])
            .confirm(&["SourceCounters", "InstructionStats"], true, "the instructions that warps wait for"),
    )
}
