//! How much of the kernel's time each unit needs at the least: its share of its own peak over the whole kernel. No unit can need more than
//! the kernel takes, and a kernel cannot take less than its busiest unit needs: that bounds what any change can gain.

use super::facts::Facts;

/// A unit of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Device memory.
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
    /// Integer and logic.
    Alu,
    /// Packed FP16.
    Fp16,
    /// FP64.
    Fp64,
    /// Special functions, conversions.
    Xu,
    /// Tensor.
    Tensor,
}

/// Units, the concept that says how busy each is, and what people call it.
const UNITS: [(Unit, &str, &str); 13] = [
    (Unit::Dram, "dram_throughput", "device memory"),
    (Unit::L2, "l2_throughput", "L2"),
    (Unit::L1, "busy_l1_data", "L1"),
    (Unit::Shared, "busy_shared", "shared memory"),
    (Unit::Lsu, "busy_lsu", "the load/store pipe"),
    (Unit::Issue, "busy_issue", "the issue slots"),
    (Unit::Fma, "busy_fma", "the FMA pipe"),
    (Unit::FmaHeavy, "busy_fma_heavy", "the integer half of the FMA pipe"),
    (Unit::Alu, "busy_alu", "the ALU pipe"),
    (Unit::Fp16, "busy_fp16", "the FP16 pipe"),
    (Unit::Fp64, "busy_fp64", "the FP64 pipe"),
    (Unit::Xu, "busy_xu", "the XU pipe"),
    (Unit::Tensor, "tensor_mma", "the tensor pipe"),
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
}

/// One unit's demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// The unit.
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
    /// From the facts.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        let active = facts.active();
        let mut all: Vec<Busy> =
            UNITS.iter().filter_map(|&(unit, concept, _)| Some(Busy { unit, share: facts.share(concept)?, concept })).collect();
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
        Self { all }
    }

    /// One unit.
    #[must_use]
    pub fn busy(&self, unit: Unit) -> Option<Busy> {
        self.all.iter().find(|b| b.unit == unit).copied()
    }

    /// Its share; `None` when it is not known.
    #[must_use]
    pub fn get(&self, unit: Unit) -> Option<f64> {
        self.busy(unit).map(|b| b.share)
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

    /// How much waiting counts: 1 while no unit is at 60 % of its peak, 0 from 80 % on, between them in proportion. A unit near its peak makes
    /// everybody wait for it; such waiting is an effect. Both percentages: NVIDIA's SpeedOfLight rule, which calls a kernel with everything
    /// below 60 % a latency problem and one from 80 % on a throughput problem.
    #[must_use]
    pub fn waiting_counts(&self) -> f64 {
        ((0.8 - self.peak()) / 0.2).clamp(0.0, 1.0)
    }
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
        assert_eq!(d.without(&[Unit::L1, Unit::Shared]).map(|b| (b.unit, b.share)), Some((Unit::Fma, 0.4)));
        assert_eq!(d.get(Unit::Xu), Some(0.4), "of the active cycles");
        assert_eq!(d.get(Unit::L2), None);
        assert!(d.waiting_counts() < 1e-9);
        assert!(Demand::default().waiting_counts() > 0.99);
    }
}
