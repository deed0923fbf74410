//! Groups steps by the kernels that they run: those that run others are steps of another kind, not slow ones.

use super::step::Step;

/// Counts of launches, hashed into a few buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch([u16; BUCKETS]);

const BUCKETS: usize = 16;

/// Part of the launches of a step that may differ from those of its like: a value that is logged, a check every few steps.
const SLACK: f64 = 0.1;
/// The same where there are few.
const FEW: u32 = 2;
/// Kinds that are told apart; what is like none of them is no kind.
const MOST: usize = 32;

impl Sketch {
    /// Counts one launch: of what, and how.
    pub fn add(&mut self, (what, how): (u64, u64)) {
        let mixed = what.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ how.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
        let bucket = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        self.0[bucket % BUCKETS] = self.0[bucket % BUCKETS].saturating_add(1);
    }

    /// All launches.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.0.iter().map(|&n| u32::from(n)).sum()
    }

    /// True if two steps run the same but for a little.
    #[must_use]
    pub fn like(&self, other: &Self) -> bool {
        let apart: u32 = self.0.iter().zip(&other.0).map(|(&a, &b)| u32::from(a.abs_diff(b))).sum();
        let most = self.total().max(other.total());
        // With so few launches each of them counts.
        if most <= FEW { apart == 0 } else { f64::from(apart) <= (f64::from(most) * SLACK).max(f64::from(FEW)) }
    }
}

/// Steps that run the same: their places in a list of steps, the most time first.
#[must_use]
pub fn kinds(sketches: &[Sketch], steps: &[Step]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<(Sketch, Vec<usize>)> = Vec::new();
    let mut last = 0;
    for (at, sketch) in sketches.iter().enumerate() {
        // Most steps are like the one before.
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
}
