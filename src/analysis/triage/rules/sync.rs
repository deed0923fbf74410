//! Rule: the program repeatedly waits for the GPU.

use crate::analysis::triage::copy_class::CopyClass;
use crate::analysis::triage::finding::{Finding, Place, PlaceKind, Sure};
use crate::analysis::triage::places;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{CallKind, CopyKind, MemOpKind, units};

/// Maximum size of a copy to the host that reads back a single value rather than data, bytes.
const VALUE_BYTES: u64 = 64;

/// Maximum idle time per wait for the host to be doing nothing but resuming its launches, ns; beyond it, the finding is
/// only likely.
const BACK_NS: f64 = 50_000.0;

/// The queue runs empty after each wait for the GPU.
pub fn host_sync(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let idle = case.recurring_idle(Cause::Sync);
    let late = case.late_after_waits();
    let share = case.share(idle - late);
    if idle == 0 {
        return None;
    }
    let behind = case.calls_behind(Cause::Sync);
    let copies = case.copies.get(CopyClass::Small).pageable + case.copies.get(CopyClass::Pageable).count;
    let (calls, _) = case.calls_of(CallKind::Sync);
    let blocking = case.blocking_copies();
    // A copy from pageable memory and the call that waits for it count as a single wait.
    let waits = calls.max(copies).max(blocking).max(case.polled_waits());
    let behind_copies: i64 = behind.iter().filter(|(name, _)| CallKind::from_name(name) == CallKind::Copy).map(|(_, after)| after.ns).sum();
    // If the window contains no wait, it cannot show that the program waits.
    if waits == 0 {
        return None;
    }
    let values = case
        .profile
        .memops
        .iter()
        .filter(|m| m.start.0 >= case.window.0 && m.start.0 < case.window.1)
        .filter(|m| matches!(m.kind, MemOpKind::Copy { kind: CopyKind::DeviceToHost, .. }))
        .filter(|m| m.bytes.is_some_and(|b| b.0 <= VALUE_BYTES))
        .count() as u64;
    let most = behind.first().map_or("a synchronization", |b| b.0).to_owned();
    let back = if waits > 1 && values * 2 > waits { ", most of them to read back a value of a few bytes" } else { "" };
    let spots = places::locate_idle(case, &[Cause::Sync]);
    let at = if spots.lines { spots.main_place_text().trim_end_matches(',').replacen(", in ", ", mostly in ", 1) } else { String::new() };
    let finding = Finding::new(
        Verdict::HostSync,
        share,
        format!(
            "the program waits for the GPU {} in {}{back}{at}; after each wait the GPU has run out of work: idle for {} of {base}",
            units::format_count(waits, "time"),
            format_ns(case.length() as f64),
            format_share(share)
        ),
    )
    .with_gain_basis("the idle time from the end of the wait to the next operation, up to the time for which the GPU is busy: without the wait, the host would have launched that operation in the meantime")
    .with_number("idle after synchronizing", idle as f64, "ns")
    .with_number("waits for the GPU", waits as f64, "")
    .with_number("idle after each", (waits > 0).then(|| idle as f64 / waits as f64), "ns")
    .with_number("synchronizing calls in a step", case.per_step(calls), "")
    .with_number("values of up to 64 bytes read back", (values > 0).then_some(values as f64), "")
    .with_number("copies from pageable memory, which wait for the GPU, too", (copies > 0).then_some(copies as f64), "")
    .with_places(behind.iter().take(3).map(|(name, after)| Place {
        kind: PlaceKind::Call,
        name: format!("idle after {name}"),
        start: case.window.0,
        end: case.window.1,
        ns: Some(after.ns),
        rank: None,
    }))
    .with_places(spots.places);
    // Returning from a wait takes about ten microseconds; if it takes longer, the host is also doing something else.
    let long = waits > 0 && idle as f64 / waits as f64 > BACK_NS;
    let finding = if long { finding.with_confidence(Sure::Likely) } else { finding };
    Some(if copies * 2 > waits {
        finding.with_actions(&[
            "These waits belong to copies of pageable memory: send data in one copy from pinned memory with non_blocking=True (tensor.pin_memory(), DataLoader(pin_memory=True)).",
            "Create small tensors on the device: torch.tensor(…, device=\"cuda\") copies and waits each time; torch.full, torch.arange and indexing with constants do not.",
            "Gather what a step needs on the host and send it once.",
        ])
    } else if values * 2 > waits {
        finding.with_actions(&[
            "Do not read values back in the loop: no .item(), .cpu(), print or if on a GPU tensor; keep them on the device and read every N steps.",
            "Read back without waiting: copy to pinned memory with non_blocking=True, record an event, look at the value a step later.",
            "Replace operations that need the value on the host (nonzero, boolean masks, dynamic shapes) with ones that stay on the device (torch.where, fixed shapes).",
        ])
    } else if behind_copies * 2 > idle {
        finding.with_actions(&[
            &format!("Copy without holding the host: {}MemcpyAsync on a stream (non_blocking=True) from or to pinned memory, and wait only where the data is used.", case.terms.prefix),
            "Copy less often: gather what a step needs, send it once, and keep results on the device.",
        ])
    } else {
        let first = format!(
            "Remove {most} where only order matters: use events and stream waits ({}StreamWaitEvent), which do not hold the host.",
            case.terms.prefix
        );
        let mut finding = finding.with_actions(&[]);
        finding.actions.push(first);
        finding.with_actions(&[
            "Wait once a step, not after every operation; launch the next piece of work before waiting for the last.",
            &format!(
                "Check for debugging switches: {}, torch.autograd.set_detect_anomaly, timing code with synchronize().",
                case.terms.blocking
            ),
        ])
    })
}
