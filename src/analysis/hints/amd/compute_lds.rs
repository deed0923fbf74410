//! Rules for the vector ALUs, the matrix cores and LDS.

use super::facts::{Amd, BOUND, MAY};
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, LEAST, Severity, Sure, Threshold};
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::rules::lanes;
use crate::model::units::format_share;

/// Number of active lanes, of 64 in a wave.
const LANES: Threshold = Threshold { op: "<", value: 48.0, source: "analogous to NVIDIA's ThreadDivergence rule: three quarters" };
const CONFLICTS: Threshold = Threshold { op: "≥", value: 10.0, source: "our bound; AMD gives none" };
/// Minimum busy share of the vector ALUs for their FP16 arithmetic to count as the kernel's main work.
const WORK: f64 = 0.4;
/// Minimum number of operations per byte for data to count as reused as in a matrix product.
const REUSE: f64 = 8.0;

fn roof_hint(id: Diagnosis, share: f64, hint: impl FnOnce(Hint) -> Hint, headline: String) -> Hint {
    let mut out = hint(Hint::new(id, (1.0 - share.min(1.0)) * Case::binding_weight(share), headline));
    if share * 100.0 >= BOUND.value {
        out.severity = Severity::Healthy;
    }
    out
}

/// Rule for `tensor-bound`: the matrix cores.
pub fn matrix_bound(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.share("MfmaUtil").filter(|s| *s >= MAY)?;
    let of = |hint: Hint| {
        hint.with_gain_basis("the matrix cores busy all the time")
            .with_evidence([amd.evidence("matrix cores busy", "MfmaUtil", Some(BOUND)), amd.evidence("vector ALUs busy", "VALUBusy", None)])
            .with_actions(&[
                "a type of fewer bits (bf16, fp8) has a higher peak, where the accuracy allows it",
                "do less: sparsity, a better algorithm",
            ])
            .with_confirmation(
                &["GRBM_GUI_ACTIVE", "SQ_INSTS_VALU_MFMA_MOPS_F16", "SQ_INSTS_VALU_MFMA_MOPS_BF16", "SQ_INSTS_VALU_MFMA_MOPS_F32"],
                false,
                "the rate for each type",
            )
    };
    Some(roof_hint(Diagnosis::Tensor, share, of, format!("the matrix cores are busy in {} of the time", format_share(share))))
}

/// Rule for `compute-bound`: the vector ALUs.
pub fn vector_bound(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.share("VALUBusy").filter(|s| *s >= MAY)?;
    // The counter of instructions issued by the vector ALUs also counts matrix instructions.
    if amd.share("MfmaUtil").is_some_and(|m| m >= MAY) {
        return None;
    }
    let of = |hint: Hint| {
        hint.with_gain_basis("the vector ALUs busy all the time")
            .with_confidence(if amd.share("MfmaUtil").is_some() { Sure::Certain } else { Sure::Likely })
            .with_evidence([
                amd.evidence("vector ALUs busy", "VALUBusy", Some(BOUND)),
                amd.evidence("lanes active, of all", "VALUUtilization", None),
                amd.evidence("matrix cores busy", "MfmaUtil", None),
            ])
            .with_actions(&[
                "fewer instructions: hoist index arithmetic, packed FP32 and FP16 instructions, cheaper functions (native exp, rsqrt)",
                "products of matrices belong on the matrix cores (hipBLASLt, composable_kernel, rocWMMA)",
            ])
            .with_confirmation(
                &["SQ_INSTS_VALU", "SQ_INSTS_VALU_ADD_F32", "SQ_INSTS_VALU_MUL_F32", "SQ_INSTS_VALU_FMA_F32", "SQ_INSTS_VALU_INT32"],
                false,
                "what the instructions are",
            )
    };
    Some(roof_hint(Diagnosis::Compute, share, of, format!("the vector ALUs are busy in {} of the time", format_share(share))))
}

/// Rule for `partial-warps`: workgroups that are smaller than a wave, or not a multiple of it.
pub fn partial_waves(amd: &Amd<'_>) -> Option<Hint> {
    let (items, wave) = (amd.items.filter(|i| *i > 0.0)?, amd.wave?);
    let empty = lanes::empty_lanes(items, amd.workgroups, wave)?;
    // If all workgroups run at the same time, fuller waves do not make the kernel shorter; they only free vector ALU
    // time.
    let once = amd.occupancy.as_ref().and_then(|o| o.waves).is_none_or(|rounds| rounds <= 1.0);
    let busy = amd.share("VALUBusy").map(|b| b.min(1.0));
    let memory = amd.memory_share().unwrap_or(0.0).min(1.0);
    let part = if once { busy.unwrap_or(0.0) } else { 1.0 };
    let saved = (empty.warps * part).min(1.0 - memory) * ((0.8 - memory) / 0.2).clamp(0.0, 1.0);
    let alone = once && busy.is_none();
    let hint = Hint::new(
            Diagnosis::PartialWarps,
            if alone { LEAST.min(empty.warps) } else { saved },
            lanes::describe_lanes(items, wave, empty, ("workgroups", "work-item"), "wave"),
        )
        .with_gain_basis(if alone {
            "only counters can tell whether it costs anything".to_owned()
        } else {
            format!("the same work-items in full waves: {} fewer waves", format_share(empty.warps))
        })
        .with_confidence(match (alone, once || !amd.roofs_known()) {
            (true, _) => Sure::Possible,
            (false, true) => Sure::Likely,
            (false, false) => Sure::Certain,
        })
        .with_evidence([
            Evidence::from_value("work-items of a workgroup", items, "", None),
            Evidence::from_value("lanes of a wave", wave, "", None),
            Evidence::from_value("lanes without a work-item", empty.lanes * 100.0, "%", None),
            amd.evidence("vector ALUs busy", "VALUBusy", None),
        ])
        .with_actions(&[
            "choose a workgroup size that is a multiple of 64 work-items, 256 as a rule, and fewer workgroups: one work-item for each element, with a check for the end",
            "or let all lanes of a wave share the work of a workgroup",
        ])
        .with_confirmation(&["SQ_INSTS_VALU", "SQ_WAVES", "GRBM_GUI_ACTIVE"], false, "how busy the vector ALUs are");
    Some(if alone { hint.with_unknown_gain() } else { hint })
}

/// Rule for `warp-divergence`: lanes without work.
pub fn lane_divergence(amd: &Amd<'_>) -> Option<Hint> {
    let lanes = amd.share("VALUUtilization").map(|s| s * 64.0).filter(|l| *l < LANES.value)?;
    // Workgroups with fewer work-items than a wave leave lanes empty even without branches.
    let full = amd.items.filter(|i| *i > 0.0).map_or(64.0, |i| i / (i / 64.0).ceil());
    let lost = (1.0 - lanes / full).max(0.0);
    if lanes >= full * 0.75 {
        return None;
    }
    let busy = amd.share("VALUBusy").map(|b| b.min(1.0));
    Some(
        Hint::new(
            Diagnosis::Divergence,
            lost * busy.unwrap_or(0.5),
            format!("a vector instruction has {lanes:.0} of {full:.0} lanes active: {} of them are idle", format_share(lost)),
        )
        .with_gain_basis(busy.map_or_else(
            || "half of the time; how busy the vector ALUs are was not collected".to_owned(),
            |b| format!("the same work with full waves, of the {} of the time in which the vector ALUs are busy", format_share(b)),
        ))
        .with_confidence(if busy.is_some() && amd.items.is_some() { Sure::Certain } else { Sure::Likely })
        .with_evidence([
            Evidence::from_value("active lanes of a vector instruction", lanes, "", Some(LANES)),
            amd.evidence("vector ALUs busy", "VALUBusy", None),
        ])
        .with_actions(&[
            "let the lanes of a wave take the same path: branch on the workgroup or the wave, not on the lane",
            "sort or compact the work first; use workgroups that are a multiple of 64 work-items",
        ])
        .with_thread_trace("the branches between which few lanes are active"),
    )
}

/// Rule for `shared-bank-conflicts`, in LDS.
pub fn bank_conflicts(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.share("LDSBankConflict").filter(|s| s * 100.0 >= CONFLICTS.value && amd.is_cdna())?;
    Some(
        Hint::new(Diagnosis::BankConflicts, share.min(1.0), format!("LDS resolves bank conflicts in {} of the time", format_share(share)))
            .with_gain_basis("the time that conflicts take, if nothing runs beside them")
            .with_confidence(Sure::Likely)
            .with_evidence([
                amd.evidence("LDS resolving conflicts", "LDSBankConflict", Some(CONFLICTS)),
                amd.evidence("conflict cycles for each other access cycle", "Bank Conflicts/Access", None),
                amd.evidence("LDS busy", "LDS Utilization", None),
            ])
            .with_actions(&[
                "pad the rows of arrays in LDS, or swizzle the index, so that the lanes that access it together use different banks",
                "access 8 or 16 bytes a lane (ds_read_b64, ds_read_b128) in the order of the banks",
            ])
            .with_confirmation(
                &["GRBM_GUI_ACTIVE", "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE", "SQ_INSTS_LDS"],
                false,
                "how many cycles an access costs",
            ),
    )
}

/// Rule for `shared-bandwidth-bound`: LDS accesses that are not aligned to their size take several cycles.
pub fn unaligned_lds(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.share("LDS Unaligned Stall").filter(|s| s * 100.0 >= CONFLICTS.value && amd.is_cdna())?;
    Some(
        Hint::new(Diagnosis::SharedBandwidth, share, format!("LDS is stalled by accesses that are not aligned in {} of the time", format_share(share)))
            .with_gain_basis("the time that LDS is stalled by them, if nothing runs beside")
            .with_confidence(Sure::Likely)
            .with_evidence([amd.evidence("LDS stalled by unaligned accesses", "LDS Unaligned Stall", Some(CONFLICTS)), amd.evidence("LDS busy", "LDS Utilization", None)])
            .with_actions(&[
                "align what a lane accesses to the size of the access: 8 bytes for ds_read_b64, 16 for ds_read_b128; pad rows by multiples of that",
                "declare arrays in LDS with that alignment (__attribute__((aligned(16))))",
            ])
            .with_confirmation(&["GRBM_GUI_ACTIVE", "SQ_LDS_UNALIGNED_STALL", "SQ_LDS_ADDR_CONFLICT", "SQ_LDS_IDX_ACTIVE"], false, "how many cycles an access costs"),
    )
}

/// Rule for `shared-bandwidth-bound`: LDS without conflicts.
pub fn lds_bandwidth(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.lds_share().filter(|s| *s >= MAY)?;
    let unaligned = amd.share("LDS Unaligned Stall").is_some_and(|s| s * 100.0 >= CONFLICTS.value);
    if unaligned || amd.share("LDSBankConflict")? * 100.0 >= CONFLICTS.value {
        return None;
    }
    let of = |hint: Hint| {
        hint.with_gain_basis("LDS accessed all the time")
            .with_evidence([
                amd.evidence("LDS busy", "LDS Utilization", Some(BOUND)),
                amd.evidence("LDS resolving conflicts", "LDSBankConflict", None),
            ])
            .with_actions(&[
                "keep more of what is used again in registers: larger tiles for each work-item",
                "exchange between lanes without LDS: DPP, ds_permute, readlane",
            ])
            .with_confirmation(
                &["GRBM_GUI_ACTIVE", "SQ_INSTS_LDS", "SQ_WAIT_INST_LDS", "SQ_WAVE_CYCLES"],
                false,
                "how many accesses, and how long waves wait to issue them",
            )
    };
    Some(roof_hint(
        Diagnosis::SharedBandwidth,
        share,
        of,
        format!("LDS is accessed in {} of the time, with few bank conflicts", format_share(share)),
    ))
}

/// Rule for `no-tensor-cores`: FP16 matrix products that do not use the matrix cores.
pub fn no_matrix(amd: &Amd<'_>) -> Option<Hint> {
    // The counter must be present and zero, not merely missing.
    if amd.get("MfmaUtil")? > 0.0 {
        return None;
    }
    let busy = amd.share("VALUBusy").filter(|b| *b >= WORK)?;
    let of = |name: &str| amd.get(&format!("SQ_INSTS_VALU_{name}"));
    let half = 64.0 * (of("ADD_F16")? + of("MUL_F16")? + 2.0 * of("FMA_F16")?);
    let single = 64.0 * (of("ADD_F32").unwrap_or(0.0) + of("MUL_F32").unwrap_or(0.0) + 2.0 * of("FMA_F32").unwrap_or(0.0));
    let bytes = amd.memory_bandwidth().map(|(rate, _)| rate)? * amd.ns? / 1e9;
    let reuse = half / bytes.max(1.0);
    if half < single || reuse < REUSE {
        return None;
    }
    Some(
        Hint::new(
            Diagnosis::NoTensor,
            busy * (1.0 - amd.memory_share().unwrap_or(0.0).min(1.0)),
            format!("matrix-like FP16 work without the matrix cores: each byte of memory serves {reuse:.0} operations, and MFMA instructions are absent"),
        )
        .with_gain_basis("the time of the vector ALUs, until memory binds")
        .with_confidence(Sure::Likely)
        .with_evidence([amd.evidence("vector ALUs busy", "VALUBusy", None), Evidence::from_value("operations per byte of memory", reuse, "", None), amd.evidence("matrix cores busy", "MfmaUtil", None)])
        .with_actions(&["if it multiplies matrices: hipBLASLt, composable_kernel, rocWMMA, or Triton's dot on bf16 or fp16"])
        .with_confirmation(&["SQ_INSTS_VALU_MFMA_MOPS_F16", "SQ_INSTS_VALU_FMA_F16"], false, "which of the two do the arithmetic"),
    )
}
