//! Memory that accumulates step after step.

use super::Case;
use crate::analysis::finding::Severity;
use crate::analysis::memory::category::{Categories, Category};
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::analysis::memory::ledger::Life;
use crate::analysis::memory::steps::StepBasis;
use crate::model::api_call::NONE;
use crate::model::units::format_share;
use crate::model::{Bytes, units};
use rustc_hash::{FxHashMap, FxHashSet};

/// Minimum number of steps after the first, whose allocations may legitimately stay.
const LEAST_STEPS: usize = 3;
/// Minimum share of steps that hold more than the previous step.
const RISING: f64 = 0.75;
/// Minimum growth per step as a share of the peak, but at most `STAYS_BYTES`, so that a large program does not hide a
/// leak.
const STAYS: f64 = 0.001;
const STAYS_BYTES: f64 = 1_048_576.0;
/// Growth per step that is never reported, bytes: a loss or a metric that is kept.
const TRIFLE: f64 = 65_536.0;
/// Minimum share of the growth that is still held at the end.
const KEPT: f64 = 0.5;
/// Share of the steps that must be flat at the end for the growth to count as over: whatever grew before is full now.
const FLAT: f64 = 0.1;
/// Without steps: minimum number of allocations of one size that a site must keep.
const REPEATS: usize = 8;
/// Minimum share of these allocations in all growth (`MOST`) and in the memory held at the end (`OUTRANKS_HEALTHY`).
const MOST: f64 = 0.6;
const OUTRANKS_HEALTHY: f64 = 0.1;

/// Detects memory that grows with each step or, if there are no steps, that one site accumulates.
pub fn find_growth(case: &Case<'_>) -> Option<MemoryFinding> {
    by_steps(case).or_else(|| by_site(case))
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

fn by_steps(case: &Case<'_>) -> Option<MemoryFinding> {
    let (ledger, steps) = (&case.of.ledger, &case.of.steps);
    let length = steps.median_length()?;
    let mut counted = steps.list.get(1..)?;
    // The report may end in the middle of the last step.
    if counted.last().is_some_and(|s| s.end - s.start < length / 2) {
        counted = &counted[..counted.len() - 1];
    }
    if counted.len() < LEAST_STEPS {
        return None;
    }
    let lows: Vec<f64> = counted.iter().map(|s| s.valley as f64).collect();
    let rising = lows.windows(2).filter(|w| w[1] > w[0]).count() as f64 / (lows.len() - 1) as f64;
    // Theil–Sen: the median of the slopes between all pairs; with very many steps, only between pairs that are far
    // apart.
    let half = lows.len() / 2;
    let slopes = if lows.len() > 512 {
        (0..lows.len() - half).map(|i| (lows[i + half] - lows[i]) / half as f64).collect()
    } else {
        let pairs = (0..lows.len()).flat_map(|i| (i + 1..lows.len()).map(move |j| (i, j)));
        pairs.map(|(i, j)| (lows[j] - lows[i]) / (j - i) as f64).collect()
    };
    let slope = median(slopes)?;
    let peak = case.of.peak.1 as f64;
    let least = (peak * STAYS).clamp(TRIFLE, STAYS_BYTES);
    let flat = lows.windows(2).rev().take_while(|w| w[1] - w[0] < least / 2.0).count();
    let full = flat >= 3 && flat as f64 >= FLAT * lows.len() as f64;
    if rising < RISING || slope < least || full {
        return None;
    }
    let (first, last) = (counted[0].start, counted[counted.len() - 1].end);
    let stays = |l: &&Life| l.is_kept() && l.start != NONE && (first..last).contains(&ledger.event_time(l.start));
    // For each site, the steps that leave some of its memory behind.
    let mut seen: FxHashMap<u32, FxHashSet<usize>> = FxHashMap::default();
    for life in ledger.lives.iter().filter(stays) {
        if let Some(step) = steps.step_at(ledger.event_time(life.start)) {
            seen.entry(case.sites.site_of_stack(life.stack)).or_default().insert(step);
        }
    }
    let grown = slope * counted.len() as f64;
    let kept: u64 = ledger.lives.iter().filter(stays).map(|l| l.bytes).fold(0, u64::saturating_add);
    // Memory that is freed before the end was in use and did not accumulate: for example, the activations of successive
    // layers.
    if (kept as f64) < KEPT * grown {
        return None;
    }
    let again = |site: u32| seen.get(&site).is_some_and(|s| s.len() * 2 >= counted.len());
    let mut sites = case.by_site(ledger.lives.iter().filter(stays));
    sites.retain(|s| again(s.0));
    // All that the first of them holds at the end, also of the steps that were not counted.
    let held = sites.iter().find(|s| s.0 != NONE).map(|&(site, _)| {
        let own = ledger.lives.iter().filter(|l| l.is_kept() && case.sites.site_of_stack(l.stack) == site);
        own.map(|l| l.bytes).fold(0, u64::saturating_add)
    });
    let found = match &steps.found {
        Some(StepBasis::Ranges(name)) => format!("of {name}"),
        Some(StepBasis::Code(stack)) => format!("that begin with {}", case.site_name(case.sites.site_of_stack(*stack))),
        _ => "in which memory rises and falls".to_owned(),
    };
    let finding = MemoryFinding::new(
            MemoryVerdict::Growth,
            (grown / ledger.bytes_at_end().max(1) as f64).max(0.25),
            format!(
                "{} more stay allocated after every step{}",
                Bytes(slope as u64),
                sites.iter().find(|s| s.0 != NONE).map_or_else(String::new, |s| format!(", by {}", case.site_name(s.0)))
            ),
        )
        .with_judged_number("bytes that stay in a step (median slope of the lows)", slope, "byte", ("≥", least))
        .with_judged_number("steps with a higher low than the one before", rising * 100.0, "%", ("≥", RISING * 100.0))
        .with_number(&format!("steps {found}, without the first"), counted.len() as f64, "")
        .with_judged_number("allocated in them and held to the end", kept as f64, "byte", ("≥", KEPT * grown))
        .with_number("held to the end by the line that is named, in all", held.map(|bytes| bytes as f64), "byte")
        .with_number("least allocated in the first of them", lows[0], "byte")
        .with_number("least allocated in the last of them", lows[lows.len() - 1], "byte")
        .with_sites(sites, Some(last))
        .with_actions(&[
            "See what keeps it: a list or a dictionary that grows, a tensor that is kept with its graph (use .item() or .detach()), a cache without a limit.",
            "If it is meant to grow (a KV cache), reserve it once for its largest size.",
        ]);
    // However little each step keeps, enough steps exhaust the memory, so the severity does not depend on the amount.
    Some(MemoryFinding { severity: Severity::High, ..finding })
}

/// Detects a site that allocates repeatedly and keeps everything, in a program without steps.
fn by_site(case: &Case<'_>) -> Option<MemoryFinding> {
    let ledger = &case.of.ledger;
    if !case.of.steps.list.is_empty() {
        return None;
    }
    let grown = ledger.bytes_at_end().checked_sub(ledger.before)?;
    let mut found: FxHashMap<(u32, u64), Vec<i64>> = FxHashMap::default();
    // Loading a model, or recording only a part of a forward pass, legitimately keeps allocations.
    let categories = Categories::new(case.sites, ledger, &case.of.steps);
    let meant = |l: &Life| !matches!(categories.classify_life(l), Category::Temporary | Category::Other);
    for life in ledger.lives.iter().filter(|l| l.is_kept() && l.start != NONE && !(meant(l) && l.stack != NONE)) {
        found.entry((case.sites.site_of_stack(life.stack), life.bytes)).or_default().push(ledger.event_time(life.start));
    }
    let ((site, bytes), times) = found.into_iter().max_by_key(|((site, bytes), t)| (bytes.saturating_mul(t.len() as u64), *site))?;
    let kept = bytes.saturating_mul(times.len() as u64);
    let mut gaps: Vec<i64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    let even = gaps.get(gaps.len() / 4).is_some_and(|&g| g > 0 && gaps[gaps.len() * 3 / 4] <= g.saturating_mul(3));
    // Memory that was allocated at the beginning and stays has stopped growing.
    let still = ledger.span().zip(times.last()).is_some_and(|((begin, end), &last)| end - last <= (end - begin) / 5);
    let (of_growth, of_end) = (kept as f64 / grown.max(1) as f64, kept as f64 / ledger.bytes_at_end().max(1) as f64);
    if times.len() < REPEATS || !even || !still || of_growth < MOST || of_end < OUTRANKS_HEALTHY || site == NONE && case.sites.has_stacks()
    {
        return None;
    }
    Some(
        MemoryFinding::new(
            MemoryVerdict::Growth,
            of_end * 0.3,
            format!(
                "memory grows: {} asked for {} {} and all of it stays, {} of what is held at the end",
                case.site_name(site),
                Bytes(bytes),
                units::format_count(times.len() as u64, "time"),
                format_share(of_end)
            ),
        )
        .with_judged_number("allocations of one size that are kept", times.len() as f64, "", ("≥", REPEATS as f64))
        .with_judged_number("of all growth", of_growth * 100.0, "%", ("≥", MOST * 100.0))
        .with_number("bytes of all of them", kept as f64, "byte")
        .with_sites(vec![(site, kept)], times.last().copied())
        .with_actions(&["See what keeps it: a list that grows, or a cache without a limit. If it is meant to grow, reserve it once."]),
    )
}
