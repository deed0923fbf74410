//! Rules for L2 and the memory behind it.

use super::facts::{Amd, BOUND, MAY, VECTOR_L1};
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, Severity, Sure, Threshold};
use crate::analysis::hints::rule_context::Case;
use crate::model::units::format_share;

/// Thresholds from rocprof-compute 3.5, panel 30.12.
const L2_HITS: Threshold = Threshold { op: "<", value: 50.0, source: "rocprof-compute: the working set exceeds L2" };
const CREDITS: Threshold = Threshold { op: "≥", value: 10.0, source: "rocprof-compute: memory bandwidth" };
pub const BACKPRESSURE: Threshold = Threshold { op: "≥", value: 10.0, source: "rocprof-compute: L2 throughput" };

/// Rule for `dram-bandwidth-bound`.
pub fn memory_bandwidth(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.memory_share().filter(|s| *s >= MAY)?;
    let ((bytes, both), (published, reached)) = (amd.memory_bandwidth()?, amd.memory_peaks()?);
    let near = share * 100.0 >= BOUND.value;
    let least = if both { "" } else { "at least " };
    let mut hint = Hint::new(
        Diagnosis::DramBandwidth,
        (1.0 - share.min(1.0)) * Case::binding_weight(share),
        format!("L2 exchanges {least}{:.0} GB/s with memory: {least}{} of the {:.0} GB/s that this GPU's memory can be brought to", bytes / 1e9, format_share(share), reached / 1e9),
    )
    .with_gain_basis(format!("{:.0} GB/s; {:.0} GB/s are published. Infinity Cache may give more", reached / 1e9, published / 1e9))
    // Between `MAY` and `BOUND`, memory may be the limit, but this is not certain.
    .with_confidence(if both && near { Sure::Certain } else { Sure::Likely })
    .with_evidence([
        Evidence::from_value("traffic behind L2, of what memory can be brought to", share * 100.0, "%", Some(BOUND)),
        amd.evidence("read", "L2-Fabric Read BW", None),
        amd.evidence("written", "L2-Fabric Write BW", None),
        amd.evidence("L2 stalled for credits of HBM", "L2 Stalled for HBM Credits", Some(CREDITS)),
        amd.evidence("L2 hits", "L2CacheHit", Some(L2_HITS)),
    ])
    .with_actions(&[
        "move fewer bytes: fuse kernels that pass arrays on, use smaller types (bf16, fp8), keep what is used again in LDS or registers",
        "tile so that what is used again fits in the L2 of one die (4 MB of an XCD), and let workgroups that share data run on the same die",
    ])
    .with_confirmation(&["GRBM_GUI_ACTIVE", "TCC_HIT_sum", "TCC_MISS_sum", "TCC_REQ_sum"], false, "how much of it L2 could have kept");
    if near {
        hint.severity = Severity::Healthy;
    }
    Some(hint)
}

/// Rule for `l1-bandwidth-bound`. The rate counts whole cache lines, as AMD's roofline does.
pub fn l1_bandwidth(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.l1_share().filter(|s| *s >= MAY)?;
    let (rate, reached) = (amd.get("L1 Cache Bandwidth")?, amd.get("L1Bw")?);
    let next = amd.ranked_units().into_iter().find(|(unit, _)| *unit != VECTOR_L1);
    let stake = (1.0 - next.map_or(0.0, |n| n.1)) * Case::binding_weight(share);
    Some(
        Hint::new(
            Diagnosis::L1Bandwidth,
            stake,
            format!(
                "the vector L1 looks up {:.2} TB/s: {} of the {:.2} TB/s that AMD's benchmark reached on this machine",
                rate / 1e12,
                format_share(share),
                reached / 1e12
            ),
        )
        .with_gain_basis(next.map_or_else(
            || "the use of the other units was not collected".to_owned(),
            |(unit, share)| format!("the next limit: {unit} at {}", format_share(share)),
        ))
        .with_confidence(Sure::Likely)
        .with_evidence([
            Evidence::from_value("vector L1, of what the benchmark reached", share * 100.0, "%", Some(BOUND)),
            amd.evidence("coalescing of accesses", "vL1D Coalescing", None),
            amd.evidence("L2 hits", "L2CacheHit", None),
        ])
        .with_actions(&[
            "let the lanes of a wave access neighbouring addresses: fewer cache lines for each instruction",
            "keep what is used again in registers or LDS: larger tiles",
            "wider loads (global_load_dwordx4): fewer instructions for the same bytes",
        ])
        .with_confirmation(
            &["TCP_TOTAL_CACHE_ACCESSES_sum", "TA_TOTAL_WAVEFRONTS_sum", "TCP_TOTAL_ACCESSES_sum"],
            false,
            "how well accesses are coalesced",
        ),
    )
}

/// Rule for `l2-bandwidth-bound`.
pub fn l2_bandwidth(amd: &Amd<'_>) -> Option<Hint> {
    let stalled = amd.share("L2 Input Stalled").filter(|s| s * 100.0 >= BACKPRESSURE.value)?;
    Some(
        Hint::new(
            Diagnosis::L2Bandwidth,
            stalled.min(1.0 - amd.peak_share()),
            format!("L2 holds back the CUs' requests in {} of the time it is busy", format_share(stalled)),
        )
        .with_gain_basis("the time in which requests wait to enter L2")
        .with_confidence(Sure::Likely)
        .with_evidence([
            amd.evidence("L2 input stalled, of busy cycles", "L2 Input Stalled", Some(BACKPRESSURE)),
            amd.evidence("L2 hits", "L2CacheHit", None),
        ])
        .with_actions(&[
            "keep what is used again in LDS or registers: larger tiles, wider loads",
            "let the lanes of a wave access neighbouring addresses",
        ])
        .with_confirmation(&["TCC_IB_STALL_sum", "TCC_BUSY_sum", "TCC_REQ_sum"], false, "how often L2 holds requests back"),
    )
}
