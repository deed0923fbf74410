//! Reports work that the host started but whose GPU records are missing, which limits what can be concluded.

use super::finding::{Finding, Severity, Sure};
use super::text::capitalize;
use super::verdict::Verdict;
use crate::model::Profile;
use crate::model::coverage::Work;

/// If so much work was not recorded that idle time and shares are unknown, puts that finding first, drops those about
/// idle time, and lowers all others to possible.
pub fn judge_unrecorded(profile: &Profile, findings: &mut Vec<Finding>) {
    let coverage = &profile.coverage;
    let Some(sentence) = coverage.describe_losses().filter(|_| coverage.is_inconclusive()) else { return };
    // The capture rule's finding would say the same again, or call time idle during which unrecorded kernels ran.
    findings.retain(|f| f.id != Verdict::ShortCapture && f.id != Verdict::SingleDelay && f.id.idle_causes().is_empty());
    for finding in findings.iter_mut() {
        finding.sure = Sure::Possible;
    }
    let counts = |(lost, calls): (u64, u64)| (lost > 0).then_some((lost as f64, calls as f64));
    let [kernels, graphs] = [Work::Kernels, Work::Graphs].map(|w| counts(coverage.lost_calls(w)));
    let headline = format!("{sentence}: what the GPU did then is not known, and idle time, limits and shares cannot be told");
    let mut first = Finding::new(Verdict::ShortCapture, 0.0, headline)
        .with_gain_basis("no gain: it says how far to trust the other findings")
        .with_number("kernel launches without a record", kernels.map(|k| k.0), "")
        .with_number("kernel launches", kernels.map(|k| k.1), "")
        .with_number("graph launches without kernels", graphs.map(|g| g.0), "")
        .with_number("graph launches", graphs.map(|g| g.1), "");
    first.actions.push(format!("{}.", capitalize(&profile.advise_on_losses())));
    first.severity = Severity::High;
    findings.insert(0, first);
}
