//! Groups steps by the kernels that they run, because a step that runs different kernels is not slow but of a different
//! kind.

use super::step::Step;

/// Compact fingerprint of a step: its launches, counted in a few buckets by hash. Steps with the same launches have the
/// same sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch([u16; BUCKETS]);

const BUCKETS: usize = 16;

/// Fraction of a step's launches that may differ within a kind, e.g. for a logged value or a check every few steps.
const SLACK: f64 = 0.1;
/// Number of launches that may differ regardless of `SLACK`, unless a step has no more launches than this.
const FEW: u32 = 2;
/// Maximum number of kinds; steps of additional kinds are ignored.
const MOST: usize = 32;

impl Sketch {
    /// Counts one launch, by kernel and configuration.
    pub fn add_launch(&mut self, (what, how): (u64, u64)) {
        let mixed = what.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ how.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(31);
        let bucket = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        self.0[bucket % BUCKETS] = self.0[bucket % BUCKETS].saturating_add(1);
    }

    pub fn total_launches(&self) -> u32 {
        self.0.iter().map(|&n| u32::from(n)).sum()
    }

    /// Returns true if two steps run nearly the same launches.
    pub fn is_similar(&self, other: &Self) -> bool {
        let apart: u32 = self.0.iter().zip(&other.0).map(|(&a, &b)| u32::from(a.abs_diff(b))).sum();
        let most = self.total_launches().max(other.total_launches());
        // Steps with so few launches must have exactly the same ones.
        if most <= FEW { apart == 0 } else { f64::from(apart) <= (f64::from(most) * SLACK).max(f64::from(FEW)) }
    }
}

/// Groups similar steps, as indices into `steps`; the group with the most time comes first.
pub fn group_steps(sketches: &[Sketch], steps: &[Step]) -> Vec<Vec<usize>> {
    let mut kinds: Vec<(Sketch, Vec<usize>)> = Vec::new();
    let mut last = 0;
    for (at, sketch) in sketches.iter().enumerate() {
        // Most steps are like the previous one.
        if let Some(kind) = kinds.get_mut(last).filter(|k| k.0.is_similar(sketch)) {
            kind.1.push(at);
            continue;
        }
        match kinds.iter().position(|k| k.0.is_similar(sketch)) {
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
pub mod tests {
    use super::*;

    /// Also used by the tests for kinds of steps.
    pub fn sketch(launches: &[(u64, u64, u32)]) -> Sketch {
        let mut out = Sketch::default();
        for &(what, how, times) in launches {
            for _ in 0..times {
                out.add_launch((what, how));
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
            assert_eq!(decode.is_similar(&other), alike, "{other:?}");
        }
    }
}
