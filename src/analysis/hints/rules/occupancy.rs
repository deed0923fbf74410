//! Rule: one resource limits occupancy, which costs time.

use crate::analysis::hints::diagnosis::Diagnosis;
use crate::analysis::hints::hint::{Hint, LEAST, Sure};
use crate::analysis::hints::limits::{ISSUE, OCCUPANCY};
use crate::analysis::hints::metric_values::Depth;
use crate::analysis::hints::rule_context::{Case, discount_note};
use crate::analysis::hints::speedup_model::DemandReduction;
use crate::analysis::hints::unit_throughput::Unit;
use crate::model::units::format_share;

/// Resources, by the concept for their limit; if limits are equal, the first one is reported.
const LIMITS: [(&str, Diagnosis, &str); 5] = [
    ("occupancy_limit_registers", Diagnosis::OccupancyRegisters, "registers"),
    ("occupancy_limit_shared_mem", Diagnosis::OccupancyShared, "shared memory"),
    ("occupancy_limit_warps", Diagnosis::OccupancyBlock, "the block size"),
    ("occupancy_limit_blocks", Diagnosis::OccupancyBlock, "the block slots of an SM"),
    ("occupancy_limit_barriers", Diagnosis::OccupancyBarriers, "barriers"),
];

/// Rule for `occupancy-registers`, `-shared-memory`, `-block-size`, `-barriers`.
pub fn limited_occupancy(case: &Case<'_>) -> Option<Hint> {
    let f = case.facts;
    let percent = f.get("theoretical_occupancy").filter(|o| *o > 0.0 && *o < OCCUPANCY.value)?;
    let theory = percent / 100.0;
    // A block without shared memory occupies only the driver's reserve, for which the driver sizes the carveout; such a
    // limit is not a real one.
    let real = |id: Diagnosis| id != Diagnosis::OccupancyShared || !f.without_shared();
    let known = LIMITS.iter().filter(|l| real(l.1)).filter_map(|l| Some((l, f.positive_value(l.0)?)));
    let known: Vec<_> = known.collect();
    let (&(limit, id, word), blocks) = known.iter().copied().reduce(|a, b| if b.1 < a.1 { b } else { a })?;
    // Raising one limit brings nothing while another one is as low.
    let also: Vec<&str> = known.iter().filter(|(l, b)| b.total_cmp(&blocks).is_eq() && l.1 != id).map(|(l, _)| l.2).collect();
    // With less than one wave, all blocks are already resident and cannot use more room.
    let waves = f.positive_value("waves_per_sm")?;
    // A grid that fills the SMs exactly was probably sized to fit them, and would be larger if more blocks fit.
    let fits = (waves - 1.0).abs() < 0.01;
    if waves <= 1.0 && !fits {
        return None;
    }
    // A timeline contains the limit but not its cost.
    let alone = case.depth() == Depth::Timeline;
    let waves = if fits { f64::INFINITY } else { waves };
    // A resource can have two limits, so the gain from raising one is bounded by the next limit of a different
    // resource. Larger blocks also need fewer barriers for the same number of warps.
    let apart = |other: Diagnosis| other != id && !(id == Diagnosis::OccupancyBlock && other == Diagnosis::OccupancyBarriers);
    let next = LIMITS.iter().filter(|l| apart(l.1) && real(l.1)).filter_map(|l| f.positive_value(l.0)).fold(f64::INFINITY, f64::min);
    let room = if next.is_finite() { (blocks / next).max(theory) } else { theory };
    // By Little's law, the rate grows with the number of warps, at most until the next resource, the grid, or a unit is
    // the limit.
    let warps = theory.max(1.0 / waves).max(room.min(1.0));
    let stake = case.active * (1.0 - warps).min(1.0 - case.peak()).max(0.0) * case.waiting_counts();
    // If a warp is ready in most cycles, more warps do not help.
    let over_kernel = || case.demand.get(Unit::Issue).map(|i| i / case.active.max(i).max(1e-6));
    let issue = f.get("issued_warp").or_else(over_kernel);
    if issue.is_some_and(|i| i * 100.0 >= ISSUE.value) {
        return None;
    }
    // Pipelines of bulk copies and warpgroup products are designed for few warps.
    let pipelined = f.positive_value("tensor_instructions_gmma").is_some() || f.positive_value("pipe_tma").is_some();
    let uses = match id {
        Diagnosis::OccupancyRegisters => f.get("registers_per_thread").map(|r| format!(" ({r:.0} per thread)")),
        Diagnosis::OccupancyShared => {
            let bytes: f64 = ["smem_per_block_dynamic", "smem_per_block_static"].iter().filter_map(|i| f.get(i)).sum();
            (bytes > 0.0).then(|| format!(" ({:.0} KiB per block)", bytes / 1024.0))
        }
        _ => f.get("block_size").map(|b| format!(" ({b:.0} threads)")),
    };
    let uses = uses.unwrap_or_default();
    let also = if also.is_empty() { String::new() } else { format!(", and as much by {}", also.join(" and ")) };
    let idle = if issue.is_some() { ", and issue slots stay idle" } else { "" };
    let headline = format!(
        "limited by {word}{uses}{also} to {blocks:.0} block{} per SM: occupancy is {} at most{idle}",
        if blocks < 1.5 { "" } else { "s" },
        format_share(theory)
    );
    let change: &[&str] = match id {
        Diagnosis::OccupancyRegisters => &[
            "use fewer registers: __launch_bounds__ with minBlocksPerMultiprocessor, smaller tiles per thread (watch for spills)",
            "or give each thread more independent work, so that fewer warps hide the same latency",
        ],
        Diagnosis::OccupancyShared => &[
            "use less shared memory per block: smaller tiles, fewer stages, smaller types",
            "let more threads share the same tile: larger blocks for the same shared memory",
            "raise the shared memory carveout (cudaFuncAttributePreferredSharedMemoryCarveout), if it is the limit",
        ],
        Diagnosis::OccupancyBlock => {
            &["choose a block size of 128 to 512 threads that divides the SM's thread limit", "or do more in each thread"]
        }
        _ => &["use fewer named barriers per block, or smaller clusters"],
    };
    let sure = if pipelined || case.stalls.is_none() || !case.roofs_known() { Sure::Possible } else { Sure::Likely };
    let stake = match (alone, pipelined) {
        (true, _) => LEAST,
        (_, true) => stake / 2.0,
        _ => stake,
    };
    let sure = if alone { Sure::Possible } else { sure };
    // More warps issue the same instructions.
    let slots = case.demand.get(Unit::Issue).unwrap_or(0.0);
    // The same work with more warps: by Little's law, the time drops in proportion, or less if something else slows
    // them down.
    let relief =
        if alone { DemandReduction::unknown() } else { DemandReduction::bound_only().with_time((0.9 * (1.0 - stake)).max(slots), 1.5) };
    let relief = if slots > 0.9 * warps {
        relief.with_floor(slots, format!("the same instructions need {} of the issue slots", format_share(slots)))
    } else {
        relief
            .with_floor(0.9 * warps, format!("there can be {:.1} times as many warps, with a tolerance of a tenth", 1.0 / warps.max(1e-6)))
    };
    let bound = if alone {
        "only counters can tell whether it costs anything; listed because it limits the launch".to_owned()
    } else {
        let reached = (theory / warps).min(1.0);
        format!(
            "instruction throughput grows with the warps (Little's law): now {} of the possible warps{}",
            format_share(reached),
            discount_note(case.waiting_counts())
        )
    };
    let both = (!also.is_empty()).then(|| "change what all of these limits depend on: to raise one alone changes nothing".to_owned());
    let mut hint = Hint::new(id, stake, headline)
        .with_gain_basis(bound)
        .with_relief(relief)
        .with_confidence(sure)
        .with_evidence([
            case.metric_evidence("theoretical_occupancy", Some(OCCUPANCY)),
            case.metric_evidence("achieved_occupancy", None),
            case.metric_evidence(limit, None),
            case.metric_evidence("registers_per_thread", None),
            case.metric_evidence("block_size", None),
            case.unit_evidence(Unit::Issue, Some(ISSUE)),
            case.metric_evidence("eligible_warps", None),
        ])
        .with_actions(change)
        .with_confirmation(
            &["Occupancy", "SchedulerStats", "WarpStateStats"],
            false,
            "whether warps are missing: eligible warps, and what the others wait for",
        );
    hint.actions.splice(0..0, both);
    Some(hint)
}
