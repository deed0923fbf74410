//! Rule: device memory or L2 as the limit.

use crate::analysis::hints::bottleneck::{Bottleneck, find_bottleneck};
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Severity, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, ATTAINABLE, MAY_LIMIT, MIXED};
use crate::analysis::hints::rule_context::{Case, discount_note};
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::analysis::metric::human_number;
use crate::model::units::format_share;

/// Rule for `dram-bandwidth-bound` (healthy near the peak) or `l2-bandwidth-bound`.
pub fn memory_bandwidth(case: &Case<'_>) -> Option<Hint> {
    match find_bottleneck(case)? {
        Bottleneck::Dram(share) => Some(dram_bandwidth(case, share)),
        Bottleneck::L2(share) => Some(l2_bandwidth(case, share)),
        _ => None,
    }
}

/// Percentage points by which a kernel must exceed the limit for its verdict to be certain: in a public report, kernels of
/// equal bandwidth are at 74.6 and 75.1 %.
const MARGIN: f64 = 2.0;

fn dram_bandwidth(case: &Case<'_>, share: f64) -> Hint {
    let rate = case.facts.get("dram_bandwidth").map_or_else(String::new, |b| {
        let (number, unit) = human_number(b, "byte/second");
        format!(" ({number} {unit})")
    });
    // Switching between reads and writes costs time, which lowers the attainable peak.
    let limit = if case.facts.has_mixed_traffic() { MIXED } else { AT_LIMIT };
    let near = share * 100.0 >= limit.value;
    // A kernel counts as healthy only if its traffic is known to be useful.
    let useful =
        ["l2_sectors_global", "global_load_efficiency", "global_load_sectors_per_request"].iter().any(|i| case.facts.get(i).is_some());
    let headline = if near && useful {
        format!("device memory runs at {} of its peak{rate}: only less traffic makes this kernel much faster", format_share(share))
    } else {
        format!("device memory is the busiest unit, at {} of its peak{rate}", format_share(share))
    };
    // The remedy is to move fewer bytes, and any byte may be avoidable, so device memory does not limit the gain.
    let relief = DemandReduction::bound_only().without_units(&[Unit::Dram]);
    let mut hint = Hint::new(Diagnosis::DramBandwidth, (1.0 - share / ATTAINABLE).max(0.0) * Case::binding_weight(share), headline)
        .with_gain_basis(format!(
            "device memory at {}, which the best streams reach, instead of {}{}",
            format_share(ATTAINABLE),
            format_share(share),
            discount_note(Case::binding_weight(share))
        ))
        .with_relief(relief)
        .with_evidence([
            case.unit_evidence(Unit::Dram, Some(if near { limit } else { MAY_LIMIT })),
            case.metric_evidence("dram_bandwidth", None),
            case.unit_evidence(Unit::L2, None),
            case.metric_evidence("l2_hit_rate", None),
        ])
        .with_actions(&[
            "move fewer bytes: fuse with the kernel before or after, so that what one writes the other need not read",
            "store smaller types (bf16, fp8, int8) where the precision allows",
            "reuse what is loaded: tile for L2 or shared memory, if the same bytes are read more than once",
        ])
        .with_confirmation(
            &["MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables"],
            false,
            "whether all of the traffic is needed: sectors per request, hit rates",
        );
    if near && useful {
        // Just above the limit, the same kernel may be just below it in the next run.
        let sure = if share * 100.0 >= limit.value + MARGIN { Sure::Certain } else { Sure::Likely };
        return Hint { severity: Severity::Healthy, ..hint.with_confidence(sure) };
    }
    if near {
        return hint.with_confidence(Sure::Likely);
    }
    // Without fewer bytes, the best that can be had is the rate that the best streams reach.
    hint.details.relief = hint.details.relief.with_time_range((share / ATTAINABLE).min(1.0), 1.0);
    hint.with_confidence(Sure::Likely)
        .with_actions(&["keep more loads in flight: more bytes per thread (128-bit loads), unrolled loops, more warps"])
}

fn l2_bandwidth(case: &Case<'_>, share: f64) -> Hint {
    let (stake, bound) = case.next_roof(&[Unit::L2, Unit::Lsu]);
    let dram = case.demand.get(Unit::Dram).map_or_else(String::new, |d| format!(", device memory only at {}", format_share(d)));
    let hint = Hint::new(
        Diagnosis::L2Bandwidth,
        stake * Case::binding_weight(share),
        format!("L2 is the limit: {} of its peak{dram}", format_share(share)),
    )
    .with_gain_basis(format!("{bound}{}", discount_note(Case::binding_weight(share))))
    .with_evidence([
        case.unit_evidence(Unit::L2, Some(if share * 100.0 >= AT_LIMIT.value { AT_LIMIT } else { MAY_LIMIT })),
        case.unit_evidence(Unit::Dram, None),
        case.metric_evidence("l2_hit_rate", None),
        case.metric_evidence("l1_hit_rate", None),
    ])
    .with_actions(&[
        "keep what is used again in shared memory or registers, so that it does not come from L2 each time",
        "let blocks that run together share lines: larger tiles, another order of blocks",
        "use each sector whole: 128-bit loads, neighbours to neighbouring threads",
    ])
    .with_confirmation(&["MemoryWorkloadAnalysis_Tables", "SourceCounters"], true, "which loads cause the traffic");
    // If we do not know how many sectors the accesses need, unneeded ones may be the cause.
    let known = case.facts.get("l2_sectors_global").is_some() || case.facts.get("global_load_efficiency").is_some();
    hint.with_confidence(if share * 100.0 >= AT_LIMIT.value && known { Sure::Certain } else { Sure::Likely })
}
