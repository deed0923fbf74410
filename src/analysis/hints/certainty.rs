//! Lowers the confidence of hints by criteria common to all rules; each rule accounts for its own blind spots.

use super::diagnosis::Diagnosis as D;
use super::hint::{Hint, Sure};
use super::limits::AT_LIMIT;
use super::rule_context::Case;

/// Percentage of its peak from which a unit may be the limit. NVIDIA's `SpeedOfLight` rule reports latency below 60,
/// and a limit from 80 on.
const MAY_BIND: f64 = 60.0;

/// Lowers the confidence of hints that the metrics do not fully support:
/// * without stall reasons, it is unknown why warps wait: only a unit at its limit, and a kernel that is shorter than
///   its launch, keep their confidence;
/// * causes of idle issue slots are only possible if a unit is busy enough to be the limit.
pub fn lower_confidence(case: &Case<'_>, hints: &mut [Hint]) {
    let blind = case.stalls.is_none();
    let peak = case.demand.peak_share() * 100.0;
    let between = peak >= MAY_BIND && !AT_LIMIT.is_met(peak);
    for hint in hints {
        let stands = hint.sure == Sure::Certain && (hint.id.is_bound() || hint.id == D::LaunchOverhead);
        let idles = hint.id.idles();
        if blind && !stands || between && idles {
            hint.sure = Sure::Possible;
        }
    }
}
