//! Device memory or L2 as the limit.

use crate::analysis::hints::bottleneck::{Bottleneck, bottleneck};
use crate::analysis::hints::case::{Case, discount, pct};
use crate::analysis::hints::demand::Unit;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::gain::Relief;
use crate::analysis::hints::hint::{Hint, Severity, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, ATTAINABLE, MAY_LIMIT, MIXED};
use crate::analysis::metric::human_number;

/// `dram-bandwidth-bound` (healthy near the peak) or `l2-bandwidth-bound`.
pub fn bandwidth(case: &Case<'_>) -> Option<Hint> {
    match bottleneck(case)? {
        Bottleneck::Dram(share) => Some(dram(case, share)),
        Bottleneck::L2(share) => Some(l2(case, share)),
        _ => None,
    }
}

fn dram(case: &Case<'_>, share: f64) -> Hint {
    let rate = case.facts.get("dram_bandwidth").map_or_else(String::new, |b| {
        let (number, unit) = human_number(b, "byte/second");
        format!(" ({number} {unit})")
    });
    // Switching between reads and writes costs the memory time: such kernels peak lower.
    let limit = if case.facts.mixed() { MIXED } else { AT_LIMIT };
    let near = share * 100.0 >= limit.value;
    // A kernel only counts as healthy if its traffic is known to be useful.
    let useful =
        ["l2_sectors_global", "global_load_efficiency", "global_load_sectors_per_request"].iter().any(|i| case.facts.get(i).is_some());
    let headline = if near && useful {
        format!("device memory runs at {} of its peak{rate}: for this traffic the kernel is as fast as it gets", pct(share))
    } else {
        format!("device memory is the busiest unit, at {} of its peak{rate}", pct(share))
    };
    // The remedy is to move fewer bytes; none of them is certain to remain.
    let relief = Relief::bound().without(&[Unit::Dram]);
    let hint = Hint::new(Diagnosis::DramBandwidth, (1.0 - share / ATTAINABLE).max(0.0) * Case::binding(share), headline)
        .bound(format!(
            "device memory at {}, which the best streams reach, instead of {}{}",
            pct(ATTAINABLE),
            pct(share),
            discount(Case::binding(share))
        ))
        .relief(relief)
        .because([
            case.busy(Unit::Dram, Some(if near { limit } else { MAY_LIMIT })),
            case.evidence("dram_bandwidth", None),
            case.busy(Unit::L2, None),
            case.evidence("l2_hit_rate", None),
        ])
        .change(&[
            "move fewer bytes: fuse with the kernel before or after, so that what one writes the other need not read",
            "store smaller types (bf16, fp8, int8) where the precision allows",
            "reuse what is loaded: tile for L2 or shared memory, if the same bytes are read more than once",
        ])
        .confirm(
            &["MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables"],
            false,
            "whether all of the traffic is needed: sectors per request, hit rates",
        );
    if near && useful {
        return Hint { severity: Severity::Healthy, ..hint };
    }
    if near {
        return hint.sure(Sure::Likely);
    }
    hint.sure(Sure::Likely).change(&["keep more loads in flight: more bytes per thread (128-bit loads), unrolled loops, more warps"])
}

fn l2(case: &Case<'_>, share: f64) -> Hint {
    let (stake, bound) = case.next_roof(&[Unit::L2, Unit::Lsu]);
    let dram = case.demand.get(Unit::Dram).map_or_else(String::new, |d| format!(", device memory only at {}", pct(d)));
    let hint =
        Hint::new(Diagnosis::L2Bandwidth, stake * Case::binding(share), format!("L2 is the limit: {} of its peak{dram}", pct(share)))
            .bound(format!("{bound}{}", discount(Case::binding(share))))
            .because([
                case.busy(Unit::L2, Some(if share * 100.0 >= AT_LIMIT.value { AT_LIMIT } else { MAY_LIMIT })),
                case.busy(Unit::Dram, None),
                case.evidence("l2_hit_rate", None),
                case.evidence("l1_hit_rate", None),
            ])
            .change(&[
                "keep what is used again in shared memory or registers, so that it does not come from L2 each time",
                "let blocks that run together share lines: larger tiles, another order of blocks",
                "use each sector whole: 128-bit loads, neighbours to neighbouring threads",
            ])
            .confirm(&["MemoryWorkloadAnalysis_Tables", "SourceCounters"], true, "which loads cause the traffic");
    // Without data on the need for the sectors, unneeded ones may be the cause.
    let known = case.facts.get("l2_sectors_global").is_some() || case.facts.get("global_load_efficiency").is_some();
    hint.sure(if share * 100.0 >= AT_LIMIT.value && known { Sure::Certain } else { Sure::Likely })
}
