//! Distinguishes steps, each of which runs all of the code, from repetitions within one pass, such as layers or the
//! parameters of an optimizer.

use super::ledger::Ledger;
use super::sites::Sites;
use crate::model::api_call::NONE;
use crate::model::{Frame, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

/// Code that runs in less than this share of the repetitions counts as run by only a few.
const FEW: f64 = 1.0 / 3.0;

/// Returns true if a function is the body of a module, by its name in `PyTorch`.
fn is_forward(frame: &Frame) -> bool {
    frame.function.as_ref() == "forward"
}

/// Returns true if a stack is inside a model or an optimizer, by PyTorch's method names.
pub fn is_in_model(sites: &Sites, stack: u32) -> bool {
    sites.stacks.frames_of(stack).any(|f| {
        is_forward(f)
            || matches!(f.function.as_ref(), "_call_impl" | "_wrapped_call_impl")
            || f.file.contains("torch/nn/modules/module.py")
            || f.file.contains("torch/optim/")
            || f.function.starts_with("Optimizer.step#")
    })
}

/// Returns true if repetitions that start at these times are parts of a single pass. That is the case if one of
/// PyTorch's ranges `ProfilerStep#…` or `Optimizer.…` contains them all, if more happens outside of them than inside,
/// or if the last one goes on to code of the same `forward` that the others do not run.
pub fn of_one_pass(profile: &Profile, sites: &Sites, ledger: &Ledger, starts: &[i64]) -> bool {
    let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return false };
    let at = |time: i64| ledger.times.partition_point(|&t| t < time);
    let (from, to) = (at(first), at(last));
    let usual = (to - from) / (starts.len() - 1).max(1);
    if mostly_outside(ledger, from, to + usual) {
        return true;
    }
    let names = &profile.ranges.names;
    let one_step = |name: u32| names.get(name as usize).is_some_and(|(_, n)| n.starts_with("Optimizer.") || n.starts_with("ProfilerStep#"));
    let around = |r: &crate::model::Range| r.start <= first && r.end >= last && r.end < i64::MAX;
    if profile.ranges.iter().any(|r| around(&r) && one_step(r.name)) {
        return true;
    }
    goes_on(sites, ledger, starts)
}

/// Returns true if more blocks are allocated and freed before the first or after the last repetition than within them.
/// Blocks that stay, such as those of a model being loaded, do not count.
fn mostly_outside(ledger: &Ledger, from: usize, to: usize) -> bool {
    let (mut within, mut outside) = (0_usize, 0_usize);
    for life in ledger.lives.iter().filter(|l| l.start != NONE && l.end != NONE) {
        let (start, end) = (life.start as usize, life.end as usize);
        if (from..to).contains(&start) {
            within += 1;
        } else if end < from || start >= to {
            outside += 1;
        }
    }
    outside > within
}

/// Returns true if the last repetition runs lines of the outermost `forward` that few others run: the part of a model
/// after its layers.
fn goes_on(sites: &Sites, ledger: &Ledger, starts: &[i64]) -> bool {
    let outermost: Vec<Option<&Frame>> = (0..u32::try_from(sites.stacks.len()).unwrap_or(0))
        .map(|stack| sites.stacks.frames_of(stack).rev().find(|f| is_forward(f)))
        .collect();
    let mut run: FxHashMap<&Frame, FxHashSet<usize>> = FxHashMap::default();
    for life in ledger.lives.iter().filter(|l| l.start != NONE) {
        let Some(frame) = outermost.get(life.stack as usize).copied().flatten() else { continue };
        let time = ledger.event_time(life.start);
        if let Some(step) = starts.partition_point(|&s| s <= time).checked_sub(1) {
            run.entry(frame).or_default().insert(step);
        }
    }
    let (steps, last) = (starts.len(), starts.len() - 1);
    let in_most = |f: &Frame| {
        run.iter()
            .any(|(other, of)| (&other.function, &other.file) == (&f.function, &f.file) && other.line != f.line && of.len() * 2 > steps)
    };
    run.iter().any(|(frame, of)| of.contains(&last) && (of.len() as f64) < FEW * steps as f64 && in_most(frame))
}
