//! Lowers the certainty of findings by rules that hold for all of them; each rule says by itself what it could not see.

use super::case::Case;
use super::copies::CopyClass;
use super::finding::{Finding, LEAST, Severity, Sure, WORTH};
use super::part::Cause;
use super::steps::Found;
use super::sweep::Busy;
use super::text::pct;
use super::verdict::Verdict as V;

/// Share of the report below which a loop is a small part of it.
pub const SLIVER: f64 = 0.25;
/// Share of the window that kernels fill from which they are healthy: below, many small losses together are worth a finding.
const NEARLY_ALL: f64 = 0.85;
/// Share of a cause's idle time in one of several steps from which it may be that step's alone, and part of the mean that a step must have of it.
const ONE_STEP: f64 = 0.5;
const SOME: f64 = 0.1;
/// Share of the kernels' time from which a run is under way, and of a cost that must lie before.
const BEGUN: f64 = 0.1;
const NEARLY: f64 = 0.9;
/// Repetitions that the longest-running operation needs for anything to be known of the program.
const REPEATS: u64 = 3;
/// Share of a run below which the verdict says how much of it was judged.
const MOST: f64 = 0.8;

/// The idle time that a finding speaks of.
fn causes(id: V) -> &'static [Cause] {
    match id {
        V::LaunchBound => &[Cause::Launch],
        V::HostSync => &[Cause::Sync],
        V::Allocation => &[Cause::Alloc],
        V::InputWait => &[Cause::Wait],
        V::HostCompute => &[Cause::Compute, Cause::Unknown],
        V::GraphRecapture => &[Cause::Graph],
        V::Compilation => &[Cause::Compile],
        _ => &[],
    }
}

/// True if a cause's idle time is one step's, or in less than half of the steps.
fn in_few_steps(case: &Case<'_>, cause: Cause) -> bool {
    let each = || case.per_step.iter().map(|s| s.idle.get(cause));
    let (steps, all, most) = (case.per_step.len(), each().sum::<i64>(), each().max().unwrap_or(0));
    let some = each().filter(|ns| *ns as f64 * steps as f64 > SOME * all as f64).count();
    steps > 1 && all > 0 && (most as f64 > ONE_STEP * all as f64 || some * 2 < steps)
}

/// True if nearly all of a cost lies before the kernels have begun in earnest: weights that are loaded, graphs that are captured for later.
fn at_the_start(case: &Case<'_>, id: V) -> bool {
    let copies = |classes: &[CopyClass]| classes.iter().filter_map(|c| case.copy_pieces.get(c)).flatten().copied().collect::<Vec<_>>();
    let pieces = match id {
        V::PageableCopies => copies(&[CopyClass::Pageable]),
        V::SmallCopies => copies(&[CopyClass::Small]),
        V::CopyBound => copies(&[CopyClass::Host, CopyClass::Peer, CopyClass::Device]),
        _ => causes(id).iter().flat_map(|c| case.pieces_again(*c)).collect(),
    };
    let cost = |until: i64| pieces.iter().map(|p| (p.end.min(until) - p.start).max(0)).sum::<i64>() as f64;
    let begun = case.kernels.done(BEGUN, case.window);
    begun > case.window.0 && cost(begun) > NEARLY * cost(i64::MAX)
}

/// Lowers what is said with more certainty than the record allows:
/// * what comes less than three times is only possible;
/// * idle time of one or two gaps shows no habit of the program;
/// * where more idle time has no finding than this one explains (its cause is not known, or the next operation was launched already), another
///   cause may be the larger one;
/// * idle time that one of several steps has most of, or less than half of them have at all, may be no habit;
/// * a cost that comes before the kernels begin in earnest may be that of a start;
/// * what was judged is no more than likely where the devices worked more outside of it;
/// * kernels that leave a seventh of the window to other things are no healthy run;
/// * kernels are not all that limits a run in which such idle time is worth a finding;
/// * kernels are the limit of what was judged, not of a run in whose rest the devices idled;
/// * a small part of a run that nobody marked may not be what it is about.
pub fn apply(case: &Case<'_>, findings: &mut [Finding]) {
    let queued = case.share((case.idle.get(Cause::Queued) - case.pauses).max(0));
    let unknown = case.idle_share(Cause::Unknown) + case.idle_share(Cause::NoCall);
    let silent = queued + case.idle_share(Cause::OtherCall) + case.idle_share(Cause::Ended);
    let idle_outside = case.outside.map_or(0.0, |o| (1.0 - o.judged) * o.idle);
    let marked = matches!(case.steps.found, Some(Found::Ranges(_)));
    let sliver = !marked && case.outside.is_some_and(|o| o.judged < SLIVER);
    // The longest-running operation came once or twice: nobody knows what the program does again and again.
    let seldom = case.repeats() < REPEATS;
    for f in findings.iter_mut().filter(|f| seldom && f.id != V::ShortCapture) {
        f.sure = Sure::Possible;
    }
    let inside = case.share(case.sum(Busy::busy));
    let smaller = case.outside.is_some_and(|o| (1.0 - o.judged) * (1.0 - o.idle) > o.judged * inside);
    for f in findings {
        let of = causes(f.id);
        let gaps: u64 = of.iter().map(|c| case.spreads.of(*c).0).sum();
        let few = !of.is_empty() && gaps <= 2;
        let hidden = !of.is_empty() && unknown > f.stake.max(LEAST)
            || !matches!(f.id, V::ShortCapture | V::UnbalancedDevices | V::Serialised) && silent > f.stake.max(LEAST);
        let leaves = f.id == V::GpuBound && f.stake < NEARLY_ALL;
        let elsewhere = f.id == V::GpuBound && idle_outside.max(silent) >= WORTH || leaves;
        if (silent >= WORTH || leaves) && f.id == V::GpuBound && f.severity == Severity::Healthy {
            f.severity = Severity::Low;
        }
        let once = of.iter().any(|c| in_few_steps(case, *c));
        let start = at_the_start(case, f.id);
        if few || once || hidden || elsewhere || sliver || smaller || start {
            f.sure = f.sure.max(Sure::Likely);
        }
    }
}

/// The first finding says how much of the run it is about, where that is not most of it.
pub fn say_judged(case: &Case<'_>, findings: &mut [Finding]) {
    let (Some(outside), Some(first)) = (case.outside.filter(|o| o.judged < MOST), findings.first_mut()) else { return };
    let most = case.steps.left_out.iter().max_by_key(|l| l.end - l.start);
    let what = most.map_or_else(String::new, |l| format!(", mostly {},", l.what.split(':').next().unwrap_or_default()));
    first.headline = format!(
        "{} (judged {} of the run; in the rest{what} the GPU is idle for {} of the time)",
        first.headline,
        pct(outside.judged),
        pct(outside.idle)
    );
}
