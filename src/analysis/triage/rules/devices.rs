//! Rule: some devices are much busier than others.

use crate::analysis::triage::finding::{Finding, Sure};
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;

/// Minimum difference between the busiest and the least busy device for devices to be unbalanced, as a share of the
/// window.
const SPREAD: f64 = 0.10;

/// One device does more than the others.
pub fn unbalanced_devices(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    if case.devices.len() < 2 {
        return None;
    }
    let length = case.length() as f64;
    let mut busy: Vec<(f64, String)> = case
        .devices
        .iter()
        .map(|d| {
            (
                d.busy.busy_time() as f64 / length,
                case.ops.device_number(&d.unit).map_or_else(|| "a device".to_owned(), |n| format!("GPU {n}")),
            )
        })
        .collect();
    busy.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (most, least) = (busy.first()?, busy.last()?);
    let spread = most.0 - least.0;
    if spread < SPREAD {
        return None;
    }
    let mean = busy.iter().map(|b| b.0).sum::<f64>() / busy.len() as f64;
    let mut finding = Finding::new(
        Verdict::UnbalancedDevices,
        most.0 - mean,
        format!("{} is busy for {} of {base}, {} for {}", most.1, format_share(most.0), least.1, format_share(least.0)),
    )
    .with_gain_basis(
        "the busy time of the busiest device beyond the mean: with the work evenly spread, the window would be shorter by that much",
    )
    .with_judged_number("percentage points between the busiest and the least busy", spread * 100.0, "", ("≥", SPREAD * 100.0));
    for (share, name) in &busy {
        finding = finding.with_number(&format!("{name} busy"), share * 100.0, "%");
    }
    Some(
        finding
            .with_actions(&[
                "Spread the work evenly: equal batches, pipeline stages of equal time, DistributedDataParallel in place of DataParallel.",
                "Move what only one device does (loss, logging, gathering) to the least busy one, or off the devices.",
            ])
            .with_confidence(Sure::Likely),
    )
}
