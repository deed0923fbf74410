//! Unmarked steps, detected from repetition in the sequence of operations.

use super::copy_class::CopyClass;
use super::device_ops::{Class, DeviceOp, DeviceOps, OperationRow};
use super::step::{Counts, EXPLAINS, LEAST_STEPS, Starts, StepSource, lower_median};
use crate::model::{MemOpKind, Profile, RangeOrigin};
use rustc_hash::FxHashMap;

/// Maximum number of operations to search for a period.
const LOOKED_AT: usize = 200_000;
/// Lengths of the sequences of operations whose distance to their previous occurrence votes for a period.
const RUNS: [usize; 4] = [1, 2, 4, 8];
/// Maximum number of candidate periods per run length.
const MOST_CANDIDATES: usize = 16;
/// Share of operations that may deviate, e.g. by being out of order, even if the best candidate deviates less.
const SLIPS: f64 = 0.005;
/// Share of operations that must repeat one period later.
const REPEATS: f64 = 0.9;
/// Minimum step length, ns: faster repetitions are inner loops.
pub const SHORTEST_NS: i64 = 50_000;

/// Identity of an operation: its kind, and two numbers that tell it apart from others of that kind.
type Symbol = (u8, u64, u64);

/// Returns the identity of an operation; repetitions of the same work have the same identity.
fn op_symbol(profile: &Profile, ops: &DeviceOps<'_>, op: &DeviceOp) -> Symbol {
    match op.row {
        OperationRow::Launch(row) => {
            let row = row as usize;
            (0, u64::from(profile.launches.kernel(row).0), profile.launches.config(row).map_or(0, |c| u64::from(c.0)))
        }
        OperationRow::Graph(g) => (1, profile.graphs.get(g as usize).map_or(0, |g| g.graph), 0),
        OperationRow::Mem(_) => {
            let mem = ops.mem_of(op);
            let kind = match mem.map(|m| m.kind) {
                Some(MemOpKind::Copy { kind, .. }) => kind as u64 + 1,
                _ => 0,
            };
            (2, kind, mem.and_then(|m| m.bytes).map_or(0, |b| b.0))
        }
    }
}

/// Finds steps as repetitions in the sequence of operations on the device with the most operations. With `copies`, the
/// sequence includes copies; their number may vary, e.g. because of logging.
pub fn by_period(profile: &Profile, ops: &DeviceOps<'_>, counts: &[Counts], copies: bool) -> Option<Starts> {
    let all = |c: &Counts| c.kernels + if copies { c.copies } else { 0 };
    let unit = (0..counts.len()).max_by_key(|&u| (all(&counts[u]), std::cmp::Reverse(u)))?;
    let total = all(&counts[unit]);
    if total < LEAST_STEPS * 2 || copies && counts[unit].copies == 0 {
        return None;
    }
    let mine = || {
        ops.iter().filter(move |o| {
            o.unit == unit && (o.class != Class::Copy || copies && ops.mem_of(o).is_some_and(|m| CopyClass::from_mem_op(&m).of_host()))
        })
    };
    let mut ids: FxHashMap<Symbol, u32> = FxHashMap::default();
    let mut symbols: Vec<Symbol> = Vec::new();
    let number = |op: DeviceOp| {
        let symbol = op_symbol(profile, ops, &op);
        *ids.entry(symbol).or_insert_with(|| {
            symbols.push(symbol);
            u32::try_from(symbols.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let sample: Vec<u32> = mine().skip(total.saturating_sub(LOOKED_AT) / 2).take(LOOKED_AT).map(number).collect();
    let period = find_period(&sample)?;
    // The least frequent operation in a period marks its start.
    let mut often: FxHashMap<u32, usize> = FxHashMap::default();
    for &s in &sample {
        *often.entry(s).or_default() += 1;
    }
    let periods = sample.len() as f64 / period as f64;
    let per = |s: &u32| (often.get(s).copied().unwrap_or_default() as f64 / periods).round() as usize;
    let anchor = sample.iter().copied().filter(|s| per(s) >= 1).min_by_key(|s| (per(s), *s))?;
    let (each, anchor) = (per(&anchor).max(1), *symbols.get(anchor as usize)?);
    // One mark per period: index and start of the operation, and the latest end of any earlier operation.
    let mut marks: Vec<(usize, i64, i64)> = Vec::new();
    let mut calls: Vec<Option<i64>> = Vec::new();
    let (mut last_end, mut seen, mut many) = (i64::MIN, 0, 0);
    for (at, op) in mine().enumerate() {
        if op_symbol(profile, ops, &op) == anchor {
            if seen % each == 0 {
                marks.push((at, op.start, last_end));
                calls.push(ops.find_call(&op).map(|c| c.start));
            }
            seen += 1;
        }
        last_end = last_end.max(op.end);
        many = at + 1;
    }
    // Keep the stretch between the first and the last pair of marks that are one period apart, within 10 %.
    let near = |w: &[(usize, i64, i64)]| (w[1].0 - w[0].0).abs_diff(period) * 10 <= period;
    let first = marks.windows(2).position(near)?;
    let last = marks.windows(2).rposition(near)? + 1;
    let next = marks.get(last + 1).copied().unwrap_or((many, last_end, last_end));
    // The recording may end in the middle of the last repetition.
    let (last, end) =
        if near(&[marks[last], next]) || next.0 > marks[last].0 + period { (last, next.2) } else { (last - 1, marks[last].2) };
    let steps = &marks[first..=last];
    let good = steps.windows(2).filter(|w| near(w)).count();
    let enough =
        steps.len() >= LEAST_STEPS && good * 10 >= (steps.len() - 1) * 8 && steps.len() * period >= (total as f64 * EXPLAINS) as usize;
    let starts: Vec<i64> = steps.iter().map(|s| s.1).collect();
    let usual = lower_median(starts.windows(2).map(|w| w[1] - w[0]).collect())?;
    if !enough || usual < SHORTEST_NS || calls[first].zip(calls[last]).is_some_and(|(a, b)| one_pass(profile, a, b)) {
        return None;
    }
    Some((StepSource::Period(period), starts, end))
}

/// Returns true if both calls are inside the same operator or the same call of a PyTorch module. What repeats between
/// them is then the layers of a single pass, not steps.
fn one_pass(profile: &Profile, first: i64, last: i64) -> bool {
    let ranges = &profile.ranges;
    ranges.iter().any(|r| {
        let pass = match r.origin {
            RangeOrigin::Operator => true,
            RangeOrigin::Python => ranges.names.get(r.name as usize).is_some_and(|n| n.1.starts_with("nn.Module: ")),
            _ => false,
        };
        pass && r.start <= first && last < r.end
    })
}

/// Returns the smallest shift at which nearly all of a sequence repeats; `None` if that shift is 1, or if nothing
/// repeats.
pub fn find_period(sequence: &[u32]) -> Option<usize> {
    if sequence.len() < LEAST_STEPS * 2 {
        return None;
    }
    // Operations that run once per step vote for the period itself, those in inner loops for shorter ones. If every
    // kernel is in an inner loop, some pair or longer run of kernels occurs once per step.
    let mut candidates: Vec<(usize, usize)> = Vec::new();
    for run in RUNS {
        let mut last: FxHashMap<&[u32], usize> = FxHashMap::default();
        let mut votes: FxHashMap<usize, usize> = FxHashMap::default();
        for (at, run) in sequence.windows(run).enumerate() {
            if let Some(before) = last.insert(run, at) {
                *votes.entry(at - before).or_default() += 1;
            }
        }
        let mut voted: Vec<(usize, usize)> = votes.into_iter().filter(|v| v.0 > 1 && v.0 * LEAST_STEPS <= sequence.len()).collect();
        voted.sort_by_key(|v| (std::cmp::Reverse(v.1), v.0));
        candidates.extend(voted.into_iter().take(MOST_CANDIDATES));
    }
    candidates.sort_unstable();
    candidates.dedup_by_key(|c| c.0);
    let matches = |p: usize| {
        let same = sequence.iter().zip(&sequence[p..]).filter(|(a, b)| a == b).count();
        same as f64 / (sequence.len() - p) as f64
    };
    let mut scored: Vec<(usize, f64)> = candidates.into_iter().map(|(p, _)| (p, matches(p))).collect();
    let best = scored.iter().map(|s| s.1).fold(0.0, f64::max);
    // A single repeating kernel does not form steps.
    let one = matches(1);
    if best < REPEATS || 1.0 - one <= (1.0 - best).max(SLIPS / 4.0) * 4.0 {
        return None;
    }
    scored.sort_by_key(|s| s.0);
    scored.into_iter().find(|s| 1.0 - s.1 <= ((1.0 - best) * 2.0).max(SLIPS)).map(|s| s.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_that_of_the_outer_loop() {
        let mut step: Vec<u32> = vec![9];
        for _ in 0..6 {
            step.extend([1, 2, 3]);
        }
        step.extend([4, 5]);
        let run: Vec<u32> = step.iter().copied().cycle().take(step.len() * 7 + 3).collect();
        assert_eq!(find_period(&run), Some(step.len()));
        assert_eq!(find_period(&[1; 50]), None);
        // No kernel occurs once per step; only the pair at the boundary of two loops does.
        let loops: Vec<u32> = [[1, 2].repeat(8), [3, 4, 5].repeat(24)].concat().repeat(12);
        assert_eq!(find_period(&loops), Some(88));
        let random: Vec<u32> = (0..300_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
        assert_eq!(find_period(&random), None);
    }
}
