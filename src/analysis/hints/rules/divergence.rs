//! Rule: threads in a warp that take different paths.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::THREADS;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Rule for `warp-divergence`.
pub fn warp_divergence(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    // Threads that are predicated off do no work either; NVIDIA's rule considers both.
    let on = f.threads_per_instruction()?.min(f.threads_not_off().unwrap_or(32.0));
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
    let stake = (case.active * lost).min(1.0 - memory) * ((0.8 - memory) / 0.2).clamp(0.0, 1.0);
    let best = case.active * (1.0 - lost) + (1.0 - case.active);
    let relief = DemandReduction::bound_only()
        .with_left(Unit::Fp64, threads / full)
        .with_left(Unit::Xu, threads / full)
        .with_time(best.max(memory), 1.8);
    let headline =
        format!("on average {threads:.1} of {full:.0} threads of a warp are active; {} of the lanes are idle", format_share(lost));
    Some(
        Hint::new(Diagnosis::Divergence, stake, headline)
            .with_gain_basis(format!("the same work with full warps: {} fewer instructions", format_share(lost)))
            .with_relief(relief)
            .with_confidence(if block.is_some() { Sure::Certain } else { Sure::Likely })
            .with_evidence([
                f.get("threads_per_inst").filter(|t| *t <= threads).map_or_else(
                    || case.computed_evidence("active threads per instruction", threads, "thread", Some(THREADS)),
                    |_| case.metric_evidence("threads_per_inst", Some(THREADS)),
                ),
                case.metric_evidence("branch_uniformity", None),
                case.metric_evidence("divergent_branches", None),
                case.unit_evidence(Unit::Issue, None),
            ])
            .with_actions(&[
                "let the threads of a warp take the same path: branch on blockIdx or the warp index, not on the lane",
                "sort or compact the work first, so that neighbouring threads do the same",
                "replace short branches by arithmetic or selection; let all lanes share the work of a long loop",
            ])
            .with_confirmation(&["SourceCounters"], true, "the branches that diverge"),
    )
}
