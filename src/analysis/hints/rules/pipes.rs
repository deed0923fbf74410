//! Rules: arithmetic pipes at their limit.

use crate::analysis::hints::bottleneck::{Bottleneck, find_bottleneck};
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Severity, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, MAY_LIMIT};
use crate::analysis::hints::rule_context::{Case, discount_note};
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Rule for `compute-bound`, `alu-bound`, `fp64-bound`, `sfu-bound` or `tensor-bound`.
pub fn busy_pipe(case: &Case<'_>) -> Option<Hint> {
    let Bottleneck::Pipe(unit, share) = find_bottleneck(case)? else { return None };
    let hint = match unit {
        Unit::Fp64 => fp64_bound(case, share),
        Unit::Xu => sfu_bound(case, share),
        Unit::Tensor => tensor_bound(case, share),
        _ if is_integer_bound(case, unit) => alu_bound(case, unit, share),
        _ => compute_bound(case, unit, share),
    };
    let at = if share * 100.0 >= AT_LIMIT.value { AT_LIMIT } else { MAY_LIMIT };
    let mut hint = Hint { bound: format!("{}{}", hint.bound, discount_note(Case::binding_weight(share))), ..hint };
    hint = hint.with_confidence(if share * 100.0 >= AT_LIMIT.value { Sure::Certain } else { Sure::Likely });
    // The remedies reduce the demand on this unit.
    hint.details.relief = match unit {
        Unit::Fp64 => DemandReduction::bound_only().without_units(&[Unit::Fp64]).with_time(1.0 - hint.stake, 1.3),
        Unit::Tensor => DemandReduction::bound_only().without_units(&[Unit::Tensor]),
        _ => DemandReduction::bound_only().without_units(&[Unit::Fma, Unit::Fp64, Unit::Xu]),
    };
    if hint.id == Diagnosis::Compute && share * 100.0 < AT_LIMIT.value {
        // Without less work, the best that can be had is a unit that is busy all the time.
        hint.details.relief = hint.details.relief.with_time_range(share / case.active.max(share), 1.0);
    }
    let first = case.unit_evidence(unit, Some(at));
    hint.evidence.retain(|e| first.as_ref().is_none_or(|f| f.concept != e.concept));
    hint.evidence.splice(0..0, first);
    Some(hint)
}

/// Marks the hint as healthy if the kernel is near the roof and the activity of the lanes was measured.
fn mark_healthy(case: &Case<'_>, hint: Hint, share: f64) -> Hint {
    match case.facts.threads_per_instruction() {
        Some(_) if share * 100.0 >= AT_LIMIT.value && case.demand.get(Unit::Sm).is_none() => Hint { severity: Severity::Healthy, ..hint },
        Some(_) => hint,
        None => hint.with_confidence(Sure::Likely),
    }
}

/// FP32 share of the FMA pipe's work; the rest is integer multiply-add. `None` without the mean number of threads for
/// which an instruction is executed: FP32 operations are counted by thread, but occupy the pipe for whole warps.
fn float_part(case: &Case<'_>) -> Option<f64> {
    let (work, rate) = (case.facts.get("fp32_instructions")?, case.facts.positive_value("fp32_rate")?);
    let pipe = case.demand.get(Unit::Fma).filter(|p| *p > 0.0)?;
    let lanes = case.facts.threads_not_off().or_else(|| case.facts.threads_per_instruction())? / 32.0;
    Some((work / rate / lanes / pipe).clamp(0.0, 1.0))
}

/// Load of the FMA-heavy pipe, as a multiple of the load of both FMA pipes, from which most of it is integer
/// multiply-adds: FP32 is spread over both pipes evenly, integers run on the heavy one only. At 1.5, the other pipe has
/// a third of its load.
const MOSTLY_INTEGERS: f64 = 1.5;

fn heavy_with_integers(case: &Case<'_>) -> bool {
    let both = case.demand.get(Unit::Fma);
    let uneven = || Some(case.demand.get(Unit::FmaHeavy)? >= MOSTLY_INTEGERS * both?);
    float_part(case).map_or_else(|| uneven().unwrap_or(false), |p| p < 0.5)
}

/// Returns true if integer and logic instructions fill the pipes although the kernel computes with floats, or if it
/// divides integers.
fn is_integer_bound(case: &Case<'_>, unit: Unit) -> bool {
    let f = case.facts;
    let any_float = ["fp32_instructions", "fp64_instructions", "fp16_instructions"].iter().any(|i| f.positive_value(i).is_some());
    // Integer divisions use the reciprocal on the XU pipe; other integer code does not use that pipe.
    let xu = case.demand.get(Unit::Xu).unwrap_or(0.0);
    let floats_known = f.get("fp32_instructions").is_some();
    let divides = floats_known && !any_float && xu >= 0.05;
    let busy_with_integers = match unit {
        Unit::Alu => true,
        Unit::FmaHeavy => heavy_with_integers(case),
        Unit::Fma | Unit::Issue => float_part(case).is_some_and(|p| p < 0.5),
        _ => false,
    };
    // An integer division ends with integer multiply-adds and a few floating-point operations; so few do not make
    // floating point the kernel's purpose.
    let few_floats = float_part(case).is_some_and(|p| p < 0.5);
    busy_with_integers && (divides || any_float || xu >= 0.05 && few_floats)
}

fn compute_bound(case: &Case<'_>, unit: Unit, share: f64) -> Hint {
    let near = share * 100.0 >= AT_LIMIT.value;
    let end = match unit {
        Unit::Sm => "; the limiting pipe is unknown, because its counters were not collected",
        _ if near => ": the kernel runs as fast as this unit allows",
        _ => "",
    };
    let hint = Hint::new(
        Diagnosis::Compute,
        case.headroom(share),
        format!("compute is the limit: {} at {} of peak{end}", unit.display_name(), format_share(share)),
    )
    .with_gain_basis(format!(
        "{} at 100% while the SMs have work, instead of {}",
        unit.display_name(),
        format_share(share / case.active.max(share))
    ))
    .with_evidence([
        case.unit_evidence(Unit::Issue, None),
        case.unit_evidence(Unit::Fma, None),
        case.unit_evidence(Unit::Alu, None),
        case.metric_evidence("sm_throughput", None),
    ])
    .with_actions(&[
        "do less: reuse partial results, a cheaper formula, lower precision where it suffices",
        "fuse multiplies and adds into FMAs; process two FP16 values per instruction (half2) where FP16 suffices",
        "matrix products belong on the tensor cores",
    ])
    .with_confirmation(&["ComputeWorkloadAnalysis", "InstructionStats"], false, "which instructions fill the pipe");
    mark_healthy(case, hint, share)
}

fn alu_bound(case: &Case<'_>, unit: Unit, share: f64) -> Hint {
    let (stake, bound) = case.next_roof(&[Unit::Alu, Unit::FmaHeavy, Unit::Issue, unit]);
    let xu = case.demand.get(Unit::Xu).filter(|x| *x >= 0.05);
    let divides = xu.map_or("", |_| "; conversions and reciprocals point to integer divisions");
    Hint::new(
        Diagnosis::Alu,
        stake * Case::binding_weight(share),
        format!("integer and logic instructions are the limit: {} at {} of its peak{divides}", unit.display_name(), format_share(share)),
    )
    .with_gain_basis(bound)
    .with_evidence([
        case.unit_evidence(Unit::Alu, None),
        case.unit_evidence(Unit::Xu, None),
        float_part(case).and_then(|p| case.computed_evidence("FP32 share of the FMA pipe", p * 100.0, "%", None)),
        case.unit_evidence(Unit::Issue, None),
    ])
    .with_actions(&[
        "divide and take remainders by constants or powers of two (shifts, masks); fast division with precomputed factors",
        "compute indices once, outside of loops, and step them by additions; 32-bit indices instead of 64-bit",
        "let each thread process several elements per index computation; vector loads",
    ])
    .with_confirmation(&["InstructionStats", "SourceCounters"], true, "the lines with the integer work")
}

fn fp64_bound(case: &Case<'_>, share: f64) -> Hint {
    let f = case.facts;
    // The same work in FP32 takes less time by the ratio of the rates: 1/2 on data-center chips, 1/32 or 1/64 on
    // others.
    let ratio = f.positive_value("fp64_rate").zip(f.positive_value("fp32_rate")).map(|(d, s)| d / s);
    let others = case.demand.busiest_except(&[Unit::Fp64, Unit::Issue]).map_or(0.0, |b| b.share);
    let fma = case.demand.get(Unit::Fma).unwrap_or(0.0);
    let as_fp32 = ratio.map_or(share / 2.0, |r| share * r) + fma;
    let stake = 1.0 - others.max(as_fp32).min(1.0);
    let rate = ratio.map_or_else(String::new, |r| format!("; this GPU does FP64 at {} of its FP32 rate", format_share(r)));
    Hint::new(
        Diagnosis::Fp64,
        stake * Case::binding_weight(share),
        format!("FP64 is the limit: its pipe is at {} of its peak{rate}", format_share(share)),
    )
    .with_gain_basis("the same work in FP32, or until the next unit binds")
    .with_evidence([
        case.metric_evidence("fp64_instructions", None),
        case.metric_evidence("fp64_rate", None),
        case.metric_evidence("fp32_rate", None),
        case.unit_evidence(Unit::Fma, None),
    ])
    .with_actions(&[
        "compute in FP32 where the precision allows; look for constants without f (0.5 is FP64) and for pow, sin on doubles",
        "mixed precision: products in FP32, sums in FP64 or compensated",
        "matrix products in FP64: the tensor cores' DMMA, where the chip has it",
    ])
    .with_confirmation(&["InstructionStats", "SourceCounters"], true, "the lines with FP64")
}

fn sfu_bound(case: &Case<'_>, share: f64) -> Hint {
    let (stake, bound) = case.next_roof(&[Unit::Xu, Unit::Issue]);
    Hint::new(
        Diagnosis::Sfu,
        stake * Case::binding_weight(share),
        format!("special functions are the limit: the XU pipe is at {} of its peak", format_share(share)),
    )
    .with_gain_basis(bound)
    .with_evidence([
        case.unit_evidence(Unit::Fma, None),
        case.unit_evidence(Unit::Alu, None),
        case.unit_evidence(Unit::Issue, None),
        case.stall_evidence("mio_throttle", None),
    ])
    .with_actions(&[
        "use fewer exp, log, sin, sqrt, reciprocals and conversions: tables, polynomials on the FMA pipe, identities (one exp for two)",
        "divide once and multiply by the reciprocal; keep values in one type, since conversions take this pipe, too",
        "mix: let part of the exponentials run as polynomials, as attention kernels do",
    ])
    .with_confirmation(&["InstructionStats", "SourceCounters"], true, "the lines with special functions")
}

fn tensor_bound(case: &Case<'_>, share: f64) -> Hint {
    let near = share * 100.0 >= AT_LIMIT.value;
    let end = if near { ": this is what the tensor cores can do" } else { "" };
    let mut hint = Hint::new(
        Diagnosis::Tensor,
        case.headroom(share),
        format!("tensor cores are the busiest unit, at {} of their peak{end}", format_share(share)),
    )
    .with_gain_basis(format!(
        "the tensor pipe at 100% while the SMs have work, instead of {}",
        format_share(share / case.active.max(share))
    ))
    .with_evidence([
        case.metric_evidence("tensor_instructions_gmma", None),
        case.unit_evidence(Unit::Dram, None),
        case.unit_evidence(Unit::L2, None),
        case.unit_evidence(Unit::Shared, None),
    ])
    .with_actions(&[
        "use a smaller type (fp8; on Blackwell fp4), or sparsity, where the model allows",
        "skip work: blocks of zeros, padding, masked tiles",
    ])
    .with_confirmation(&["ComputeWorkloadAnalysis", "InstructionStats"], false, "which tensor instructions it uses");
    if case.facts.get("tensor_instructions_gmma") == Some(0.0) {
        // Measured: `mma.sync` achieves 2730.7 of wgmma's 4096 operations per SM and cycle on Hopper.
        hint.actions.insert(0, "use wgmma: mma.sync reaches only two thirds of the peak on Hopper".to_owned());
    }
    let near = share * 100.0 >= AT_LIMIT.value;
    if near { Hint { severity: Severity::Healthy, ..hint } } else { hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::hints::Facts;

    #[test]
    fn a_full_heavy_pipe_is_integer_work_only_if_the_light_one_is_empty() {
        let integers = |pairs: &[(&'static str, f64)]| {
            let facts = Facts::from_pairs(&[&[("fp16_instructions", 1.0)], pairs].concat());
            is_integer_bound(&Case::new(&facts), Unit::FmaHeavy)
        };
        assert!(!integers(&[("busy_fma", 85.0), ("busy_fma_heavy", 86.0)]), "FP32 fills both");
        assert!(integers(&[("busy_fma", 50.0), ("busy_fma_heavy", 85.0)]));
        assert!(!integers(&[("busy_fma_heavy", 85.0)]), "the other pipe is unknown");
    }
}
