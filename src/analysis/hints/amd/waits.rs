//! Rules for waiting waves: low occupancy, spilled registers, latency.

use super::facts::{Amd, BOUND};
use super::l2_hbm::BACKPRESSURE;
use crate::analysis::Limiter;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, Sure, Threshold};
use crate::analysis::hints::unit_throughput::Demand;
use crate::model::units::format_share;

const IDLE: Threshold = Threshold { op: "<", value: 60.0, source: "analogous to NVIDIA's SpeedOfLight rule" };
const LOW: Threshold = Threshold { op: "<", value: 50.0, source: "our bound; AMD gives none" };
const FEW: Threshold = Threshold { op: "<", value: 25.0, source: "our bound; AMD gives none" };
/// Busy share of the matrix cores at which few waves are normal: such kernels hold large tiles in registers, with one
/// or two waves per SIMD.
const MATRIX: f64 = 0.3;

/// Rule for `local-memory-traffic`: data in scratch memory.
pub fn scratch_memory(amd: &Amd<'_>) -> Option<Hint> {
    let bytes = amd.scratch.filter(|b| *b > 0.0)?;
    // Counters do not distinguish scratch traffic from other traffic, so its cost is unknown.
    Some(
        Hint::new(
            Diagnosis::LocalMemory,
            0.05,
            format!("each work-item has {bytes:.0} bytes of scratch memory: spilled registers, or arrays that are indexed at run time"),
        )
        .with_gain_basis("counters do not tell scratch from other accesses")
        .with_unknown_gain()
        .with_confidence(Sure::Possible)
        .with_evidence([Evidence::from_value("scratch of a work-item", bytes, "byte", None)])
        .with_actions(&[
            "compile with -Rpass-analysis=kernel-resource-usage: it says how many registers are spilled",
            "smaller tiles or less unrolling; __launch_bounds__ with the workgroup's real size; constant indices for local arrays",
        ])
        .with_thread_trace("how long scratch_load and scratch_store are waited for"),
    )
}

/// Low occupancy with a known limiter while no unit is busy.
pub fn limited_occupancy(amd: &Amd<'_>) -> Option<Hint> {
    let o = amd.occupancy.as_ref().filter(|o| o.percent < LOW.value)?;
    // A grid with fewer workgroups than the GPU can hold explains the low occupancy.
    if o.waves.is_some_and(|w| w < 1.0) || amd.share("MfmaUtil").is_some_and(|m| m >= MATRIX) {
        return None;
    }
    let (id, what, action) = match o.limiters.first()? {
        Limiter::Registers => (
            Diagnosis::OccupancyRegisters,
            "vector registers",
            "fewer registers: smaller tiles, less unrolling, __launch_bounds__(size, waves per SIMD), amdgpu_waves_per_eu",
        ),
        Limiter::SharedMemory => {
            (Diagnosis::OccupancyShared, "LDS", "less LDS for a workgroup: smaller tiles, fewer stages, part of it in registers")
        }
        Limiter::Warps | Limiter::Blocks => {
            (Diagnosis::OccupancyBlock, "the workgroup's size", "workgroups of 256 work-items fit more evenly")
        }
    };
    let peak = amd.peak_share();
    let stake = (1.0 - o.percent / 100.0) * (1.0 - peak) * Demand::waiting_counts(peak) * if amd.roofs_known() { 1.0 } else { 0.5 };
    Some(
        Hint::new(
            id,
            stake,
            format!("a {} holds only {} waves because of {what}: {:.0}% occupancy at most", o.unit, o.warps_per_sm, o.percent),
        )
        .with_gain_basis(amd.busiest_unit().filter(|_| amd.roofs_known()).map_or_else(
            || "half of what is missing; what the units do was not collected".to_owned(),
            |(unit, share)| format!("the next limit: {unit} at {}", format_share(share)),
        ))
        .with_confidence(if amd.roofs_known() { Sure::Likely } else { Sure::Possible })
        .with_evidence([
            Evidence::from_value("occupancy at most", o.percent, "%", Some(LOW)),
            amd.evidence("occupancy achieved", "OccupancyPercent", Some(FEW)),
            amd.evidence("vector registers of a work-item, with accumulation registers", "VGPR_Count", None),
            amd.evidence("LDS of a workgroup", "LDS_Block_Size", None),
        ])
        .with_actions(&[action])
        .with_confirmation(
            &["GRBM_GUI_ACTIVE", "SQ_WAVE_CYCLES", "SQ_ACTIVE_INST_VALU", "SQ_WAIT_ANY"],
            false,
            "the occupancy achieved, and whether the ALUs wait",
        ),
    )
}

/// Rule for `memory-latency` by AMD's `MemUnitBusy`, which needs no peaks: the unit is fetching, or stalled by the
/// memory behind it, nearly all the time. Only the traffic can tell bandwidth from latency.
pub fn memory_unit(amd: &Amd<'_>) -> Option<Hint> {
    let share = amd.share("MemUnitBusy").filter(|s| s * 100.0 >= BOUND.value && *s <= 1.0 && !amd.roofs_known())?;
    // Arithmetic may run beside the loads and take as long.
    let vector = amd.share("VALUBusy");
    if vector.is_some_and(|v| v >= share) {
        return None;
    }
    let stalled = amd.share("MemUnitStalled").map_or_else(String::new, |s| format!(", stalled for {}", format_share(s)));
    Some(
        Hint::new(
            Diagnosis::MemoryLatency,
            share,
            format!("the memory unit is busy in {} of the time{stalled}: waves wait for what they load", format_share(share)),
        )
        .with_gain_basis("the time in which the memory unit is busy; whether bandwidth or latency limits it was not collected")
        .with_confidence(if vector.is_some() { Sure::Likely } else { Sure::Possible })
        .with_evidence([
            amd.evidence("memory unit busy, its stalls included", "MemUnitBusy", Some(BOUND)),
            amd.evidence("memory unit stalled", "MemUnitStalled", None),
            amd.evidence("L2 hits", "L2CacheHit", None),
            amd.evidence("vector ALUs busy", "VALUBusy", None),
            amd.evidence("occupancy achieved", "OccupancyPercent", None),
        ])
        .with_actions(&[
            "load fewer bytes: smaller types, coalesced and wider loads, reuse in LDS or registers",
            "more loads in flight: load the next tile before the current one is used (double buffering), unroll",
        ])
        .with_confirmation(&["GRBM_GUI_ACTIVE", "FETCH_SIZE"], false, "how much of the memory's bandwidth the reads take"),
    )
}

/// Rule for `memory-latency`: no unit is busy.
pub fn memory_latency(amd: &Amd<'_>) -> Option<Hint> {
    let (unit, peak) = amd.busiest_unit().filter(|b| amd.roofs_known() && b.1 * 100.0 < IDLE.value)?;
    // Too few workgroups, or an L2 that does not accept more requests, already explain the waiting.
    let few = amd.workgroups.zip(amd.units).is_some_and(|(groups, units)| groups < units);
    if few || amd.get("L2 Input Stalled").is_some_and(|s| s >= BACKPRESSURE.value) {
        return None;
    }
    let waits = amd.waves_spend().into_iter().find(|s| s.0 == "dependency wait").map(|s| s.1);
    let stake = (1.0 - peak) * Demand::waiting_counts(peak) * waits.unwrap_or(1.0);
    // Without any waits, the busiest unit takes its time, or the waves what they do besides.
    let (at_most, limit) = match waits {
        Some(w) if w < 1.0 - peak => (w, "no wave cycle spent waiting".to_owned()),
        _ => (1.0 - peak, format!("the next limit: {unit} at {}", format_share(peak))),
    };
    let headline = waits.map_or_else(
        || format!("waves wait: the busiest unit, {unit}, is at {} of its peak", format_share(peak)),
        |w| {
            format!(
                "waves wait in {} of their cycles, and the busiest unit, {unit}, is at {} of its peak",
                format_share(w),
                format_share(peak)
            )
        },
    );
    Some(
        Hint::new(Diagnosis::MemoryLatency, stake, headline)
            .with_gain_basis(limit)
            .with_bound(at_most)
            .with_confidence(Sure::Possible)
            .with_evidence([
                amd.evidence("vector ALUs busy", "VALUBusy", Some(IDLE)),
                amd.evidence("matrix cores busy", "MfmaUtil", None),
                amd.memory_share()
                    .and_then(|m| Evidence::from_value("traffic behind L2, of what memory can be brought to", m * 100.0, "%", Some(IDLE))),
                amd.evidence("occupancy achieved", "OccupancyPercent", Some(FEW)),
                amd.evidence("instructions per cycle of a busy CU", "IPC", None),
                waits.and_then(|w| Evidence::from_value("wave cycles waiting", w * 100.0, "%", None)),
            ])
            .with_actions(&[
                "more loads in flight: load the next tile before the current one is used (double buffering), unroll, wider loads",
                "more waves: smaller workgroups, fewer registers or less LDS for each",
            ])
            .with_thread_trace("which s_waitcnt or s_barrier the waves wait at"),
    )
}
