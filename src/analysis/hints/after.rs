//! Speedup model behind all predicted gains. A kernel takes as long as its busiest unit needs, or as its warps wait. A
//! change removes part of the demand, and what remains determines the new time. The demand that none of the listed
//! changes can remove gives the upper bound of the gain; the demand of the next unit, at the rate that units reach in
//! practice, gives the estimate.

use super::limits::{ATTAINABLE, EMPTY_KERNEL_NS, MIXED_ATTAINABLE};
use super::metric_values::Facts;
use super::rule_context::Case;
use super::speedup_model::{DemandReduction, Gain};
use super::unit_throughput::{Busy, Demand, Unit};
use crate::model::units::format_share;

/// Units whose demand is the work itself (bytes of device memory, floating-point operations, special functions),
/// however the surrounding code is written.
const WORK: [Unit; 5] = [Unit::Dram, Unit::Fma, Unit::Fp64, Unit::Xu, Unit::Tensor];

/// Predicts a kernel's gain from a change.
pub fn predict_gain(relief: &DemandReduction, case: &Case<'_>) -> Gain {
    let floor = overhead_floor(relief, case);
    let kept = WORK.iter().filter_map(|&u| Some((u, work_share(case, u)? * relief.remaining_part(u)))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (least, left) = match kept {
        Some((unit, share)) if share >= floor => {
            // The evidence shows the utilization of the whole pipe, so name the useful part if it is smaller.
            let part = case.demand.get(unit).is_some_and(|busy| share < busy - 0.005);
            let what = if part { format!("the useful work of {}", unit.display_name()) } else { format!("{} alone", unit.display_name()) };
            (share, format!("{what} needs {}", format_share(share)))
        }
        _ if relief.fused => (0.0, "as part of another kernel it need take no time of its own".to_owned()),
        _ => (floor, format!("launch overhead is {} of the duration", format_share(floor))),
    };
    let (least, left) = match &relief.floor {
        Some((floor, why)) if *floor > least => (*floor, why.clone()),
        _ => (least, left),
    };
    let at_most = (1.0 - least).clamp(0.0, 1.0);
    let expected = relief.time.map(|(best, worst)| {
        let save = |time: f64| (1.0 - time.max(least)).clamp(0.0, at_most);
        (save(worst.max(best)), save(best))
    });
    Gain { at_most, expected, left, estimate: describe_estimate(relief, case).unwrap_or_default(), unknown: relief.unknown }
}

/// Maximum difference between the best time and the next unit's for that unit to explain the estimate.
const ALIKE: f64 = 0.02;

/// Names the unit that takes the best time after the change.
fn describe_estimate(relief: &DemandReduction, case: &Case<'_>) -> Option<String> {
    let (best, _) = relief.time?;
    let (unit, share) = units_after(relief, case).into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Several sectors of a request share one wavefront, so that L1's work may shrink by more than the sectors.
    let part = relief.remaining_part(unit);
    let of = if part < 1.0 { format!(", for {} of its work", format_share(part)) } else { String::new() };
    ((share - best).abs() <= ALIKE).then(|| format!("{} would then take {} of today's time{of}", unit.display_name(), format_share(share)))
}

/// Time that the next unit needs at its attainable rate, relative to the current time.
pub fn next(relief: &DemandReduction, case: &Case<'_>) -> f64 {
    units_after(relief, case).into_iter().map(|(_, share)| share).fold(overhead_floor(relief, case), f64::max)
}

/// Times that the units need after the change at their attainable rates, relative to the current time.
fn units_after(relief: &DemandReduction, case: &Case<'_>) -> Vec<(Unit, f64)> {
    let share = |b: &Busy| {
        let rate = if b.unit == Unit::Dram { attainable_share(case.facts) } else { REACHED };
        b.share * relief.remaining_part(b.unit) / rate
    };
    let counts = |unit: Unit| !(matches!(unit, Unit::Sm | Unit::Memory) || unit == Unit::L2 && Demand::is_stream(case.facts));
    case.demand.ranked_units().iter().filter(|b| counts(b.unit)).map(|b| (b.unit, share(b))).collect()
}

/// Share of the kernel's time taken by its start and end, which no change removes except fusion with another kernel.
fn overhead_floor(relief: &DemandReduction, case: &Case<'_>) -> f64 {
    if relief.fused { 0.0 } else { case.facts.duration_ns().map_or(0.0, |ns| (EMPTY_KERNEL_NS / ns).min(1.0)) }
}

/// Utilization that SM units reach in kernels that they limit: 87 to 95 % (issue slots, FMA, FP64) in the sets of
/// `fixtures/hints`.
const REACHED: f64 = 0.92;

/// Share of device memory's peak that is attainable with a kernel's traffic.
fn attainable_share(facts: &Facts) -> f64 {
    if facts.has_mixed_traffic() { MIXED_ATTAINABLE } else { ATTAINABLE }
}

/// Share of a unit's demand that is work: only floating point for the FMA pipe, since the rest is integer arithmetic,
/// mostly for addresses.
fn work_share(case: &Case<'_>, unit: Unit) -> Option<f64> {
    let busy = case.demand.get(unit)?;
    Some(if unit == Unit::Fma { busy.min(float_work(case.facts).unwrap_or(busy * 0.5)) } else { busy })
}

/// FP32 work relative to the SMs' capacity in the kernel's cycles. It is counted per lane, so idle lanes do not count
/// as work.
fn float_work(facts: &Facts) -> Option<f64> {
    Some(facts.get("fp32_instructions")? / facts.positive_value("fp32_rate")?)
}

/// Bytes per sector.
const SECTOR: f64 = 32.0;

/// Share of device memory's peak bandwidth that the code's global accesses would need if each byte were fetched only
/// once; never more than the measured traffic. `None` if the report has no sector counts from source counters.
pub fn useful_dram_share(case: &Case<'_>) -> Option<f64> {
    let dram = case.demand.get(Unit::Dram)?;
    let (ideal, bytes) = (case.facts.positive_value("l2_sectors_global_ideal")?, case.facts.dram_bytes()?);
    Some(dram * (ideal * SECTOR / bytes).min(1.0))
}
