//! Units of Nsight Compute's metrics, which are not in the reports. Most can be derived from the metric name; the
//! others are in `units.tsv`, as printed by ncu 2024.1.1 with `--print-units base`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Rollups, the part of a metric name between counter and submetric.
const ROLLUPS: [&str; 7] = ["sum", "avg", "min", "max", "pct", "ratio", "max_rate"];

fn unit_exceptions() -> &'static HashMap<&'static str, &'static str> {
    static TABLE: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    TABLE.get_or_init(|| include_str!("units.tsv").lines().filter_map(|l| l.split_once('\t')).collect())
}

/// Returns the base unit of a metric as spelled by ncu (`%`, `byte/second`, `inst`); empty for a plain number.
pub fn metric_unit(name: &str) -> String {
    if let Some(unit) = unit_exceptions().get(name) {
        return (*unit).to_owned();
    }
    // Remove the prefix of names such as `SM.TriageA.l1tex__…`.
    let plain = match name.split_once(".Triage") {
        Some((_, rest)) => rest.split_once('.').map_or(name, |(_, counter)| counter),
        None => name,
    };
    let (counter, rollup, form) = match plain.split_once('.') {
        Some((counter, rest)) => {
            let (rollup, form) = rest.split_once('.').unwrap_or((rest, ""));
            if ROLLUPS.contains(&rollup) { (counter, rollup, form) } else { (plain, "", "") }
        }
        None => (plain, "", ""),
    };
    if rollup == "pct" || form.contains("pct_of") || form == "pct" {
        return "%".to_owned();
    }
    if rollup == "ratio" || rollup == "max_rate" {
        return String::new();
    }
    let base = counter_unit(counter);
    if form.contains("per_second") {
        return format!("{base}/second");
    }
    if form.contains("per_cycle") || form.contains("peak_sustained") {
        return format!("{base}/cycle");
    }
    base.to_owned()
}

/// Returns the unit of a counter, derived from the words in its name.
fn counter_unit(counter: &str) -> &'static str {
    if counter.starts_with("device__attribute") || counter.starts_with("profiler__") {
        return "";
    }
    let what = counter.split_once("__").map_or(counter, |(_, what)| what);
    let word = |w: &str| what.split('_').any(|part| part == w);
    let has = |w: &str| what.contains(w);
    if has("throughput") || what.ends_with("_pct") || has("_pct_") {
        "%"
    } else if has("bytes") {
        "byte"
    } else if has("cycles") {
        "cycle"
    } else if has("requests") || what.ends_with("_request") {
        "request"
    } else if has("sectors") {
        "sector"
    } else if has("thread_inst") || word("inst") {
        "inst"
    } else if has("warps") {
        "warp"
    } else if has("time_duration") {
        "nsecond"
    } else if has("samples") {
        "sample"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_names() {
        for (name, want) in [
            ("gpu__time_duration.sum", "nsecond"),
            ("dram__bytes.sum.per_second", "byte/second"),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
            ("l1tex__t_sector_hit_rate.pct", "%"),
            ("smsp__inst_executed.sum", "inst"),
            ("smsp__inst_executed.avg.per_cycle_active", "inst/cycle"),
            ("sm__cycles_elapsed.avg.per_second", "cycle/second"),
            ("lts__t_sectors.avg.peak_sustained", "sector/cycle"),
            ("launch__registers_per_thread", "register/thread"),
            ("launch__grid_size", ""),
            ("smsp__warps_active.avg", "warp"),
            ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "inst"),
            ("FBPA.TriageA.dramc__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
            ("device__attribute_max_warps_per_multiprocessor", ""),
        ] {
            assert_eq!(metric_unit(name), want, "{name}");
        }
    }
}
