//! Suggested next step, as a sentence derived from the data.

use super::hints::{self, Facts, Subject, diagnose};
use super::labels::cut_middle;
use super::median_launch::median_launch;
use super::triage::measuring_times;
use super::{Grouping, Overview};
use crate::model::{KernelId, Nanos, NoteKind, Profile, Severity, units};

/// Idle share at which the host, not a kernel, is the first thing to look at (the "idle-bound" threshold of common
/// triage practice).
const IDLE_PERCENT: f64 = 30.0;
/// Share of the span at which copies come first, provided that they take longer than the kernels (the "transfer-heavy"
/// threshold).
const COPY_PERCENT: f64 = 15.0;
/// Mean duration below which launching a kernel costs as much as running it: a launch takes 3–8 µs on the host.
const SHORT_NS: f64 = 5_000.0;

/// Delimiters around the name of an action in a sentence; the key bound to the action is shown in its place. Names in
/// reports do not contain these private-use characters.
pub const KEY_BEGIN: char = '\u{e0f0}';
pub const KEY_END: char = '\u{e0f1}';

/// Returns a placeholder for the key of an action, to be used in a sentence.
pub fn key_of(action: &str) -> String {
    format!("{KEY_BEGIN}{action}{KEY_END}")
}

/// Builds the sentence. `kernels` must be grouped by a kernel name.
pub fn next_step_sentence(profile: &Profile, overview: &Overview, kernels: &Grouping) -> String {
    if let Some(note) = profile.notes.iter().find(|n| n.kind == NoteKind::Empty) {
        return note.to_sentence();
    }
    let Some(top) = kernels.rows.first() else {
        return "no kernels in this report".to_owned();
    };
    if let Some(lost) = profile.notes.iter().find(|n| n.kind == NoteKind::Lost && n.severity >= Severity::Warning)
        && profile.capture.gate.is_none()
    {
        return format!("{} shows the notes, to be read before counts are trusted: {}", key_of("notes"), lost.text);
    }
    let name = cut_middle(&top.name, 48);
    if profile.launches.is_empty() {
        return format!(
            "{} of kernel time is {name}; open the report itself to see its launches",
            units::format_whole_percent(top.share_percent)
        );
    }
    if profile.metrics.is_some() {
        let (n, results) = (top.stats.count, profile.launches.len());
        let tool = if profile.is_amd() { &profile.source.tool } else { "ncu" };
        let (open, metrics, roofline) = (key_of("open"), key_of("metrics"), key_of("roofline"));
        let what = if n == 1 {
            format!("{open} or {metrics} shows its metrics")
        } else {
            format!("{open} shows its {n} results, {metrics} the metrics of the median one")
        };
        let first_hint = |kernel: KernelId| {
            let result = representative_launch(profile, kernel)? as usize;
            diagnose(&Facts::of_result(profile.metrics.as_ref()?, result)).into_iter().next()
        };
        if let Some(hint) = top.kernel.and_then(first_hint) {
            let takes = if results == 1 {
                "one result".to_owned()
            } else {
                format!("{} of the time measured by {tool}", units::format_whole_percent(top.share_percent))
            };
            // Put the key first: a narrow terminal cuts off the end of the sentence.
            return format!("{} shows what limits {name} ({takes}): {}", key_of("hints"), hint.id.id());
        }
        return if results == 1 {
            format!("{metrics} shows the metrics of the only result, {name}, {roofline} its roofline, {} its code", key_of("source"))
        } else {
            format!(
                "{what}, {roofline} its roofline: {} of the time measured by {tool} is {name}",
                units::format_whole_percent(top.share_percent)
            )
        };
    }
    // While counters are collected, all other work has to wait; that time does not count as idle.
    let measuring = overview
        .span
        .map_or(0.0, |(from, to)| measuring_times(profile).covered_length(from, to) as f64 / (to - from).max(1) as f64 * 100.0);
    let idle = overview.idle_percent.map(|i| i - measuring);
    let timeline = key_of("timeline");
    if let Some(idle) = idle.filter(|&i| i >= IDLE_PERCENT)
        && overview.gaps > 0
    {
        let short = top.stats.avg < SHORT_NS && top.stats.count > 1000;
        let why = if short {
            format!(
                "{name} runs {} times for {} each: the launch costs as much as the run, so batch, fuse or use CUDA graphs",
                units::format_grouped(top.stats.count),
                Nanos::format_ns(top.stats.avg)
            )
        } else {
            "look at what the host does between launches before tuning a kernel".to_owned()
        };
        let subject = if overview.devices_used > 1 { "each GPU is on average idle" } else { "the GPU is idle" };
        if measuring > 0.0 {
            return format!(
                "{timeline} shows when: {subject} for {idle:.0}% of the time from the first operation to the last, not counting {measuring:.0}% in which counters were measured: {why}"
            );
        }
        return format!(
            "{timeline} shows when: {subject} for {idle:.0}% of the time from the first operation to the last ({} gaps over 10 µs, {} in all): {why}",
            units::format_grouped(overview.gaps),
            Nanos(overview.gap_ns)
        );
    }
    let copies = overview.copy_percent.unwrap_or(0.0);
    if copies > overview.busy_percent.unwrap_or(0.0) && copies >= COPY_PERCENT {
        let pageable = if overview.pageable_copies > 0 { " (some from pageable memory: pin it)" } else { "" };
        return format!(
            "{timeline} shows what is copied{pageable}: copies take {copies:.0}% of the span, kernels {:.0}%",
            overview.busy_percent.unwrap_or(0.0)
        );
    }
    if let Some(spread) = top.stats.spread_percent().filter(|&s| s > 50.0 && top.stats.count >= 10) {
        return format!(
            "{} shows which launches of {name} are slow: they vary (spread {spread:.0}%), {:.0}% of kernel time",
            key_of("open"),
            top.share_percent
        );
    }
    let count = units::format_grouped(top.stats.count);
    let what = format!(
        "{} of kernel time is {name} ({count} × {})",
        units::format_whole_percent(top.share_percent),
        Nanos::format_ns(top.stats.avg)
    );
    // Without measurements, hints can only be based on the launch configuration and the duration.
    let launch = top.kernel.and_then(|kernel| Subject::of_launch(profile, representative_launch(profile, kernel)?));
    let told = launch.and_then(|s| s.hints.into_iter().find(|h| h.severity >= hints::Severity::Medium));
    let rerun = key_of("rerun");
    match told {
        Some(hint) => format!("{rerun} finds out what limits it: {what}, {}", hint.headline),
        None => format!("{} shows its launches, {rerun} finds out what limits one: {what}", key_of("open")),
    }
}

/// Returns the launch that stands for a kernel.
fn representative_launch(profile: &Profile, kernel: KernelId) -> Option<u32> {
    let rows: Vec<u32> =
        (0..profile.launches.len()).zip(0..).filter(|(row, _)| profile.launches.kernel(*row) == kernel).map(|r| r.1).collect();
    median_launch(profile, &rows)
}
