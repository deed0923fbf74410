//! Rule: exposed collectives.

use crate::analysis::readable::readable_name;
use crate::analysis::triage::device_ops::{Class, OperationRow};
use crate::analysis::triage::finding::{COMPARE_RANKS, Finding, Place, PlaceKind, Sure};
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;

/// Collectives run while nothing else does. If all collectives together take longer than the kernels, the run is bound
/// by communication.
pub fn exposed_collectives(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let (exposed, total) = (case.sum_devices(|b| b.collectives_exposed), case.sum_devices(|b| b.collectives));
    if total == 0 {
        return None;
    }
    let kernels = case.sum_devices(|b| b.kernels);
    let (share, busy) = (case.share(exposed), case.share(total));
    let bound = total > kernels;
    let hidden = 1.0 - exposed as f64 / total as f64;
    let id = if bound { Verdict::CommBound } else { Verdict::CommExposed };
    let headline = if bound {
        format!(
            "collectives are exposed for {} of {base}: they take {} of it in all; kernels that compute take {}",
            format_share(share),
            format_share(busy),
            format_share(case.share(kernels))
        )
    } else {
        format!(
            "collectives are exposed for {} of {base}: {} of their time is overlapped with compute",
            format_share(share),
            format_share(hidden)
        )
    };
    let (count, _) = case.kernels.collectives;
    let short = case.kernels.short_collectives;
    let finding = Finding::new(id, share, headline)
        .with_gain_basis("the time in which only collectives ran, on this rank; a part of it may be waiting for other ranks")
        .with_number("collectives run alone", exposed as f64, "ns")
        .with_number("collectives in all", total as f64, "ns")
        .with_number("hidden behind kernels", hidden * 100.0, "%")
        .with_number("computing", kernels as f64, "ns")
        .with_number("collectives in a step", case.per_step(count), "")
        .with_number("mean duration of a collective", (count > 0).then(|| case.kernels.collectives.1 as f64 / count as f64), "ns");
    let finding = if bound {
        finding.with_actions(&[
            &format!("Communicate less: gradient accumulation, a larger batch for each rank, lower precision on the wire, tensor parallelism only within {}.", case.terms.link),
            &format!("Check the bandwidth that the collectives reach against the link's (NCCL_DEBUG=INFO, {}).", case.terms.collective_tests),
            COMPARE_RANKS,
        ])
    } else if short * 2 > count {
        finding.with_number("collectives shorter than 20 µs", short as f64 / count as f64 * 100.0, "%").with_actions(&[
            "Use fewer, larger collectives: most of these are so short that they move little and cost mainly their latency (one buffer for several tensors, larger buckets, group calls).",
            "Overlap what remains: start each collective as soon as its data is there, on a stream of its own, and wait only where its result is used.",
            COMPARE_RANKS,
        ])
    } else {
        finding.with_actions(&[
            "Overlap: smaller or reordered buckets (bucket_cap_mb), FSDP prefetch (forward_prefetch, limit_all_gathers), a stream of their own.",
            COMPARE_RANKS,
        ])
    };
    let finding = finding.with_places(longest_exposed(case));
    // A single rank's report cannot distinguish communication from waiting for another rank.
    Some(finding.with_confidence(Sure::Likely))
}

/// The collective that ran alone for the longest time without a break.
fn longest_exposed(case: &RunContext<'_>) -> Option<Place> {
    let (from, to) = case.exposed_collective?;
    let covers = |start: i64, end: i64| start <= from && to <= end;
    let op = case.ops.iter().take_while(|op| op.start <= from).find(|op| op.class == Class::Collective && covers(op.start, op.end))?;
    let OperationRow::Launch(row) = op.row else { return None };
    let kernel = case.profile.kernels.get(case.profile.launches.kernel(row as usize).0 as usize)?;
    Some(Place {
        kind: PlaceKind::Window,
        name: format!("{}, the longest alone", readable_name(kernel)),
        start: op.start,
        end: op.end,
        ns: Some(to - from),
        rank: None,
    })
}
