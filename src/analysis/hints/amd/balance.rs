//! Rules for compute units without work: short kernels, few workgroups, a mostly empty last round, workgroups of
//! unequal length.

use super::facts::Amd;
use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Evidence, Hint, Sure, Threshold};
use crate::analysis::hints::limits::{EMPTY_IN_TIMELINE_NS, EMPTY_KERNEL_NS, SHORT, TAIL_WAVES};
use crate::analysis::hints::unit_throughput::Demand;
use crate::model::Nanos;
use crate::model::units::format_share;

/// Maximum number of rounds for a grid to count as too small for the GPU: half of NVIDIA's bound for a small grid.
const FEW: Threshold = Threshold { op: "≤", value: 0.5, source: "half of what the GPU holds at once (our bound)" };
/// Share of the time in which an average compute unit holds a wave; below it, the load is unbalanced.
const BALANCED: Threshold = Threshold { op: "<", value: 80.0, source: "our bound; AMD gives none" };

/// Rule for `launch-overhead`.
pub fn launch_overhead(amd: &Amd<'_>) -> Option<Hint> {
    let ns = amd.ns.filter(|ns| *ns < SHORT.value)?;
    let empty = if amd.has_counters() { EMPTY_KERNEL_NS } else { EMPTY_IN_TIMELINE_NS };
    let stake = empty / ns;
    Some(
        Hint::new(
            Diagnosis::LaunchOverhead,
            stake,
            format!("only {} long: launch overhead may be {} of that", Nanos::format_ns(ns), format_share(stake.min(1.0))),
        )
        .with_gain_basis(format!(
            "an empty kernel of an NVIDIA GPU takes about {}{}; none was measured on AMD's",
            Nanos::format_ns(empty),
            if amd.has_counters() { " while counters are collected" } else { " in a timeline" }
        ))
        .with_confidence(Sure::Likely)
        .with_evidence([
            Evidence::from_value("duration", ns, "nsecond", Some(SHORT)),
            amd.workgroups.and_then(|w| Evidence::from_value("workgroups", w, "", None)),
        ])
        .with_actions(&[
            "fuse it with its neighbours, or give it more work at a time (larger batches)",
            "launch it in a HIP graph, so that a launch costs less (in PyTorch: torch.compile(mode=\"reduce-overhead\"))",
        ])
        .with_confirmation(&[], false, "how often it runs and what happens in between: the timeline"),
    )
}

/// Rule for `grid-too-small`.
pub fn small_grid(amd: &Amd<'_>) -> Option<Hint> {
    let (groups, units) = (amd.workgroups.filter(|n| *n > 0.0)?, amd.units.filter(|n| *n > 0.0)?);
    let rounds = amd.occupancy.as_ref().and_then(|o| o.waves);
    let few = groups < units;
    if !few && rounds.is_none_or(|r| r > FEW.value) {
        return None;
    }
    let peak = amd.peak_share();
    let empty = if few { 1.0 - groups / units } else { 0.0 };
    let filled = rounds.unwrap_or(1.0).min(1.0);
    // Compute units without a workgroup are a certain loss; latency that more waves would hide on the other units
    // counts like waiting.
    let hidden = (1.0 - empty)
        * (1.0 - (filled / (1.0 - empty)).max(peak)).max(0.0)
        * Demand::waiting_counts(peak)
        * if amd.roofs_known() { 1.0 } else { 0.5 };
    let headline = if few {
        format!(
            "{groups:.0} workgroup{} for {units:.0} CUs: {} of the CUs get none",
            if groups > 1.0 { "s" } else { "" },
            format_share(empty)
        )
    } else {
        format!("only {groups:.0} workgroups; the CUs could hold {:.0} times as many at once", 1.0 / filled)
    };
    Some(
        Hint::new(Diagnosis::SmallGrid, (empty + hidden).min(1.0 - peak), headline)
            .with_gain_basis(if few {
                format!("all CUs filled: {} have no workgroup", format_share(empty))
            } else if amd.roofs_known() {
                "enough waves on each CU to hide what they wait for".to_owned()
            } else {
                "half of what the GPU could hold besides; what its units do was not collected".to_owned()
            })
            .with_confidence(if few {
                Sure::Certain
            } else if amd.roofs_known() {
                Sure::Likely
            } else {
                Sure::Possible
            })
            .with_evidence([
                Evidence::from_value("workgroups", groups, "", None),
                Evidence::from_value("compute units", units, "", None),
                rounds.and_then(|r| Evidence::from_value("workgroups over what the GPU holds at once", r, "", Some(FEW))),
                amd.evidence("CUs with a wave", "SIMD_UTILIZATION", Some(BALANCED)),
            ])
            .with_actions(&[
                "make more workgroups: smaller tiles, split the inner dimension (split-K, stream-K), a larger batch",
                "run other kernels at the same time: streams, or one launch for several problems",
            ])
            .with_confirmation(&["GRBM_GUI_ACTIVE", "SQ_BUSY_CU_CYCLES", "SQ_WAVES"], false, "the share of the CUs that had waves"),
    )
}

/// Rule for `tail-effect`.
pub fn tail_effect(amd: &Amd<'_>) -> Option<Hint> {
    let rounds = amd.occupancy.as_ref()?.waves.filter(|r| *r > 1.0 && r.floor() <= TAIL_WAVES && r.fract() > 1e-6)?;
    let idle = amd.share("SIMD_UTILIZATION").filter(|_| amd.cycles_fit() && !amd.cycles_unknown()).map(|u| (1.0 - u).max(0.0));
    let theory = 1.0 - rounds / rounds.ceil();
    let stake = idle.map_or(theory, |i| i.min(theory)).min(1.0 - amd.peak_share());
    let whole = rounds.floor();
    Some(
        Hint::new(
            Diagnosis::Tail,
            stake,
            format!(
                "workgroups for {rounds:.2} times what the GPU holds at once: after {whole:.0} full round{} the last one fills {} of it",
                if whole > 1.0 { "s" } else { "" },
                format_share(rounds.fract())
            ),
        )
        .with_gain_basis(format!("{:.0} rounds' time for {rounds:.2} rounds' work, if all workgroups take equally long", rounds.ceil()))
        .with_confidence(if idle.is_some() { Sure::Certain } else { Sure::Likely })
        .with_evidence([
            Evidence::from_value("workgroups over what the GPU holds at once", rounds, "", None),
            amd.evidence("CUs with a wave", "SIMD_UTILIZATION", Some(BALANCED)),
        ])
        .with_actions(&[
            "choose tiles or workgroups so that rounds come out whole, or far more of them, smaller",
            "let workgroups take work from a queue (persistent kernel, stream-K)",
        ])
        .with_confirmation(&["GRBM_GUI_ACTIVE", "SQ_BUSY_CU_CYCLES", "SQ_WAVES"], false, "the share of the CUs that had waves"),
    )
}

/// Rule for `workload-imbalance`.
pub fn workload_imbalance(amd: &Amd<'_>) -> Option<Hint> {
    // Times without any wave on the GPU are not imbalance. If the cycles may include work before or after the kernel,
    // they prove nothing.
    let with_waves = amd.with_waves();
    if with_waves.is_none() && (!amd.cycles_fit() || amd.cycles_unknown()) {
        return None;
    }
    let of_all = amd.share("SIMD_UTILIZATION")?;
    let busy = (of_all / with_waves.unwrap_or(1.0)).min(1.0);
    if busy * 100.0 >= BALANCED.value {
        return None;
    }
    // With few workgroups, imbalance is to be expected.
    if amd.workgroups? < amd.units? * 2.0 {
        return None;
    }
    let theory = amd.occupancy.as_ref().and_then(|o| o.waves).filter(|r| *r > 1.0).map_or(0.0, |r| 1.0 - r / r.ceil());
    let fixed = amd.ns.map_or(0.0, |ns| EMPTY_KERNEL_NS / ns);
    let stake = ((1.0 - busy) * with_waves.unwrap_or(1.0) - theory - fixed).max(0.0).min(1.0 - amd.peak_share());
    Some(
        Hint::new(
            Diagnosis::Imbalance,
            stake,
            match with_waves {
                Some(share) => format!(
                    "the CUs have a wave in only {} of the time in which the GPU has any ({} of its cycles), although there are workgroups for all of them",
                    format_share(busy),
                    format_share(share)
                ),
                None => format!("the CUs have a wave in only {} of the time, although there are workgroups for all of them", format_share(busy)),
            },
        )
        .with_gain_basis("all CUs busy to the end")
        .with_confidence(Sure::Likely)
        .with_evidence([
            amd.evidence("CUs with a wave", "SIMD_UTILIZATION", Some(BALANCED)),
            with_waves.and_then(|s| Evidence::from_value("cycles in which the GPU has waves", s * 100.0, "%", None)),
            amd.workgroups.and_then(|w| Evidence::from_value("workgroups", w, "", None)),
        ])
        .with_actions(&[
            "give workgroups equal work: split the long ones, sort work by size, or let workgroups take work from a queue",
            "workgroups go to the dies (XCDs) in turn: see that neighbouring ones are of equal cost",
        ])
        .with_thread_trace("when the waves of a CU begin and end"),
    )
}
