//! Demand per unit: the minimum share of the kernel's time that a unit needs, which equals its utilization over the
//! whole kernel relative to its peak. A kernel takes at least as long as its busiest unit needs, which bounds the gain
//! from any change.

use super::metric_values::Facts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Dram,
    L2,
    /// L1/TEX, including its data stage.
    L1,
    /// Portion of the data stage used by shared memory.
    Shared,
    /// Load/store pipe.
    Lsu,
    /// Issue slots of the schedulers.
    Issue,
    /// FP32 multiply-add; on newer chips also integer multiply-add.
    Fma,
    /// Integer half of the FMA pipe.
    FmaHeavy,
    Alu,
    /// Packed FP16.
    Fp16,
    Fp64,
    /// Special functions, conversions.
    Xu,
    Tensor,
    /// Address divergence unit: block barriers, constant loads, jumps to diverging addresses (Nsight Compute's documentation).
    Adu,
    /// Busiest unit of the SM, if the report does not identify it.
    Sm,
    /// Busiest memory level, if the report does not identify it.
    Memory,
}

/// Units with their concept in the catalog, display name, and bar label.
const UNITS: [(Unit, &str, &str, &str); 16] = [
    (Unit::Dram, "dram_throughput", "device memory", "DRAM"),
    (Unit::L2, "l2_throughput", "L2", "L2"),
    (Unit::L1, "busy_l1_data", "L1", "L1"),
    (Unit::Shared, "busy_shared", "shared memory", "shared"),
    (Unit::Lsu, "busy_lsu", "the load/store pipe", "LSU"),
    (Unit::Issue, "busy_issue", "the issue slots", "issue"),
    (Unit::Fma, "busy_fma", "the FMA pipe", "FMA"),
    (Unit::FmaHeavy, "busy_fma_heavy", "the FMA-heavy pipe (FP32 and integer multiply-add)", "FMA heavy"),
    (Unit::Alu, "busy_alu", "the ALU pipe", "ALU"),
    (Unit::Fp16, "busy_fp16", "the FP16 pipe", "FP16"),
    (Unit::Fp64, "busy_fp64", "the FP64 pipe", "FP64"),
    (Unit::Xu, "busy_xu", "the XU pipe", "XU"),
    (Unit::Tensor, "tensor_mma", "the tensor pipe", "tensor"),
    (Unit::Adu, "busy_adu", "the ADU pipe (barriers, constant loads, jumps)", "ADU"),
    (Unit::Sm, "sm_throughput", "some unit of the SM", "SM"),
    (Unit::Memory, "memory_throughput", "some level of memory", "memory"),
];

/// Equivalent concepts relative to the SM's active cycles, for reports that do not contain the concepts in `UNITS`.
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
    pub fn display_name(self) -> &'static str {
        UNITS.iter().find(|u| u.0 == self).map_or("", |u| u.2)
    }

    /// Short label of one or two words.
    pub fn label(self) -> &'static str {
        UNITS.iter().find(|u| u.0 == self).map_or("", |u| u.3)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    pub unit: Unit,
    /// Utilization of the unit's peak over the whole kernel, 0 to 1.
    pub share: f64,
    /// Concept that provides the share.
    pub concept: &'static str,
}

/// Demand of all known units.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    all: Vec<Busy>,
    /// Utilization of the ADU pipe. It bounds no gain: a change that removes barriers removes its work, too.
    adu: Option<Busy>,
}

impl Demand {
    pub fn from_facts(facts: &Facts) -> Self {
        let active = facts.active_share();
        let named = UNITS.iter().filter(|u| !matches!(u.0, Unit::Adu | Unit::Sm | Unit::Memory));
        let mut all: Vec<Busy> =
            named.filter_map(|&(unit, concept, ..)| Some(Busy { unit, share: facts.share(concept)?, concept })).collect();
        if facts.without_shared() {
            // Without shared memory, its counter contains only wavefronts of other loads.
            all.retain(|b| b.unit != Unit::Shared);
        }
        // If loads, stores and atomics to shared memory were counted separately, exclude shuffles and stores to global
        // memory.
        if let (Some(share), Some(b)) = (facts.share("busy_shared_access"), all.iter_mut().find(|b| b.unit == Unit::Shared)) {
            *b = Busy { unit: Unit::Shared, share, concept: "busy_shared_access" };
        }
        // A stream passes through L2 only once. L2's figure adds up both directions and tells no more than that of
        // device memory.
        if all.iter().any(|b| b.unit == Unit::Dram && b.share >= TAKES_PART) && Self::is_stream(facts) {
            all.retain(|b| b.unit != Unit::L2);
        }
        if !all.iter().any(|b| b.unit == Unit::Dram) {
            let known = ["dram_directions", "dram_by_misses"].into_iter().find_map(|c| Some((facts.share(c)?, c)));
            all.extend(known.map(|(share, concept)| Busy { unit: Unit::Dram, share, concept }));
        }
        for (unit, concept) in ACTIVE {
            let known = all.iter().position(|b| b.unit == unit);
            let share = facts.share(concept).zip(active).map(|(s, a)| s * a);
            match (known, share) {
                // L1's throughput is the maximum over its stages, one of which is the data stage.
                (Some(at), Some(share)) if unit == Unit::L1 && share > all[at].share => all[at] = Busy { unit, share, concept },
                (None, Some(share)) => all.push(Busy { unit, share, concept }),
                _ => {}
            }
        }
        let l2 = facts.share("l2_throughput").unwrap_or(0.0);
        all.extend(unnamed_units(facts, &all, l2));
        let adu = facts.share("busy_adu").map(|share| Busy { unit: Unit::Adu, share, concept: "busy_adu" });
        Self { all, adu }
    }

    /// Returns true if data passes through L2 only once.
    pub fn is_stream(facts: &Facts) -> bool {
        facts.l2_reuse().is_some_and(|r| r <= STREAM)
    }

    pub fn find_unit(&self, unit: Unit) -> Option<Busy> {
        self.all.iter().chain(&self.adu).find(|b| b.unit == unit).copied()
    }

    /// Share of a unit; `None` if unknown.
    pub fn get(&self, unit: Unit) -> Option<f64> {
        self.find_unit(unit).map(|b| b.share)
    }

    /// All units to show, busiest first.
    pub fn shown_units(&self) -> Vec<Busy> {
        let mut all: Vec<Busy> = self.all.iter().chain(&self.adu).copied().collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// All units that bound gains, busiest first.
    pub fn ranked_units(&self) -> Vec<Busy> {
        let mut all = self.all.clone();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// Busiest known unit.
    pub fn busiest_unit(&self) -> Option<Busy> {
        self.busiest_except(&[])
    }

    /// Busiest known unit other than `units`.
    pub fn busiest_except(&self, units: &[Unit]) -> Option<Busy> {
        self.all.iter().filter(|b| !units.contains(&b.unit)).copied().max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Share of the busiest unit; 0 if no unit is known, which imposes no bound.
    pub fn peak_share(&self) -> f64 {
        self.busiest_unit().map_or(0.0, |b| b.share)
    }

    /// Share of the busiest unit while the SMs have work: SM units count relative to the cycles in which they can work.
    pub fn peak_active(&self, active: f64) -> f64 {
        let share = |b: &Busy| {
            if matches!(b.unit, Unit::Dram | Unit::L2 | Unit::Memory) { b.share } else { b.share / active.max(b.share).max(1e-6) }
        };
        self.all.iter().map(share).fold(0.0, f64::max)
    }

    /// Weight of waiting as a cause, given the utilization of the busiest unit: 1 up to 60 % of its peak, 0 from 80 %
    /// on, linear in between. If a unit is near its peak, all warps wait for it, and waiting is only an effect. Both
    /// percentages are from NVIDIA's `SpeedOfLight` rule, which considers a kernel with everything below 60 %
    /// latency-bound and one from 80 % on throughput-bound.
    pub fn waiting_counts(peak: f64) -> f64 {
        ((0.8 - peak) / 0.2).clamp(0.0, 1.0)
    }
}

/// Share of its peak from which device memory contributes to a kernel's waiting. Below it, the bytes moved tell nothing
/// about L2's work.
const TAKES_PART: f64 = 0.4;

/// Maximum ratio of L2 bytes to device memory bytes without reuse: streams in the available reports have 1.00 to 1.09,
/// kernels that reuse data in L2 have 1.5 or more.
const STREAM: f64 = 1.2;

/// If NVIDIA's compute or memory figure exceeds the busiest collected unit by at least this, a unit that was not
/// collected is assumed to be the busiest.
const UNNAMED: f64 = 0.05;

/// NVIDIA's figures for compute and memory are maxima over many units. If one exceeds all units collected by name, a
/// unit that was not collected is the busiest, unless it is the ADU pipe, whose work is barriers.
fn unnamed_units(facts: &Facts, named: &[Busy], l2: f64) -> Vec<Busy> {
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
        let d = Demand::from_facts(&facts);
        assert_eq!(d.busiest_unit().map(|b| b.unit), Some(Unit::L1));
        assert_eq!(d.busiest_except(&[Unit::L1, Unit::Shared]).map(|b| b.share), Some(0.4));
        assert_eq!(d.get(Unit::Xu), Some(0.4), "of the active cycles");
        assert_eq!(d.get(Unit::L2), None);
        assert!(Demand::waiting_counts(d.peak_share()) < 1e-9);
        assert!(Demand::waiting_counts(0.0) > 0.99);
    }

    /// The work of the pipe that executes barriers goes away with them.
    #[test]
    fn the_adu_pipe_is_shown_and_bounds_nothing() {
        let d = Demand::from_facts(&Facts::from_pairs(&[("busy_adu", 86.0), ("busy_l1_data", 46.0), ("sm_throughput", 86.0)]));
        assert_eq!(d.shown_units().first().map(|b| b.unit), Some(Unit::Adu));
        assert_eq!((d.busiest_unit().map(|b| b.unit), d.peak_share()), (Some(Unit::L1), 0.46));
        assert_eq!(d.get(Unit::Adu), Some(0.86));
        assert!(d.ranked_units().iter().all(|b| !matches!(b.unit, Unit::Adu | Unit::Sm)));
    }
}
