//! Rules for L1 and shared memory: bank conflicts, and bandwidth as the limit.

use crate::analysis::hints::after;
use crate::analysis::hints::bottleneck::{Bottleneck, find_bottleneck};
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, Sure};
use crate::analysis::hints::limits::{AT_LIMIT, CONFLICTS, MAY_LIMIT};
use crate::analysis::hints::rule_context::{Case, discount_note};
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Share of the shared-memory wavefronts that are due to bank conflicts, 0 to 1. Source counters are preferred because
/// they count only conflicts; the hardware's counters also include wavefronts that had to wait for others.
pub fn conflict_share(case: &Case<'_>) -> Option<f64> {
    let f = case.facts;
    let by_code = f.positive_value("shared_source_wavefronts").zip(f.get("shared_source_ideal")).map(|(all, ideal)| 1.0 - ideal / all);
    let by_counter = || Some(f.get("shared_bank_conflicts")? / f.positive_value("shared_wavefronts")?);
    by_code.or_else(by_counter).map(|s| s.clamp(0.0, 1.0))
}

/// Returns true if [`conflict_share`] comes from source counters.
fn by_code(case: &Case<'_>) -> bool {
    case.facts.positive_value("shared_source_wavefronts").is_some() && case.facts.get("shared_source_ideal").is_some()
}

/// Rule for `shared-bank-conflicts`.
pub fn bank_conflicts(case: &Case<'_>) -> Option<Hint> {
    let share = conflict_share(case).filter(|s| s * 100.0 >= CONFLICTS.value)?;
    // Source counters alone do not say how busy shared memory is, but the samples say how long warps wait for it.
    let known = case.demand.get(Unit::Shared);
    let busy = known.or_else(|| (by_code(case) && case.stalls.is_some()).then_some(0.0))?;
    // Cost of the excess wavefronts: either the time that they occupy the data stage, or the cycles that warps spend
    // waiting for them.
    let stage = busy * share;
    let waits = case.stalls.as_ref().map_or(0.0, |s| case.active * s.summed_share(&["mio_throttle", "short_scoreboard"]) * share);
    let roof = case.demand.busiest_except(&[Unit::Shared, Unit::L1, Unit::Lsu]).map_or(1.0, |b| 1.0 - b.share);
    let stake = stage.max(waits * (1.0 - busy)).min(roof);
    let relief = DemandReduction::bound_only().with_left(Unit::Shared, 1.0 - share).with_left(Unit::L1, 1.0 - stage / busy.max(1e-6));
    let best = after::next(&relief, case);
    let relief = relief.with_time(best, 1.5);
    let ways = 1.0 / (1.0 - share).max(1.0 / 32.0);
    let headline = format!(
        "{} of shared memory wavefronts are due to bank conflicts; an access takes {ways:.1} times as many as it needs",
        format_share(share)
    );
    let basis = match known {
        Some(busy) => format!("wavefronts without conflicts: {} of shared memory's {}", format_share(share), format_share(busy)),
        None => format!("{} of the cycles that warps wait for shared memory; how busy the units are was not measured", format_share(share)),
    };
    Some(
        Hint::new(Diagnosis::BankConflicts, stake, headline)
            .with_relief(relief)
            .with_confidence(if by_code(case) && known.is_some() { Sure::Certain } else { Sure::Likely })
            .with_gain_basis(basis)
            .with_evidence([
                case.computed_evidence("wavefronts due to bank conflicts", share * 100.0, "%", Some(CONFLICTS)),
                case.unit_evidence(Unit::Shared, None),
                case.metric_evidence("shared_source_wavefronts", None),
                case.metric_evidence("shared_source_ideal", None),
                case.metric_evidence("shared_bank_conflicts", None),
                case.metric_evidence("shared_wavefronts", None),
                case.stall_evidence("mio_throttle", None),
                case.stall_evidence("short_scoreboard", None),
            ])
            .with_actions(&[
                "pad rows of shared arrays by one element (tile[32][33]) or swizzle the index (column ^ row)",
                "let neighbouring threads access neighbouring 32-bit words; split structures into arrays",
                "for matrix tiles use ldmatrix or TMA with a swizzle",
            ])
            .with_confirmation(&["SourceCounters"], true, "the lines with the conflicts"),
    )
}

/// Number of wavefronts that a fully coalesced access of the widest kind needs: 32 threads × 16 bytes, at 128 bytes a
/// wavefront.
const WIDEST: f64 = 4.0;
/// Changes to accesses that need more wavefronts than their width explains.
const SCATTERED: &[&str] =
    &["let the threads of a warp access neighbouring words in global memory (swap loops or indices), and different banks in shared memory"];
const WIDE: &str = "load 64 or 128 bits per thread: fewer instructions and wavefronts for the same bytes";

/// Lower bound on the wavefronts of a load or store. The data stage takes one wavefront a cycle; the pipe takes an
/// instruction a cycle where an SM has 32 load/store units (V100, A100, H100), or half of one where it has 16 (Turing,
/// Ampere's consumer GPUs, Ada).
fn wavefronts_per_instruction(case: &Case<'_>) -> Option<f64> {
    Some(case.facts.get("busy_l1_data")? / case.facts.positive_value("busy_lsu")?)
}

/// Minimum share of the warps' cycles in which they wait for wgmma, and maximum utilization of the load/store pipe, if
/// wgmma rather than the threads reads shared memory.
const BY_WGMMA: (f64, f64) = (0.1, 0.1);

/// Remedies if wgmma reads shared memory, and if the threads do.
const OF_WGMMA: [&str; 3] = [
    "larger tiles for wgmma (N up to 256): each reads its operands from shared memory once",
    "keep operand A in registers, so that wgmma reads only B from shared memory",
    "a smaller data type moves fewer bytes (FP8 in place of BF16)",
];
const OF_THREADS: [&str; 2] = [
    "compute more per load: let each thread compute a larger tile in registers (4×4, 8×8)",
    "load 64 or 128 bits at a time from shared memory",
];

fn reads_by_wgmma(case: &Case<'_>) -> bool {
    let waits = case.stalls.as_ref().is_some_and(|s| s.share("gmma") >= BY_WGMMA.0);
    waits && case.demand.get(Unit::Lsu).is_some_and(|lsu| lsu < BY_WGMMA.1)
}

/// Rule for `shared-bandwidth-bound` or `l1-bandwidth-bound`.
pub fn l1_bandwidth(case: &Case<'_>) -> Option<Hint> {
    let Bottleneck::L1 { share, shared } = find_bottleneck(case)? else { return None };
    let (stake, bound) = case.next_roof(&[Unit::L1, Unit::Shared, Unit::Lsu, Unit::Issue]);
    let stake = stake * Case::binding_weight(share);
    let at = Some(if share * 100.0 >= AT_LIMIT.value { AT_LIMIT } else { MAY_LIMIT });
    // If we do not know how many sectors the accesses need, unneeded ones may be the cause.
    let known = case.facts.get("l2_sectors_global").is_some() || case.facts.get("global_load_efficiency").is_some();
    let sure = if share * 100.0 >= AT_LIMIT.value && known { Sure::Certain } else { Sure::Likely };
    let hint = if shared {
        let few = conflict_share(case)
            .map_or_else(String::new, |c| format!(" ({} of its wavefronts are due to bank conflicts)", format_share(c)));
        let known = conflict_share(case).is_some();
        // Changes to shared-memory accesses reduce only their own share of the data stage; the rest of L1 also uses it.
        let own = case.demand.get(Unit::Shared).unwrap_or(share);
        let headline = format!("shared memory is the limit: {} of its peak{few}", format_share(own));
        Hint::new(Diagnosis::SharedBandwidth, stake, headline)
            .with_evidence([
                case.unit_evidence(Unit::Shared, at),
                case.unit_evidence(Unit::L1, None),
                case.unit_evidence(Unit::Lsu, None),
                case.stall_evidence("mio_throttle", None),
            ])
            .with_actions(if reads_by_wgmma(case) { &OF_WGMMA } else { &OF_THREADS })
            .with_actions(match case.demand.get(Unit::Tensor) {
                _ if reads_by_wgmma(case) => &[],
                Some(tensor) if tensor >= 0.05 => &["read whole fragments with ldmatrix, or let wgmma read shared memory itself"],
                _ => &["for matrix products use tensor cores, which read whole fragments (ldmatrix, wgmma)"],
            })
            .with_confirmation(
                &["MemoryWorkloadAnalysis_Tables", "SourceCounters"],
                true,
                "that there are no conflicts, and which loads cause the traffic",
            )
            .with_confidence(if known { Sure::Certain } else { Sure::Likely })
    } else {
        // The report does not tell shared memory's part of the load: the kernel may already use tiles.
        let tiles = case.demand.get(Unit::Shared).is_none() && !case.facts.without_shared();
        let pipe = case.demand.get(Unit::Lsu).is_some_and(|l| l >= share && case.demand.get(Unit::L1).is_none_or(|d| d < l));
        let what = if pipe { "load and store instructions are the limit: their pipe is at" } else { "L1 is the limit:" };
        let scattered = wavefronts_per_instruction(case).filter(|w| *w > WIDEST);
        let each = scattered.map_or_else(String::new, |w| format!(", with at least {w:.0} wavefronts for each load and store"));
        let change: &[&str] = if tiles {
            &["compute more per load: larger tiles in registers, whatever the loads read (global, shared or local memory)"]
        } else {
            &["load less often: tile through shared memory or registers, so that each value is loaded once per block"]
        };
        Hint::new(Diagnosis::L1Bandwidth, stake, format!("{what} {} of its peak{each}", format_share(share)))
            .with_confidence(if tiles { Sure::Likely } else { Sure::Certain })
            .with_actions(if scattered.is_none() { &[] } else { SCATTERED })
            .with_actions(change)
            .with_evidence([
                case.unit_evidence(Unit::L1, at),
                case.metric_evidence("l1_hit_rate", None),
                case.unit_evidence(Unit::Lsu, None),
                case.unit_evidence(Unit::Shared, None),
                case.unit_evidence(Unit::L2, None),
                case.stall_evidence("lg_throttle", None),
                case.stall_evidence("long_scoreboard", None),
            ])
            .with_actions(match (pipe, scattered) {
                (_, Some(_)) => &[],
                // Instructions are the limit, however few wavefronts they need.
                (true, None) => &[WIDE],
                (false, None) => &[WIDE, "let the threads of a warp read the same or neighbouring words, which share wavefronts"],
            })
            .with_confirmation(
                &["MemoryWorkloadAnalysis_Tables", "SourceCounters"],
                true,
                "sectors per request, and the loads that cause the traffic",
            )
    };
    Some(hint.with_gain_basis(format!("{bound}{}", discount_note(Case::binding_weight(share)))).with_confidence(sure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::hints::Facts;
    use crate::analysis::hints::rules::coalescing;

    /// A report with source counters alone: no unit's load and no duration.
    fn source_counters(of: &[(&'static str, f64)]) -> Facts {
        let samples = [("pcsamp_selected", 100.0), ("pcsamp_wait", 100.0), ("pcsamp_barrier", 0.0), ("pcsamp_not_selected", 0.0)];
        let waits = [("pcsamp_mio_throttle", 500.0), ("pcsamp_short_scoreboard", 100.0), ("pcsamp_long_scoreboard", 200.0)];
        Facts::from_pairs(&[&samples[..], &waits, &[("pcsamp_math_pipe_throttle", 0.0)], of].concat())
    }

    #[test]
    fn source_counters_alone_name_the_cause_that_warps_wait_for() {
        let conflicts = source_counters(&[("shared_source_wavefronts", 100.0), ("shared_source_ideal", 10.0)]);
        let hint = bank_conflicts(&Case::new(&conflicts)).unwrap();
        assert!((hint.stake - 0.54).abs() < 0.01 && hint.sure == Sure::Likely, "90% of the 600 of 1,000 samples: {hint:?}");
        let strided = source_counters(&[("l2_sectors_global", 100.0), ("l2_sectors_global_ideal", 25.0)]);
        let hint = coalescing::uncoalesced_access(&Case::new(&strided)).unwrap();
        assert!((hint.stake - 0.15).abs() < 0.01, "75% of the 200 of 1,000 samples: {hint:?}");
        assert!(
            bank_conflicts(&Case::new(&Facts::from_pairs(&[("shared_source_wavefronts", 100.0), ("shared_source_ideal", 10.0)]))).is_none()
        );
    }
    #[test]
    fn scattered_accesses_are_told_from_many_instructions() {
        let change = |data: f64, pipe: f64| {
            let facts = Facts::from_pairs(&[
                ("busy_l1_data", data),
                ("busy_lsu", pipe),
                ("busy_fma", 2.0),
                ("static_shared", 0.0),
                ("dynamic_shared", 0.0),
            ]);
            let hint = l1_bandwidth(&Case::new(&facts)).unwrap();
            (hint.headline.clone(), hint.actions.clone())
        };
        // One matrix product on an A10G, read against and along its rows: 10.8 and 1.40 ms.
        let (headline, actions) = change(97.5, 11.8);
        assert!(headline.ends_with("with at least 8 wavefronts for each load and store"), "{headline}");
        assert!(actions[0].contains("neighbouring words"), "{actions:?}");
        let (headline, actions) = change(45.7, 91.4);
        assert!(headline.starts_with("load and store instructions") && !headline.contains("wavefronts"), "{headline}");
        assert!(actions.iter().all(|a| !a.contains("share wavefronts")), "{actions:?}");
        // 128-bit accesses take four.
        assert!(!change(90.0, 24.0).0.contains("wavefronts"));
    }
}
