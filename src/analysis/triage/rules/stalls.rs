//! Rule: a few steps take much longer than the others.

use super::host::SERVER_WAITS;
use crate::analysis::triage::finding::{Finding, LEAST_SHARE, Place, PlaceKind, Sure};
use crate::analysis::triage::os::{is_file_call, os_calls_in};
use crate::analysis::triage::piece::Piece;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::step_sketch::{Sketch, group_steps};
use crate::analysis::triage::steps::{StepSource, lower_median};
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::{ByCause, Cause};
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;

/// Minimum multiple of the median length for a step to be an outlier (in triage practice, p95/p50 above 1.5).
const OUTLIER: f64 = 1.5;
/// Minimum share of a cause's idle time that must lie in the slow steps for this finding to make the one about the
/// cause redundant.
const EXPLAINED: f64 = 0.7;
/// Maximum share of outliers among the steps.
const FEW: f64 = 0.25;
/// Maximum share of the slow steps' extra time that a single step may account for; beyond it, the step is an accident.
const MOSTLY_ONE: f64 = 0.6;
/// Reciprocal of the share from which calls are mentioned: those for files, of the extra time, and a single one, of the
/// time in all calls.
const PART: f64 = 10.0;
/// Number of OS calls that the finding names.
const NAMED_CALLS: usize = 3;
/// Minimum number of steps to detect outliers.
const STEPS: usize = 8;

/// Label of the number of slow steps.
const SLOW_STEPS: &str = "slow steps";
/// Minimum number of slow steps that are no accident.
const AGAIN: f64 = 3.0;

/// Label of the extra time, if most of it is kernels.
const OF_KERNELS: &str = "of it kernels";

/// Returns true for slow steps whose extra time is mostly kernels: it does not keep the GPU from being the limit.
pub fn is_of_kernels(finding: &Finding) -> bool {
    finding.id == Verdict::PeriodicStall && finding.evidence.iter().any(|e| e.name == OF_KERNELS)
}

/// Returns true if there are enough slow steps for them to be no accident.
pub fn recurs(finding: &Finding) -> bool {
    finding.evidence.iter().any(|e| e.name == SLOW_STEPS && e.value >= AGAIN)
}

/// The largest part of the slow steps' extra time over the usual step, ns; `None` if it is kernels.
struct Extra {
    cause: Option<Cause>,
    ns: i64,
}

/// Returns the longest idle interval with this cause in the slowest step: it is the best place to look at.
fn idle_place(case: &RunContext<'_>, cause: Option<Cause>, slow: &[usize]) -> Option<Place> {
    let steps = &case.steps.list;
    let within = |piece: &&Piece| slow.iter().any(|&i| steps[i].start <= piece.start && piece.start < steps[i].end);
    let pieces = case.pieces_again(cause?);
    let piece = pieces.iter().filter(within).max_by_key(|p| (p.gap.1 - p.gap.0, p.end - p.start))?;
    let (start, end) = piece.gap;
    Some(Place { kind: PlaceKind::Window, name: "the longest idle time".to_owned(), start, end, ns: Some(end - start), rank: None })
}

/// Some steps take much longer than others that run the same kernels.
pub fn periodic_stall(case: &RunContext<'_>) -> Option<Finding> {
    let sketches: Vec<Sketch> = case.per_step.iter().map(|s| s.kernels).collect();
    let all: Vec<usize> = (0..case.steps.list.len()).collect();
    // With too many steps, the work of individual steps is not kept.
    let kinds = if sketches.is_empty() { vec![all] } else { group_steps(&sketches, &case.steps.list) };
    let found = kinds.iter().filter_map(|kind| find_stall(case, kind));
    found.max_by(|a, b| a.stake.total_cmp(&b.stake))
}

/// Returns true if most slow steps launch the same work as the others, so that additional work is not the reason.
fn same_launches(case: &RunContext<'_>, slow: &[usize], usual: &[usize]) -> bool {
    let of = |i: usize| case.per_step.get(i).map(|s| s.launches);
    let Some(model) = usual.get(usual.len() / 2).and_then(|&i| of(i)) else { return true };
    let like = slow.iter().filter(|&&i| of(i).is_some_and(|s| s.is_similar(&model))).count();
    like * 2 > slow.len()
}

/// Returns true if each slow step launches more than any of the others, e.g. an update after several steps or an
/// occasional collective.
fn more_launches(case: &RunContext<'_>, slow: &[usize], usual: &[usize]) -> bool {
    let count = |&i: &usize| case.per_step.get(i).map(|s| s.kernels.total_launches());
    let (least, most) = (slow.iter().filter_map(count).min(), usual.iter().filter_map(count).max());
    least.zip(most).is_some_and(|(least, most)| least > most)
}

/// Steps of one kind, split by length.
struct StepsByLength {
    slow: Vec<usize>,
    others: Vec<usize>,
    /// Median length, ns.
    usual: i64,
    /// Total time by which the slow steps exceed the median, ns.
    extra: i64,
}

/// Steps that take much longer than the others, unless they are an accident or the warm-up.
fn slow_steps(case: &RunContext<'_>, kind: &[usize]) -> Option<StepsByLength> {
    let steps = &case.steps.list;
    if kind.len() < STEPS {
        return None;
    }
    let usual = lower_median(kind.iter().map(|&i| steps[i].length()).collect())?;
    let (slow, others): (Vec<usize>, Vec<usize>) = kind.iter().partition(|&&i| steps[i].length() as f64 > usual as f64 * OUTLIER);
    // A single slow step is an accident or the start of the capture, and slow steps that are frequent are no exception.
    if slow.len() < 2 || slow.len() as f64 > kind.len() as f64 * FEW {
        return None;
    }
    let extra: i64 = slow.iter().map(|&i| steps[i].length() - usual).sum();
    // Several slow steps also count as an accident if one of them accounts for most of the extra time.
    let longest = slow.iter().map(|&i| steps[i].length() - usual).max().unwrap_or(0);
    // If only steps at the beginning are slow, they are warm-up.
    let accident = longest as f64 > extra as f64 * MOSTLY_ONE || slow.iter().all(|&i| i * 5 < steps.len());
    (extra as f64 / case.length() as f64 >= LEAST_SHARE && !accident).then_some(StepsByLength { slow, others, usual, extra })
}

/// Says how many of `all` steps take how long, by their medians: `12 of 400 steps take 3.1 ms`. Few steps that are much
/// longer than the other slow ones, and hold most of the extra time, are named apart. `slow` contains the lengths, ns,
/// longest first.
fn count_slow(slow: &[i64], all: usize, usual: i64) -> String {
    let median = |of: &[i64]| format_ns(lower_median(of.to_vec()).unwrap_or_default() as f64);
    let extra = |of: &[i64]| of.iter().map(|ns| ns - usual).sum::<i64>();
    let (long, others) = slow.split_at(slow.partition_point(|ns| (ns - usual) * 2 >= slow[0] - usual));
    if long.len() * 4 <= slow.len() && extra(long) * 2 > extra(slow) {
        return format!("{} of {all} steps take {}, and {} take {},", long.len(), median(long), others.len(), median(others));
    }
    format!("{} of {all} steps take {}", slow.len(), median(slow))
}

/// Finds the steps of one kind that take much longer than the others.
fn find_stall(case: &RunContext<'_>, kind: &[usize]) -> Option<Finding> {
    let base = case.base;
    let steps = &case.steps.list;
    let StepsByLength { slow, others, usual, extra } = slow_steps(case, kind)?;
    let share = extra as f64 / case.length() as f64;
    let fill = main_extra_time(case, &slow, &others, usual);
    // A server without requests does not stall.
    if fill.cause == Some(Cause::NoRequests) {
        return None;
    }
    // If the extra time is spent in kernels and the launches differ, the step simply does more work.
    if fill.cause.is_none() && !case.per_step.is_empty() && (!same_launches(case, &slow, &others) || more_launches(case, &slow, &others)) {
        return None;
    }
    // If all outlier gaps are in these steps, they are the same problem.
    let in_slow = |at: i64| case.steps.step_at(at).is_some_and(|s| slow.contains(&s));
    let calls = fill.cause.map(|cause| os_calls_in(case, cause, |p| in_slow(p.start))).unwrap_or_default();
    let time_in = |wanted: &dyn Fn(&str) -> bool| calls.iter().filter(|c| wanted(&c.0)).filter_map(|c| c.1.ns).sum::<i64>();
    let most_of = |ns: i64| ns as f64 * 2.0 > fill.ns as f64 * device_count(case);
    let mut what = fill.cause.map_or_else(|| "the GPU computing longer".to_owned(), |c| format!("the host {}", c.as_text()));
    // The other calls are poll and the like; files that are written in between tell what the program does.
    let (in_calls, in_files) = (time_in(&|_| true), time_in(&is_file_call));
    let files = in_files * 2 > in_calls && in_files as f64 * PART > fill.ns as f64 * device_count(case);
    if most_of(in_calls) || files {
        let part = if most_of(in_calls) { "" } else { ", part of the time" };
        let large = calls.iter().filter(|c| c.1.ns.is_some_and(|ns| ns as f64 * PART >= in_calls as f64));
        let names: Vec<&str> = large.take(NAMED_CALLS).map(|c| c.0.as_str()).collect();
        what = format!("{what}{part} in {}", join_names(&names));
    }
    let apart: Vec<i64> = slow.windows(2).map(|w| i64::from(steps[w[1]].number) - i64::from(steps[w[0]].number)).collect();
    let every = lower_median(apart.clone()).filter(|&m| apart.len() >= 2 && apart.iter().all(|a| (a - m).abs() <= 1));
    let when = every.map_or_else(String::new, |n| format!(", every {n} steps"));
    let mut longest: Vec<usize> = slow.clone();
    longest.sort_by_key(|&i| std::cmp::Reverse(steps[i].length()));
    let inside = fill.cause.is_some_and(|c| fill.ns as f64 * device_count(case) >= EXPLAINED * case.idle.get(c) as f64);
    let host = fill.cause.is_some();
    let mut single = case.single.iter().flat_map(|s| &s.gaps).peekable();
    let alone = single.peek().is_some() && single.all(|(_, piece)| in_slow(piece.start));
    let finding = Finding::new(
        Verdict::PeriodicStall,
        share,
        format!(
            "{} instead of {}{when}: {} of {base}, mostly {what}",
            count_slow(&longest.iter().map(|&i| steps[i].length()).collect::<Vec<_>>(), kind.len(), usual),
            format_ns(usual as f64),
            format_share(share)
        ),
    )
    .with_gain_basis("what the slow steps take beyond the median step")
    .with_number(SLOW_STEPS, slow.len() as f64, "")
    .with_number(if kind.len() < steps.len() { "steps that run the same" } else { "steps" }, kind.len() as f64, "")
    .with_number("the median step", usual as f64, "ns")
    .with_number("extra time", extra as f64, "ns")
    .with_number(&fill.cause.map_or_else(|| OF_KERNELS.to_owned(), |c| format!("of it {}", c.as_text())), fill.ns as f64, "ns")
    .with_places(longest.iter().take(5).map(|&i| Place {
        kind: PlaceKind::Step,
        name: format!("step {}", steps[i].number),
        start: steps[i].start,
        end: steps[i].end,
        ns: Some(steps[i].length()),
        rank: None,
    }))
    .with_places(idle_place(case, fill.cause, &longest[..1]))
    .with_places(calls.iter().take(NAMED_CALLS).map(|c| c.1.clone()))
    // If the cause's idle time is mostly in these steps, a separate finding about the cause adds nothing.
    .with_explained(fill.cause.filter(|_| inside).and_then(verdict_of))
    .with_explained(alone.then_some(Verdict::SingleDelay));
    // Two slow steps may be an accident, the cause may not have been recorded, and steps detected from the host's waits
    // may do different work.
    let unclear = (slow.len() as f64) < AGAIN
        || matches!(case.steps.found, Some(StepSource::Waits(_)))
        || matches!(fill.cause, Some(Cause::Unknown | Cause::NoCall | Cause::Compile));
    let unclear = unclear || (files && !most_of(in_files));
    let finding = if unclear { finding.with_confidence(Sure::Likely) } else { finding };
    // Only possible: kernels that take longer may have more work, because the report does not record the size of their
    // data, and a loop that is not marked as steps may be waiting for work like a server without requests.
    let idles = fill.cause == Some(Cause::Wait) && !files && !matches!(case.steps.found, Some(StepSource::Ranges(_)));
    let finding = if fill.cause.is_none() || idles { finding.with_confidence(Sure::Possible) } else { finding };
    Some(if idles {
        finding.with_actions(&[
            SERVER_WAITS,
            "Else find what happens only in these steps: checkpoints, evaluation, logging, a refill of the input queue; take it off the launching thread.",
        ])
    } else if files {
        finding.with_actions(&[
            "Write from a background thread, from a copy of the data, so that the launching thread goes on.",
            "Write less often or less at a time; keep files open between the steps that write them.",
        ])
    } else if host {
        finding.with_actions(&[
            "Find what happens only in these steps: checkpoints, evaluation, logging, garbage collection, a new shape, a refill of the input queue.",
            "Take it off the launching thread (asynchronous checkpoints, a background thread), or spread it over the steps.",
        ])
    } else {
        finding.with_actions(&[
            "Compare the kernels of a slow step with those of a usual one: more of them, larger shapes, another algorithm, or the same ones slower.",
            "If collectives take the time, look at the other ranks: one of them is late in these steps.",
        ])
    })
}

/// Names as in a sentence: `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn device_count(case: &RunContext<'_>) -> f64 {
    case.devices.len().max(1) as f64
}

/// Verdict that would report this cause for the run as a whole, if there is one.
fn verdict_of(cause: Cause) -> Option<Verdict> {
    match cause {
        Cause::Compute | Cause::Unknown => Some(Verdict::HostCompute),
        Cause::Wait => Some(Verdict::InputWait),
        Cause::Sync => Some(Verdict::HostSync),
        Cause::Launch => Some(Verdict::LaunchBound),
        Cause::CopyCall => Some(Verdict::CopyBound),
        _ => None,
    }
}

/// Determines the main component of the extra time in the slow steps.
fn main_extra_time(case: &RunContext<'_>, slow: &[usize], others: &[usize], usual: i64) -> Extra {
    let steps = &case.steps.list;
    let (mut in_slow, mut in_usual, mut n_usual) = (ByCause::default(), ByCause::default(), 0_i64);
    for (i, time) in case.per_step.iter().enumerate() {
        if slow.binary_search(&i).is_ok() {
            in_slow.add_all(&time.idle);
        } else if others.binary_search(&i).is_ok() {
            in_usual.add_all(&time.idle);
            n_usual += 1;
        }
    }
    let slow_n = i64::try_from(slow.len()).unwrap_or(1);
    let beyond = |cause: Cause| in_slow.get(cause) - in_usual.get(cause) / n_usual.max(1) * slow_n;
    let devices = i64::try_from(case.devices.len().max(1)).unwrap_or(1);
    let idle = Cause::ALL.into_iter().map(|c| (beyond(c) / devices, c)).max_by_key(|e| e.0);
    let extra: i64 = slow.iter().map(|&i| steps[i].length() - usual).sum();
    match idle {
        Some((ns, cause)) if ns * 2 > extra => Extra { cause: Some(cause), ns },
        Some((ns, cause)) if ns > extra - Cause::ALL.into_iter().map(|c| beyond(c) / devices).sum::<i64>() => {
            Extra { cause: Some(cause), ns }
        }
        _ => Extra { cause: None, ns: extra - Cause::ALL.into_iter().map(|c| beyond(c) / devices).sum::<i64>().min(extra) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_long_steps_are_named_apart_from_the_other_slow_ones() {
        let ms = |of: &[i64]| of.iter().map(|n| n * 1_000_000).collect::<Vec<_>>();
        // Mean and median of these differ by little.
        assert_eq!(count_slow(&ms(&[9, 8, 8, 7]), 100, 2_000_000), "4 of 100 steps take 8.00 ms");
        // Five pauses of a server between its loads, and 21 slower tokens.
        let mut slow = ms(&[319, 315, 304, 302, 247]);
        slow.extend(ms(&[4; 21]));
        assert_eq!(count_slow(&slow, 4172, 2_000_000), "5 of 4172 steps take 304 ms, and 21 take 4.00 ms,");
        // Many steps that take more than half as long as the longest are one group.
        assert_eq!(count_slow(&ms(&[9, 9, 9, 3]), 100, 2_000_000), "4 of 100 steps take 9.00 ms");
    }
}
