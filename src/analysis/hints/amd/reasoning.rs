//! Reasoning from the numbers to the hints, in sentences.

use super::facts::Amd;
use crate::analysis::metric::human_number;
use crate::model::Nanos;
use crate::model::units::{format_count, format_share};

/// Returns the sentences. If the counters needed to answer a question are missing, the sentence names the data to
/// collect.
pub fn reasoning_sentences(amd: &Amd<'_>) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(amd.not_counted().map(not_counted));
    if let Some(ns) = amd.ns {
        let short = if ns < 20_000.0 { ", shorter than 20 µs, so percentages are noisy" } else { "" };
        out.push(format!("duration: {}{short}", Nanos::format_ns(ns)));
    }
    if let (Some(groups), Some(units)) = (amd.workgroups, amd.units) {
        let rounds = amd.occupancy.as_ref().and_then(|o| o.waves);
        let held = rounds.map_or_else(String::new, |r| format!(", {r:.2} times what the GPU holds at once"));
        // Each die has its own counter, and a small grid has workgroups only on some of them.
        let whose = if amd.get("Agent Num_Xcc").is_some_and(|n| n > 1.0) { "its dies (XCDs), on average," } else { "the GPU" };
        let of = amd.with_waves().map_or_else(String::new, |s| format!("; {whose} had any waves in {} of the time", format_share(s)));
        let busy =
            amd.share("SIMD_UTILIZATION").map_or_else(String::new, |s| format!("; a CU had waves in {} of the time{of}", format_share(s)));
        out.push(format!("shape: {} for {units:.0} CUs{held}{busy}", format_count(groups as i64, "workgroup")));
    }
    out.push(match amd.busiest_unit() {
        Some((unit, share)) if share >= 0.8 => {
            format!("throughput: {unit} at {} of the peak, at the limit (80%): waits are a consequence", format_share(share))
        }
        Some((unit, share)) if share >= 0.6 => {
            format!("throughput: {unit} at {} of the peak, between 60% and 80%: that may be the limit", format_share(share))
        }
        Some((unit, share)) if amd.roofs_known() => {
            format!("throughput: the busiest unit, {unit}, is at {} of its peak: waves wait", format_share(share))
        }
        Some((unit, share)) => format!("throughput: {unit} at {} of the peak; of others too little was collected to say", format_share(share)),
        None if amd.get("PC_Samples").is_some() => {
            "throughput: PC samples have no counters; they show at which instructions waves were".to_owned()
        }
        None if amd.wave_cycles().is_some() => {
            "throughput: a thread trace has no counters; it shows what waves of one CU wait for".to_owned()
        }
        None if amd.get("GRBM_GUI_ACTIVE").is_some() && !amd.gpu_known() => {
            "throughput: not known, since the report does not say which GPU it is, or how many CUs and dies it has (agent_info of rocprofv3, sysinfo.csv of rocprof-compute)".to_owned()
        }
        None => throughput_lacks(amd),
    });
    if let Some((rate, both)) = amd.memory_bandwidth().filter(|_| amd.memory_share().is_none()) {
        let (number, unit) = human_number(rate, "byte/second");
        let what = if both { "reads and writes" } else { "one direction" };
        out.push(format!("memory: L2 exchanges {number} {unit} with it ({what}); the peak of this GPU's memory is not known"));
    }
    if amd.cycles_unknown() {
        out.push("cycles: the report has no duration of this dispatch, so GRBM_GUI_ACTIVE may count more than the kernel: shares of the time may be too low".to_owned());
    }
    if !amd.cycles_fit() {
        out.push(
            "cycles: GRBM_GUI_ACTIVE counts more than fit into the duration at the highest clock: shares of the time are of the duration here, and may still be too low"
                .to_owned(),
        );
    }
    let spend: Vec<String> = amd.waves_spend().into_iter().map(|(word, share)| format!("{word} {}", format_share(share))).collect();
    if !spend.is_empty() {
        let of = if amd.get("PC_Samples").is_some() { "samples" } else { "cycles" };
        out.push(format!("waves: of their {of}, {}", spend.join(", ")));
    }
    if let Some(o) = &amd.occupancy {
        let achieved = amd.get("OccupancyPercent").map_or_else(String::new, |a| format!(", {a:.0}% achieved"));
        let by = o.limited_by().map_or_else(String::new, |by| format!(", by {by}"));
        out.push(format!("occupancy: {:.0}% at most{by}{achieved}", o.percent));
    }
    out
}

/// Sentence about counters with an implausible value of 0.
pub fn not_counted(names: &str) -> String {
    format!(
        "not counted: {names}: 0 although workgroups ran, so they are ignored. Either the GPU's power state had its counters off \
         (`amd-smi set -g 0 -l stable_std` before the run), or this chip does not have them (`rocprofv3 --list-avail`)"
    )
}

/// Lists names: `A, B and C`.
fn join_with_and(names: &[&str]) -> String {
    match names {
        [.., last] if names.len() > 1 => format!("{} and {last}", names[..names.len() - 1].join(", ")),
        _ => names.concat(),
    }
}

/// Names the missing data needed to evaluate the units.
fn throughput_lacks(amd: &Amd<'_>) -> String {
    let absent = |names: &[&'static str]| names.iter().copied().filter(|n| amd.get(n).is_none()).collect::<Vec<_>>();
    let cycles = absent(if amd.is_cdna() {
        &["GRBM_GUI_ACTIVE", "SQ_ACTIVE_INST_VALU", "SQ_VALU_MFMA_BUSY_CYCLES"]
    } else {
        // On RDNA, the SQ counters may mean something else.
        &["GRBM_GUI_ACTIVE"]
    });
    let traffic = absent(&["FETCH_SIZE", "WRITE_SIZE"]);
    let mut lacks: Vec<String> = Vec::new();
    if !cycles.is_empty() {
        lacks.push(join_with_and(&cycles));
    }
    if !traffic.is_empty() {
        lacks.push(join_with_and(&traffic));
    }
    if amd.ns.is_none() {
        lacks.push("the durations of dispatches".to_owned());
    }
    if !amd.gpu_known() {
        let what = if amd.units.is_none() { "the name of the GPU" } else { "the number of XCDs of the GPU" };
        lacks.push(what.to_owned());
    }
    format!("throughput: not known; the report lacks {}", if lacks.is_empty() { "its peaks".to_owned() } else { lacks.join("; ") })
}
