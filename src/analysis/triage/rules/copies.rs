//! Rules: exposed transfers.

use crate::analysis::triage::copy_class::{CopyClass, Sum};
use crate::analysis::triage::finding::{Finding, Place, PlaceKind, Sure};
use crate::analysis::triage::places;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{Bytes, Device, Nanos, units};
use rustc_hash::FxHashSet;

/// Maximum time per small copy for the host to be doing nothing but copying, ns; beyond it, the finding is only likely.
const COPY_NS: f64 = 50_000.0;

fn format_rate(bytes_per_second: Option<f64>) -> String {
    bytes_per_second.map_or_else(String::new, |r| format!(" at {:.1} GB/s", r / 1e9))
}

fn direction_text(sum: &Sum) -> &'static str {
    match (sum.to_device, sum.count - sum.to_device) {
        (_, 0) => "to the device",
        (0, _) => "to the host",
        _ => "in both directions",
    }
}

/// Formats the number of bytes and the direction (`between`); only the direction if the report has no sizes.
fn format_amount(sum: &Sum, between: &str) -> String {
    let least = if sum.unsized_count > 0 { "at least " } else { "" };
    if sum.bytes == 0 { between.to_owned() } else { format!("{least}{} {between}", Bytes(sum.bytes)) }
}

fn add_evidence(finding: Finding, case: &RunContext<'_>, sum: &Sum) -> Finding {
    finding
        .with_number("copies run alone", Some(sum.exposed).filter(|&n| n > 0).map(|n| n as f64), "ns")
        .with_number("idle while they were issued", Some(sum.idle).filter(|&n| n > 0).map(|n| n as f64), "ns")
        .with_number("copies", sum.count as f64, "")
        .with_number("copies in a step", case.per_step(sum.count), "")
        .with_number("bytes", Some(sum.bytes as f64).filter(|&n| n > 0.0), "byte")
        .with_number("copies of unknown size", Some(sum.unsized_count as f64).filter(|&n| n > 0.0), "")
        .with_number("bandwidth while they ran", sum.bytes_per_second(), "byte/s")
        .with_places(sum.longest.map(|(start, end)| Place {
            kind: PlaceKind::Window,
            name: "the longest without other work".to_owned(),
            start,
            end,
            ns: Some(end - start),
            rank: None,
        }))
}

/// Transfers use pageable memory.
pub fn pageable_copies(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let sum = case.copies.get(CopyClass::Pageable);
    if sum.count == 0 {
        return None;
    }
    // The host resumes only when the copy is done, so the GPU is idle until the next launch. Asynchronous copies would
    // hide at most as much of that host work as the GPU's kernels last.
    let after = case.after_pageable.min(case.recurring_idle(Cause::Sync)).min(case.sum_devices(|b| b.kernels));
    let cost = sum.cost() + after;
    let (rate, left) = left_at_link_rate(case, sum).unwrap_or_default();
    let left = left.min(cost);
    let headline = format!(
        "copies of pageable memory{} take {} of {base}: {}, {}{}",
        if sum.idle + after > 0 { " and the idle time around them" } else { "" },
        format_share(case.share(cost)),
        format_amount(sum, direction_text(sum)),
        units::format_count(sum.count, "copy"),
        format_rate(sum.bytes_per_second())
    );
    Some(
        add_evidence(Finding::new(Verdict::PageableCopies, case.share(cost - left), headline), case, sum)
            .with_number("idle after they were waited for", (after > 0).then_some(after as f64), "ns")
            .with_number(HIDDEN, hidden_by_kernels(case, sum) as f64, "ns")
            .with_number(LEFT, (left > 0).then_some(left as f64), "ns")
            .with_gain_basis(if left > 0 {
                format!(
                    "the time in which only these copies ran, and the idle time while they were staged and after they were waited for, less {}: pinned, their bytes still take as long at the {:.0} GB/s of the link, beyond what kernels can hide",
                    format_ns(left as f64),
                    rate / 1e9
                )
            } else {
                format!(
                    "the time in which only these copies ran, and the idle time while they were staged and after they were waited for; if pinned, they take their bytes at the link's rate; kernels can hide {}",
                    share_hidden(case, sum)
                )
            })
            .with_places(places::of_copies(case, &[CopyClass::Pageable]))
            .with_actions(&[
                &format!("Pin the host memory: DataLoader(pin_memory=True), tensor.pin_memory(), {}, {}HostRegister; pinned copies run at the link's speed and do not hold the host.", case.terms.malloc_host, case.terms.prefix),
                &format!("Then copy asynchronously on another stream while the GPU works: .to(device, non_blocking=True), {}MemcpyAsync.", case.terms.prefix),
                "Copy less: keep data on the device, transfer smaller types and convert there.",
            ]),
    )
}

/// Name of the evidence for [`left_at_link_rate`].
const LEFT: &str = "left if they were pinned, at least";

/// Peak rate of the fastest link between host and GPU in one direction, bytes/s, by generation of the GPU: `PCIe` x16 of
/// generation 3 (15.8 GB/s) up to compute capability 7.5, 4 (31.5) for 8.x, 5 (63) for 9.0 and 12.x, 6 (126) for
/// 10.x; `NVLink` of POWER9 (75) for 6.0 and 7.0; `NVLink`-C2C (450) with a Grace CPU. From the makers' data sheets.
/// `None` for GPUs that share the host's memory, and for other ones.
fn host_link_rate(device: &Device) -> Option<f64> {
    let name = device.name.as_deref()?;
    if ["GH200", "GB200", "GB300", "GB10"].iter().any(|n| name.contains(n)) {
        return Some(450e9);
    }
    match device.compute_capability? {
        // Tegra, Jetson and Thor.
        (5, 3) | (6 | 7, 2) | (8, 7) | (11, _) => None,
        (6 | 7, 0) => Some(75e9),
        (..=7, _) => Some(15.8e9),
        (8, _) => Some(31.5e9),
        (9 | 12, _) => Some(63e9),
        (10, _) => Some(126e9),
        _ => None,
    }
}

/// Peak rate of the link, and the time that pinned copies would still take alone at least, ns: their bytes at that
/// rate, beyond the time for which kernels run. Both directions may be used at once. `None` if the link is unknown.
fn left_at_link_rate(case: &RunContext<'_>, sum: &Sum) -> Option<(f64, i64)> {
    let devices = case.devices.iter().map(|d| d.unit.device.and_then(|n| case.profile.devices.get(n as usize)));
    let rate = devices.map(|d| d.and_then(host_link_rate)).reduce(|a, b| Some(a?.max(b?)))??;
    let bytes = sum.bytes_to_device.max(sum.bytes.saturating_sub(sum.bytes_to_device));
    let takes = bytes as f64 / rate * 1e9;
    Some((rate, (takes as i64).saturating_sub(case.sum_devices(|b| b.kernels)).max(0)))
}

/// Name of the evidence for [`hidden_by_kernels`].
const HIDDEN: &str = "of it kernels could hide, at most";

/// Time of copies that overlap could hide at most, ns: no more than the kernels take.
fn hidden_by_kernels(case: &RunContext<'_>, sum: &Sum) -> i64 {
    sum.cost().min(case.sum_devices(|b| b.kernels))
}

fn share_hidden(case: &RunContext<'_>, sum: &Sum) -> String {
    let hidden = hidden_by_kernels(case, sum);
    if hidden == sum.cost() { "all of it".to_owned() } else { format!("at most {} of it", format_ns(hidden as f64)) }
}

/// Returns true if most of the copy time is on streams without kernels.
fn has_own_streams(case: &RunContext<'_>) -> bool {
    let profile = case.profile;
    let launches = &profile.launches;
    let stream = |place: u32| profile.places.get(place as usize).map(|p| (p.device, p.context, p.stream));
    let with_kernels: FxHashSet<u32> = (0..launches.len()).filter_map(|row| launches.place(row)).map(|p| p.0).collect();
    let streams: FxHashSet<_> = with_kernels.into_iter().filter_map(stream).collect();
    let (mut all, mut apart) = (0_i64, 0_i64);
    for m in profile.memops.iter().filter(|m| m.start.0 >= case.window.0 && m.start.0 < case.window.1) {
        all = all.saturating_add(m.duration.0);
        if stream(m.place.0).is_none_or(|s| !streams.contains(&s)) {
            apart = apart.saturating_add(m.duration.0);
        }
    }
    apart * 2 > all
}

/// Transfers are large: from or to pinned memory, between devices, or within one device.
pub fn copy_bound(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let classes = [CopyClass::Host, CopyClass::Peer, CopyClass::Device];
    let most = classes.into_iter().max_by_key(|c| case.copies.get(*c).cost())?;
    let all = classes.into_iter().map(|c| *case.copies.get(c)).reduce(|a, b| a.combined_with(&b))?;
    let sum = &all;
    if sum.count == 0 {
        return None;
    }
    let share = case.share(sum.cost());
    let what = match most {
        _ if sum.blits * 2 > sum.count => "mostly by the runtime's own kernels",
        CopyClass::Peer => "mostly between devices",
        CopyClass::Device => "mostly within the device",
        _ if case.copies.get(CopyClass::Host).count < sum.count => "mostly between host and device",
        _ => direction_text(sum),
    };
    let headline = format!(
        "copies that are not overlapped take {} of {base}: {}, {}{}",
        format_share(share),
        format_amount(sum, what),
        units::format_count(sum.count, "copy"),
        format_rate(sum.bytes_per_second())
    );
    let finding = add_evidence(Finding::new(Verdict::CopyBound, share, headline), case, sum)
        .with_number(HIDDEN, hidden_by_kernels(case, sum) as f64, "ns")
        .with_gain_basis(format!(
            "the time in which only these copies ran; kernels can hide {}, and fewer bytes take less",
            share_hidden(case, sum)
        ))
        .with_places(places::of_copies(case, &classes));
    // With copies on their own streams, kernels may be waiting for a late host rather than for the copies.
    let finding = if has_own_streams(case) { finding.with_confidence(Sure::Likely) } else { finding };
    Some(if most == CopyClass::Device {
        finding.with_actions(&[
            "Avoid the copy: write results where they are needed, use views, in-place operations and fused kernels.",
            "Run it beside other work on another stream.",
        ])
    } else if hidden_by_kernels(case, sum) * 2 < sum.cost() {
        finding.with_actions(&[
            "Copy less: keep data on the device, transfer smaller types and convert there, compress.",
            "Copy the next piece on a stream of its own while the GPU works on this one; there are too few kernels here to hide most of the copies.",
        ])
    } else {
        finding.with_actions(&[
            "Copy the next piece on a stream of its own while the GPU works on this one (two buffers, events between the streams).",
            "Copy less: keep data on the device, transfer smaller types and convert there, compress.",
        ])
    })
}

/// Transfers are small and numerous.
pub fn small_copies(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let sum = case.copies.get(CopyClass::Small);
    if sum.count == 0 {
        return None;
    }
    let share = case.share(sum.cost());
    let each = sum.cost() as f64 / sum.count as f64;
    let headline = format!(
        "{} copies of {} on average cost {} of {base}: {} for each, hardly any of it for the bytes",
        units::format_grouped(sum.count),
        Bytes(sum.bytes / sum.count.max(1)),
        format_share(share),
        format_ns(each)
    );
    let seconds = Nanos(case.length()).as_seconds();
    let mut finding = add_evidence(Finding::new(Verdict::SmallCopies, share, headline), case, sum)
        .with_gain_basis("the time in which only these copies ran, and the idle time while they were issued; one copy of all the bytes takes next to nothing")
        .with_judged_number("copies a second", sum.count as f64 / seconds, "1/s", ("≥", 1000.0))
        .with_number("of them from or to pageable memory", (sum.pageable > 0).then_some(sum.pageable as f64), "")
        .with_places(places::of_copies(case, &[CopyClass::Small]))
        .with_actions(&[
            "Pack what belongs together into one buffer, copy once, and take it apart on the device.",
            "Pass scalars as kernel arguments; create tensors on the device (torch.zeros(…, device=\"cuda\"), torch.arange(…, device=\"cuda\")).",
        ]);
    // One copy alone hides what the finding is about: the time between the copies.
    for place in finding.places.iter_mut().filter(|p| p.kind == PlaceKind::Window) {
        let around = (each * 5.0) as i64;
        (place.start, place.end) = ((place.start - around).max(case.window.0), (place.end + around).min(case.window.1));
        "about ten of them".clone_into(&mut place.name);
        place.ns = Some(place.end - place.start);
    }
    // A copy has a fixed cost of about ten microseconds; anything beyond that may be other host work between the
    // copies.
    Some(if sum.count < 100 || each > COPY_NS { finding.with_confidence(Sure::Likely) } else { finding })
}
