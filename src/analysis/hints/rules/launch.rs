//! Rule: kernels that are shorter than their launch.

use crate::analysis::hints::case::{Case, pct};
use crate::analysis::hints::demand::Unit;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::facts::Depth;
use crate::analysis::hints::gain::Relief;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{EMPTY_IN_TIMELINE_NS, EMPTY_KERNEL_NS, SHORT};
use crate::model::Nanos;

/// Duration below which a kernel is shorter than the cost of its launch on the host (3 to 8 µs), in ns.
const CLEARLY_NS: f64 = 5_000.0;

/// `launch-overhead`.
pub fn overhead(case: &Case<'_>) -> Option<Hint> {
    let ns = case.facts.duration_ns().filter(|ns| *ns < SHORT.value)?;
    let empty = if case.depth() == Depth::Timeline { EMPTY_IN_TIMELINE_NS } else { EMPTY_KERNEL_NS };
    let stake = empty / ns;
    let time = Nanos::human(ns);
    let headline = format!("only {time} long, of which starting and ending a kernel takes about {}", pct(stake.min(1.0)));
    Some(
        Hint::new(Diagnosis::LaunchOverhead, stake, headline)
            .bound(format!("an empty kernel takes about {} on the device", Nanos::human(empty)))
            .relief(Relief::bound().fused().without(&[Unit::Dram]))
            .sure(if ns <= CLEARLY_NS { Sure::Certain } else { Sure::Likely })
            .because([case.evidence("duration", Some(SHORT)), case.evidence("grid_size", None), case.evidence("waves_per_sm", None)])
            .change(&[
                "fuse it with its neighbours, or give it more work at a time (larger batches)",
                "launch it in a CUDA graph (torch.compile(mode=\"reduce-overhead\")), so that a launch costs less",
                "let launches overlap: programmatic dependent launch, other streams",
            ])
            .confirm(&[], false, "a timeline shows how often it runs and what happens in between"),
    )
}
