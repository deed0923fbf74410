//! Steps that the program or its framework wrote down: ranges that number them.

use super::ops::{Class, Ops, sane};
use super::step::{EXPLAINS, Found, LEAST, Starts};
use crate::analysis::like::like;
use crate::model::{LaunchOrder, Profile, RangeKind, RangeOrigin};
use rustc_hash::FxHashMap;

/// Names of ranges that are looked at.
const MOST_NAMES: usize = 8;
/// Share of the devices' work that must lie in ranges that number steps: else they are a part of the run, not what it does.
const STANDS_FOR: f64 = 0.2;
/// Words of ranges that number what may hold many steps: one or two of these are no steps.
const CONTAINERS: &[&str] = &["epoch", "sweep", "request"];
/// Words of ranges that number what a program does over and over.
const WORDS: &[&str] = &["step", "iter", "batch", "decode", "token", "frame", "epoch", "timestep", "sweep", "cycle", "tick", "request"];

/// A range that may be a step: its start, its end, and the process.
type Numbered = (i64, i64, u32);

/// The steps that ranges number, if there are any.
#[must_use]
pub fn by_ranges(profile: &Profile, ops: &Ops<'_>) -> Option<Starts> {
    if !matches!(profile.order, LaunchOrder::Host | LaunchOrder::Partly(_)) {
        return None;
    }
    let ranges = &profile.ranges;
    // Names that have a number and a word for a step, or are nothing but a numbered word.
    let mut groups: FxHashMap<String, u32> = FxHashMap::default();
    let group_of: Vec<Option<u32>> = ranges
        .names
        .iter()
        .map(|(_, name)| {
            let like = like(name);
            let lower = like.to_ascii_lowercase();
            // A number, and the word for what is numbered; not a part of another word (`tokenizer`, `BatchNorm`).
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
    // By group and thread.
    let mut found: FxHashMap<(u32, u32), Vec<Numbered>> = FxHashMap::default();
    for range in ranges.iter() {
        if matches!(range.origin, RangeOrigin::Python | RangeOrigin::Operator)
            || range.origin.hardware()
            || range.kind == RangeKind::StartEnd
        {
            continue;
        }
        if let Some(group) = group_of.get(range.name as usize).copied().flatten() {
            let pid = ranges.threads.get(range.thread as usize).map_or(0, |t| t.0);
            found.entry((group, range.thread)).or_default().push((range.start, range.end, pid));
        }
    }
    // Steps come one after the other. Those that last the longest are looked at.
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
    // PyTorch's profiler numbers the steps that it was told of; what its optimizer and loader mark are parts of a step.
    let rank = |name: &str| match name {
        n if n.starts_with("ProfilerStep") => 0,
        n if n.starts_with("Optimizer.") || n.starts_with("enumerate(") => 2,
        _ => 1,
    };
    candidates.sort_by(|a, b| rank(&a.1).cmp(&rank(&b.1)).then(b.0.cmp(&a.0)).then_with(|| a.1.cmp(&b.1)));
    let (many, few): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|c| c.2.len() >= LEAST);
    let mut best: Option<(i64, Starts)> = None;
    for (_, name, list) in many.into_iter().take(MOST_NAMES) {
        let Some((starts, end)) = on_devices(ops, &list, STANDS_FOR).filter(|f| f.0.len() >= LEAST) else { continue };
        let length = end - starts.first().copied().unwrap_or(end);
        // The longest stretch; of those about as long the most steps.
        let better = best
            .as_ref()
            .is_none_or(|(b, (_, s, _))| length as f64 > *b as f64 * 1.4 || length as f64 > *b as f64 * 0.7 && starts.len() > s.len());
        let whole = rank(&name) == 0;
        if better {
            best = Some((length, (Found::Ranges(name), starts, end)));
        }
        if whole {
            break;
        }
    }
    best.map(|b| b.1).or_else(|| few.into_iter().take(MOST_NAMES).find_map(|(_, name, list)| few_steps(ops, name, &list)))
}

/// One or two ranges that somebody wrote as steps, where they hold most of the devices' work: what repeats inside of them are its parts.
fn few_steps(ops: &Ops<'_>, name: String, list: &[Numbered]) -> Option<Starts> {
    let lower = name.to_ascii_lowercase();
    let holds_many =
        lower.split(|c: char| !c.is_ascii_alphabetic()).any(|w| CONTAINERS.iter().any(|c| w.strip_suffix('s').unwrap_or(w) == *c));
    // Parts of a step, as frameworks mark them.
    if holds_many || name.starts_with("Optimizer.") || name.starts_with("enumerate(") {
        return None;
    }
    let (starts, end) = on_devices(ops, list, EXPLAINS)?;
    // Time after the last operation belongs to the step, too.
    let until = list.last().map_or(end, |r| if r.1 == i64::MAX { end } else { end.max(sane(r.1)) });
    Some((Found::Ranges(name), starts, until))
}

/// When the work of each range began on the devices, and when the last of it ended; `None` where that is less than a share of all their work.
fn on_devices(ops: &Ops<'_>, list: &[Numbered], least: f64) -> Option<(Vec<i64>, i64)> {
    let (first, last) = (list.first()?, list.last()?);
    let mut begins: Vec<i64> = vec![i64::MAX; list.len()];
    // Copies on streams of their own run ahead of the step that they are for: kernels say when it begins, where there are any.
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
        let Some(call) = ops.call(&op).filter(|c| c.pid == first.2 && c.start >= first.0 && c.start < last.1) else { continue };
        // Autograd's threads launch inside of a step, too: only the time counts.
        let Some(at) = list.partition_point(|r| r.0 <= call.start).checked_sub(1) else { continue };
        let begin = since(list[at].0, before, op.start);
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

/// When a range's time on the devices begins: with the range, as soon as they are done with what ran `before`, and no later than its first operation.
#[must_use]
pub fn since(range: i64, before: i64, first: i64) -> i64 {
    sane(range).max(before).min(first)
}
