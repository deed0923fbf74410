//! Order of findings: costliest first, with effects under their causes.

use super::{Finding, FindingId};

/// Gains that differ by less count as equal; causes then come first, in the order of [`FindingId::sort_position`].
const TIE: f64 = 0.03;

/// Default fraction: a finding explains another if its gain is at least this fraction of the other's.
const ENOUGH: f64 = 0.7;

/// Sorts findings, costliest first. Among neighbors of equal cost, causes come first.
pub fn sort_by_cost<I: FindingId>(findings: &mut [Finding<I>]) {
    findings.sort_by(|a, b| b.stake.total_cmp(&a.stake).then(a.id.sort_position().cmp(&b.id.sort_position())));
    // A separate pass, because a comparison with a tolerance would not be a total order.
    for i in 1..findings.len() {
        let mut at = i;
        while at > 0
            && findings[at - 1].stake - findings[at].stake < TIE
            && findings[at].id.sort_position() < findings[at - 1].id.sort_position()
        {
            findings.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Returns true if `cause` explains `effect` and costs enough to do so.
fn explains<I: FindingId>(cause: &Finding<I>, effect: &Finding<I>) -> bool {
    let enough = |part: f64| cause.stake >= effect.stake * part;
    let listed = cause.id.effects().iter().any(|(part, effects)| effects.contains(&effect.id) && enough(*part));
    (listed || cause.explains.contains(&effect.id) && enough(ENOUGH)) && I::may_explain(cause, effect)
}

/// Moves each finding under the one that explains it. If that cause is itself an effect, the outermost cause takes
/// both. Expects the findings in order of cost, costliest first.
pub fn move_under_causes<I: FindingId>(findings: Vec<Finding<I>>) -> Vec<Finding<I>> {
    let cause_of: Vec<Option<I>> =
        findings.iter().map(|f| findings.iter().find(|cause| explains(cause, f)).map(|cause| cause.id)).collect();
    let parents: Vec<(I, I)> = findings.iter().zip(&cause_of).filter_map(|(f, cause)| Some((f.id, (*cause)?))).collect();
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for (finding, cause) in findings.into_iter().zip(cause_of) {
        match cause {
            Some(cause) => moved.push((cause, finding)),
            None => kept.push(finding),
        }
    }
    for (mut cause, finding) in moved {
        for _ in 0..parents.len() {
            match parents.iter().find(|p| p.0 == cause) {
                Some(p) => cause = p.1,
                None => break,
            }
        }
        match kept.iter_mut().find(|f| f.id == cause) {
            Some(cause) => cause.effects.push((finding.id, finding.headline)),
            // If two findings explain each other, keep both.
            None => kept.push(finding),
        }
    }
    kept
}
