//! Rule: tensor cores that a kernel could use but does not.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::MAY_LIMIT;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Share of its peak from which FP16 arithmetic counts as work: a few HFMA2 only load constants. NVIDIA's
/// `HighPipeUtilization.py` considers a pipe below 20 % little used.
const WORK: f64 = 0.2;
/// Floating-point operations per byte of device memory that prove data reuse, as in a matrix product: an elementwise
/// kernel or a sum does about one per value loaded, which is at most 0.5 per byte in FP16.
const REUSE: f64 = 8.0;

/// Rule for `no-tensor-cores`.
pub fn unused_tensor_cores(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    // The pipe's own counter must be present and near zero, not merely missing.
    let matrix = f.get("tensor_mma").filter(|m| *m < 0.5)?;
    let rate = f.positive_value("fp32_rate")?;
    let single = f.get("fp32_instructions")? / rate;
    // Use the threads' instructions if they were counted, otherwise the pipe's utilization.
    let half = f.get("fp16_instructions").map(|h| h / rate).or_else(|| case.demand.get(Unit::Fp16))?;
    if half < WORK || half < single {
        return None;
    }
    // Each instruction handles two halves, and an FMA is two operations: four operations per instruction.
    let (cycles, bytes) = (f.positive_value("elapsed_cycles")?, f.dram_bytes()?);
    let reuse = 4.0 * half * rate * cycles / bytes.max(1.0);
    // Matrix work keeps the pipes, the issue slots or the path from shared memory busy.
    let busy =
        [Unit::Fma, Unit::Fp16, Unit::L1, Unit::Shared, Unit::Issue].into_iter().filter_map(|u| case.demand.get(u)).fold(0.0, f64::max);
    if reuse < REUSE || busy < 0.4 {
        return None;
    }
    let far = [Unit::Dram, Unit::L2].into_iter().filter_map(|u| case.demand.find_unit(u)).max_by(|a, b| a.share.total_cmp(&b.share));
    let stake = (1.0 - far.map_or(0.0, |b| b.share)) * busy;
    // Tensor cores read a 16 x 16 fragment once, whereas threads with tiles of 4 x 4 read it four times. Traffic with
    // L2 and device memory stays the same.
    let far_from = far.map_or(0.0, |b| b.share);
    let near = [Unit::L1, Unit::Shared].into_iter().filter_map(|u| case.demand.get(u)).fold(far_from, f64::max);
    let relief =
        DemandReduction::bound_only().without_units(&[Unit::Fma]).with_time_range(far_from.max(near / 4.0), near.max(far_from) / 0.92);
    let headline = format!(
        "matrix-like FP16 work without tensor cores: FP16 arithmetic runs at {} of its peak, each byte of device memory serves {reuse:.0} operations, and the tensor cores are idle",
        format_share(half.min(1.0))
    );
    Some(
        Hint::new(Diagnosis::NoTensor, stake, headline)
            .with_gain_basis(far.map_or_else(|| "the pipes' time".to_owned(), |b| format!("the time of pipes and shared memory, until {} binds at {}", b.unit.display_name(), format_share(b.share))))
            .with_relief(relief)
            .with_confidence(Sure::Likely)
            .with_evidence([
                case.computed_evidence("tensor pipe busy with matrix instructions", matrix, "%", None),
                case.metric_evidence("fp16_instructions", None),
                case.metric_evidence("fp32_instructions", None),
                case.computed_evidence("operations per byte of device memory", reuse, "", None),
                case.unit_evidence(Unit::Fma, Some(MAY_LIMIT)),
                case.unit_evidence(Unit::Shared, None),
            ])
            .with_actions(&[
                "if it multiplies matrices: use cuBLAS, CUTLASS, or mma/wgmma; torch: matmul on bf16 or fp16 tensors of sizes that are multiples of 8",
                "accumulate in FP32 on the tensor cores: faster and more accurate than FP16 sums",
            ])
            .with_confirmation(&["ComputeWorkloadAnalysis", "InstructionStats"], true, "which instructions the work is made of"),
    )
}
