//! Lowers the certainty of hints by rules that hold for all of them; each rule says by itself what its numbers could not show.

use super::case::Case;
use super::diagnosis::Diagnosis as D;
use super::hint::{Hint, Sure};
use super::limits::AT_LIMIT;

/// Percent of a unit's peak from which it may be the limit: NVIDIA's `SpeedOfLight` rule speaks of latency below, and of a limit from 80 on.
const MAY_BIND: f64 = 60.0;

/// Lowers what is said with more certainty than the numbers allow:
/// * without stall reasons nobody knows what warps wait for: only a unit at its limit, and a kernel that is shorter than its launch, stand;
/// * what idles issue slots is no more than possible where a unit is busy enough to be the limit.
pub fn apply(case: &Case<'_>, hints: &mut [Hint]) {
    let blind = case.stalls.is_none();
    let peak = case.demand.peak() * 100.0;
    let between = peak >= MAY_BIND && !AT_LIMIT.met(peak);
    for hint in hints {
        let stands = hint.sure == Sure::Certain && (hint.id.is_bound() || hint.id == D::LaunchOverhead);
        let idles = matches!(
            hint.id,
            D::OccupancyRegisters | D::OccupancyShared | D::OccupancyBlock | D::OccupancyBarriers | D::MemoryLatency | D::Dependencies
        );
        if blind && !stands || between && idles {
            hint.sure = Sure::Possible;
        }
    }
}
