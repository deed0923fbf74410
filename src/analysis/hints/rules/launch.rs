//! Rule: kernels that are shorter than their launch.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{EMPTY_IN_TIMELINE_NS, EMPTY_KERNEL_NS, SHORT};
use crate::analysis::hints::metric_values::Depth;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::Nanos;
use crate::model::units::format_share;

/// Duration below which a kernel is shorter than the cost of its launch on the host (3 to 8 µs), in ns.
const CLEARLY_NS: f64 = 5_000.0;

/// Rule for `launch-overhead`.
pub fn launch_overhead(case: &Case<'_>) -> Option<Hint> {
    let ns = case.facts.duration_ns().filter(|ns| *ns < SHORT.value)?;
    let empty = if case.depth() == Depth::Timeline { EMPTY_IN_TIMELINE_NS } else { EMPTY_KERNEL_NS };
    let stake = empty / ns;
    let time = Nanos::format_ns(ns);
    let headline = if stake < 0.9 {
        format!("only {time} long, of which launch overhead is about {}", format_share(stake))
    } else {
        format!("only {time} long, hardly more than an empty kernel takes")
    };
    Some(
        Hint::new(Diagnosis::LaunchOverhead, stake, headline)
            .with_gain_basis(format!("an empty kernel takes about {} on the device", Nanos::format_ns(empty)))
            .with_relief(DemandReduction::bound_only().with_fusion().without_units(&[Unit::Dram]))
            .with_confidence(if ns <= CLEARLY_NS { Sure::Certain } else { Sure::Likely })
            .with_evidence([
                case.metric_evidence("duration", Some(SHORT)),
                case.metric_evidence("grid_size", None),
                case.metric_evidence("waves_per_sm", None),
            ])
            .with_actions(&[
                "fuse it with its neighbours, or give it more work at a time (larger batches)",
                "launch it in a CUDA graph, so that a launch costs less (in PyTorch: torch.compile(mode=\"reduce-overhead\"))",
                "let launches overlap: programmatic dependent launch, other streams",
            ])
            .with_confirmation(&[], false, "a timeline shows how often it runs and what happens in between"),
    )
}
