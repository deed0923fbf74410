//! Groups steps by the kernels that they run: steps with other kernels are of another kind, not slow.

use super::steps::{Step, median};

/// Launch counts, hashed into a few buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch([u16; BUCKETS]);

const BUCKETS: usize = 16;

/// Fraction of a step's launches that may differ within a kind: a value that is logged, a check every few steps.
const SLACK: f64 = 0.1;
/// Number of launches that may always differ, unless a step has no more than that.
const FEW: u32 = 2;
/// Maximum number of kinds; steps that match none of them are ignored.
const MOST: usize = 32;

impl Sketch {
    /// Counts one launch, by kernel and configuration.
    pub fn add(&mut self, (what, how): (u64, u64)) {
        let mixed = what.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ how.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
        let bucket = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        self.0[bucket % BUCKETS] = self.0[bucket % BUCKETS].saturating_add(1);
    }

    /// Total number of launches.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.0.iter().map(|&n| u32::from(n)).sum()
    }

    /// Returns true if two steps run nearly the same launches.
    #[must_use]
    pub fn like(&self, other: &Self) -> bool {
        let apart: u32 = self.0.iter().zip(&other.0).map(|(&a, &b)| u32::from(a.abs_diff(b))).sum();
        let most = self.total().max(other.total());
        // With so few launches, each of them counts.
        if most <= FEW { apart == 0 } else { f64::from(apart) <= (f64::from(most) * SLACK).max(f64::from(FEW)) }
    }
}

/// Groups similar steps: indices into `steps`, the group with the most time first.
#[must_use]
pub fn kinds(sketches: &[Sketch], steps: &[Step]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<(Sketch, Vec<usize>)> = Vec::new();
    let mut last = 0;
    for (at, sketch) in sketches.iter().enumerate() {
        // Most steps are like the previous one.
        if let Some(kind) = kinds.get_mut(last).filter(|k| k.0.like(sketch)) {
            kind.1.push(at);
            continue;
        }
        match kinds.iter().position(|k| k.0.like(sketch)) {
            Some(known) => {
                kinds[known].1.push(at);
                last = known;
            }
            None if kinds.len() < MOST => {
                last = kinds.len();
                kinds.push((*sketch, vec![at]));
            }
            None => {}
        }
    }
    let time = |list: &[usize]| list.iter().filter_map(|&i| steps.get(i)).map(Step::length).sum::<i64>();
    kinds.sort_by_key(|k| std::cmp::Reverse(time(&k.1)));
    kinds.into_iter().map(|k| k.1).collect()
}

/// Steps of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    pub count: usize,
    /// Median length, ns.
    pub median: i64,
    /// Share of the time of all steps.
    pub share: f64,
}

/// Minimum share of the steps' time for a kind to be reported.
const NAMED: f64 = 0.03;
/// Minimum number of steps of a kind.
const REPEATS: usize = 3;

/// Kinds of steps that recur and take time, the most time first; empty if there is only one.
#[must_use]
pub fn named(sketches: &[Sketch], steps: &[Step]) -> Vec<Kind> {
    let all: i64 = steps.iter().map(Step::length).sum();
    let kind = |list: Vec<usize>| {
        let lengths: Vec<i64> = list.iter().filter_map(|&i| steps.get(i)).map(Step::length).collect();
        let share = lengths.iter().sum::<i64>() as f64 / all.max(1) as f64;
        Some(Kind { count: lengths.len(), median: median(lengths)?, share }).filter(|k| k.count >= REPEATS && k.share >= NAMED)
    };
    let found: Vec<Kind> = kinds(sketches, steps).into_iter().filter_map(kind).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(launches: &[(u64, u64, u32)]) -> Sketch {
        let mut out = Sketch::default();
        for &(what, how, times) in launches {
            for _ in 0..times {
                out.add((what, how));
            }
        }
        out
    }

    #[test]
    fn steps_are_alike_but_for_a_little() {
        let decode = sketch(&[(1, 1, 16), (2, 1, 16), (3, 1, 32)]);
        for (other, alike) in [
            (sketch(&[(1, 1, 16), (2, 1, 16), (3, 1, 32)]), true),
            (sketch(&[(1, 1, 16), (2, 1, 16), (3, 1, 32), (4, 1, 2)]), true),
            (sketch(&[(5, 1, 16), (6, 1, 16), (7, 1, 32)]), false),
            (sketch(&[(1, 1, 16), (2, 1, 16), (3, 1, 32), (4, 1, 40)]), false),
        ] {
            assert_eq!(decode.like(&other), alike, "{other:?}");
        }
    }

    #[test]
    fn kinds_are_told_apart_by_what_they_run() {
        let mut steps = Vec::new();
        let mut sketches = Vec::new();
        let mut at = 0;
        for number in 0..40 {
            let long = number % 8 == 7;
            let length = if long { 55 } else { 2 };
            steps.push(Step { start: at, end: at + length, number });
            sketches.push(if long { sketch(&[(1, 9, 100), (2, 9, 100)]) } else { sketch(&[(1, 1, 64), (3, 1, 30)]) });
            at += length;
        }
        let found = named(&sketches, &steps);
        assert_eq!(found.iter().map(|k| (k.count, k.median)).collect::<Vec<_>>(), [(5, 55), (35, 2)]);
        assert_eq!(named(&sketches[..7], &steps[..7]), [], "one kind needs no name");
    }
}
