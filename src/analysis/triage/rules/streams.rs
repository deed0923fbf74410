//! Rule: operations wait in their streams although the host launched them in time.

use crate::analysis::triage::finding::{Finding, Sure};
use crate::analysis::triage::gather::PAUSE_NS;
use crate::analysis::triage::places;
use crate::analysis::triage::queued;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;

/// The GPU is idle although the next operation has been launched.
pub fn waiting_streams(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    // Short pauses between queued operations are the device's own.
    let idle = (case.recurring_idle(Cause::Queued) - case.pauses).max(0);
    if idle == 0 {
        return None;
    }
    let share = case.share(idle);
    let pieces = case.pieces_again(Cause::Queued);
    // Pauses of the device are no waits.
    let times = pieces.iter().filter(|p| p.end - p.start > PAUSE_NS).count();
    let reasons = queued::find_reasons(case);
    let finding = Finding::new(
        Verdict::StreamWait,
        share,
        format!(
            "the next operation is already launched, but the GPU is idle for {} of {base}{}: {}",
            format_share(share),
            case.spreads.only_gap(Cause::Queued).map_or_else(String::new, |ns| format!(", in one piece of {}", format_ns(ns as f64))),
            queued::describe_reasons(&reasons)
        ),
    )
    .with_gain_basis("the idle time before operations whose launching call had returned, without pauses of a few microseconds")
    .with_number("idle with the next operation launched", idle as f64, "ns")
    .with_number("the longest of it", pieces.first().map(|p| (p.end - p.start) as f64), "ns")
    .with_number("times", times as f64, "")
    .with_places(places::locate_places(case, &[Cause::Queued]))
    .with_actions(&[
        &format!("Look at the streams around the longest of them: an event wait ({}StreamWaitEvent) or the legacy default stream may order what is independent.", case.terms.prefix),
        &format!("Keep host functions ({}LaunchHostFunc) short, or do their work on another thread: their stream waits for them.", case.terms.prefix),
        "If another device or process has to finish first, that one is the limit.",
    ]);
    // The wait itself is certain, but its reason is only inferred from the preceding calls.
    Some(finding.with_confidence(if queued::is_known(&reasons) { Sure::Likely } else { Sure::Possible }))
}
