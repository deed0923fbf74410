//! Diagnosis of a kernel: rules over its metric values, ordered by the time that they could save. Pure functions.

pub mod after;
pub mod amd;
pub mod bottleneck;
mod certainty;
pub mod context;
pub mod diagnosed_kernel;
pub mod diagnosis;
pub mod first;
pub mod hint;
pub mod limits;
pub mod metric_values;
pub mod rank;
pub mod reasoning;
pub mod rule_context;
pub mod rules;
pub mod speedup_model;
pub mod stalls;
pub mod unit_throughput;

pub use diagnosed_kernel::Subject;
pub use diagnosis::{DIAGNOSES, Diagnosis};
pub use first::{FirstHint, KernelLead};
pub use hint::{Confirm, Evidence, Hint, Severity, Sure};
pub use metric_values::{Depth, Facts, PLUS};
pub use speedup_model::{DemandReduction, Gain};

use rule_context::Case;

/// Returns all hints on a kernel, best first. Empty if there is not enough data.
pub fn diagnose(facts: &Facts) -> Vec<Hint> {
    let case = Case::new(facts);
    let mut hints: Vec<Hint> = rules::RULES.iter().filter_map(|rule| rule(&case)).collect();
    // The cost of the launch itself cannot be saved by other remedies.
    let rest = facts.duration_ns().map_or(1.0, |ns| (1.0 - limits::EMPTY_KERNEL_NS / ns).max(0.0));
    for hint in hints.iter_mut().filter(|h| h.id != Diagnosis::LaunchOverhead && h.stake > rest) {
        hint.stake = rest;
        if hint.severity != Severity::Healthy {
            hint.severity = Severity::from_share(rest);
        }
    }
    if !case.roofs_known() {
        // An unmeasured unit may be near its peak, in which case warps may be waiting for it.
        for hint in hints.iter_mut().filter(|h| !h.id.is_bound()) {
            let waits = matches!(
                hint.id,
                Diagnosis::MemoryLatency | Diagnosis::Dependencies | Diagnosis::Barriers | Diagnosis::InstructionCache | Diagnosis::Atomics
            );
            let launch = matches!(hint.id, Diagnosis::LaunchOverhead | Diagnosis::SmallGrid | Diagnosis::Tail);
            if !launch {
                hint.sure = hint.sure.max(if waits { Sure::Possible } else { Sure::Likely });
            }
        }
    }
    for hint in &mut hints {
        hint.details.gain = after::predict_gain(&hint.details.relief, &case);
        // Without counters, the remaining demand is unknown.
        if case.demand.busiest_unit().is_none() {
            hint.details.gain = Gain { at_most: hint.stake, unknown: hint.details.relief.unknown, ..Gain::default() };
        }
    }
    let mut hints = rank::rank_hints(hints);
    if (case.is_short() || facts.duration_ns().is_none()) && facts.depth() > Depth::Timeline {
        // Percentages are not reliable for kernels below 20 µs; a kernel of unknown duration may be that short.
        for hint in &mut hints {
            if hint.id != Diagnosis::LaunchOverhead {
                hint.sure = hint.sure.max(Sure::Likely);
            }
        }
    }
    certainty::lower_confidence(&case, &mut hints);
    hints
}
