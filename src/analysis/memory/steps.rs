//! Repeated steps of a program, detected from its memory usage.

use super::layers;
use super::ledger::Ledger;
use super::sites::Sites;
use crate::analysis::name_pattern::name_pattern;
use crate::model::api_call::NONE;
use crate::model::{Profile, RangeOrigin};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStep {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Maximum number of bytes allocated during the step.
    pub peak: u64,
    /// Minimum number of bytes allocated during the step.
    pub valley: u64,
}

/// Method by which steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepBasis {
    /// Ranges with this name.
    Ranges(String),
    /// Code outside the model that allocates repeatedly, given by its stack.
    Code(u32),
    /// Repeated rises and falls of memory.
    Cycles,
}

#[derive(Clone, Debug, Default)]
pub struct Steps {
    pub found: Option<StepBasis>,
    pub list: Vec<MemoryStep>,
}

/// Minimum number of steps.
const LEAST: usize = 3;
/// Maximum number of code locations to try.
const TRIED: usize = 32;
/// Words in the names of ranges around repeated work.
const WORDS: [&str; 8] = ["step", "iter", "batch", "decode", "token", "epoch", "request", "forward"];
/// Minimum rise and fall of a cycle, as a share of the range of memory usage. We use the largest value that yields
/// enough cycles.
const SHARES: [f64; 4] = [0.5, 0.3, 0.1, 0.03];
/// Maximum ratio of the third to the first quartile of the cycle lengths.
const UNEVEN: f64 = 2.0;

impl Steps {
    /// Noun for a step: rises and falls of memory may be anything that allocates and frees repeatedly.
    pub fn noun(&self) -> &'static str {
        if self.found == Some(StepBasis::Cycles) { "cycle" } else { "step" }
    }

    pub fn from_ledger(profile: &Profile, sites: &Sites, ledger: &Ledger) -> Self {
        let (found, starts) = match by_ranges(profile, ledger) {
            Some((name, starts)) => (StepBasis::Ranges(name), starts),
            None => match by_code(profile, sites, ledger)
                .map(|s| (StepBasis::Code(s.0), s.1))
                .or_else(|| Some((StepBasis::Cycles, by_cycles(profile, sites, ledger)?)))
            {
                Some(found) => found,
                None => return Self::default(),
            },
        };
        let Some((_, last)) = ledger.span() else { return Self::default() };
        let mut list = Vec::new();
        for (at, &start) in starts.iter().enumerate() {
            let end = starts.get(at + 1).copied().unwrap_or(last);
            let (from, to) = (ledger.times.partition_point(|&t| t < start), ledger.times.partition_point(|&t| t < end));
            let to = if at + 1 == starts.len() { ledger.times.len() } else { to };
            let first = ledger.bytes_before(from);
            let (mut peak, mut valley) = (first, first);
            for &bytes in ledger.bytes.get(from..to).unwrap_or_default() {
                peak = peak.max(bytes);
                valley = valley.min(bytes);
            }
            if end > start {
                list.push(MemoryStep { start, end, peak, valley });
            }
        }
        Self { found: Some(found), list }
    }

    /// Returns the step that contains a time.
    pub fn step_at(&self, time: i64) -> Option<usize> {
        let at = self.list.partition_point(|s| s.start <= time).checked_sub(1)?;
        Some(at).filter(|&at| at + 1 == self.list.len() || time < self.list[at].end)
    }

    /// Says which step contains a time. A step found by the optimizer begins with it, and holds the forward and
    /// backward pass of the next step of the program.
    pub fn step_text(&self, time: i64) -> Option<String> {
        let (step, all) = (self.step_at(time)? + 1, self.list.len());
        let by_optimizer = matches!(&self.found, Some(StepBasis::Ranges(name)) if name.starts_with("Optimizer."));
        Some(if by_optimizer { format!("after optimizer step {step} of {all}") } else { format!("in {} {step} of {all}", self.noun()) })
    }

    /// Median length, ns.
    pub fn median_length(&self) -> Option<i64> {
        let mut all: Vec<i64> = self.list.iter().map(|s| s.end - s.start).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

fn by_ranges(profile: &Profile, ledger: &Ledger) -> Option<(String, Vec<i64>)> {
    let ranges = &profile.ranges;
    let (begin, end) = ledger.span()?;
    let wanted: Vec<Option<String>> = ranges
        .names
        .iter()
        .map(|(_, name)| {
            let lower = name.to_lowercase();
            WORDS.iter().any(|w| lower.contains(w)).then(|| name_pattern(name))
        })
        .collect();
    let mut found: FxHashMap<&str, (Vec<i64>, i64)> = FxHashMap::default();
    for range in ranges.iter().filter(|r| !r.origin.is_hardware() && !matches!(r.origin, RangeOrigin::Operator | RangeOrigin::Python)) {
        if range.start < begin.saturating_sub(end - begin) || range.start > end {
            continue;
        }
        if let Some(Some(name)) = wanted.get(range.name as usize) {
            let of = found.entry(name).or_default();
            of.0.push(range.start);
            of.1 = of.1.saturating_add(range.end.min(end).saturating_sub(range.start));
        }
    }
    let mut all: Vec<(&str, Vec<i64>, i64)> = found.into_iter().map(|(n, (s, t))| (n, s, t)).filter(|f| f.1.len() >= LEAST).collect();
    // Prefer the profiler's own steps, then the ranges that account for the most time.
    all.sort_by_key(|f| (f.0 != "ProfilerStep#", std::cmp::Reverse(f.2), f.0.to_owned()));
    let (name, mut starts, _) = all.into_iter().next()?;
    starts.sort_unstable();
    starts.dedup();
    (starts.len() >= LEAST).then(|| (name.to_owned(), starts))
}

/// If a program uses `PyTorch` modules, code outside of them that allocates repeatedly is the loop around the model;
/// the code with the fewest callers is the outermost part of that loop.
fn by_code(profile: &Profile, sites: &Sites, ledger: &Ledger) -> Option<(u32, Vec<i64>)> {
    let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
    let asked = || ledger.lives.iter().filter(|l| l.start != NONE && l.stack != NONE);
    asked().for_each(|l| *counts.entry(l.stack).or_default() += 1);
    let module = |stack: u32| sites.stacks.frames_of(stack).any(|f| f.file.contains("torch/nn/modules/module.py"));
    let (inside, outside): (Vec<u32>, Vec<u32>) = counts.keys().copied().partition(|&s| module(s));
    if inside.is_empty() {
        return None;
    }
    let mut found: Vec<(usize, usize, u32)> = outside
        .into_iter()
        .filter(|&s| sites.own_frame(s).is_some() && !layers::is_in_model(sites, s))
        .map(|s| (sites.stacks.frames_of(s).filter(|f| f.line > 0).count(), counts[&s], s))
        .filter(|f| f.1 > LEAST)
        .collect();
    found.sort_unstable();
    let mut times: FxHashMap<u32, Vec<i64>> = found.iter().map(|f| (f.2, Vec::new())).collect();
    for life in asked() {
        times.entry(life.stack).and_modify(|t| t.push(ledger.event_time(life.start)));
    }
    let even = found.into_iter().filter_map(|(_, _, stack)| Some((stack, times.remove(&stack).filter(|t| has_even_lengths(t))?)));
    even.take(TRIED).find(|(_, starts)| !layers::of_one_pass(profile, sites, ledger, starts))
}

/// Finds steps from rises and falls in memory: a step starts at each low between two highs.
fn by_cycles(profile: &Profile, sites: &Sites, ledger: &Ledger) -> Option<Vec<i64>> {
    let (low, high) = ledger.bytes.iter().fold((ledger.before, ledger.before), |(l, h), &b| (l.min(b), h.max(b)));
    SHARES.iter().find_map(|share| {
        let lows = find_lows(ledger, (share * (high - low) as f64) as u64);
        (has_even_lengths(&lows) && !layers::of_one_pass(profile, sites, ledger, &lows)).then_some(lows)
    })
}

/// Returns the times of the lows between highs; each rise and fall is at least `height`.
fn find_lows(ledger: &Ledger, height: u64) -> Vec<i64> {
    if height == 0 {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut rising = false;
    // Lowest point since the last high, and highest point since the last low.
    let (mut low, mut high) = ((ledger.before, ledger.times.first().copied().unwrap_or(0)), ledger.before);
    for (&bytes, &time) in ledger.bytes.iter().zip(&ledger.times) {
        if rising {
            high = high.max(bytes);
            if high - bytes >= height {
                (rising, low) = (false, (bytes, time));
            }
        } else {
            if bytes <= low.0 {
                low = (bytes, time);
            }
            if bytes - low.0 >= height {
                out.push(low.1);
                (rising, high) = (true, bytes);
            }
        }
    }
    out
}

fn has_even_lengths(starts: &[i64]) -> bool {
    if starts.len() <= LEAST {
        return false;
    }
    let mut lengths: Vec<i64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    lengths.sort_unstable();
    let (first, third) = (lengths[lengths.len() / 4], lengths[lengths.len() * 3 / 4]);
    first > 0 && third as f64 <= UNEVEN * first as f64
}
