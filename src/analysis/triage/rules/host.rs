//! The launching thread does something else, or waits for something else.

use crate::analysis::triage::case::Case;
use crate::analysis::triage::finding::{Finding, Sure};
use crate::analysis::triage::part::Cause;
use crate::analysis::triage::places;
use crate::analysis::triage::text::{Record, ns, pct, record};
use crate::analysis::triage::verdict::Verdict;

/// Why a verdict on the host is a guess.
fn missing(case: &Case<'_>) -> &'static str {
    if case.host.known.operators {
        "recorded without Python functions: waiting and computing cannot be told apart outside operators"
    } else if case.host.known.states {
        "it was on a processor for part of the time: waiting and computing cannot be told apart there"
    } else {
        "recorded without osrt: waiting and computing cannot be told apart"
    }
}

fn longest(case: &Case<'_>, cause: Cause) -> (Option<f64>, usize) {
    let pieces = case.pieces.get(&cause).map_or(&[][..], |p| p);
    (pieces.first().map(|p| (p.end - p.start) as f64), pieces.len())
}

/// The launching thread waits for a batch, a queue, a file.
pub fn input_wait(case: &Case<'_>) -> Option<Finding> {
    let share = case.idle_share(Cause::Wait);
    let idle = case.idle.get(Cause::Wait);
    if idle == 0 {
        return None;
    }
    let (long, _) = longest(case, Cause::Wait);
    let waits = crate::analysis::triage::os::waits(case);
    let what = waits.first().map_or_else(String::new, |(name, _)| format!(", mostly in {name}"));
    let finding = Finding::new(
        Verdict::InputWait,
        share,
        format!("the launching thread waits for something other than the GPU{what}: the GPU is idle for {} of the window", pct(share)),
    )
    .bound("the idle time in which the launching thread was blocked outside of CUDA; work that is there in time takes none of it")
    .because("idle while the host waits", idle as f64, "ns")
    .because("of it in a step", case.per_step(idle.unsigned_abs()), "ns")
    .because("the longest wait", long, "ns")
    .at(waits.into_iter().take(3).map(|(_, place)| place))
    .at(places::of(case, &[Cause::Wait]))
    .change(&[
        "Prepare input ahead of time: more DataLoader workers, a larger prefetch_factor, persistent_workers=True, pin_memory=True.",
        "Decode and augment on the GPU (DALI, torchvision on tensors), or store data ready to use (memory-mapped, packed records).",
        "Take files, checkpoints and logs off the launching thread: write them from another one.",
    ]);
    // Being off a processor, or in the loader's range, does not say what it waited for.
    Some(if case.host.known.os { finding } else { finding.sure(Sure::Likely) })
}

/// The launching thread computes.
pub fn compute(case: &Case<'_>) -> Option<Finding> {
    let (known, unknown) = (case.idle.get(Cause::Compute), case.idle.get(Cause::Unknown));
    let idle = known + unknown;
    if idle == 0 {
        return None;
    }
    let share = case.share(idle);
    let certain = known >= unknown;
    let cause = if certain { Cause::Compute } else { Cause::Unknown };
    let (long, _) = longest(case, cause);
    let places = places::of(case, &[Cause::Compute, Cause::Unknown]);
    let at = places.iter().find(|p| p.kind.word() != "window").map_or_else(String::new, |p| format!(" ({})", p.name));
    let headline = if certain {
        format!(
            "the launching thread runs host code{at} while the GPU has nothing to do: idle for {} of the window, up to {} at a time",
            pct(share),
            ns(long.unwrap_or_default())
        )
    } else {
        format!(
            "the launching thread is outside CUDA{at} while the GPU has nothing to do: idle for {} of the window, up to {} at a time; {}",
            pct(share),
            ns(long.unwrap_or_default()),
            missing(case)
        )
    };
    let mut finding = Finding::new(Verdict::HostCompute, share, headline)
        .bound("the idle time in which the launching thread was neither in CUDA nor known to wait; on another thread, or overlapped, it costs nothing")
        .because("idle while the host computes", (known > 0).then_some(known as f64), "ns")
        .because("idle while the host does what was not recorded", (unknown > 0).then_some(unknown as f64), "ns")
        .because("of it in a step", case.per_step(idle.unsigned_abs()), "ns")
        .because("the longest at a time", long, "ns")
        .at(places)
        .change(&[
            "Do it while the GPU works: launch the next step first, prepare data in DataLoader workers or another thread.",
            "Do it on the GPU: tensor operations in place of Python loops and NumPy.",
            "Do it less often: logging, metrics, scheduling and garbage collection every N steps.",
        ]);
    if !certain {
        finding = finding.sure(Sure::Possible);
    }
    let record_what = if case.host.known.operators {
        Record::Python
    } else if certain {
        Record::Samples
    } else {
        Record::Host
    };
    finding.confirm = Some(record(case.profile, record_what));
    Some(finding)
}
