//! How much of the kernel's time each unit needs at the least: its share of its own peak over the whole kernel. No unit can need more than
//! the kernel takes, and a kernel cannot take less than its busiest unit needs: that bounds what any change can gain.

use super::facts::Facts;

/// A unit of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Dram,
    /// L2.
    L2,
    /// L1/TEX, its data stage included.
    L1,
    /// Shared memory's part of the data stage.
    Shared,
    /// The pipe that loads and stores go through.
    Lsu,
    /// Issue slots of the schedulers.
    Issue,
    /// FP32 multiply-add; on newer chips also integer multiply-add.
    Fma,
    /// The half of it that does integers.
    FmaHeavy,
    Alu,
    /// Packed FP16.
    Fp16,
    /// FP64.
    Fp64,
    /// Special functions, conversions.
    Xu,
    Tensor,
    /// Some unit of the SM that was not collected by name.
    Sm,
    /// Some level of memory that was not collected by name.
    Memory,
}

/// Units, the concept that says how busy each is, what people call it, and the label of its bar.
const UNITS: [(Unit, &str, &str, &str); 15] = [
    (Unit::Dram, "dram_throughput", "device memory", "DRAM"),
    (Unit::L2, "l2_throughput", "L2", "L2"),
    (Unit::L1, "busy_l1_data", "L1", "L1"),
    (Unit::Shared, "busy_shared", "shared memory", "shared"),
    (Unit::Lsu, "busy_lsu", "the load/store pipe", "LSU"),
    (Unit::Issue, "busy_issue", "the issue slots", "issue"),
    (Unit::Fma, "busy_fma", "the FMA pipe", "FMA"),
    (Unit::FmaHeavy, "busy_fma_heavy", "the integer half of the FMA pipe", "FMA integer"),
    (Unit::Alu, "busy_alu", "the ALU pipe", "ALU"),
    (Unit::Fp16, "busy_fp16", "the FP16 pipe", "FP16"),
    (Unit::Fp64, "busy_fp64", "the FP64 pipe", "FP64"),
    (Unit::Xu, "busy_xu", "the XU pipe", "XU"),
    (Unit::Tensor, "tensor_mma", "the tensor pipe", "tensor"),
    (Unit::Sm, "sm_throughput", "some unit of the SM", "SM"),
    (Unit::Memory, "memory_throughput", "some level of memory", "memory"),
];

/// Concepts that say the same over the SM's active cycles, for reports that lack the other.
const ACTIVE: [(Unit, &str); 8] = [
    (Unit::Lsu, "pipe_lsu"),
    (Unit::Issue, "issue_slots_busy"),
    (Unit::Fma, "pipe_fma"),
    (Unit::Alu, "pipe_alu"),
    (Unit::Fp16, "pipe_fp16"),
    (Unit::Fp64, "pipe_fp64"),
    (Unit::Xu, "pipe_xu"),
    (Unit::L1, "l1_throughput"),
];

impl Unit {
    /// What people call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        UNITS.iter().find(|u| u.0 == self).map_or("", |u| u.2)
    }

    /// The same in a word or two.
    #[must_use]
    pub fn label(self) -> &'static str {
        UNITS.iter().find(|u| u.0 == self).map_or("", |u| u.3)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    pub unit: Unit,
    /// Share of its peak over the whole kernel, 0 to 1.
    pub share: f64,
    /// The concept that says so.
    pub concept: &'static str,
}

/// All units that are known.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    all: Vec<Busy>,
}

impl Demand {
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let active = facts.active();
        let named = UNITS.iter().filter(|u| !matches!(u.0, Unit::Sm | Unit::Memory));
        let mut all: Vec<Busy> =
            named.filter_map(|&(unit, concept, ..)| Some(Busy { unit, share: facts.share(concept)?, concept })).collect();
        if facts.without_shared() {
            // The counter also sees wavefronts of other loads.
            all.retain(|b| b.unit != Unit::Shared);
        }
        // Where loads, stores and atomics were counted by themselves, shuffles and stores to global memory stay out.
        if let (Some(share), Some(b)) = (facts.share("busy_shared_access"), all.iter_mut().find(|b| b.unit == Unit::Shared)) {
            *b = Busy { unit: Unit::Shared, share, concept: "busy_shared_access" };
        }
        // A stream passes L2 once: L2's figure, which adds up both directions, says nothing beside device memory's.
        if all.iter().any(|b| b.unit == Unit::Dram && b.share >= TAKES_PART) && Self::streams(facts) {
            all.retain(|b| b.unit != Unit::L2);
        }
        if !all.iter().any(|b| b.unit == Unit::Dram) {
            all.extend(facts.share("dram_directions").map(|share| Busy { unit: Unit::Dram, share, concept: "dram_directions" }));
        }
        for (unit, concept) in ACTIVE {
            let known = all.iter().position(|b| b.unit == unit);
            let share = facts.share(concept).zip(active).map(|(s, a)| s * a);
            match (known, share) {
                // L1's throughput is the busiest of its stages, of which the data stage is one.
                (Some(at), Some(share)) if unit == Unit::L1 && share > all[at].share => all[at] = Busy { unit, share, concept },
                (None, Some(share)) => all.push(Busy { unit, share, concept }),
                _ => {}
            }
        }
        let l2 = facts.share("l2_throughput").unwrap_or(0.0);
        all.extend(unnamed(facts, &all, l2));
        Self { all }
    }

    /// Whether what goes through L2 passes it once.
    #[must_use]
    pub fn streams(facts: &Facts) -> bool {
        facts.l2_reuse().is_some_and(|r| r <= STREAM)
    }

    #[must_use]
    pub fn busy(&self, unit: Unit) -> Option<Busy> {
        self.all.iter().find(|b| b.unit == unit).copied()
    }

    /// Its share; `None` when it is not known.
    #[must_use]
    pub fn get(&self, unit: Unit) -> Option<f64> {
        self.busy(unit).map(|b| b.share)
    }

    /// All of them, the busiest first.
    #[must_use]
    pub fn ranked(&self) -> Vec<Busy> {
        let mut all = self.all.clone();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// The busiest unit that is known.
    #[must_use]
    pub fn busiest(&self) -> Option<Busy> {
        self.without(&[])
    }

    /// The busiest besides some.
    #[must_use]
    pub fn without(&self, units: &[Unit]) -> Option<Busy> {
        self.all.iter().filter(|b| !units.contains(&b.unit)).copied().max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Share of the busiest unit; 0 when none is known, which bounds nothing.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.busiest().map_or(0.0, |b| b.share)
    }

    /// The peak while the SMs have work: what a unit of theirs does in the cycles in which it can.
    #[must_use]
    pub fn peak_active(&self, active: f64) -> f64 {
        let share = |b: &Busy| {
            if matches!(b.unit, Unit::Dram | Unit::L2 | Unit::Memory) { b.share } else { b.share / active.max(b.share).max(1e-6) }
        };
        self.all.iter().map(share).fold(0.0, f64::max)
    }

    /// How much waiting counts in view of a peak: 1 while no unit is at 60 % of its peak, 0 from 80 % on, between them in proportion. A unit near its peak makes
    /// everybody wait for it; such waiting is an effect. Both percentages: NVIDIA's `SpeedOfLight` rule, which calls a kernel with everything
    /// below 60 % a latency problem and one from 80 % on a throughput problem.
    #[must_use]
    pub fn waiting_counts(peak: f64) -> f64 {
        ((0.8 - peak) / 0.2).clamp(0.0, 1.0)
    }
}

/// Share of its peak from which device memory takes part in what a kernel waits for: below, its bytes say nothing of L2's work.
const TAKES_PART: f64 = 0.4;

/// Bytes through L2 over bytes of device memory up to which nothing is used again: streams in the reports at hand lie at 1.00 to 1.09, what does
/// use L2 from 1.5 on.
const STREAM: f64 = 1.2;

/// How far a sum over units may lie above the busiest that is known by name: beyond it another unit is meant.
const UNNAMED: f64 = 0.05;

/// NVIDIA's figures for compute and memory are the greatest over many units. Where one lies above all units that were collected by name, a unit
/// that was not is the busiest. The pipe that barriers and addresses go through (ADU) is none that work could bind.
fn unnamed(facts: &Facts, named: &[Busy], l2: f64) -> Vec<Busy> {
    let most = |units: &dyn Fn(Unit) -> bool| named.iter().filter(|b| units(b.unit)).map(|b| b.share).fold(0.0, f64::max);
    let far = |u: Unit| matches!(u, Unit::Dram | Unit::L2 | Unit::L1 | Unit::Shared);
    let mut out = Vec::new();
    let sm = facts.share("sm_throughput").filter(|s| *s > most(&|u| !matches!(u, Unit::Dram | Unit::L2)) + UNNAMED);
    let adu = facts.share("busy_adu").unwrap_or(0.0);
    out.extend(sm.filter(|s| adu < s - UNNAMED).map(|share| Busy { unit: Unit::Sm, share, concept: "sm_throughput" }));
    let levels = ["memory_throughput", "mem_busy", "max_bandwidth"];
    let memory = levels.into_iter().filter_map(|c| Some((facts.share(c)?, c))).max_by(|a, b| a.0.total_cmp(&b.0));
    let memory = memory.filter(|(s, _)| *s > most(&far).max(l2) + UNNAMED);
    out.extend(memory.map(|(share, concept)| Busy { unit: Unit::Memory, share, concept }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_bound_what_a_change_can_gain() {
        let facts = Facts::from_pairs(&[
            ("dram_throughput", 30.0),
            ("busy_l1_data", 90.0),
            ("busy_fma", 40.0),
            ("l1_throughput", 50.0),
            ("sm_active_cycles", 80.0),
            ("elapsed_cycles", 100.0),
            ("pipe_xu", 50.0),
        ]);
        let d = Demand::of(&facts);
        assert_eq!(d.busiest().map(|b| b.unit), Some(Unit::L1));
        assert_eq!(d.without(&[Unit::L1, Unit::Shared]).map(|b| b.share), Some(0.4));
        assert_eq!(d.get(Unit::Xu), Some(0.4), "of the active cycles");
        assert_eq!(d.get(Unit::L2), None);
        assert!(Demand::waiting_counts(d.peak()) < 1e-9);
        assert!(Demand::waiting_counts(0.0) > 0.99);
    }
}
