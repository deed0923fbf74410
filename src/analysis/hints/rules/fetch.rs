//! Rule: waiting for instructions.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::Hint;
use crate::analysis::hints::limits::STALL;
use crate::analysis::hints::rule_context::Case;
use crate::model::units::format_share;

/// Rule for `instruction-cache`.
pub fn instruction_fetch(case: &Case<'_>) -> Option<Hint> {
    let share = case.stalls.as_ref()?.share("no_instruction");
    if share * 100.0 < STALL.value {
        return None;
    }
    Some(
        Hint::new(Diagnosis::InstructionCache, case.waiting_gain(share), format!("warps wait for instruction fetch {} of the time", format_share(share)))
            .with_gain_basis(case.waiting_bound(share))
            .with_evidence([case.stall_evidence("no_instruction", Some(STALL)), case.stall_evidence("branch_resolving", None), case.metric_evidence("instructions_executed", None)])
            .with_actions(&[
                "make the code smaller: less unrolling (#pragma unroll 1 on outer loops), fewer inlined functions and template variants in a kernel",
                "let warps that run together run the same code: no switch over large bodies by warp",
                "very short kernels fetch each instruction once: do more per launch",
            ])
            .with_confirmation(&["SourceCounters", "InstructionStats"], true, "where the fetches stall, and how large the code is"),
    )
}
