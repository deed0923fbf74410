//! Diagnosis of a kernel on an AMD GPU: rules over the launch and rocprofv3's counters, in AMD's terms. Counters and
//! formulas are from rocprofiler-sdk's `counter_defs.yaml` and rocprofiler-compute's analysis (ROCm/rocm-systems
//! @1b1610fc2b). AMD publishes formulas and peaks but hardly any thresholds, so each threshold names its source.

mod balance;
mod compute_lds;
mod facts;
mod l2_hbm;
mod reasoning;
mod trace;
mod waits;

pub use facts::Amd;
pub use reasoning::{not_counted, reasoning_sentences};

use super::limits::EMPTY_KERNEL_NS;
use super::{Diagnosis, Hint, Severity, Sure, rank};

/// A rule: evaluates one kernel and may return a hint. A counter that was not collected must never trigger it.
type Rule = fn(&Amd<'_>) -> Option<Hint>;

static RULES: &[Rule] = &[
    balance::launch_overhead,
    balance::small_grid,
    balance::tail_effect,
    balance::workload_imbalance,
    compute_lds::partial_waves,
    compute_lds::lane_divergence,
    waits::scratch_memory,
    compute_lds::bank_conflicts,
    compute_lds::unaligned_lds,
    compute_lds::lds_bandwidth,
    l2_hbm::memory_bandwidth,
    l2_hbm::l1_bandwidth,
    l2_hbm::l2_bandwidth,
    waits::limited_occupancy,
    waits::memory_latency,
    waits::memory_unit,
    compute_lds::matrix_bound,
    compute_lds::vector_bound,
    compute_lds::no_matrix,
    trace::memory_waits,
    trace::lds_waits,
    trace::barrier_waits,
    trace::idle_waves,
];

/// Returns all hints, best first.
pub fn diagnose(amd: &Amd<'_>) -> Vec<Hint> {
    let mut hints: Vec<Hint> = RULES.iter().filter_map(|rule| rule(amd)).collect();
    // The cost of the launch itself cannot be saved by other remedies.
    let rest = amd.ns.map_or(1.0, |ns| (1.0 - EMPTY_KERNEL_NS / ns).max(0.0));
    for hint in hints.iter_mut().filter(|h| h.id != Diagnosis::LaunchOverhead && h.stake > rest) {
        hint.stake = rest;
        if hint.severity != Severity::Healthy {
            hint.severity = Severity::from_share(rest);
        }
    }
    if !amd.cycles_fit() || amd.cycles_unknown() {
        // If the cycle count is too high for the duration, shares of it are too low, and the apparent waiting may not
        // be real.
        for hint in hints.iter_mut().filter(|h| matches!(h.id, Diagnosis::MemoryLatency | Diagnosis::SmallGrid)) {
            hint.sure = Sure::Possible;
        }
    }
    // Drop hints about a unit that may be the limit if relieving it saves nothing.
    hints.retain(|h| h.stake > 0.0 || h.severity == Severity::Healthy);
    rank::rank_hints(hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::hints::{Diagnosis as D, Severity, Sure};
    use crate::model::{Metrics, ResultMetrics, Value};
    use std::sync::Arc;

    /// A result from an MI300X with 304 CUs; 0.1 ms long, workgroups of 256 work-items.
    fn metrics(workgroups: u32, pairs: &[(&str, f64)]) -> Metrics {
        let usual = [("Duration", 100_000.0), ("Agent Cu_Count", 304.0), ("VGPR_Count", 64.0), ("LDS_Block_Size", 0.0)];
        let usual = usual.iter().filter(|(name, _)| pairs.iter().all(|p| p.0 != *name));
        let mut out = Metrics::default();
        let mut values = Vec::new();
        let texts = [("Agent Name", "gfx942"), ("Agent Product_Name", "AMD Instinct MI300X")];
        let all = usual.chain(pairs).map(|(n, v)| (*n, Value::Float(*v))).chain(texts.map(|(n, t)| (n, Value::Text(t.into()))));
        for (at, (name, value)) in (0..).zip(all) {
            out.names.push(Arc::from(name));
            out.units.push(Arc::from(""));
            values.push((at, value));
        }
        out.results.push(ResultMetrics { grid: Some([workgroups, 1, 1]), block: Some([256, 1, 1]), ..ResultMetrics::from_values(values) });
        out
    }

    fn hints(workgroups: u32, pairs: &[(&str, f64)]) -> Vec<Hint> {
        diagnose(&Amd::of_result(&metrics(workgroups, pairs), 0).unwrap())
    }

    fn first(workgroups: u32, pairs: &[(&str, f64)]) -> Option<D> {
        hints(workgroups, pairs).first().map(|h| h.id)
    }

    /// Number of workgroups for eight rounds.
    const MANY: u32 = 304 * 64;
    const STREAM: [(&str, f64); 4] = [("L2-Fabric Read BW", 2e12), ("L2-Fabric Write BW", 2e12), ("VALUBusy", 10.0), ("MfmaUtil", 0.0)];
    const IDLE: [(&str, f64); 4] = [("L2-Fabric Read BW", 2e11), ("L2-Fabric Write BW", 1e11), ("VALUBusy", 10.0), ("MfmaUtil", 0.0)];

    fn and<'a>(a: &[(&'a str, f64)], b: &[(&'a str, f64)]) -> Vec<(&'a str, f64)> {
        a.iter().filter(|x| b.iter().all(|y| y.0 != x.0)).chain(b).copied().collect()
    }

    #[test]
    fn nothing_is_said_of_what_was_not_collected() {
        assert_eq!(first(MANY, &[]), None);
        assert_eq!(first(MANY, &[("SQ_WAVES", 1000.0)]), None);
        assert_eq!(first(MANY, &[("VALUBusy", 30.0)]), None, "memory was not measured: it may be the limit");
    }

    #[test]
    fn each_cause_is_named_first() {
        for (what, workgroups, pairs, id) in [
            ("a stream", MANY, STREAM.to_vec(), D::DramBandwidth),
            ("vector arithmetic", MANY, and(&IDLE, &[("VALUBusy", 92.0)]), D::Compute),
            ("matrix cores", MANY, and(&IDLE, &[("MfmaUtil", 85.0), ("VALUBusy", 70.0)]), D::Tensor),
            ("half of the lanes", MANY, and(&IDLE, &[("VALUBusy", 75.0), ("VALUUtilization", 40.0)]), D::Divergence),
            ("bank conflicts", MANY, and(&IDLE, &[("LDSBankConflict", 45.0), ("LDS Utilization", 70.0)]), D::BankConflicts),
            (
                "unaligned LDS",
                MANY,
                and(&IDLE, &[("LDSBankConflict", 2.0), ("LDS Utilization", 70.0), ("LDS Unaligned Stall", 47.0)]),
                D::SharedBandwidth,
            ),
            ("LDS", MANY, and(&IDLE, &[("LDSBankConflict", 2.0), ("LDS Utilization", 85.0)]), D::SharedBandwidth),
            ("few workgroups", 32, IDLE.to_vec(), D::SmallGrid),
            ("a tail", 304 * 8 + 304, and(&IDLE, &[("SIMD_UTILIZATION", 58.0), ("VALUBusy", 55.0)]), D::Tail),
            ("uneven work", MANY, and(&IDLE, &[("SIMD_UTILIZATION", 40.0), ("VALUBusy", 35.0)]), D::Imbalance),
            ("many registers", MANY, and(&IDLE, &[("VGPR_Count", 256.0)]), D::OccupancyRegisters),
            ("much LDS", MANY, and(&IDLE, &[("LDS_Block_Size", 40_000.0)]), D::OccupancyShared),
            ("waits", MANY, IDLE.to_vec(), D::MemoryLatency),
            ("a busy memory unit", MANY, vec![("MemUnitBusy", 82.0)], D::MemoryLatency),
            ("a short kernel", MANY, vec![("Duration", 4_000.0)], D::LaunchOverhead),
            ("L2", MANY, and(&IDLE, &[("L2 Input Stalled", 60.0)]), D::L2Bandwidth),
        ] {
            assert_eq!(first(workgroups, &pairs), Some(id), "{what}: {:?}", hints(workgroups, &pairs));
        }
    }

    #[test]
    fn what_is_at_its_roof_is_healthy_and_what_is_wide_is_not_spread() {
        let at_roof = hints(MANY, &STREAM);
        assert_eq!((at_roof[0].severity, at_roof[0].sure), (Severity::Healthy, Sure::Certain));
        assert!(at_roof[0].headline.contains("94%"), "{}", at_roof[0].headline);
        // Values that cannot be percentages are corrupt and must be ignored.
        for damage in [-75.0, 3_000.0, 1e300] {
            assert_eq!(first(MANY, &and(&STREAM, &[("LDSBankConflict", damage), ("SIMD_UTILIZATION", damage)])), Some(D::DramBandwidth));
        }
        // One direction alone gives a lower bound.
        let reads = hints(MANY, &[("L2-Fabric Read BW", 3.6e12)]);
        assert_eq!((reads[0].id, reads[0].sure), (D::DramBandwidth, Sure::Likely));
    }

    /// Cycles that do not fit into the duration yield shares that are too low: 240,000 at 2.1 GHz are 114 µs, and the
    /// kernel took 100.
    #[test]
    fn cycles_of_what_ran_beside_a_kernel_are_not_taken_for_idle_ones() {
        let idle = and(&IDLE, &[("SIMD_UTILIZATION", 40.0), ("VALUBusy", 35.0), ("Agent Max_Clock", 2.1e9), ("Agent Num_Xcc", 1.0)]);
        assert_eq!(first(MANY, &and(&idle, &[("GRBM_GUI_ACTIVE", 200_000.0)])), Some(D::Imbalance));
        let beside = and(&idle, &[("GRBM_GUI_ACTIVE", 240_000.0)]);
        assert_ne!(first(MANY, &beside), Some(D::Imbalance));
        // They are shares of the duration at that clock: 35% of 114 µs are 40% of 100.
        let m = metrics(MANY, &beside);
        assert!((Amd::of_result(&m, 0).unwrap().get("VALUBusy").unwrap() - 40.0).abs() < 0.01);
    }

    /// A copy with 4,096 equal workgroups on an MI300X: the GPU had waves in 7% of the counted cycles, and its CUs in
    /// 79% of these.
    #[test]
    fn a_gpu_without_waves_is_not_out_of_balance() {
        let copy = and(&IDLE, &[("SIMD_UTILIZATION", 5.4), ("GRBM_GUI_ACTIVE", 1e6), ("Agent Num_Xcc", 8.0), ("Agent Max_Clock", 2.1e9)]);
        let is = |pairs: &[(&str, f64)]| hints(MANY, pairs).into_iter().find(|h| h.id == D::Imbalance);
        assert!(is(&and(&copy, &[("GRBM_SPI_BUSY", 69_000.0)])).is_none());
        // Only a part of the 60% during which the GPU has waves can be saved.
        let uneven = is(&and(&copy, &[("SIMD_UTILIZATION", 20.0), ("GRBM_SPI_BUSY", 600_000.0)])).unwrap();
        assert!((uneven.stake - 0.4).abs() < 0.05, "{}", uneven.stake);
        assert!(uneven.headline.contains("33% of the time in which the GPU has any (60% of its cycles)"), "{}", uneven.headline);
        // Without a duration, the cycles may include time before and after the kernel.
        assert!(is(&and(&copy, &[("Duration", 0.0)])).is_none());
        assert!(is(&copy).is_some());
    }

    #[test]
    fn counters_that_cannot_be_0_are_not_judged() {
        let mut m = metrics(MANY, &and(&IDLE, &[("SQ_WAVES", 0.0), ("SQ_LDS_BANK_CONFLICT", 0.0), ("VALUBusy", 0.0)]));
        let at = u32::try_from(m.names.len()).unwrap();
        m.names.push(Arc::from("Not Counted"));
        m.units.push(Arc::from(""));
        m.results[0].values.push((at, Value::Text("SQ_LDS_BANK_CONFLICT, SQ_WAVES".into())));
        let amd = Amd::of_result(&m, 0).unwrap();
        assert_eq!((amd.get("SQ_WAVES"), amd.get("SQ_LDS_BANK_CONFLICT"), amd.get("VALUBusy")), (None, None, Some(0.0)));
        assert!(
            reasoning_sentences(&amd)[0].starts_with("not counted: SQ_LDS_BANK_CONFLICT, SQ_WAVES: 0 although"),
            "{:?}",
            reasoning_sentences(&amd)
        );
    }

    /// Matrix cores work best with large tiles in registers.
    #[test]
    fn few_waves_are_no_fault_of_matrix_kernels() {
        let busy = and(&IDLE, &[("VGPR_Count", 256.0), ("MfmaUtil", 55.0)]);
        assert!(hints(MANY, &busy).iter().all(|h| h.id != D::OccupancyRegisters));
    }

    #[test]
    fn lanes_that_the_workgroup_leaves_empty_are_no_divergence() {
        let mut m = metrics(MANY, &and(&IDLE, &[("VALUBusy", 75.0), ("VALUUtilization", 50.0)]));
        m.results[0].block = Some([32, 1, 1]);
        let found = diagnose(&Amd::of_result(&m, 0).unwrap());
        assert!(found.iter().all(|h| h.id != D::Divergence));
        assert_eq!(found[0].id, D::PartialWarps, "{found:?}");
        assert!(found[0].headline.contains("32 of 64 lanes never work"), "{}", found[0].headline);
    }
}
