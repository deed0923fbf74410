//! Lowers the certainty of findings by rules that hold for all of them; each rule says by itself what it could not see.

use super::case::Case;
use super::finding::{Finding, LEAST, Severity, Sure, WORTH};
use super::part::Cause;
use super::steps::Found;
use super::text::pct;
use super::verdict::Verdict as V;

/// Share of the report below which a loop is a small part of it.
pub const SLIVER: f64 = 0.25;
/// How often what takes the most time must come for anything to be known of the program.
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

/// Lowers what is said with more certainty than the record allows:
/// * what comes less than three times is only possible;
/// * idle time of one or two gaps shows no habit of the program;
/// * where more idle time has no finding than this one explains (its cause is not known, or the next operation was launched already), another
///   cause may be the larger one;
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
    // What takes the most time came once or twice: nobody knows what it does again and again.
    let seldom = case.repeats() < REPEATS;
    for f in findings.iter_mut().filter(|f| seldom && f.id != V::ShortCapture) {
        f.sure = Sure::Possible;
    }
    for f in findings {
        let of = causes(f.id);
        let gaps: u64 = of.iter().map(|c| case.spreads.of(*c).0).sum();
        let few = !of.is_empty() && gaps <= 2;
        let hidden = !of.is_empty() && unknown > f.stake.max(LEAST)
            || !matches!(f.id, V::ShortCapture | V::UnbalancedDevices | V::Serialised) && silent > f.stake.max(LEAST);
        let elsewhere = f.id == V::GpuBound && idle_outside.max(silent) >= WORTH;
        if silent >= WORTH && f.id == V::GpuBound && f.severity == Severity::Healthy {
            f.severity = Severity::Low;
        }
        if few || hidden || elsewhere || sliver {
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
