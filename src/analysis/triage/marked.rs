//! Steps marked by the program or its framework with numbered ranges.

use super::device_ops::{Class, DeviceOps, clamp_time};
use super::step::{EXPLAINS, LEAST_STEPS, Starts, StepSource};
use crate::analysis::name_pattern::name_pattern;
use crate::model::{LaunchOrder, Profile, RangeKind, RangeOrigin};
use rustc_hash::FxHashMap;

/// Maximum number of range names to try.
const MOST_NAMES: usize = 8;
/// Minimum share of the devices' work that must be launched in numbered ranges for them to be accepted as steps; with
/// less, they cover only part of the run.
const STANDS_FOR: f64 = 0.2;
/// Words that mark numbered ranges as possible containers of many steps: one or two such ranges are not taken for
/// steps.
const CONTAINERS: &[&str] = &["epoch", "sweep", "request"];
/// Words in the names of ranges that mark a repetition of the program's main work.
const WORDS: &[&str] = &["step", "iter", "batch", "decode", "token", "frame", "epoch", "timestep", "sweep", "cycle", "tick", "request"];

/// Range that may be a step: start and end in ns, process.
type Numbered = (i64, i64, u32);

/// Returns the steps marked by numbered ranges, if any.
pub fn by_ranges(profile: &Profile, ops: &DeviceOps<'_>) -> Option<Starts> {
    if !matches!(profile.order, LaunchOrder::Host | LaunchOrder::Partly(_)) {
        return None;
    }
    let ranges = &profile.ranges;
    // Group the names that consist of a number and a word for a step.
    let mut groups: FxHashMap<String, u32> = FxHashMap::default();
    let group_of: Vec<Option<u32>> = ranges
        .names
        .iter()
        .map(|(_, name)| {
            let like = name_pattern(name);
            let lower = like.to_ascii_lowercase();
            // The word must stand alone, unlike in `tokenizer` or `BatchNorm`.
            let mut words = lower.split(|c: char| !c.is_ascii_alphabetic());
            let is_word = |w: &str| w.ends_with("step") || WORDS.iter().any(|word| w == *word || w.strip_suffix('s') == Some(*word));
            let numbered = like.contains('#') && words.any(is_word);
            if like.len() > 80 || !numbered {
                return None;
            }
            let next = u32::try_from(groups.len()).ok()?;
            Some(*groups.entry(like).or_insert(next))
        })
        .collect();
    if groups.is_empty() {
        return None;
    }
    // Ranges by group and thread.
    let mut found: FxHashMap<(u32, u32), Vec<Numbered>> = FxHashMap::default();
    for range in ranges.iter() {
        if matches!(range.origin, RangeOrigin::Python | RangeOrigin::Operator)
            || range.origin.is_hardware()
            || range.kind == RangeKind::StartEnd
        {
            continue;
        }
        if let Some(group) = group_of.get(range.name as usize).copied().flatten() {
            let pid = ranges.threads.get(range.thread as usize).map_or(0, |t| t.0);
            found.entry((group, range.thread)).or_default().push((range.start, range.end, pid));
        }
    }
    // Ranges that overlap on a thread are not steps. Candidates that cover the most time are tried first.
    let mut candidates: Vec<(i64, String, Vec<Numbered>)> = Vec::new();
    let mut names: Vec<String> = vec![String::new(); groups.len()];
    for (name, group) in groups {
        names[group as usize] = name;
    }
    for ((group, _), mut list) in found {
        list.sort_unstable();
        let apart = list.windows(2).all(|w| w[1].0 >= w[0].1.min(i64::MAX - 1));
        if let (true, Some(first), Some(last)) = (apart, list.first(), list.last()) {
            candidates.push((last.0.saturating_sub(first.0), names[group as usize].clone(), list));
        }
    }
    // `ProfilerStep` ranges are steps by definition; ranges of the optimizer and the data loader are parts of a step.
    let rank = |name: &str| match name {
        n if n.starts_with("ProfilerStep") => 0,
        n if n.starts_with("Optimizer.") || n.starts_with("enumerate(") => 2,
        _ => 1,
    };
    candidates.sort_by(|a, b| rank(&a.1).cmp(&rank(&b.1)).then(b.0.cmp(&a.0)).then_with(|| a.1.cmp(&b.1)));
    let (many, few): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| c.2.len() >= LEAST_STEPS);
    let mut best: Option<(i64, Starts)> = None;
    for (_, name, list) in many.into_iter().take(MOST_NAMES) {
        let Some((mut starts, mut end)) = on_devices(ops, &list, STANDS_FOR).filter(|f| f.0.len() >= LEAST_STEPS) else { continue };
        if !last_is_whole(&list) && starts.len() > LEAST_STEPS {
            end = starts.pop().unwrap_or(end);
        }
        let length = end - starts.first().copied().unwrap_or(end);
        // Prefer the longest stretch; among stretches of similar length, the one with the most steps.
        let better = best
            .as_ref()
            .is_none_or(|(b, (_, s, _))| length as f64 > *b as f64 * 1.4 || length as f64 > *b as f64 * 0.7 && starts.len() > s.len());
        let whole = rank(&name) == 0;
        if better {
            best = Some((length, (StepSource::Ranges(name), starts, end)));
        }
        if whole {
            break;
        }
    }
    best.map(|b| b.1).or_else(|| few.into_iter().take(MOST_NAMES).find_map(|(_, name, list)| few_steps(profile, ops, name, &list)))
}

/// Minimum share of the time between their starts that ranges must cover to be whole steps. Others mark a part of each
/// step, such as `Optimizer.step`: after the last of them, only that part of a step is recorded.
const WHOLE: f64 = 0.5;

/// Returns true if the last range of a list stands for a whole step.
fn last_is_whole(list: &[Numbered]) -> bool {
    let Some(((first, last), before)) = list.first().zip(list.last()).zip(list.len().checked_sub(1)) else { return true };
    let covered: i64 = list[..before].iter().map(|r| r.1.saturating_sub(r.0)).sum();
    covered as f64 >= WHOLE * last.0.saturating_sub(first.0) as f64
}

/// Accepts one or two ranges marked as steps if they contain most of the devices' work; what repeats inside them is
/// then part of a step, not a step itself.
fn few_steps(profile: &Profile, ops: &DeviceOps<'_>, name: String, list: &[Numbered]) -> Option<Starts> {
    let lower = name.to_ascii_lowercase();
    let holds_many =
        lower.split(|c: char| !c.is_ascii_alphabetic()).any(|w| CONTAINERS.iter().any(|c| w.strip_suffix('s').unwrap_or(w) == *c));
    // Ranges of frameworks that are parts of a step.
    if holds_many || name.starts_with("Optimizer.") || name.starts_with("enumerate(") {
        return None;
    }
    let (starts, end) = on_devices(ops, list, EXPLAINS)?;
    // The last step includes the time between its last operation and the end of its range.
    let until = list.last().map_or(end, |r| if was_left_open(profile, r.1) { end } else { end.max(clamp_time(r.1)) });
    Some((StepSource::Ranges(name), starts, until))
}

/// Returns true if a range with this end may have been open when the recording or the program ended, so that its end
/// says nothing: profilers then end all open ranges at the same nanosecond, after everything else that was recorded.
fn was_left_open(profile: &Profile, end: i64) -> bool {
    if end == i64::MAX || profile.ranges.iter().filter(|r| r.end == end).nth(1).is_some() {
        return true;
    }
    let ends_later = |start: &[i64], duration: &[i64]| start.iter().zip(duration).any(|(s, d)| s.saturating_add(*d) >= end);
    !(ends_later(&profile.calls.start, &profile.calls.duration)
        || ends_later(&profile.os_calls.start, &profile.os_calls.duration)
        || profile.ranges.iter().any(|r| r.end > end)
        || profile.states.last().is_some_and(|s| s.time >= end)
        || profile.samples.samples.iter().any(|s| s.time >= end))
}

/// Returns the start of each range's work on the devices, and the end of the last work; `None` if less than the share
/// `least` of all work was launched in the ranges.
fn on_devices(ops: &DeviceOps<'_>, list: &[Numbered], least: f64) -> Option<(Vec<i64>, i64)> {
    let (first, last) = (list.first()?, list.last()?);
    let mut begins: Vec<i64> = vec![i64::MAX; list.len()];
    // Copies on separate streams may run ahead of their step, so a step's start is determined by its kernels, if it has
    // any.
    let mut kernels: Vec<i64> = vec![i64::MAX; list.len()];
    let mut ends: Vec<i64> = vec![i64::MIN; list.len()];
    let mut end = i64::MIN;
    let (mut inside, mut all) = (0_i64, 0_i64);
    let mut latest = i64::MIN;
    for op in ops.iter() {
        let length = op.end.saturating_sub(op.start);
        all = all.saturating_add(length);
        let before = latest;
        latest = latest.max(op.end);
        let Some(call) = ops.find_call(&op).filter(|c| c.pid == first.2 && c.start >= first.0 && c.start < last.1) else { continue };
        // Assign by the time of the call, regardless of the thread, because autograd's threads also launch work of the
        // step.
        let Some(at) = list.partition_point(|r| r.0 <= call.start).checked_sub(1) else { continue };
        let begin = device_range_start(list[at].0, before, op.start);
        begins[at] = begins[at].min(begin);
        if op.class == Class::Kernel {
            kernels[at] = kernels[at].min(begin);
            ends[at] = ends[at].max(op.end);
        }
        end = end.max(op.end);
        inside = inside.saturating_add(length);
    }
    if (inside as f64) < least * all as f64 {
        return None;
    }
    let ahead = begins.iter().skip(1).zip(&ends).filter(|(begin, before)| begin < before).count();
    let with_kernels = kernels.iter().filter(|&&k| k < i64::MAX).count();
    if ahead * 5 > list.len() && with_kernels * 2 > list.len() {
        begins = kernels;
    }
    begins.retain(|&b| b < i64::MAX);
    begins.dedup();
    (!begins.is_empty() && begins.is_sorted()).then_some((begins, end))
}

/// Start of a range on the devices: its start on the host, moved to the end of the preceding work (`before`) if that is
/// later, but not beyond the range's first operation (`first`).
pub fn device_range_start(range: i64, before: i64, first: i64) -> i64 {
    clamp_time(range).max(before).min(first)
}
