//! Maps values in rocprof-compute's analysis tables to the names of rocprofv3's derived counters, which rules and
//! rooflines use.

pub struct Cell<'a> {
    /// Title of the table, such as `2.1 Speed-of-Light` or `System Speed-of-Light`.
    pub table: &'a str,
    pub metric: &'a str,
    /// Title of the column, such as `Avg`, `Min`, `Peak` or `Pct of Peak`.
    pub which: &'a str,
    pub unit: &'a str,
    pub value: f64,
}

/// Returns true for the column that holds the metric's value, as opposed to its minimum, peak and so on.
pub fn is_value_column(which: &str) -> bool {
    matches!(which, "Avg" | "Value" | "")
}

/// Mapping for one metric: derived counter, its unit, part of the table's title, and the metric's names in different
/// releases.
type Same = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Percentages and plain numbers, whose unit is the same in every release.
static SAME: [Same; 16] = [
    ("VALUBusy", "%", "Speed-of-Light", &["VALU Utilization"]),
    ("SALUBusy", "%", "Speed-of-Light", &["SALU Utilization"]),
    ("MfmaUtil", "%", "Speed-of-Light", &["MFMA Utilization"]),
    ("IPC", "inst/cycle", "Speed-of-Light", &["IPC"]),
    ("L2CacheHit", "%", "Speed-of-Light", &["L2 Cache Hit Rate"]),
    ("SIMD_UTILIZATION", "%", "orkgroup", &["SIMD Utilization"]),
    ("LDS Utilization", "%", "LDS Speed-of-Light", &["Utilization"]),
    ("vL1D Coalescing", "%", "vL1D Speed-of-Light", &["Coalescing"]),
    ("Bank Conflicts/Access", "", "Speed-of-Light", &["LDS Bank Conflicts/Access"]),
    ("Duration", "nsecond", "Wavefront Runtime", &["Kernel Time", "Kernel Time (Nanosec)"]),
    ("LDS_Block_Size", "byte/block", "Wavefront Launch", &["LDS Allocation"]),
    ("Scratch_Size", "byte/thread", "Wavefront Launch", &["Scratch Allocation"]),
    // These are only used as ratios, so the normalization (per wave or per kernel) is irrelevant.
    ("Wave Cycles", "", "Wavefront Runtime", &["Wave Cycles"]),
    ("Dependency Wait Cycles", "", "Wavefront Runtime", &["Dependency Wait Cycles"]),
    ("Issue Wait Cycles", "", "Wavefront Runtime", &["Issue Wait Cycles"]),
    ("Active Cycles", "", "Wavefront Runtime", &["Active Cycles"]),
];

/// Rates, which the tables give in units of 10⁹ per second: metric, unit, table, and the column of `roofline.csv`
/// with the peak measured by AMD's benchmark.
static RATES: [(&str, &str, &str, &str); 17] = [
    ("L2-Fabric Read BW", "byte/second", "Speed-of-Light", ""),
    ("L2-Fabric Write BW", "byte/second", "Speed-of-Light", ""),
    ("HBM Bandwidth", "byte/second", "Roofline", "HBMBw"),
    ("L2 Cache Bandwidth", "byte/second", "Roofline", "L2Bw"),
    ("L1 Cache Bandwidth", "byte/second", "Roofline", "L1Bw"),
    ("LDS Bandwidth", "byte/second", "Roofline", "LDSBw"),
    ("VALU FLOPs", "flop/second", "Speed-of-Light", ""),
    ("VALU FLOPs (F16)", "flop/second", "Roofline", "FP16Flops"),
    ("VALU FLOPs (F32)", "flop/second", "Roofline", "FP32Flops"),
    ("VALU FLOPs (F64)", "flop/second", "Roofline", "FP64Flops"),
    ("MFMA FLOPs (F6F4)", "flop/second", "Speed-of-Light", "MFMAF6Flops"),
    ("MFMA FLOPs (F8)", "flop/second", "Speed-of-Light", "MFMAF8Flops"),
    ("MFMA FLOPs (F16)", "flop/second", "Speed-of-Light", "MFMAF16Flops"),
    ("MFMA FLOPs (BF16)", "flop/second", "Speed-of-Light", "MFMABF16Flops"),
    ("MFMA FLOPs (F32)", "flop/second", "Speed-of-Light", "MFMAF32Flops"),
    ("MFMA FLOPs (F64)", "flop/second", "Speed-of-Light", "MFMAF64Flops"),
    ("MFMA IOPs (Int8)", "op/second", "Speed-of-Light", "MFMAI8Ops"),
];

/// Returns the scale factor of units with the prefix giga; `None` for other units.
fn giga_factor(unit: &str) -> Option<f64> {
    unit.starts_with(['G', 'g']).then_some(1e9)
}

/// Returns the known values in the cells of one kernel as (name, unit, value), with each name only once.
pub fn known_values(cells: &[Cell<'_>]) -> Vec<(&'static str, &'static str, f64)> {
    let find = |table: &str, names: &[&str], which: &dyn Fn(&str) -> bool| {
        cells.iter().find(|c| c.table.contains(table) && names.contains(&c.metric) && which(c.which) && c.value.is_finite())
    };
    let value = |table: &str, names: &[&str]| find(table, names, &is_value_column).map(|c| c.value);
    let mut out: Vec<(&'static str, &'static str, f64)> = Vec::new();
    for (name, unit, table, metrics) in SAME {
        out.extend(value(table, metrics).map(|v| (name, unit, v)));
    }
    for (name, unit, table, column) in RATES {
        let rate = |which: &dyn Fn(&str) -> bool| find(table, &[name], which).and_then(|c| Some(c.value * giga_factor(c.unit)?));
        out.extend(rate(&is_value_column).map(|v| (name, unit, v)));
        if !column.is_empty() {
            let reached = find("Roofline", &[name], &|w| w == "Peak (Empirical)").and_then(|c| Some(c.value * giga_factor(c.unit)?));
            out.extend(reached.filter(|v| *v > 0.0).map(|v| (column, unit, v)));
        }
    }
    // Percentages of the 64 work-items in a wave, and of the maximum number of waves on all compute units.
    let share = |metric: &str| find("Speed-of-Light", &[metric], &|w| w.starts_with("Pct")).map(|c| c.value);
    out.extend(share("VALU Active Threads").map(|v| ("VALUUtilization", "%", v)));
    out.extend(share("Wavefront Occupancy").map(|v| ("OccupancyPercent", "%", v)));
    // Conflict cycles as a share of all cycles; LDS busy cycles consist of access and conflict cycles.
    let conflicts = value("Speed-of-Light", &["LDS Bank Conflicts/Access"]).zip(value("LDS Speed-of-Light", &["Utilization"]));
    out.extend(conflicts.filter(|(c, _)| *c >= 0.0).map(|(c, busy)| ("LDSBankConflict", "%", busy * c / (1.0 + c))));
    let registers = value("Wavefront Launch", &["VGPRs"]).map(|v| v + value("Wavefront Launch", &["AGPRs"]).unwrap_or(0.0));
    out.extend(registers.map(|v| ("VGPR_Count", "register/thread", v)));
    out
}

/// Returns the value of a metric if its minimum and maximum are the same.
pub fn only_value(cells: &[Cell<'_>], metric: &str) -> Option<u32> {
    let of = |which: &str| {
        cells.iter().find(|c| c.table.contains("Wavefront Launch") && c.metric == metric && c.which == which).map(|c| c.value)
    };
    let (least, most) = of("Min").zip(of("Max"))?;
    (least.to_bits() == most.to_bits() && least >= 1.0 && least < f64::from(u32::MAX)).then_some(least as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_releases_give_the_same() {
        let cell = |table, metric, which, unit, value| Cell { table, metric, which, unit, value };
        let old = [
            cell("2.1 Speed-of-Light", "VALU Utilization", "Avg", "Pct", 25.0),
            cell("2.1 Speed-of-Light", "VALU Active Threads", "Pct of Peak", "Threads", 67.0),
            cell("2.1 Speed-of-Light", "LDS Bank Conflicts/Access", "Avg", "Conflicts/access", 1.0),
            cell("12.1 LDS Speed-of-Light", "Utilization", "Avg", "Pct of peak", 40.0),
            cell("7.2 Wavefront Runtime Stats", "Kernel Time (Nanosec)", "Avg", "Ns", 4290.0),
        ];
        let new = [
            cell("System Speed-of-Light", "VALU Utilization", "Avg", "Percent", 25.0),
            cell("Roofline Performance Rates", "MFMA FLOPs (F16)", "Peak (Empirical)", "Gflop/s", 917_000.0),
            cell("System Speed-of-Light", "L2-Fabric Read BW", "Avg", "Gb/s", 2.5),
        ];
        let (old, new) = (known_values(&old), known_values(&new));
        let of = |all: &[(&str, &str, f64)], name: &str| all.iter().find(|v| v.0 == name).map(|v| v.2);
        assert_eq!((of(&old, "VALUBusy"), of(&new, "VALUBusy")), (Some(25.0), Some(25.0)));
        assert_eq!(
            (of(&old, "VALUUtilization"), of(&old, "LDSBankConflict"), of(&old, "Duration")),
            (Some(67.0), Some(20.0), Some(4290.0))
        );
        assert_eq!((of(&new, "MFMAF16Flops"), of(&new, "L2-Fabric Read BW")), (Some(917e12), Some(2.5e9)));
    }
}
