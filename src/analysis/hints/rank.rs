//! Order of hints: the costliest first, with effects under their causes. The verdict that a kernel is near its roof
//! comes first, unless a cause is worth more than a tenth of the kernel's time.

use super::diagnosis::Diagnosis as D;
use super::hint::{Hint, LEAST, Severity, Sure, WORTH};

/// Gains that differ by less are equal; then causes come first, in the order of `DIAGNOSES`.
const TIE: f64 = 0.03;

/// Sorts hints, costliest first, and moves effects under their causes.
pub fn rank_hints(mut hints: Vec<Hint>) -> Vec<Hint> {
    hints.retain(|h| h.stake >= LEAST || h.id.is_bound());
    hints.sort_by(|a, b| b.stake.total_cmp(&a.stake).then(a.id.sort_position().cmp(&b.id.sort_position())));
    // Among neighbours of equal cost the cause comes first. One pass from the front keeps the order total.
    for i in 1..hints.len() {
        let mut at = i;
        while at > 0 && hints[at - 1].stake - hints[at].stake < TIE && hints[at].id.sort_position() < hints[at - 1].id.sort_position() {
            hints.swap(at, at - 1);
            at -= 1;
        }
    }
    let mut hints = under_causes(hints);
    place_verdict(&mut hints);
    hints
}

/// Moves effects under their causes.
fn under_causes(hints: Vec<Hint>) -> Vec<Hint> {
    let causes: Vec<(D, f64, Sure)> = hints.iter().map(|h| (h.id, h.stake, h.sure)).collect();
    let cause_of = |hint: &Hint| {
        causes.iter().find(|(id, stake, sure)| {
            // A guess does not explain a more certain hint.
            *sure <= hint.sure.max(Sure::Likely)
                && id.effects().iter().any(|(part, effects)| {
                    effects.contains(&hint.id) && *stake >= hint.stake * part && (*stake >= WORTH || !hint.id.is_bound())
                })
        })
    };
    let (mut kept, mut gone): (Vec<Hint>, Vec<(D, Hint)>) = (Vec::new(), Vec::new());
    for hint in hints {
        match cause_of(&hint) {
            Some((cause, ..)) => gone.push((*cause, hint)),
            None => kept.push(hint),
        }
    }
    // A cause may itself be an effect: the hint goes under the outermost cause.
    let parent = |mut id: D| {
        for _ in 0..gone.len() {
            match gone.iter().find(|(_, h)| h.id == id) {
                Some((cause, _)) => id = *cause,
                None => break,
            }
        }
        id
    };
    let moved: Vec<(D, D, String)> = gone.iter().map(|(cause, h)| (parent(*cause), h.id, h.headline.clone())).collect();
    for (cause, id, headline) in moved {
        if let Some(hint) = kept.iter_mut().find(|h| h.id == cause) {
            hint.effects.push((id, headline));
        }
    }
    kept
}

/// Puts the verdict of a kernel near its roof first if no cause is worth a tenth of its time; otherwise, it follows
/// these causes and no longer counts as healthy.
fn place_verdict(hints: &mut Vec<Hint>) {
    let Some(at) = hints.iter().position(|h| h.severity == Severity::Healthy) else { return };
    let mut verdict = hints.remove(at);
    let cause = hints.iter().filter(|h| h.sure < Sure::Possible).map(|h| h.stake).fold(0.0, f64::max);
    if cause < WORTH {
        hints.insert(0, verdict);
    } else {
        verdict.severity = Severity::Low;
        let at = hints.iter().position(|h| h.stake < WORTH).unwrap_or(hints.len());
        hints.insert(at, verdict);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(id: D, stake: f64) -> Hint {
        Hint::new(id, stake, id.id())
    }

    fn ids(hints: &[Hint]) -> Vec<&'static str> {
        hints.iter().map(|h| h.id.id()).collect()
    }

    /// An effect is never the cause of its own cause: hints in such a cycle would get lost.
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
        // A cause that explains little does not hide a larger effect.
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
