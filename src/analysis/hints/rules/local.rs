//! Rule: local memory used for register spills or for arrays that do not fit in registers.

use crate::analysis::hints::after;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::LOCAL;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Share of the local accesses below which spills are not worth mentioning.
const FEW: f64 = 0.01;

/// Rule for `register-spilling` or `local-memory-traffic`.
pub fn local_memory(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let instructions = || Some(f.get("local_loads")? + f.get("local_stores").unwrap_or(0.0));
    let requests = f.positive_value("local_requests").or_else(instructions).filter(|r| *r > 0.0)?;
    // Share of local accesses among all that go to L1: by requests, or by sectors according to source counters,
    // whichever is larger.
    let sectors = f.positive_value("l2_sectors_local").zip(f.get("l2_sectors_global")).map(|(l, g)| l / (l + g));
    let by_requests = f.get("global_requests").map(|g| requests / (requests + g));
    let share = by_requests.or(sectors)?.max(sectors.unwrap_or(0.0));
    if share * 100.0 < LOCAL.value {
        return None;
    }
    let get = |u| case.demand.get(u).unwrap_or(0.0);
    let l1 = (get(Unit::L1) - get(Unit::Shared)).max(0.0);
    // L2 and device memory traffic is not counted by kind: the local share there is at most L1's local share.
    let units = [(Unit::L1, l1 * share), (Unit::L2, get(Unit::L2) * share), (Unit::Dram, get(Unit::Dram) * share)];
    let (unit, busy) = units.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let waits = case.stalls.as_ref().map_or(0.0, |s| case.waiting_gain(s.summed_share(&["long_scoreboard", "lg_throttle"]) * share));
    let stake = busy.max(waits);
    // The new time lies between that of the useful work alone and the current time less the measured cost of local
    // accesses.
    let relief =
        DemandReduction::bound_only().with_left(Unit::Dram, after::useful_dram_share(case).map_or(0.0, |u| u / get(Unit::Dram).max(1e-6)));
    let work = 1.0 - after::predict_gain(&relief, case).at_most;
    let relief = relief.with_time_range(work, 1.0 - stake);
    let bound = if busy >= waits {
        format!("the part of {}'s {} that is local", unit.display_name(), format_share(get(unit)))
    } else {
        format!("the part of the waiting for memory that is local: {}", format_share(share))
    };
    // Since ncu 2025.1, source counters distinguish accesses that are spills.
    let spilled = f.get("local_spill_requests").or_else(|| f.get("local_spill_instructions"));
    let part = spilled.map(|s| (s / requests).clamp(0.0, 1.0));
    let registers = f.get("registers_per_thread");
    let capped = registers.is_some_and(|r| r >= 255.0);
    let (id, sure) = match part {
        Some(p) if p >= 0.5 => (Diagnosis::Spilling, Sure::Certain),
        Some(_) => (Diagnosis::LocalMemory, Sure::Certain),
        // Older reports do not distinguish spills. If threads use the maximum number of registers, spilling is the
        // usual reason for local accesses.
        None if capped => (Diagnosis::Spilling, Sure::Likely),
        None => (Diagnosis::LocalMemory, Sure::Likely),
    };
    let evidence = [
        case.computed_evidence("local share of L1 accesses", share * 100.0, "%", Some(LOCAL)),
        part.and_then(|p| case.computed_evidence("of these, spills", p * 100.0, "%", None)),
        case.metric_evidence("local_spill_requests", None),
        case.metric_evidence("local_requests", None),
        case.metric_evidence("registers_per_thread", None),
        case.metric_evidence("stack_bytes", None),
        case.unit_evidence(unit, None),
        case.stall_evidence("long_scoreboard", None),
        case.stall_evidence("lg_throttle", None),
    ];
    let with = registers.map_or_else(String::new, |r| format!(" with {r:.0} registers per thread"));
    let spills = |p: f64| format!(", {} of them spills", format_share(p));
    let hint = if id == Diagnosis::Spilling {
        let spills = part.map_or_else(String::new, spills);
        Hint::new(id, stake, format!("registers spill{with}: {} of the L1 accesses go to local memory{spills}", format_share(share)))
            .with_actions(&[
                "allow more registers: lower or drop minBlocksPerMultiprocessor in __launch_bounds__, or raise -maxrregcount",
                "keep fewer values alive: smaller tiles per thread, less unrolling, recompute instead of keeping them",
                "split the kernel, or move long-lived values to shared memory",
            ])
    } else {
        let not = part.map_or_else(String::new, |p| if p < FEW { ", and they are not spills".to_owned() } else { spills(p) });
        Hint::new(id, stake, format!("{} of the L1 accesses go to local arrays{not}", format_share(share))).with_actions(&[
            "index local arrays by constants only: unroll the loops over them, so that they become registers",
            "put arrays that must be indexed at run time into shared memory, one row for each thread",
            "pass small structures by value; look for large ones on the stack (-Xptxas -v: stack frame)",
        ])
    };
    Some(hint.with_gain_basis(bound).with_relief(relief).with_confidence(sure).with_evidence(evidence).with_confirmation(
        &["SourceCounters", "MemoryWorkloadAnalysis_Tables"],
        true,
        "the lines that read and write local memory",
    ))
}
