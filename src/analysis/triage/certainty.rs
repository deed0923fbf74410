//! Lowers the confidence of findings by criteria common to all rules; each rule accounts for its own blind spots.

use super::attribution::Busy;
use super::copy_class::CopyClass;
use super::finding::{Evidence, Finding, LEAST_SHARE, OUTRANKS_HEALTHY, Severity, Sure};
use super::run_context::RunContext;
use super::steps::StepSource;
use super::time_category::{Cause, TimeCategory};
use super::verdict::Verdict as V;
use crate::model::units::format_share;

/// Share of the report below which a detected loop counts as a small part.
pub const SLIVER: f64 = 0.25;
/// Minimum share of the window that kernels must fill for a run to be healthy; below it, many small losses add up to a
/// finding.
const NEARLY_ALL: f64 = 0.85;
/// Maximum share of a cause's idle time in a single step; beyond it, the cause may be specific to that step.
const ONE_STEP: f64 = 0.5;
/// Minimum fraction of the mean idle time per step for a step to count as affected.
const SOME: f64 = 0.1;
/// Fraction of the total kernel time after which the start-up phase counts as over.
const BEGUN: f64 = 0.1;
/// Minimum share of a cost that must precede the end of the start for it to be a start-up cost.
const NEARLY: f64 = 0.9;
/// Repetitions of the longest-running operation needed to infer the program's regular behavior.
const REPEATS: u64 = 3;
/// Analyzed share of a run below which the verdict mentions that share.
const MOST: f64 = 0.8;
/// Minimum difference between a finding and its part of the time breakdown to mention that part.
const LEAST_DIFFERENCE: f64 = 0.005;

/// Returns true if most of a cause's idle time is in one step, or if fewer than half of the steps have any idle time
/// with that cause.
fn in_few_steps(case: &RunContext<'_>, cause: Cause) -> bool {
    let each = || case.per_step.iter().map(|s| s.idle.get(cause));
    let (steps, all, most) = (case.per_step.len(), each().sum::<i64>(), each().max().unwrap_or(0));
    let some = each().filter(|ns| *ns as f64 * steps as f64 > SOME * all as f64).count();
    steps > 1 && all > 0 && (most as f64 > ONE_STEP * all as f64 || some * 2 < steps)
}

/// Returns true if nearly all of a cost precedes the bulk of the kernels, such as loading weights or capturing graphs.
fn at_the_start(case: &RunContext<'_>, id: V) -> bool {
    let copies = |classes: &[CopyClass]| classes.iter().filter_map(|c| case.copy_pieces.get(c)).flatten().copied().collect::<Vec<_>>();
    let pieces = match id {
        V::PageableCopies => copies(&[CopyClass::Pageable]),
        V::SmallCopies => copies(&[CopyClass::Small]),
        V::CopyBound => copies(&[CopyClass::Host, CopyClass::Peer, CopyClass::Device]),
        _ => id.idle_causes().iter().flat_map(|c| case.pieces_again(*c)).collect(),
    };
    let cost = |until: i64| pieces.iter().map(|p| (p.end.min(until) - p.start).max(0)).sum::<i64>() as f64;
    let begun = case.kernels.time_of_share(BEGUN, case.window);
    begun > case.window.0 && cost(begun) > NEARLY * cost(i64::MAX)
}

/// Lowers the confidence of findings that the record does not fully support:
/// * with fewer than three repetitions, a finding is only possible;
/// * idle time in one or two gaps is not regular behavior of the program;
/// * if more idle time is unexplained (cause unknown, or next operation already queued) than this finding explains,
///   another cause may be larger;
/// * idle time that is mostly in one of several steps, or in fewer than half of them, may not be regular;
/// * a cost before the kernels begin in earnest may be start-up;
/// * a finding is at most likely if the devices worked more outside the analyzed part than inside it;
/// * a run is not healthy if kernels leave a seventh of the window to other activity;
/// * kernels are not the only limit of a run if much idle time has no finding of its own (next operation already
///   queued, another driver call, nothing more to launch);
/// * kernels limit only the analyzed part, not the run, if the devices are idle in the rest;
/// * idle time in which the profiler handed over its records may be its own cost;
/// * a small part of a run that was not marked by the user may not be representative.
pub fn lower_confidence(case: &RunContext<'_>, findings: &mut [Finding]) {
    let queued = case.share((case.idle.get(Cause::Queued) - case.pauses).max(0));
    let unknown = case.idle_share(Cause::Unknown) + case.idle_share(Cause::NoCall);
    let silent = queued + case.idle_share(Cause::OtherCall) + case.idle_share(Cause::Ended);
    let idle_outside = case.outside.map_or(0.0, |o| (1.0 - o.judged) * o.idle);
    let marked = matches!(case.steps.found, Some(StepSource::Ranges(_)));
    let sliver = !marked && case.outside.is_some_and(|o| o.judged < SLIVER);
    // The longest-running operation ran only once or twice: the program's regular behavior is unknown.
    let seldom = case.main_repetitions() < REPEATS;
    for f in findings.iter_mut().filter(|f| seldom && f.id != V::ShortCapture) {
        f.sure = Sure::Possible;
    }
    let inside = case.share(case.sum_devices(Busy::busy_time));
    let smaller = case.outside.is_some_and(|o| (1.0 - o.judged) * (1.0 - o.idle) > o.judged * inside);
    for f in findings {
        let of = f.id.idle_causes();
        let gaps: u64 = of.iter().map(|c| case.spreads.gap_stats(*c).0).sum();
        let few = !of.is_empty() && gaps <= 2;
        let hidden = !of.is_empty() && unknown > f.stake.max(LEAST_SHARE)
            || !matches!(f.id, V::ShortCapture | V::UnbalancedDevices | V::Serialised) && silent > f.stake.max(LEAST_SHARE);
        let leaves = f.id == V::GpuBound && f.stake < NEARLY_ALL;
        let elsewhere = f.id == V::GpuBound && idle_outside.max(silent) >= OUTRANKS_HEALTHY || leaves;
        if (silent >= OUTRANKS_HEALTHY || leaves) && f.id == V::GpuBound && f.severity == Severity::Healthy {
            f.severity = Severity::Low;
        }
        let once = of.iter().any(|c| in_few_steps(case, *c));
        let start = at_the_start(case, f.id);
        // Without the profiler, this idle time might not exist.
        if !of.is_empty() && case.share(case.flushed_idle(of)) * 2.0 > f.stake {
            f.sure = Sure::Possible;
        }
        if few || once || hidden || elsewhere || sliver || smaller || start {
            f.sure = f.sure.max(Sure::Likely);
        }
    }
}

/// Adds the share of the time breakdown to findings that count only a part of it, or that it lists under another name,
/// so that both can be compared.
pub fn add_breakdown_shares(case: &RunContext<'_>, findings: &mut [Finding]) {
    for finding in findings {
        let causes = finding.id.idle_causes();
        let mut parts: Vec<TimeCategory> = causes.iter().filter(|c| case.idle.get(**c) > 0).map(|c| c.part()).collect();
        parts.sort_by_key(|p| *p as usize);
        parts.dedup();
        let [part] = parts[..] else { continue };
        let sum = Cause::ALL.into_iter().filter(|c| c.part() == part).map(|c| case.idle.get(c)).sum();
        let share = case.share(sum);
        if (share - finding.stake).abs() >= LEAST_DIFFERENCE || part == TimeCategory::Other {
            let name = format!("idle: {}, in the time breakdown", part.short_label());
            if let Some(evidence) = Evidence::from_value(&name, share * 100.0, "%", None) {
                finding.evidence.insert(0, evidence);
            }
        }
    }
}

/// Appends the analyzed share of the run to the headline of the first finding if a relevant part was not analyzed.
pub fn say_judged(case: &RunContext<'_>, findings: &mut [Finding]) {
    let (Some(outside), Some(first)) = (case.outside.filter(|o| o.judged < MOST), findings.first_mut()) else { return };
    let most = case.steps.left_out.iter().max_by_key(|l| l.end - l.start);
    let idle = format_share(outside.idle);
    let rest = most.map_or_else(
        || format!("in the rest, the GPU is idle for {idle} of the time"),
        |l| format!("the rest is mostly {}, with the GPU idle for {idle} of it", l.what.split(':').next().unwrap_or_default()),
    );
    first.headline = format!("{} (judged {} of the run; {rest})", first.headline, format_share(outside.judged));
}
