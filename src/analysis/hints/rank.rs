//! Order of hints: costliest first, with effects under their causes. The verdict that a kernel is near its roof comes
//! first, unless a cause is worth more than a tenth of the kernel's time.

use super::hint::{Hint, LEAST, OUTRANKS_HEALTHY, Severity, Sure};
use crate::analysis::finding::{move_under_causes, sort_by_cost};

/// Sorts hints, costliest first, and moves effects under their causes.
pub fn rank_hints(mut hints: Vec<Hint>) -> Vec<Hint> {
    hints.retain(|h| h.stake >= LEAST || h.id.is_bound());
    sort_by_cost(&mut hints);
    let mut hints = move_under_causes(hints);
    place_verdict(&mut hints);
    hints
}

/// Puts the verdict that a kernel is near its roof first if no cause that is at least likely is worth a tenth of its
/// time. Otherwise, the verdict follows the causes worth that much and no longer counts as healthy.
fn place_verdict(hints: &mut Vec<Hint>) {
    let Some(at) = hints.iter().position(|h| h.severity == Severity::Healthy) else { return };
    let mut verdict = hints.remove(at);
    let cause = hints.iter().filter(|h| h.sure < Sure::Possible).map(|h| h.stake).fold(0.0, f64::max);
    if cause < OUTRANKS_HEALTHY {
        hints.insert(0, verdict);
    } else {
        verdict.severity = Severity::Low;
        let at = hints.iter().position(|h| h.stake < OUTRANKS_HEALTHY).unwrap_or(hints.len());
        hints.insert(at, verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::Diagnosis as D;
    use super::*;

    fn hint(id: D, stake: f64) -> Hint {
        Hint::new(id, stake, id.id())
    }

    fn ids(hints: &[Hint]) -> Vec<&'static str> {
        hints.iter().map(|h| h.id.id()).collect()
    }

    /// An effect must never be the cause of its own cause: hints in such a cycle would get lost.
    #[test]
    fn effects_never_run_in_a_circle() {
        let effects = |cause: D| cause.effects().iter().flat_map(|e| e.1.iter().copied());
        for start in super::super::DIAGNOSES.iter().map(|d| d.diagnosis) {
            let mut reached: Vec<D> = effects(start).collect();
            let mut at = 0;
            while at < reached.len() {
                assert_ne!(reached[at], start, "{}", start.id());
                let more: Vec<D> = effects(reached[at]).filter(|e| !reached.contains(e)).collect();
                reached.extend(more);
                at += 1;
            }
        }
    }

    #[test]
    fn effects_go_under_their_causes() {
        let out = rank_hints(vec![hint(D::MemoryLatency, 0.4), hint(D::Uncoalesced, 0.5), hint(D::Barriers, 0.2)]);
        assert_eq!(ids(&out), ["uncoalesced-global", "barrier-stalls"]);
        assert_eq!(out[0].effects, [(D::MemoryLatency, "memory-latency".to_owned())]);
        // A cause that explains only a little does not hide a larger effect.
        let out = rank_hints(vec![hint(D::MemoryLatency, 0.6), hint(D::Uncoalesced, 0.1)]);
        assert_eq!(ids(&out), ["memory-latency", "uncoalesced-global"]);
    }

    #[test]
    fn near_the_roof_the_verdict_goes_first_unless_much_is_at_stake() {
        let healthy = || Hint { severity: Severity::Healthy, ..hint(D::DramBandwidth, 0.15) };
        let out = rank_hints(vec![hint(D::Tail, 0.06), healthy()]);
        assert_eq!(ids(&out), ["dram-bandwidth-bound", "tail-effect"]);
        assert_eq!(out[0].severity, Severity::Healthy);
        let out = rank_hints(vec![hint(D::Tail, 0.18), healthy()]);
        assert_eq!(ids(&out), ["tail-effect", "dram-bandwidth-bound"]);
        assert_ne!(out[1].severity, Severity::Healthy);
    }

    #[test]
    fn of_equal_stakes_the_cause_goes_first() {
        assert_eq!(ids(&rank_hints(vec![hint(D::MemoryLatency, 0.72), hint(D::SmallGrid, 0.70)])), ["grid-too-small"]);
        assert_eq!(
            ids(&rank_hints(vec![hint(D::Sfu, 0.50), hint(D::Tail, 0.49), hint(D::Fp64, 0.3)])),
            ["tail-effect", "sfu-bound", "fp64-bound"]
        );
    }
}
