//! Memory peaks far above the usual level.

use super::{Case, LEAST};
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::analysis::memory::ledger::Life;
use crate::model::api_call::NONE;
use crate::model::units::format_share;
use crate::model::{Bytes, MemoryLevel};
use rustc_hash::FxHashMap;

/// Minimum share of the peak that would be saved without a site's allocations.
const LOWER: f64 = 0.25;
/// Maximum time for memory to count as briefly held, as a share of a step or, without steps, of the report.
const BRIEF: f64 = 0.25;
/// If memory is above this share of the peak for more than half of the time, it is the usual level, not a peak.
const USUAL: f64 = 0.75;
/// Minimum average size of blocks that are not held briefly, as a share of the peak.
const LARGE: f64 = 0.1;
/// A block counts as freed at once if at most this share of all events (`AT_ONCE`) lies between allocating and freeing
/// it; with fewer than `FOR_AT_ONCE` events, no block does.
const AT_ONCE: f64 = 0.05;
const FOR_AT_ONCE: usize = 16;
/// Maximum number of sites to try.
const TRIED: usize = 8;

/// A site and, if the site is unknown or the block is large, the size of the block; otherwise 0.
type Key = (u32, u64);

/// Detects a peak caused by a few large or brief allocations at one site.
pub fn find_peak(case: &Case<'_>) -> Option<MemoryFinding> {
    let ledger = &case.of.ledger;
    let (Some(at), peak) = case.of.peak else { return None };
    // A large allocation is counted separately from others on the same line.
    let key = |life: &Life| -> Key {
        let site = case.sites.site_of_stack(life.stack);
        (site, if site == NONE || dominates_peak(case, life) { life.bytes } else { 0 })
    };
    let mut there: FxHashMap<Key, (u64, usize)> = FxHashMap::default();
    for life in ledger.held_at(Some(at)).filter(|l| !l.is_older() && !l.is_kept()) {
        let of = there.entry(key(life)).or_default();
        of.0 += life.bytes;
        of.1 += 1;
    }
    let mut tried: Vec<(Key, (u64, usize))> = there.into_iter().filter(|t| t.1.0 as f64 >= LOWER * peak as f64 && t.1.0 >= LEAST).collect();
    tried.sort_by_key(|t| (std::cmp::Reverse(t.1.0), t.0));
    tried.truncate(TRIED);
    // Memory held most of the time is not a peak. The exception is a single allocation that is freed at once: it may
    // seem to last long only because the host waits for the GPU in between.
    let usual = is_usually_above(case, USUAL * peak as f64);
    let period = case.of.steps.median_length().or_else(|| ledger.span().map(|s| s.1 - s.0))?;
    let found = tried.into_iter().find_map(|(wanted, (bytes, blocks))| {
        let own: Vec<&Life> = ledger.lives.iter().filter(|l| key(l) == wanted && !l.is_older()).collect();
        let without = peak_without(case, &own);
        let there: Vec<&Life> = own.into_iter().filter(|l| l.is_held_at(at) && !l.is_kept()).collect();
        let held = there.iter().map(|l| ledger.event_time(l.end) - ledger.event_time(l.start)).max()?;
        let lower = peak.saturating_sub(without) as f64 >= LOWER * peak as f64;
        let large = bytes as f64 >= LARGE * peak as f64 * blocks as f64;
        let brief = !usual && (large || held as f64 <= BRIEF * period as f64);
        (lower && (brief || at_once(case, &there))).then_some((wanted, bytes, blocks, without, held))
    });
    let (wanted, bytes, blocks, without, held) = found?;
    let lower = peak.saturating_sub(without) as f64 / peak.max(1) as f64;
    let step = case.of.steps.step_at(ledger.event_time(at));
    let others = other_steps_peak(case, step);
    let once = others.filter(|&o| peak as f64 >= 1.3 * o as f64);
    let of = match once {
        Some(others) => format!("the peak of {} is of one step; the others need {}", Bytes(peak), Bytes(others)),
        None => format!("the peak of {} would be {} lower", Bytes(peak), format_share(lower)),
    };
    let how_long = if usual { "and gives it back at once" } else { "for a short time" };
    let who = if wanted.0 == NONE { format!("an allocation of {}", Bytes(wanted.1)) } else { case.site_name(wanted.0) };
    let held_unit = if ledger.timed { "ns" } else { "" };
    let mut finding = MemoryFinding::new(
        MemoryVerdict::Peak,
        lower,
        match once {
            Some(_) => format!("{of}: {who} holds {} {how_long}", Bytes(bytes)),
            None => format!("{of} without {who}, which holds {} {how_long}", Bytes(bytes)),
        },
    )
    .with_number("peak", peak as f64, "byte")
    .with_number("peak without it", without as f64, "byte")
    .with_judged_number("how much lower that is", lower * 100.0, "%", ("≥", LOWER * 100.0))
    .with_number("bytes of it at the peak", bytes as f64, "byte")
    .with_number("blocks of it at the peak", blocks as f64, "")
    .with_number(if ledger.timed { "time for which they are held" } else { "events for which they are held" }, held as f64, held_unit);
    if let Some(others) = others {
        finding = finding.with_number("median peak of the other steps", others as f64, "byte");
    }
    // Driver memory is freed by a call, memory of PyTorch's allocator with the last reference.
    let free = match (ledger.level, case.profile.is_amd()) {
        (MemoryLevel::Driver, true) => "Free it (hipFree) before the next large allocation.",
        (MemoryLevel::Driver, false) => "Free it (cudaFree) before the next large allocation.",
        _ => "Free it before the next large allocation: del, or leave the scope.",
    };
    Some(finding.with_sites(vec![(wanted.0, bytes)], Some(ledger.event_time(at))).with_actions(&[
        "Do it in pieces (chunks of the batch, of the sequence, of the vocabulary), or in place, or with a fused kernel that does not write it.",
        free,
        "Use a smaller type for it.",
    ]))
}

/// Returns true if the block alone makes up a large part of the peak.
fn dominates_peak(case: &Case<'_>, life: &Life) -> bool {
    life.bytes as f64 >= LOWER * case.of.peak.1 as f64
}

/// Returns true for a single block that is freed with hardly any allocations or frees in between.
fn at_once(case: &Case<'_>, there: &[&Life]) -> bool {
    let events = case.of.ledger.times.len();
    let few = ((events as f64 * AT_ONCE) as u32).max(2);
    let [life] = there else { return false };
    dominates_peak(case, life) && events >= FOR_AT_ONCE && life.end.saturating_sub(life.start) <= few
}

/// Returns true if more than `bytes` are allocated for more than half of the time.
fn is_usually_above(case: &Case<'_>, bytes: f64) -> bool {
    let ledger = &case.of.ledger;
    let ends = ledger.times.iter().skip(1).chain(ledger.times.last());
    let (mut all, mut less) = (0_i64, 0_i64);
    for (&b, (from, to)) in ledger.bytes.iter().zip(ledger.times.iter().zip(ends)) {
        all += to - from;
        less += if b as f64 > bytes { 0 } else { to - from };
    }
    less < all / 2
}

/// Median peak of the steps other than `but`.
fn other_steps_peak(case: &Case<'_>, but: Option<usize>) -> Option<u64> {
    let but = but?;
    let mut all: Vec<u64> = case.of.steps.list.iter().enumerate().filter(|s| s.0 != but).map(|s| s.1.peak).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().filter(|_| all.len() >= 3)
}

/// Peak without the given allocations, bytes.
fn peak_without(case: &Case<'_>, own: &[&Life]) -> u64 {
    let ledger = &case.of.ledger;
    let mut changes: Vec<(u32, i64)> = Vec::with_capacity(own.len() * 2);
    for life in own {
        let bytes = i64::try_from(life.bytes).unwrap_or(i64::MAX);
        changes.push((life.start, -bytes));
        changes.push((life.end, bytes));
    }
    changes.sort_unstable();
    let mut changes = changes.into_iter().peekable();
    let (mut less, mut most) = (0_i64, ledger.before);
    for (at, &bytes) in (0_u32..).zip(&ledger.bytes) {
        while let Some((_, change)) = changes.next_if(|c| c.0 <= at) {
            less += change;
        }
        most = most.max(bytes.saturating_add_signed(less));
    }
    most
}
