//! Rule: threads in a warp that take different paths.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, THREADS};
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Rule for `warp-divergence`.
pub fn warp_divergence(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    // Threads that are predicated off do no work either; NVIDIA's rule considers both.
    let active = f.threads_per_instruction()?;
    let on = active.min(f.threads_not_off().unwrap_or(32.0));
    let threads = Some(on).filter(|t| *t < THREADS.value)?;
    // Blocks with fewer threads than a warp leave lanes empty even without branches.
    let block = f.positive_value("block_size");
    let full = block.map_or(32.0, |b| b / (b / 32.0).ceil());
    let lost = (1.0 - threads / full).max(0.0);
    if threads >= full * 0.75 {
        return None;
    }
    // Fewer instructions need fewer issue slots and less waiting; memory traffic stays the same.
    let memory = [Unit::Dram, Unit::L2].into_iter().filter_map(|u| case.demand.get(u)).fold(0.0, f64::max);
    // A predicated instruction does not split its warp: all that it takes is its issue slot, and its turn in the
    // load/store pipe.
    let predicated = active >= full * 0.75;
    let issue = case.demand.get(Unit::Issue).or_else(|| f.positive_value("issued_warp"));
    let pipes = [Unit::L1, Unit::Shared, Unit::Lsu].map(|unit| case.demand.get(unit));
    let taken = issue.into_iter().chain(pipes.into_iter().flatten()).reduce(f64::max);
    let slots = match taken {
        // A unit at its limit sets the time of the kernel.
        Some(taken) if predicated && issue.is_some() && taken * 100.0 < AT_LIMIT.value => taken,
        _ => case.active,
    };
    let stake = (slots * lost).min(1.0 - memory) * ((0.8 - memory) / 0.2).clamp(0.0, 1.0);
    let best = slots * (1.0 - lost) + (1.0 - slots);
    let relief = DemandReduction::bound_only()
        .with_left(Unit::Fp64, threads / full)
        .with_left(Unit::Xu, threads / full)
        .with_time(best.max(memory), 1.8);
    let headline = if predicated {
        format!(
            "warps do not diverge ({active:.1} of {full:.0} threads are active), but on average only {threads:.1} threads are not predicated off"
        )
    } else {
        format!("on average {threads:.1} of {full:.0} threads of a warp are active; {} of the lanes are idle", format_share(lost))
    };
    Some(
        Hint::new(Diagnosis::Divergence, stake, headline)
            .with_gain_basis(format!("the same work with full warps: {} fewer instructions", format_share(lost)))
            .with_relief(relief)
            .with_confidence(match block {
                // Free slots cost nothing.
                _ if predicated && slots < BUSY => Sure::Possible,
                _ if predicated => Sure::Likely,
                Some(_) => Sure::Certain,
                None => Sure::Likely,
            })
            .with_evidence([
                case.metric_evidence("threads_per_inst", Some(THREADS)),
                case.metric_evidence("threads_per_inst_pred", Some(THREADS)),
                case.metric_evidence("branch_uniformity", None),
                case.metric_evidence("divergent_branches", None),
                case.unit_evidence(Unit::Issue, None),
            ])
            .with_actions(if predicated { SKIP } else { SAME_PATH })
            .with_confirmation(
                &["SourceCounters"],
                true,
                if predicated { "the instructions that are predicated off" } else { "the branches that diverge" },
            ),
    )
}

/// Minimum load of the issue slots, shared memory or the load/store pipe for predicated instructions to be in the way; an
/// assumption: below half, there is room for others beside them.
const BUSY: f64 = 0.5;

/// Remedies for warps that diverge.
const SAME_PATH: &[&str] = &[
    "let the threads of a warp take the same path: branch on blockIdx or the warp index, not on the lane",
    "sort or compact the work first, so that neighbouring threads do the same",
    "replace short branches by arithmetic or selection; let all lanes share the work of a long loop",
];

/// Remedies for instructions that are predicated off.
const SKIP: &[&str] = &[
    "let whole warps skip what they need not do: conditions on the warp index in place of the lane (in a reduction, warp shuffles in place of `if (tid < n)`)",
    "it costs issue slots and turns in the load/store pipe only: first look at what the warps wait for",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::hints::{Facts, diagnose};

    /// Threads active and not predicated off, load of the issue slots in percent; largest saving.
    #[test]
    fn predicated_threads_cost_what_they_take_of_the_slots() {
        let found = |active: f64, on: f64, issue: f64| {
            let facts = [
                ("duration", 1e8),
                ("block_size", 256.0),
                ("grid_size", 1e6),
                ("threads_per_inst", active),
                ("threads_per_inst_pred", on),
                ("busy_issue", issue),
                ("sm_throughput", issue),
                ("memory_throughput", 30.0),
                ("dram_throughput", 30.0),
            ];
            let hint = diagnose(&Facts::from_pairs(&facts)).into_iter().find(|h| h.id == Diagnosis::Divergence).unwrap();
            ((hint.stake * 100.0).round(), hint.headline.contains("not predicated off"))
        };
        assert_eq!(found(16.0, 16.0, 20.0), (50.0, false), "a warp that splits takes its time twice");
        assert_eq!(found(31.5, 16.0, 20.0), (10.0, true));
        assert_eq!(found(31.5, 16.0, 60.0), (30.0, true));
        assert_eq!(found(31.5, 16.0, 90.0), (50.0, true), "at their limit, the slots set the time");
    }
}
