//! Lowers the confidence of findings for reasons that apply to any rule. A rule's own blind spots are handled in the
//! rule.

use super::attribution::Busy;
use super::copy_class::CopyClass;
use super::finding::{Evidence, Finding, LEAST_SHARE, OUTRANKS_HEALTHY, Severity, Sure};
use super::run_context::RunContext;
use super::steps::StepSource;
use super::time_category::{Cause, TimeCategory};
use super::verdict::Verdict as V;
use crate::model::units::format_share;

/// Analyzed share of the run below which it counts as a small part that may not be representative.
pub const SLIVER: f64 = 0.25;
/// Minimum share of the window that kernels must fill for a run to be healthy. Below it, many losses that are each too
/// small for a finding of their own add up.
const NEARLY_ALL: f64 = 0.85;
/// Maximum share of a cause's idle time in a single step; beyond it, the cause may be specific to that step.
const ONE_STEP: f64 = 0.5;
/// Minimum fraction of the mean idle time per step for a step to count as affected.
const SOME: f64 = 0.1;
/// Fraction of the total kernel time after which the start-up phase counts as over.
const BEGUN: f64 = 0.1;
/// Minimum share of a cost that must fall into the start-up phase (`BEGUN`) for it to be a start-up cost.
const NEARLY: f64 = 0.9;
/// Repetitions of the longest-running operation needed to infer the program's regular behavior.
const REPEATS: u64 = 3;
/// Analyzed share of the run below which the headline of the verdict states it.
const MOST: f64 = 0.8;
/// Minimum difference between a finding's share and that of its time category for the category to be mentioned.
const LEAST_DIFFERENCE: f64 = 0.005;

/// Returns true if most of a cause's idle time is in one step, or if fewer than half of the steps have any idle time
/// with that cause.
fn in_few_steps(case: &RunContext<'_>, cause: Cause) -> bool {
    let each = || case.per_step.iter().map(|s| s.idle.get(cause));
    let (steps, all, most) = (case.per_step.len(), each().sum::<i64>(), each().max().unwrap_or(0));
    let some = each().filter(|ns| *ns as f64 * steps as f64 > SOME * all as f64).count();
    steps > 1 && all > 0 && (most as f64 > ONE_STEP * all as f64 || some * 2 < steps)
}

/// Returns true if nearly all of a finding's cost precedes the bulk of the kernel time, as when loading weights or
/// capturing graphs.
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

/// Lowers the confidence of findings that the report does not fully support:
/// * If the longest-running operation ran fewer than three times, every finding is only possible.
/// * Idle time in one or two gaps is not regular behavior of the program.
/// * If more idle time is unexplained than this finding explains, another cause may be larger. Unexplained means that
///   the cause or the call is unknown, the next operation was already queued, the thread was in another driver call, or
///   nothing more was launched.
/// * Idle time that is mostly in a single step, or in fewer than half of the steps, may not be regular.
/// * A cost incurred before most of the kernels run may be a start-up cost.
/// * If the devices worked more outside the analyzed part than inside it, a finding is at most likely.
/// * A run whose kernels fill less than `NEARLY_ALL` of the window is not healthy.
/// * Kernels are not the only limit of a run if much idle time has no finding of its own (next operation already
///   queued, another driver call, nothing more to launch).
/// * Kernels limit only the analyzed part, not the run, if the devices are idle in the rest.
/// * Idle time during which the profiler flushed its buffers may be caused by the profiler.
/// * A small part of the run may not be representative unless the user marked it.
pub fn lower_confidence(case: &RunContext<'_>, findings: &mut [Finding]) {
    let queued = case.share((case.idle.get(Cause::Queued) - case.pauses).max(0));
    let unknown = case.idle_share(Cause::Unknown) + case.idle_share(Cause::NoCall);
    let silent = queued + [Cause::OtherCall, Cause::Ended, Cause::Absent].into_iter().map(|c| case.idle_share(c)).sum::<f64>();
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

/// If a finding counts only part of a category in the time breakdown, or the breakdown lists it under another name,
/// adds the category's share to the finding so that the two numbers can be reconciled.
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

/// Appends the analyzed share of the run to the first finding's headline if a considerable part of the run was not
/// analyzed.
pub fn say_judged(case: &RunContext<'_>, findings: &mut [Finding]) {
    let (Some(outside), Some(first)) = (case.outside.filter(|o| o.judged < MOST), findings.first_mut()) else { return };
    let most = case.steps.left_out.iter().max_by_key(|l| l.end - l.start);
    let idle = format_share(outside.idle);
    let rest = most.map_or_else(
        || format!("in the rest, the GPU is idle for {idle} of the time"),
        |l| match l.what.split(':').next().unwrap_or_default() {
            _ if l.unrecorded => "before it, work that was launched earlier and is not recorded may have run".to_owned(),
            what => format!("the rest is mostly {what}, with the GPU idle for {idle} of it"),
        },
    );
    first.headline = format!("{} (judged {} of the run; {rest})", first.headline, format_share(outside.judged));
}
