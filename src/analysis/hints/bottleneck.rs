//! The limiting unit of a kernel: the busiest unit, if it reaches at least 60 % of its peak. There is at most one, so
//! that a kernel gets a single verdict.

use super::limits::{AT_LIMIT, L2_ABOVE_DRAM, MAY_LIMIT};
use super::rule_context::Case;
use super::unit_throughput::{Demand, Unit};

/// The limiting unit, with its utilization over the whole kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bottleneck {
    Dram(f64),
    L2(f64),
    /// L1/TEX, including shared memory.
    L1 {
        share: f64,
        /// True if shared memory causes more than half of the load.
        shared: bool,
    },
    /// An arithmetic pipe, the issue slots, or the tensor pipe.
    Pipe(Unit, f64),
}

impl Bottleneck {
    /// Share of the unit's peak.
    pub fn share(self) -> f64 {
        match self {
            Self::Dram(s) | Self::L2(s) | Self::Pipe(_, s) | Self::L1 { share: s, .. } => s,
        }
    }

    /// The unit that has this share; for L1, its busiest stage.
    pub fn unit(self, demand: &Demand) -> Unit {
        let load = |u: &Unit| demand.get(*u).unwrap_or(0.0);
        match self {
            Self::Dram(_) => Unit::Dram,
            Self::L2(_) => Unit::L2,
            Self::L1 { .. } => L1_STAGES.into_iter().max_by(|a, b| load(a).total_cmp(&load(b))).unwrap_or(Unit::L1),
            Self::Pipe(unit, _) => unit,
        }
    }
}

/// If shared memory is busier than the tensor pipe by no more than this, it only supplies the tensor cores and is not
/// the limit.
const FEEDS: f64 = 0.10;

/// Stages of L1, any of which can be its limit.
const L1_STAGES: [Unit; 3] = [Unit::L1, Unit::Shared, Unit::Lsu];

/// Pipes that can be the limit.
const PIPES: [Unit; 8] = [Unit::Sm, Unit::Tensor, Unit::Fp64, Unit::Xu, Unit::Fma, Unit::FmaHeavy, Unit::Fp16, Unit::Alu];

/// Returns the limiting unit; `None` if no unit is busy enough.
pub fn find_bottleneck(case: &Case<'_>) -> Option<Bottleneck> {
    let d = &case.demand;
    let mut all: Vec<Bottleneck> = Vec::new();
    let dram = d.get(Unit::Dram);
    all.extend(dram.map(Bottleneck::Dram));
    // All device memory traffic passes through L2, whose utilization is then slightly higher without L2 being the
    // limit.
    let way = |l2: f64| dram.is_some_and(|dram| dram >= MAY_LIMIT.value / 100.0 - 0.05 && l2 - dram <= L2_ABOVE_DRAM);
    all.extend(d.get(Unit::L2).filter(|l2| !way(*l2)).map(Bottleneck::L2));
    let l1 = L1_STAGES.into_iter().filter_map(|u| d.get(u)).reduce(f64::max);
    let shared = d.get(Unit::Shared).unwrap_or(0.0);
    // The operands of warpgroup matrix products (wgmma) come from shared memory, whose load is then only that of
    // supplying the tensor cores.
    let fed = case.facts.positive_value("tensor_instructions_gmma").is_some();
    let l1 = l1.filter(|l1| !fed || d.get(Unit::Tensor).is_none_or(|t| t < l1 - FEEDS));
    all.extend(l1.map(|share| Bottleneck::L1 { share, shared: shared > share / 2.0 }));
    all.extend(PIPES.iter().filter_map(|&u| Some(Bottleneck::Pipe(u, d.get(u)?))));
    let best = all.iter().copied().reduce(|a, b| if b.share() > a.share() { b } else { a })?;
    // Instructions for several pipes can fill the issue slots while every pipe is below its limit.
    let limit = AT_LIMIT.value / 100.0;
    let may = MAY_LIMIT.value / 100.0;
    let issue = d.get(Unit::Issue).filter(|i| *i >= limit && best.share() < limit || *i >= may && best.share() < may);
    let best = issue.map_or(best, |i| Bottleneck::Pipe(Unit::Issue, i));
    (best.share() * 100.0 >= MAY_LIMIT.value).then_some(best)
}
