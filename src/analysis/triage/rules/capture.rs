//! Rule: the capture does not suffice for a verdict, because it is too short or incomplete.

use crate::analysis::triage::finding::{Finding, Severity};
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::{capitalize, format_ns};
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{NoteKind, Severity as NoteSeverity, units};

/// Minimum number of operations for a steady state to be identifiable.
pub const FEW: u64 = 10;
/// Minimum length of a capture without repetitions, ns (in triage practice, a capture is too short if it covers less
/// than 1 s or fewer than 3 steps).
const SHORT_NS: i64 = 1_000_000_000;
/// Minimum repetitions of the longest-running operation for a capture shorter than `SHORT_NS`.
const REPEATS: u64 = 5;
/// Maximum share of the window that may be idle time before operations whose call is not recorded; beyond it, the
/// causes of idle time are unknown.
const NO_CALLS: f64 = 0.3;

/// Returns the number of launches with a known call, and of all launches.
fn with_calls(case: &RunContext<'_>) -> (usize, usize) {
    let launches = &case.profile.launches;
    ((0..launches.len()).filter(|&row| launches.call(row).is_some()).count(), launches.len())
}

/// The capture is too short, is incomplete, or does not contain required data.
pub fn short_capture(case: &RunContext<'_>) -> Option<Finding> {
    let operations: u64 = case.devices.iter().map(|d| d.busy.operations).sum();
    // Lost ranges and OS runtime calls cost detail, but not device time.
    let beside = |text: &str| ["NVTX", "ROCTx", "OS runtime"].iter().any(|w| text.contains(w));
    let lost = case.profile.notes.iter().find(|n| n.kind == NoteKind::Lost && n.severity >= NoteSeverity::Warning && !beside(&n.text));
    let no_calls = case.idle_share(Cause::NoCall);
    // Do not report a window as short if the user chose it.
    let few = !case.chosen && operations < FEW;
    // One or two steps do not count as repetition.
    let once = !case.chosen
        && (case.steps.found.is_none() || case.steps.list.len() < 3)
        && case.length() < SHORT_NS
        && case.main_repetitions() < REPEATS;
    let (headline, action) = if few || once {
        (
            format!(
                "only {} in {}, {}",
                units::format_count(operations, "operation"),
                format_ns(case.length() as f64),
                match (&case.steps.found, case.steps.list.len()) {
                    (Some(_), steps @ 1..3) => format!("in {}: too few to tell what recurs", units::format_count(steps, "step")),
                    (Some(_), steps @ 3..) => format!("in {}: too little to judge", units::format_count(steps, "step")),
                    _ => "and nothing repeats: too little to identify a steady state".to_owned(),
                }
            ),
            "Record at least three steps after the warm-up.".to_owned(),
        )
    } else if no_calls >= NO_CALLS {
        (
            match with_calls(case) {
                (0, _) => {
                    format!(
                        "why the GPU is idle for {} of {} was not recorded: the report does not say which calls started the work",
                        format_share(no_calls),
                        case.base
                    )
                }
                (some, all) => format!(
                    "why the GPU is idle for {} of {} was not recorded: the report has the calls of {some} of {}",
                    format_share(no_calls),
                    case.base,
                    units::format_count(all, "launch")
                ),
            },
            format!("Record the host's {} calls, too ({}).", case.terms.gpu.api, case.terms.record_calls),
        )
    } else {
        let lost = lost?;
        let usual = "record a shorter part, or fewer kinds of events, so that none are lost";
        (lost.text.clone(), format!("{}.", capitalize(lost.fix.as_deref().unwrap_or(usual))))
    };
    let mut finding = Finding::new(Verdict::ShortCapture, 0.0, headline)
        .with_gain_basis("no gain: it says how far to trust the other findings")
        .with_number(&format!("length of {}", case.base), case.length() as f64, "ns")
        .with_number("operations on devices", operations as f64, "")
        .with_number("steps", Some(case.steps.list.len()).filter(|&n| n > 0).map(|n| n as f64), "")
        .with_actions(&[&action]);
    finding.severity = Severity::Medium;
    Some(finding)
}
