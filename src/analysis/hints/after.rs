//! The model behind every promise. A kernel takes as long as its busiest unit needs, or as its warps wait. A change lets some demand go, and the time
//! after it is what the rest needs: what no listed change removes bounds the gain; what the next unit needs, at the rate that units really reach,
//! estimates it.

use super::case::{Case, pct};
use super::demand::{Busy, Demand, Unit};
use super::facts::Facts;
use super::gain::{Gain, Relief};
use super::limits::{ATTAINABLE, EMPTY_KERNEL_NS, MIXED_ATTAINABLE};

/// Units whose demand is the work itself, whatever the code around it: bytes of device memory, floating-point operations, special functions.
const WORK: [Unit; 5] = [Unit::Dram, Unit::Fma, Unit::Fp64, Unit::Xu, Unit::Tensor];

/// The gain for a kernel.
#[must_use]
pub fn gain(relief: &Relief, case: &Case<'_>) -> Gain {
    let floor = floor(relief, case);
    let kept = WORK.iter().filter_map(|&u| Some((u, work(case, u)? * relief.part(u)))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (least, left) = match kept {
        Some((unit, share)) if share >= floor => (share, format!("{} needs {} of the time in any case", unit.word(), pct(share))),
        _ if relief.fused => (0.0, "as part of another kernel it need take no time of its own".to_owned()),
        _ => (floor, format!("starting and ending a kernel takes {} of the time", pct(floor))),
    };
    let at_most = (1.0 - least).clamp(0.0, 1.0);
    let expected = relief.time.map(|(best, worst)| {
        let save = |time: f64| (1.0 - time.max(least)).clamp(0.0, at_most);
        (save(worst.max(best)), save(best))
    });
    Gain { at_most, expected, left }
}

/// Time that the next unit needs at the rate that it can reach, over the time now.
#[must_use]
pub fn next(relief: &Relief, case: &Case<'_>) -> f64 {
    let share = |b: &Busy| {
        let rate = if b.unit == Unit::Dram { reached(case.facts) } else { REACHED };
        b.share * relief.part(b.unit) / rate
    };
    let counts = |unit: Unit| !(matches!(unit, Unit::Sm | Unit::Memory) || unit == Unit::L2 && Demand::streams(case.facts));
    case.demand.ranked().iter().filter(|b| counts(b.unit)).map(share).fold(floor(relief, case), f64::max)
}

/// What starting and ending the kernel takes of its time.
fn floor(relief: &Relief, case: &Case<'_>) -> f64 {
    if relief.fused { 0.0 } else { case.facts.duration_ns().map_or(0.0, |ns| (EMPTY_KERNEL_NS / ns).min(1.0)) }
}

/// Share of their peak that units of the SM reach in kernels that they limit: 87 to 95 % (issue slots, FMA, FP64) in the sets of `fixtures/hints`.
const REACHED: f64 = 0.92;

/// Share of its peak that device memory reaches with a kernel's traffic.
fn reached(facts: &Facts) -> f64 {
    if facts.mixed() { MIXED_ATTAINABLE } else { ATTAINABLE }
}

/// A unit's demand that is work: of the FMA pipe only what is floating point, since the rest is integers, addresses above all.
fn work(case: &Case<'_>, unit: Unit) -> Option<f64> {
    let busy = case.demand.get(unit)?;
    Some(if unit == Unit::Fma { busy.min(float_work(case.facts).unwrap_or(busy * 0.5)) } else { busy })
}

/// FP32 work over what the SMs could do in the kernel's cycles, by the threads' instructions; counted by lane, so that idle lanes are no work.
fn float_work(facts: &Facts) -> Option<f64> {
    Some(facts.get("fp32_instructions")? / facts.positive("fp32_rate")?)
}

/// Bytes of a sector.
const SECTOR: f64 = 32.0;

/// Share of device memory's peak that the bytes take which the code's global accesses need, each fetched once: no more than what it moved. `None`
/// where sectors were not counted by the code.
#[must_use]
pub fn useful(case: &Case<'_>) -> Option<f64> {
    let dram = case.demand.get(Unit::Dram)?;
    let (ideal, bytes) = (case.facts.positive("l2_sectors_global_ideal")?, case.facts.dram_bytes()?);
    Some(dram * (ideal * SECTOR / bytes).min(1.0))
}
