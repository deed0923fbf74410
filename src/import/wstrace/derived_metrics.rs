//! Derives metrics that take several passes in ncu from parts that take only one. The parts are those that ncu lists
//! in the breakdown of the metric (reports of 2025.3, GH100).

use crate::model::{LaunchConfig, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

type Found = BTreeMap<Arc<str>, f64>;

/// Name of the metric for the busiest part of L2 that can be collected in one pass, in percent of peak.
const L2_PARTS: &str = "lts__busiest_part.max.pct_of_peak_sustained_elapsed";

const ELAPSED: &str = ".avg.pct_of_peak_sustained_elapsed";

/// Returns the maximum of the collected parts; `None` if the part `must`, which is usually the largest, was not
/// collected.
fn max_part(found: &Found, must: &str, begins: &[&str], but: &[&str]) -> Option<f64> {
    found.get(format!("{must}{ELAPSED}").as_str())?;
    let part = |name: &str| {
        let base = name.strip_suffix(ELAPSED);
        base.is_some_and(|b| begins.iter().any(|p| b.starts_with(p)) && !b.ends_with("throughput") && !but.iter().any(|n| b.contains(n)))
    };
    found.iter().filter(|(name, _)| part(name)).map(|(_, v)| *v).reduce(f64::max)
}

fn ratio(found: &Found, above: &str, below: &str) -> Option<f64> {
    Some(found.get(above)? / found.get(below).filter(|b| **b > 0.0)?)
}

/// Metrics that can be derived from the parts that were collected, by name.
pub fn derive_metrics(found: &Found) -> Vec<(Arc<str>, Value)> {
    let mut out: Vec<(Arc<str>, Value)> = Vec::new();
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|v| v.is_finite()) {
            out.push((Arc::from(name), Value::Float(value)));
        }
    };
    let l2 = max_part(found, "lts__t_sectors", &["lts__"], &[]);
    // Skip the shared memory wavefronts, which are a subset of the data stage's wavefronts.
    let l1 = max_part(found, "l1tex__data_pipe_lsu_wavefronts", &["l1tex__"], &["mem_shared"]);
    // ncu's L2 throughput includes parts that are not listed in its breakdown, so this metric has a different name.
    put(L2_PARTS, l2);
    let active = ratio(found, "sm__cycles_active.avg", "gpc__cycles_elapsed.max");
    put("l1tex__throughput.avg.pct_of_peak_sustained_active", l1.zip(active).map(|(l1, a)| (l1 / a.max(1e-6)).min(100.0)));
    let dram = max_part(found, "dram__throughput", &["dram__cycles_active", "fbpa__dram_sectors"], &[]);
    let dram = dram.or_else(|| found.get(format!("dram__throughput{ELAPSED}").as_str()).copied());
    put("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", l2.zip(l1).zip(dram).map(|((a, b), c)| a.max(b).max(c)));
    put(
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        max_part(
            found,
            "sm__inst_executed_pipe_lsu",
            &["sm__", "idc__"],
            &["warps", "cycles_elapsed", "pipe_tensor_op", "subpipe", "pipe_tma"],
        ),
    );
    for op in ["ld", "st"] {
        let of = |what: &str| format!("l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum");
        put(
            &format!("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio"),
            ratio(found, &of("sectors"), &of("requests")),
        );
    }
    // Sectors accessed, and the minimum number of sectors needed for the bytes used. ncu counts both by instrumenting
    // instructions; these values come from hardware counters.
    let of = |what: &str, op: &str| found.get(format!("l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum").as_str()).copied();
    let used = |op: &str| found.get(format!("smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct").as_str()).map(|p| p / 100.0);
    if let (Some(loads), Some(stores)) = (of("sectors", "ld"), of("sectors", "st")) {
        put("memory_l2_theoretical_sectors_global", Some(loads + stores));
        // Asynchronous copies to shared memory access sectors but report no bytes per instruction, so the share of
        // bytes used is unknown.
        let share =
            |sectors: f64, op: &str| if sectors > 0.0 { Some(sectors * used(op).filter(|u| *u > 0.0)?.min(1.0)) } else { Some(0.0) };
        put("memory_l2_theoretical_sectors_global_ideal", share(loads, "ld").zip(share(stores, "st")).map(|(a, b)| a + b));
    }
    let (hit, miss) = (found.get("lts__t_sectors_lookup_hit.sum"), found.get("lts__t_sectors_lookup_miss.sum"));
    let rate = hit.zip(miss).filter(|(h, m)| **h + **m > 0.0).map(|(h, m)| h / (h + m) * 100.0);
    put("lts__t_sector_hit_rate.pct", rate);
    if let Some(cycles) = found.get("sm__cycles_elapsed.max").filter(|c| **c > 0.0) {
        for (name, value) in found.iter().filter(|(n, _)| n.contains("_op_") && n.ends_with("_pred_on.sum")) {
            put(&format!("{name}.per_cycle_elapsed"), Some(value / cycles));
        }
    }
    out
}

/// Launch attributes under ncu's metric names.
pub fn launch_metrics(config: &LaunchConfig) -> Vec<(Arc<str>, Value)> {
    let bytes = |b: Option<crate::model::Bytes>| b.map(|b| b.0);
    [
        ("launch__grid_size", config.block_count()),
        ("launch__block_size", config.threads_per_block()),
        ("launch__registers_per_thread", config.registers.map(u64::from)),
        ("launch__shared_mem_per_block_static", bytes(config.static_shared)),
        ("launch__shared_mem_per_block_dynamic", bytes(config.dynamic_shared)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((Arc::from(name), Value::Integer(value?))))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, f64)]) -> Found {
        pairs.iter().map(|(n, v)| (Arc::from(*n), *v)).collect()
    }

    fn of(all: &[(Arc<str>, Value)], name: &str) -> Option<f64> {
        all.iter().find(|(n, _)| &**n == name).and_then(|(_, v)| v.as_number())
    }

    #[test]
    fn throughputs_are_the_greatest_of_their_parts() {
        let e = |base: &str| format!("{base}{ELAPSED}");
        let names = [e("lts__t_sectors"), e("lts__d_sectors"), e("l1tex__data_pipe_lsu_wavefronts"), e("dram__throughput")];
        let all = derive_metrics(&found(&[(&names[0], 40.0), (&names[1], 55.0), (&names[2], 20.0), (&names[3], 70.0)]));
        assert_eq!(of(&all, L2_PARTS), Some(55.0));
        assert_eq!(of(&all, &e("gpu__compute_memory_throughput")), Some(70.0));
        assert_eq!(of(&all, &e("sm__throughput")), None, "none of its parts");
    }

    #[test]
    fn ratios_need_what_is_under_their_line() {
        let of_loads = |n: f64| {
            derive_metrics(&found(&[
                ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 64.0),
                ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", n),
            ]))
        };
        let name = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio";
        assert_eq!((of(&of_loads(4.0), name), of(&of_loads(0.0), name)), (Some(16.0), None));
    }
}
