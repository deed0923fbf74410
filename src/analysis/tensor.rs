//! Tensor work by operand type, from `sm__ops_path_tensor_*` counters, which count operations regardless of the
//! instruction.

use super::metric::Lookup;
use super::roofline_point::{Amount, Placed, Precision, Work};

/// Dense FP16 or BF16 operations per clock of an SM's tensor cores, by compute capability. Source: NVIDIA's
/// architecture white papers (V100 and T4 1024, A100 2048, Ada 1024, H100 4096, B200 8192).
pub const PER_SM: &[((u32, u32), f64)] =
    &[((7, 0), 1024.0), ((7, 5), 1024.0), ((8, 0), 2048.0), ((8, 9), 1024.0), ((9, 0), 4096.0), ((10, 0), 8192.0)];

/// Name for tensor work whose counters were not collected. Its peak is still known.
pub const NOMINAL: &str = "FP16 tensor";

/// Types of tensor operands in metric names, and their labels.
const TYPES: [(&str, &str); 12] = [
    ("src_bf16", "BF16"),
    ("src_fp16_bf16_tf32", "FP16/BF16"),
    ("src_fp16", "FP16"),
    ("src_tf32", "TF32"),
    ("src_fp4_fp6_fp8", "FP8/FP6/FP4"),
    ("src_fp4_fp6", "FP6/FP4"),
    ("src_fp8", "FP8"),
    ("src_fp4", "FP4"),
    ("src_fp64", "FP64"),
    ("src_int8", "INT8"),
    ("src_int4", "INT4"),
    ("src_int1", "INT1"),
];

/// Parsed name of a tensor counter.
struct Counter<'a> {
    base: &'a str,
    op: Option<&'a str>,
    /// Label such as `FP16 tensor`, with the accumulator type if the chip supports several.
    kind: String,
    sparsity: Option<bool>,
}

fn parse_counter(base: &str) -> Option<Counter<'_>> {
    let rest = base.strip_prefix("sm__ops_path_tensor_").filter(|r| !r.ends_with("_realtime"))?;
    let (op, rest) = match rest.strip_prefix("op_") {
        Some(r) => {
            let at = r.find("_src_")?;
            (Some(&r[..at]), &r[at + 1..])
        }
        None => (None, rest),
    };
    let sparsity = if rest.ends_with("_sparsity_on") {
        Some(true)
    } else if rest.ends_with("_sparsity_off") {
        Some(false)
    } else {
        None
    };
    let plain = rest.trim_end_matches("_sparsity_on").trim_end_matches("_sparsity_off");
    let (src, dst) = plain.split_once("_dst_").unwrap_or((plain, ""));
    let word = TYPES.iter().find(|(t, _)| *t == src).map(|(_, word)| *word)?;
    // Chips with half the rate for FP32 accumulation have one counter per accumulator type.
    let sums = if dst == "fp16" { ", FP16 sums" } else { "" };
    Some(Counter { base, op, kind: format!("{word} tensor{sums}"), sparsity })
}

/// Tensor-core peak from the white papers, for a result without a counter that reports it.
fn nominal_peak(lookup: &Lookup<'_>, sm: Option<f64>) -> Option<Work> {
    let sms = lookup.first_finite(&["device__attribute_multiprocessor_count", "launch__sm_count"]);
    let capability = lookup.result.compute_capability.and_then(|(a, b)| Some((u32::try_from(a).ok()?, u32::try_from(b).ok()?)));
    let per_sm = PER_SM.iter().find(|p| Some(p.0) == capability).map(|p| p.1);
    let peak = per_sm.zip(sms).zip(sm).map(|((each, sms), clock)| each * sms * clock);
    let formula = "dense operations per SM and clock of NVIDIA's white papers × SMs × SM clock".to_owned();
    peak.map(|p| Work {
        name: NOMINAL.to_owned(),
        precision: Precision::Tensor,
        achieved: None,
        amount: Amount::Counted,
        peak: Some(p),
        formula,
    })
}

/// Adds the tensor work of a result, and notes on missing metrics.
pub(super) fn add_tensor_work(lookup: &Lookup<'_>, sm: Option<f64>, seconds: Option<f64>, out: &mut Placed) {
    let mut bases: Vec<&str> = Vec::new();
    for (n, _) in &lookup.result.values {
        let Some(name) = lookup.metrics.names.get(*n as usize).filter(|n| n.starts_with("sm__ops_path_tensor_")) else { continue };
        if let Some((base, form)) = name.split_once(".sum")
            && ["", ".per_cycle_elapsed", ".per_second", ".peak_sustained"].contains(&form)
            && !bases.contains(&base)
        {
            bases.push(base);
        }
    }
    let counters: Vec<Counter<'_>> = bases.iter().filter_map(|b| parse_counter(b)).collect();
    let rate = |base: &str| {
        let per_cycle = lookup.finite_number(&format!("{base}.sum.per_cycle_elapsed")).zip(sm).map(|(n, clock)| n * clock);
        let per_second = || lookup.finite_number(&format!("{base}.sum.per_second"));
        per_cycle.or_else(per_second).or_else(|| Some(lookup.finite_number(&format!("{base}.sum"))? / seconds?))
    };
    let peak = |base: &str| lookup.finite_number(&format!("{base}.sum.peak_sustained")).zip(sm).map(|(p, clock)| p * clock);
    let mut kinds: Vec<&str> = Vec::new();
    for c in &counters {
        if !kinds.contains(&c.kind.as_str()) {
            kinds.push(&c.kind);
        }
    }
    for kind in &kinds {
        let of = |op: bool, sparsity: Option<bool>| {
            counters.iter().filter(move |c| c.kind == *kind && c.op.is_some() == op && c.sparsity == sparsity)
        };
        let sum = |op: bool, sparsity: Option<bool>| {
            let rates: Vec<f64> = of(op, sparsity).filter_map(|c| rate(c.base)).collect();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>())
        };
        let most = |sparsity: Option<bool>| {
            let peaks = [false, true].into_iter().flat_map(|op| of(op, sparsity)).filter_map(|c| peak(c.base));
            peaks.fold(None, |m: Option<f64>, p| Some(m.map_or(p, |m| m.max(p))))
        };
        // Prefer counters split by sparsity to totals, and totals over all instructions to those of one instruction.
        let dense = sum(false, Some(false)).or_else(|| sum(true, Some(false)));
        let sparse = sum(false, Some(true)).or_else(|| sum(true, Some(true)));
        let total = sum(false, None).or_else(|| sum(true, None));
        let plain = kind.split(" tensor").next().unwrap_or(kind);
        // FP64 and INT1 have no sparse form, and neither has any type before Ampere: the peak of their counter is the
        // dense one.
        let halves = lookup.result.compute_capability.is_none_or(|(major, _)| major >= 8) && !matches!(plain, "FP64" | "INT1");
        let dense_peak = most(Some(false)).or_else(|| most(None).map(|p| if halves { p / 2.0 } else { p }));
        let formula = "sm__ops_path_tensor per cycle × SM clock; peak: the dense one (sparsity off) × SM clock".to_owned();
        if let Some(achieved) = dense.or(total.map(|t| t - sparse.unwrap_or(0.0))).filter(|a| *a > 0.0) {
            out.work.push(Work {
                name: (*kind).to_owned(),
                precision: Precision::Tensor,
                achieved: Some(achieved),
                amount: Amount::Counted,
                peak: dense_peak,
                formula: formula.clone(),
            });
        }
        if let Some(achieved) = sparse.filter(|a| *a > 0.0) {
            let peak = most(Some(true)).or_else(|| dense_peak.map(|p| p * 2.0));
            let formula = formula.replace("the dense one (sparsity off)", "the sparse one (sparsity on)");
            out.work.push(Work {
                name: format!("{kind}, sparse"),
                precision: Precision::Tensor,
                achieved: Some(achieved),
                amount: Amount::Counted,
                peak,
                formula,
            });
        }
        let old: f64 = counters
            .iter()
            .filter(|c| c.kind == *kind && matches!(c.op, Some("hmma" | "imma")) && c.sparsity != Some(true))
            .filter_map(|c| rate(c.base))
            .fold(0.0, f64::max);
        if lookup.result.compute_capability.is_some_and(|(major, _)| major == 9) && old > 0.0 {
            out.remarks
                .push(format!("{plain} work runs on mma.sync instructions, which reach two thirds of the peak of wgmma on this chip."));
        }
    }
    let pipe =
        lookup.first_finite(&["sm__inst_executed_pipe_tensor.sum", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]);
    if kinds.is_empty() && pipe.is_none_or(|p| p > 0.0) {
        out.missing.push("tensor work: --section SpeedOfLight_HierarchicalTensorRooflineChart, of ncu 2025 or later".to_owned());
    }
    if !out.work.iter().any(|w| w.precision == Precision::Tensor && w.peak.is_some()) {
        // The tensor-core peak is of interest even if they are idle.
        out.work.extend(nominal_peak(lookup, sm));
    }
    if let Some(active) = lookup.finite_number("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed").filter(|a| *a > 1.0)
        && kinds.is_empty()
    {
        out.remarks.push(format!(
            "The tensor pipe was active for {active:.1}% of the cycles: that is its share of the peak at this clock, whatever the type."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_counters_are_taken_apart() {
        let c = parse_counter("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off").unwrap();
        assert_eq!((c.op, c.kind.as_str(), c.sparsity), (Some("hgmma"), "BF16 tensor", Some(false)));
        let c = parse_counter("sm__ops_path_tensor_src_fp64").unwrap();
        assert_eq!((c.op, c.kind.as_str(), c.sparsity), (None, "FP64 tensor", None));
        let c = parse_counter("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32").unwrap();
        assert_eq!(c.kind, "FP8/FP6/FP4 tensor");
        assert_eq!(parse_counter("sm__ops_path_tensor_src_fp16_dst_fp16").unwrap().kind, "FP16 tensor, FP16 sums");
        assert!(parse_counter("sm__ops_path_tensor_src_bf16_dst_fp32_realtime").is_none());
        assert!(parse_counter("sm__inst_executed_pipe_tensor").is_none());
    }
}
