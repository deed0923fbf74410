//! The steps of a run: what it does over and over. From ranges that number them, else from the sequence of its operations.

use super::copies::CopyClass;
use super::intervals::Intervals;
use super::ops::{Class, Op, Ops, Row, sane};
use crate::analysis::like::like;
use crate::model::{LaunchOrder, MemOpKind, Profile, RangeKind, RangeOrigin};
use rustc_hash::FxHashMap;

/// How many operations a device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels, collectives, graphs.
    pub kernels: usize,
    /// Copies between host and device.
    pub copies: usize,
}

/// How steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Ranges of this name, their numbers left out: `step #`.
    Ranges(String),
    /// Each launch of a CUDA graph is one.
    Graphs,
    /// The sequence of operations repeats after so many.
    Period(usize),
}

/// One step on the devices: from its first operation to the first of the next step, or to its own last. A step that a range marks begins with the
/// range, as soon as the devices are done with what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
    /// Its place among all steps of the run, from 0.
    pub number: u32,
}

impl Step {
    #[must_use]
    pub fn length(&self) -> i64 {
        self.end - self.start
    }
}

/// Time that is not judged, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub what: String,
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
}

/// The steps of a run that count, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    pub found: Option<Found>,
    /// By time.
    pub list: Vec<Step>,
    pub left_out: Vec<LeftOut>,
}

/// Steps below which nothing repeats.
const LEAST: usize = 3;
/// Steps at the beginning that take this many times the median are warm-up.
const WARM_UP: f64 = 1.5;
/// Operations of which the period is looked for.
const LOOKED_AT: usize = 200_000;
/// Lengths of runs of operations whose distances are looked at.
const RUNS: [usize; 4] = [1, 2, 4, 8];
/// Names of ranges that are looked at.
const MOST_NAMES: usize = 8;
/// Periods that are tried for each.
const MOST_CANDIDATES: usize = 16;
/// Share of operations that may come out of turn in the best of all cases.
const SLIPS: f64 = 0.005;
/// Share of operations that must come again one period later.
const REPEATS: f64 = 0.9;
/// Share of all operations that a period must explain: else it is one loop among others.
const EXPLAINS: f64 = 0.5;

/// Share of the devices' work that must lie in ranges that number steps: else they are a part of the run, not what it does.
const STANDS_FOR: f64 = 0.2;
/// What repeats faster than this is an inner loop, ns.
const SHORTEST_NS: i64 = 50_000;

/// Words of ranges that number what may hold many steps: one or two of these are no steps.
const CONTAINERS: &[&str] = &["epoch", "sweep", "request"];

/// Words of ranges that number what a program does over and over.
const WORDS: &[&str] = &["step", "iter", "batch", "decode", "token", "frame", "epoch", "timestep", "sweep", "cycle", "tick", "request"];

impl Steps {
    /// Finds the steps of a run whose operations lie in `span`.
    #[must_use]
    pub fn of(profile: &Profile, ops: &Ops<'_>, span: (i64, i64), counts: &[Counts]) -> Self {
        let found = by_ranges(profile, ops)
            .or_else(|| by_graphs(profile, ops))
            .or_else(|| by_period(profile, ops, counts, false))
            .or_else(|| by_period(profile, ops, counts, true));
        let Some((found, starts, end)) = found else { return Self::default() };
        let mut steps: Vec<Step> = (0..)
            .zip(&starts)
            .map(|(number, &start)| Step { start, end: starts.get(number as usize + 1).copied().unwrap_or(end), number })
            .collect();
        steps.retain(|s| s.end > s.start);
        let mut left_out = Vec::new();
        let mut out = |what: String, start: i64, end: i64| {
            if end > start {
                left_out.push(LeftOut { what, start, end });
            }
        };
        if let Some(first) = steps.first() {
            out("before the first step".to_owned(), span.0, first.start);
        }
        let warm = warm_up(&steps);
        if warm > 0 {
            let what = if warm == 1 { "the first step: warm-up".to_owned() } else { format!("the first {warm} steps: warm-up") };
            out(what, steps[0].start, steps[warm - 1].end);
            steps.drain(..warm);
        }
        if let Some(last) = steps.last() {
            out("after the last step".to_owned(), last.end, span.1);
        }
        Self { found: Some(found), list: steps, left_out }
    }

    /// Only the steps in a window that was chosen.
    pub fn only(&mut self, window: (i64, i64)) {
        self.list.retain(|s| s.start >= window.0 && s.end <= window.1);
        self.left_out = Vec::new();
    }

    /// Leaves out steps in which the profiler measured counters: they wait for it.
    pub fn without(&mut self, measuring: &Intervals) {
        let spans = measuring.as_slice();
        self.list.retain(|s| {
            let next = spans.partition_point(|m| m.1 <= s.start);
            spans.get(next).is_none_or(|m| m.0 >= s.end)
        });
    }

    /// From the first step to the end of the last.
    #[must_use]
    pub fn window(&self) -> Option<(i64, i64)> {
        Some((self.list.first()?.start, self.list.last()?.end))
    }

    /// The step that a time lies in.
    #[must_use]
    pub fn at(&self, time: i64) -> Option<usize> {
        let at = self.list.partition_point(|s| s.start <= time).checked_sub(1)?;
        (time < self.list[at].end).then_some(at)
    }

    /// The median length, ns.
    #[must_use]
    pub fn median(&self) -> Option<i64> {
        median(self.list.iter().map(Step::length).collect())
    }
}

/// The middle value, the lower of two.
#[must_use]
pub fn median(mut values: Vec<i64>) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Steps at the beginning that take much longer than the rest: at most a third.
fn warm_up(steps: &[Step]) -> usize {
    if steps.len() < LEAST + 1 {
        return 0;
    }
    let most = steps.len() / 3;
    // Judged against the second half, which is warm if anything is.
    let Some(usual) = median(steps[steps.len() / 2..].iter().map(Step::length).collect()) else { return 0 };
    steps.iter().take(most).take_while(|s| s.length() as f64 > usual as f64 * WARM_UP).count()
}

type Starts = (Found, Vec<i64>, i64);

/// A range that may be a step: its start, its end, and the process.
type Numbered = (i64, i64, u32);

fn by_ranges(profile: &Profile, ops: &Ops<'_>) -> Option<Starts> {
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
            candidates.push((last.0.saturating_sub(first.0), std::mem::take(&mut names[group as usize]), list));
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
    // What follows the last operation belongs to the step, too.
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

/// Launches of graphs that are all alike, where they make most of the run.
fn by_graphs(profile: &Profile, ops: &Ops<'_>) -> Option<Starts> {
    let launches = &profile.launches;
    if !launches.has_graph_nodes() && profile.graphs.is_empty() {
        return None;
    }
    // By device: start of the call, first start, last end, nodes.
    let mut of: Vec<Vec<(i64, i64, i64, usize)>> = vec![Vec::new(); ops.units.len()];
    let (mut inside, mut total) = (vec![0_i64; ops.units.len()], 0_i64);
    for op in ops.iter() {
        let length = op.end.saturating_sub(op.start);
        total = total.saturating_add(length);
        let (call, nodes) = match op.row {
            Row::Launch(row) if launches.graph_node(row as usize).is_some() => (launches.call(row as usize).map(|c| c.0), 1),
            Row::Graph(g) => (profile.graphs.get(g as usize).and_then(|g| g.call).or(Some(op.start)), 0),
            _ => continue,
        };
        let Some(call) = call else { continue };
        inside[op.unit] = inside[op.unit].saturating_add(length);
        match of[op.unit].last_mut() {
            Some(last) if nodes > 0 && last.0 == call => {
                last.2 = last.2.max(op.end);
                last.3 += 1;
            }
            _ => of[op.unit].push((call, op.start, op.end, nodes)),
        }
    }
    let unit = (0..of.len()).max_by_key(|&u| inside[u])?;
    let (mut calls, inside) = (std::mem::take(&mut of[unit]), inside.iter().sum::<i64>());
    let usual = median(calls.iter().map(|c| i64::try_from(c.3).unwrap_or(i64::MAX)).collect())?;
    let alike = calls.iter().filter(|c| i64::try_from(c.3).is_ok_and(|n| n == usual)).count();
    if calls.len() < LEAST || alike * 10 < calls.len() * 9 || (inside as f64) < EXPLAINS * total as f64 {
        return None;
    }
    calls.sort_unstable_by_key(|c| c.1);
    let end = calls.iter().map(|c| c.2).max()?;
    Some((Found::Graphs, calls.iter().map(|c| c.1).collect(), end))
}

/// What an operation is: its sort, and two numbers that tell it from others.
type Symbol = (u8, u64, u64);

/// What an operation is, so that its like can be found.
fn symbol(profile: &Profile, ops: &Ops<'_>, op: &Op) -> Symbol {
    match op.row {
        Row::Launch(row) => {
            let row = row as usize;
            (0, u64::from(profile.launches.kernel(row).0), profile.launches.config(row).map_or(0, |c| u64::from(c.0)))
        }
        Row::Graph(g) => (1, profile.graphs.get(g as usize).map_or(0, |g| g.graph), 0),
        Row::Mem(_) => {
            let mem = ops.mem_of(op);
            let kind = match mem.map(|m| m.kind) {
                Some(MemOpKind::Copy { kind, .. }) => kind as u64 + 1,
                _ => 0,
            };
            (2, kind, mem.and_then(|m| m.bytes).map_or(0, |b| b.0))
        }
    }
}

/// Finds how often the sequence of operations repeats on the device with most of them: of kernels alone, for copies come and go with what is
/// logged, or with copies.
fn by_period(profile: &Profile, ops: &Ops<'_>, counts: &[Counts], copies: bool) -> Option<Starts> {
    let all = |c: &Counts| c.kernels + if copies { c.copies } else { 0 };
    let unit = (0..counts.len()).max_by_key(|&u| (all(&counts[u]), std::cmp::Reverse(u)))?;
    let total = all(&counts[unit]);
    if total < LEAST * 2 || copies && counts[unit].copies == 0 {
        return None;
    }
    let mine = || {
        ops.iter().filter(move |o| {
            o.unit == unit && (o.class != Class::Copy || copies && ops.mem_of(o).is_some_and(|m| CopyClass::of(&m).of_host()))
        })
    };
    let mut ids: FxHashMap<Symbol, u32> = FxHashMap::default();
    let mut symbols: Vec<Symbol> = Vec::new();
    let number = |op: Op| {
        let symbol = symbol(profile, ops, &op);
        *ids.entry(symbol).or_insert_with(|| {
            symbols.push(symbol);
            u32::try_from(symbols.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let sample: Vec<u32> = mine().skip(total.saturating_sub(LOOKED_AT) / 2).take(LOOKED_AT).map(number).collect();
    let period = period(&sample)?;
    // What comes least often in a period marks its beginning.
    let mut often: FxHashMap<u32, usize> = FxHashMap::default();
    for &s in &sample {
        *often.entry(s).or_default() += 1;
    }
    let periods = sample.len() as f64 / period as f64;
    let per = |s: &u32| (often.get(s).copied().unwrap_or_default() as f64 / periods).round() as usize;
    let anchor = sample.iter().copied().filter(|s| per(s) >= 1).min_by_key(|s| (per(s), *s))?;
    let (each, anchor) = (per(&anchor).max(1), *symbols.get(anchor as usize)?);
    // Place, start, and the latest end before it.
    let mut marks: Vec<(usize, i64, i64)> = Vec::new();
    let mut calls: Vec<Option<i64>> = Vec::new();
    let (mut last_end, mut seen) = (i64::MIN, 0);
    for (at, op) in mine().enumerate() {
        if symbol(profile, ops, &op) == anchor {
            if seen % each == 0 {
                marks.push((at, op.start, last_end));
                calls.push(ops.call(&op).map(|c| c.start));
            }
            seen += 1;
        }
        last_end = last_end.max(op.end);
    }
    // The stretch in which marks are a period apart, give or take a tenth.
    let near = |w: &[(usize, i64, i64)]| (w[1].0 - w[0].0).abs_diff(period) * 10 <= period;
    let first = marks.windows(2).position(near)?;
    let last = marks.windows(2).rposition(near)? + 1;
    let end = marks.get(last + 1).map_or(last_end, |next| next.2);
    let steps = &marks[first..=last];
    let good = steps.windows(2).filter(|w| near(w)).count();
    let enough = steps.len() >= LEAST && good * 10 >= (steps.len() - 1) * 8 && steps.len() * period >= (total as f64 * EXPLAINS) as usize;
    let starts: Vec<i64> = steps.iter().map(|s| s.1).collect();
    let usual = median(starts.windows(2).map(|w| w[1] - w[0]).collect())?;
    if !enough || usual < SHORTEST_NS || calls[first].zip(calls[last]).is_some_and(|(a, b)| one_pass(profile, a, b)) {
        return None;
    }
    Some((Found::Period(period), starts, end))
}

/// Whether two calls lie in one operator, or one call of a module of PyTorch: what repeats between them are layers of one pass.
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

/// The least number of places after which nearly all of a sequence repeats; `None` where that is one place, or nothing repeats.
fn period(sequence: &[u32]) -> Option<usize> {
    if sequence.len() < LEAST * 2 {
        return None;
    }
    // What comes once a step votes for the period itself, inner loops for others. Where every kernel is in an inner loop, some pair or longer
    // run of them comes once a step.
    let mut candidates: Vec<(usize, usize)> = Vec::new();
    for run in RUNS {
        let mut last: FxHashMap<&[u32], usize> = FxHashMap::default();
        let mut votes: FxHashMap<usize, usize> = FxHashMap::default();
        for (at, run) in sequence.windows(run).enumerate() {
            if let Some(before) = last.insert(run, at) {
                *votes.entry(at - before).or_default() += 1;
            }
        }
        let mut voted: Vec<(usize, usize)> = votes.into_iter().filter(|v| v.0 > 1 && v.0 * LEAST <= sequence.len()).collect();
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
    // The same kernel over and over has no steps.
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
        assert_eq!(period(&run), Some(step.len()));
        assert_eq!(period(&[1; 50]), None);
        // No kernel comes once: only where the loops meet does a pair.
        let loops: Vec<u32> = [[1, 2].repeat(8), [3, 4, 5].repeat(24)].concat().repeat(12);
        assert_eq!(period(&loops), Some(88));
        let random: Vec<u32> = (0..300_u32).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect();
        assert_eq!(period(&random), None);
    }

    #[test]
    fn slow_steps_at_the_beginning_are_warm_up() {
        let steps = |lengths: &[i64]| -> Vec<Step> {
            let mut at = 0;
            (0..)
                .zip(lengths)
                .map(|(number, l)| {
                    at += l;
                    Step { start: at - l, end: at, number }
                })
                .collect()
        };
        assert_eq!(warm_up(&steps(&[90, 30, 10, 10, 11, 10, 9, 10])), 2);
        assert_eq!(warm_up(&steps(&[10, 10, 10, 40, 10, 10])), 0);
        assert_eq!(warm_up(&steps(&[90, 10, 10])), 0);
    }
}
