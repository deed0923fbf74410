//! Rule: fetched bytes that are not used.

use crate::analysis::hints::after;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{EXCESS, MAY_LIMIT, STALL};
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// L1 hit rate from which we assume that later accesses use most of the excess sectors.
const NEAR: f64 = 0.4;

/// Number of sectors in the widest coalesced request: 32 threads with 16 bytes each.
const WIDEST: f64 = 16.0;

/// Bytes per sector.
const SECTOR: f64 = 32.0;

/// Minimum and maximum share of excess sectors.
struct Excess {
    least: f64,
    most: f64,
    /// True if source counters were used, so that the excess is certain.
    sure: bool,
}

/// Excess sectors of global accesses: from source counters if possible, then from the bytes used per sector, then from
/// the sectors per request. In the last case, the width of the accesses is unknown.
fn excess_sectors(case: &Case<'_>) -> Option<Excess> {
    let f = case.facts;
    let all = f.positive_value("l2_sectors_global");
    let by_code = all.and_then(|all| {
        let extra = f.get("l2_excessive_sectors").or_else(|| Some(all - f.get("l2_sectors_global_ideal")?))?;
        Some(extra / all)
    });
    // Loads only: this metric does not include sectors of stores.
    let by_use = || Some(1.0 - f.share("global_load_efficiency").filter(|e| *e > 0.0)?);
    // More sectors per load than any coalesced width requires (16 for 128 bits).
    let sectors = || f.get("global_load_sectors_per_request").filter(|s| *s > WIDEST);
    // A request needs at least one sector, if its 32 threads read one byte each.
    let by_request = || sectors().map(|s| Excess { least: 1.0 - WIDEST / s, most: 1.0 - 1.0 / s, sure: false });
    let exactly = |share: f64, sure| Excess { least: share.clamp(0.0, 1.0), most: share.clamp(0.0, 1.0), sure };
    by_code.map(|s| exactly(s, true)).or_else(|| by_use().map(|s| exactly(s, false))).or_else(by_request)
}

/// Least and most sectors of a request that is dense but misaligned: those that its bytes fill, and one more. 32 threads
/// with 4 bytes each fill four; with fewer active threads, a little less.
const DENSE: f64 = 3.5;
const ONE_MORE: f64 = 1.1;

/// Returns true if the excess is one sector of each dense request, as if the accesses began between two sectors. The
/// neighbouring warps use the rest of such sectors.
fn is_misalignment(case: &Case<'_>, share: f64) -> bool {
    let f = case.facts;
    let ratio = || Some(f.positive_value("global_load_sectors")? / f.positive_value("global_load_requests")?);
    let sectors = f.positive_value("global_load_sectors_per_request").or_else(ratio);
    sectors.is_some_and(|all| all * (1.0 - share) >= DENSE && all * share <= ONE_MORE)
}

/// Share of the sectors arriving at L2 that no access needs. Sectors that L1 keeps for a later access do not reach L2
/// again.
fn unneeded_at_l2(case: &Case<'_>, share: f64) -> Option<f64> {
    let f = case.facts;
    let real = f.positive_value("l2_sectors_from_l1")?;
    // Without the code's counters, only loads are known, with an upper bound on the sectors that they need: accesses
    // may be narrower than the widest.
    let (ideal, real) = f.positive_value("l2_sectors_global_ideal").map(|ideal| (ideal, real)).or_else(|| {
        let loads = f.positive_value("global_load_sectors")?;
        Some((loads * (1.0 - share), real - (f.positive_value("l2_sectors_global")? - loads)))
    })?;
    Some((1.0 - ideal / real.max(ideal)).max(0.0))
}

const ALIGN: &[&str] = &[
    "align the accesses: let each warp's first address be a multiple of 32 bytes (pad rows, round offsets up, allocate with alignment)",
    "or load 8 or 16 bytes a thread, so that the one sector more is a smaller part",
];
const ORDER: &[&str] = &[
    "let neighbouring threads access neighbouring addresses: swap loops or indices so that threadIdx.x runs along memory",
    "where a thread takes several neighbouring elements: one access of 64 or 128 bits (float2, float4), or one element a thread",
    "turn arrays of structures into structures of arrays",
    "stage through shared memory: load rows coalesced, read columns there",
    "random access: sort or group the indices, or fetch whole sectors and use all of their 32 bytes",
];

/// Rule for `uncoalesced-global`.
pub fn uncoalesced_access(case: &Case<'_>) -> Option<Hint> {
    let Excess { least, most, sure } = excess_sectors(case).filter(|e| e.least * 100.0 >= EXCESS.value)?;
    let (share, known) = (least, least >= most);
    let f = case.facts;
    let get = |u| case.demand.get(u).unwrap_or(0.0);
    let misaligned = is_misalignment(case, share);
    // Device memory reads each sector once for both warps; the request that needs one more only occupies the caches.
    if misaligned && get(Unit::L1).max(get(Unit::L2)) * 100.0 < MAY_LIMIT.value {
        return None;
    }
    let beyond = unneeded_at_l2(case, share).map_or(share, |a| a.min(share));
    // The waste in device memory cannot exceed the bytes moved beyond the ideal.
    let moved =
        f.positive_value("l2_sectors_global_ideal").zip(f.dram_bytes()).map(|(ideal, bytes)| (1.0 - ideal * SECTOR / bytes).max(0.0));
    let from_dram = if misaligned { 0.0 } else { moved.map_or(beyond, |m| m.min(beyond)) };
    let waste = [
        (Unit::L1, (get(Unit::L1) - get(Unit::Shared)).max(0.0) * share),
        (Unit::L2, get(Unit::L2) * beyond),
        (Unit::Dram, get(Unit::Dram) * from_dram),
    ];
    // Without the waste, the next unit is the limit.
    let left = waste.iter().map(|(u, w)| get(*u) - w);
    let others = case.demand.busiest_except(&[Unit::L1, Unit::L2, Unit::Dram, Unit::Lsu, Unit::Memory, Unit::Sm]).map_or(0.0, |b| b.share);
    let roof = 1.0 - left.fold(others, f64::max);
    let (unit, stake) = waste.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Source counters alone do not say how busy the units are, but the samples say how long warps wait for the data.
    let measured = waste.iter().any(|(u, _)| case.demand.get(*u).is_some());
    let waits = case.stalls.as_ref().filter(|_| sure && !measured).map(|s| s.summed_share(&["long_scoreboard", "lg_throttle"]));
    let stake = waits.map_or(stake.min(roof), |w| case.active * w * share);
    let basis = match waits {
        Some(_) => {
            format!("{} of the cycles that warps wait for the data; how busy the units are was not measured", format_share(share))
        }
        None => format!("the part of {}'s {} that moves unused bytes", unit.display_name(), format_share(get(unit))),
    };
    // That the sectors are not needed is certain; that they cost time is, if moving them fills a unit or holds up the warps.
    let waited = case.stalls.as_ref().is_some_and(|s| s.summed_share(&["long_scoreboard", "lg_throttle"]) * 100.0 >= STALL.value);
    let costs = !measured || waited || get(unit) * 100.0 >= MAY_LIMIT.value;
    // Reordering does not change the bytes that are used, and random accesses may have no better order. Bytes next to
    // those used are needed eventually if L1 hits, or if the device memory rate shows that they are evicted and fetched
    // again. Four neighboring sectors share a wavefront in L1, whereas excess sectors mostly have one each.
    let without = |excess: f64, from_dram: f64| {
        let bytes = 1.0 - moved.unwrap_or(from_dram);
        DemandReduction::bound_only().with_left(Unit::Dram, bytes).with_left(Unit::L1, (1.0 - excess) / 4.0).without_units(&[Unit::L2])
    };
    // The bound assumes the maximum excess; the estimate uses only the proven excess.
    let relief = without(most, if known { from_dram } else { most });
    let streams = f.share("l1_hit_rate").is_some_and(|h| h >= NEAR) || get(Unit::Dram) * 100.0 >= MAY_LIMIT.value;
    let relief = if streams {
        let best = after::next(&without(least, from_dram), case);
        relief.with_time(best, 1.65)
    } else if !costs {
        // At best, the time that the bytes take the busiest unit is saved.
        relief.with_time_range(1.0 - stake, 1.0)
    } else {
        relief
    };
    let times = 1.0 / (1.0 - share).max(1.0 / 32.0);
    let at_least = if known { "" } else { "at least " };
    let headline = format!(
        "{at_least}{} of the sectors of global accesses are excessive ({at_least}{times:.1} times as many as the data needs)",
        format_share(share)
    );
    Some(
        Hint::new(Diagnosis::Uncoalesced, stake, headline)
            .with_gain_basis(basis)
            .with_relief(relief)
            .with_confidence(match (sure, costs) {
                (_, false) => Sure::Possible,
                (true, true) => Sure::Certain,
                (false, true) => Sure::Likely,
            })
            .with_evidence([
                case.computed_evidence("excessive sectors", share * 100.0, "%", Some(EXCESS)),
                case.metric_evidence("l2_excessive_sectors", None),
                case.metric_evidence("global_load_sectors_per_request", None),
                case.metric_evidence("global_load_efficiency", None),
                case.unit_evidence(unit, None),
                case.stall_evidence("long_scoreboard", None),
            ])
            .with_actions(if misaligned { ALIGN } else { ORDER })
            .with_confirmation(&["SourceCounters", "MemoryWorkloadAnalysis_Tables"], true, "the lines with excessive sectors"),
    )
}
