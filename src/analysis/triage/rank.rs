//! Order of findings: costliest first, effects under their causes. If kernels fill the run, the GPU-bound verdict comes
//! first, unless something else is worth a tenth of the window.

use super::finding::{Finding, LEAST_SHARE, OUTRANKS_HEALTHY, Severity, Sure};
use super::rules::stalls::{is_of_kernels, recurs};
use super::verdict::Verdict as V;
use crate::analysis::finding::{move_under_causes, sort_by_cost};

/// Minimum share of the window that kernels must fill to be the limit of the run.
pub const FILLS: f64 = 0.6;
/// Fraction of the loss from small grids that running the streams concurrently must recover for serialized streams to
/// be considered its cause.
const TURNS: f64 = 0.5;

/// Sorts findings, costliest first, and moves effects under their causes.
pub fn rank_findings(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|f| f.stake >= LEAST_SHARE || matches!(f.id, V::ShortCapture | V::GpuBound));
    sort_by_cost(&mut findings);
    let mut findings = move_under_causes(findings);
    place_verdict(&mut findings);
    findings
}

/// Puts `short-capture` after the causes that are worth a tenth of the window and are at least likely, and before all
/// other findings.
pub fn place_short_capture(findings: &mut Vec<Finding>) {
    let Some(at) = findings.iter().position(|f| f.id == V::ShortCapture) else { return };
    let short = findings.remove(at);
    let causes = findings.iter().take_while(|f| f.stake >= OUTRANKS_HEALTHY && f.sure < Sure::Possible && f.id != V::GpuBound).count();
    findings.insert(causes, short);
}

/// Puts `gpu-bound` first if nothing else is worth a tenth of the window, and removes it otherwise.
fn place_verdict(findings: &mut Vec<Finding>) {
    let Some(at) = findings.iter().position(|f| f.id == V::GpuBound) else { return };
    let mut bound = findings.remove(at);
    // If the finding is not healthy, small grids leave much of the GPU empty, so the kernels alone are not the limit.
    if bound.severity > Severity::Healthy {
        // Rank the finding by the cost of the empty part.
        let mut at = findings.iter().position(|f| f.stake < bound.stake).unwrap_or(findings.len());
        // Put serialized streams first if running them concurrently would recover enough.
        if let Some(turns) = findings.iter().position(|f| f.id == V::Serialised && f.stake >= bound.stake * TURNS) {
            at = at.max(turns + 1);
        }
        findings.insert(at, bound);
        return;
    }
    let fills = bound.stake >= FILLS;
    let worst = findings.iter().filter(|f| !is_of_kernels(f)).map(|f| f.stake).fold(0.0, f64::max);
    if worst < OUTRANKS_HEALTHY && fills {
        // Recurring slow steps come first, but the run is GPU-bound nevertheless.
        let again = findings.first().is_some_and(|f| f.stake >= OUTRANKS_HEALTHY && recurs(f));
        findings.insert(usize::from(again), bound);
    } else if findings.iter().all(|f| f.id == V::ShortCapture) {
        // Nothing else was found, so kernels are a possible limit, unless they hardly run.
        if bound.stake < OUTRANKS_HEALTHY && !findings.is_empty() {
            return;
        }
        bound.severity = Severity::Low;
        bound.sure = Sure::Possible;
        findings.push(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: V, stake: f64) -> Finding {
        let mut finding = Finding::new(id, stake, id.id());
        if id == V::GpuBound {
            finding.severity = Severity::Healthy;
        }
        finding
    }

    fn ids(findings: &[Finding]) -> Vec<V> {
        findings.iter().map(|f| f.id).collect()
    }

    #[test]
    fn what_costs_most_goes_first_and_little_is_not_said() {
        let out = rank_findings(vec![
            finding(V::LaunchBound, 0.2),
            finding(V::HostSync, 0.5),
            finding(V::Allocation, 0.02),
            finding(V::GpuBound, 0.3),
        ]);
        assert_eq!(ids(&out), [V::HostSync, V::LaunchBound], "what is left is no finding");
    }

    #[test]
    fn kernels_are_the_limit_where_nothing_else_is_worth_a_tenth() {
        let out = rank_findings(vec![finding(V::LaunchBound, 0.08), finding(V::GpuBound, 0.9)]);
        assert_eq!(ids(&out), [V::GpuBound, V::LaunchBound]);
    }

    #[test]
    fn kernels_that_leave_the_gpu_empty_rank_by_what_that_costs() {
        let empty = |stake: f64| Finding::new(V::GpuBound, stake, "few SMs");
        let out = rank_findings(vec![finding(V::HostSync, 0.2), empty(0.7), finding(V::LaunchBound, 0.1)]);
        assert_eq!(ids(&out), [V::GpuBound, V::HostSync, V::LaunchBound]);
        let out = rank_findings(vec![finding(V::HostSync, 0.5), empty(0.3)]);
        assert_eq!(ids(&out), [V::HostSync, V::GpuBound]);
    }

    #[test]
    fn a_short_capture_has_the_headline_only_without_a_cause() {
        let of = |list: &[(V, f64)]| {
            let short = [finding(V::ShortCapture, 0.0)];
            let mut all = rank_findings(list.iter().map(|f| finding(f.0, f.1)).chain(short).collect());
            all.iter_mut().filter(|f| f.id == V::HostCompute).for_each(|f| f.sure = Sure::Possible);
            place_short_capture(&mut all);
            ids(&all)
        };
        assert_eq!(of(&[(V::HostSync, 0.5), (V::LaunchBound, 0.06)]), [V::HostSync, V::ShortCapture, V::LaunchBound]);
        assert_eq!(of(&[(V::HostCompute, 0.5)])[0], V::ShortCapture, "a guess is no cause");
        assert_eq!(of(&[(V::LaunchBound, 0.06)])[0], V::ShortCapture);
        assert_eq!(of(&[(V::GpuBound, 0.9)])[0], V::ShortCapture);
        assert_eq!(of(&[]), [V::ShortCapture]);
    }

    #[test]
    fn effects_go_under_their_causes_and_nothing_is_lost() {
        let stall = finding(V::PeriodicStall, 0.25).with_explained([V::HostCompute]);
        let out = rank_findings(vec![stall, finding(V::HostCompute, 0.27), finding(V::ShortCapture, 0.0)]);
        assert_eq!(ids(&out), [V::PeriodicStall, V::ShortCapture]);
        assert_eq!(out[0].effects, [(V::HostCompute, "host-compute".to_owned())]);
    }
}
