//! Warps that wait for each other.

use crate::analysis::hints::case::{Case, pct};
use crate::analysis::hints::demand::Unit;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::gain::Relief;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{LATENCY, STALL};

/// Share from which the most frequent reason is reported although it is below NVIDIA's threshold: a fifth of
/// the warps' cycles.
const FIFTH: f64 = 0.2;

/// `barrier-stalls`.
pub fn barriers(case: &Case<'_>) -> Option<Hint> {
    let stalls = case.stalls.as_ref()?;
    let share = stalls.share("barrier");
    // At least NVIDIA's 30 %; or the most frequent reason, with at least a fifth.
    let first = stalls.ranked().iter().find(|r| !matches!(r.0, "selected" | "not_selected")).is_some_and(|r| r.0 == "barrier");
    if share * 100.0 < STALL.value && !(first && share >= FIFTH) {
        return None;
    }
    let block = case.facts.get("block_size").map_or_else(String::new, |b| format!(", in blocks of {b:.0} threads"));
    // Fewer barriers end the waiting, and also save the work that warps do only to get there.
    let stake = case.waiting(share);
    let relief = Relief::bound().time(0.85 * (1.0 - stake), 1.4);
    Some(
        Hint::new(Diagnosis::Barriers, stake, format!("warps wait at barriers {} of the time{block}", pct(share)))
            .bound(case.waiting_bound(share))
            .relief(relief)
            .sure(if case.waiting_counts() >= 1.0 { Sure::Certain } else { Sure::Likely })
            .because([
                case.stall("barrier", Some(STALL)),
                case.busy(Unit::Issue, Some(LATENCY)),
                case.evidence("block_size", None),
                case.evidence("achieved_occupancy", None),
            ])
            .change(&[
                "do more between two barriers: larger tiles, double buffering, so that there are fewer of them",
                "even out the work of the warps before a barrier; let idle warps do something else",
                "synchronise less: __syncwarp or named barriers for part of a block; smaller blocks, more of them to an SM",
            ])
            .confirm(&["SourceCounters"], true, "the barriers that warps wait at"),
    )
}
