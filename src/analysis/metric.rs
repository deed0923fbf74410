//! Presentation of a metric: its value in a suitable unit, a display name if the layout has none, and an explanation of
//! how it is computed, derived from the words in its name.

pub use crate::model::units::Shown;
use crate::model::units::{self, format_plain, format_scaled};
use crate::model::{Metrics, ResultMetrics, Value};
use std::collections::HashMap;

/// Metrics of one result, accessible by name.
pub struct Lookup<'a> {
    pub metrics: &'a Metrics,
    pub result: &'a ResultMetrics,
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Lookup<'a> {
    pub fn new(metrics: &'a Metrics, result: &'a ResultMetrics) -> Self {
        let named = result.values.iter().enumerate().filter_map(|(i, (n, _))| Some((&**metrics.names.get(*n as usize)?, i)));
        Self { metrics, result, by_name: named.collect() }
    }

    /// Returns a value; `None` if it was not collected.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.by_name.get(name).and_then(|&i| self.result.values.get(i)).map(|(_, v)| v)
    }

    /// Returns a value as a number, possibly NaN.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.value(name).and_then(Value::as_number)
    }

    /// Returns a value as a finite number.
    pub fn finite_number(&self, name: &str) -> Option<f64> {
        self.number(name).filter(|n| n.is_finite())
    }

    /// Returns the first finite value among several metrics.
    pub fn first_finite(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|n| self.finite_number(n))
    }

    pub fn unit(&self, name: &str) -> &'a str {
        let id = self.by_name.get(name).and_then(|&i| self.result.values.get(i)).map(|(n, _)| *n as usize);
        id.and_then(|n| self.metrics.units.get(n)).map_or("", |u| u)
    }

    /// Index of a metric among the report's names, used to look up its instances.
    pub fn id(&self, name: &str) -> Option<u32> {
        match self.by_name.get(name) {
            Some(&i) => self.result.values.get(i).map(|v| v.0),
            // Some metrics have instances only.
            None => self.metrics.names.iter().position(|n| &**n == name).and_then(|n| u32::try_from(n).ok()),
        }
    }
}

/// Returns true if the metric's value is a list of other metrics rather than a number.
pub fn is_list(name: &str) -> bool {
    ["breakdown:", "group:", "regex:"].iter().any(|p| name.starts_with(p))
}

/// Formats a value in a suitable unit.
pub fn format_value(value: &Value, unit: &str) -> Shown {
    match value {
        Value::Text(t) => (t.to_string(), String::new()),
        Value::Integer(n) => human_number(*n as f64, unit),
        Value::Float(f) => human_number(*f, unit),
    }
}

/// Unit to display. Reports label stall reasons with the unit of the underlying counter, and sample counts with the
/// unit of the sampled object; both are corrected here.
pub fn unit_of<'a>(name: &str, unit: &'a str) -> &'a str {
    if name.starts_with("smsp__pcsamp_") && matches!(unit, "inst" | "warp" | "") {
        "sample"
    } else if name.contains("warps_issue_stalled_") && name.ends_with("_per_issue_active.ratio") || name.contains("_warp_latency_") {
        "cycle"
    } else if unit == "byte" && name.starts_with("derived__memory_") && name.contains("_sectors_") {
        // ncu 2024 labels counts of sectors as bytes.
        "sector"
    } else {
        unit
    }
}

/// Formats a number in a suitable unit: `byte/second` as `GB/s`, `nsecond` as `µs`, cycles per second as `GHz`.
pub fn human_number(value: f64, unit: &str) -> Shown {
    if !value.is_finite() {
        return (value.to_string(), String::new());
    }
    match unit {
        "%" => (if value != 0.0 && value.abs() < 0.005 { "<0.01".to_owned() } else { format!("{value:.2}") }, "%".to_owned()),
        "nsecond" | "ns" => {
            let text = units::Nanos::format_ns(value);
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            (number.to_owned(), unit.to_owned())
        }
        "byte" => format_scaled(value, "B"),
        "byte/second" | "byte/s" => format_scaled(value, "B/s"),
        "byte/cycle" => format_scaled(value, "B/cycle"),
        "byte/block" => format_scaled(value, "B/block"),
        "cycle/second" | "hz" => format_scaled(value, "Hz"),
        "flop/second" => format_scaled(value, "FLOP/s"),
        "op/second" => format_scaled(value, "OP/s"),
        "" | "inst" | "warp" | "thread" | "block" | "cycle" | "sector" | "wavefront" | "request" | "sample" => {
            // Counts below 1e8 are not abbreviated: users compare them by eye.
            if value.abs() >= 1e8 { format_scaled(value, unit) } else { (format_plain(value), unit.to_owned()) }
        }
        _ if unit.ends_with("/second") && value.abs() >= 1e3 => format_scaled(value, &format!(" {}", unit.replace("/second", "/s"))),
        // `sectors`, `wavefronts` and other counts.
        _ if value.abs() >= 1e8 && !unit.contains('/') => format_scaled(value, unit),
        _ => (format_plain(value), unit.to_owned()),
    }
}

/// Formats two numbers for comparison, in the same unit if both have at least two digits in it.
pub fn human_pair(a: f64, b: f64, unit: &str) -> [Shown; 2] {
    let alone = [a, b].map(|v| human_number(v, unit));
    let (large, small) = if a.abs() >= b.abs() { (0, 1) } else { (1, 0) };
    let (value, other) = ([a, b][large], [a, b][small]);
    let parsed = alone[large].0.replace(',', "").parse::<f64>().ok().filter(|n| *n != 0.0 && value.is_finite());
    let Some(scaled) = parsed.map(|n| other * n / value).filter(|_| alone[0].1 != alone[1].1) else { return alone };
    let mut out = alone.clone();
    if scaled.abs() < 0.095 {
        // If one number has an SI prefix and the other does not, scale both: they are easier to compare.
        if alone[small].1 == unit && alone[large].1.ends_with(unit) && other.abs() >= 1e3 {
            out[small] = format_scaled(other, unit);
        }
        return out;
    }
    out[small] = (if scaled.abs() >= 9.995 { format!("{scaled:.1}") } else { format!("{scaled:.2}") }, alone[large].1.clone());
    out
}

/// Formats a count with three digits: `14.7 M sector`.
pub fn format_rounded(value: f64, unit: &str) -> String {
    let (number, unit) = format_scaled(value, &format!(" {unit}"));
    if value >= 1e3 { format!("{number} {}", unit.trim_end()) } else { format!("{number}{unit}") }.trim_end().to_owned()
}

/// Formats a count with an SI prefix: `760 M`.
pub fn format_count(value: f64) -> String {
    let (number, prefix) = human_number(value, "");
    format!("{number} {prefix}").trim_end().to_owned()
}

/// Hardware units in metric names: prefix, short name, description.
const UNITS: [(&str, &str, &str); 30] = [
    ("sm", "SM", "the streaming multiprocessors"),
    ("smsp", "SMSP", "the four sub-partitions of each SM, each with its own scheduler"),
    ("tpc", "TPC", "the texture processing clusters (pairs of SMs)"),
    ("gpc", "GPC", "the graphics processing clusters"),
    ("gpu", "GPU", "the whole GPU"),
    ("gr", "GR", "the graphics and compute engine"),
    ("l1tex", "L1", "the L1/TEX caches, one in each SM"),
    ("lts", "L2", "the slices of the L2 cache"),
    ("ltc", "L2", "the L2 cache's controllers"),
    ("lrc", "L2 ring", "the ring between the halves of the L2 cache"),
    ("dram", "DRAM", "the device memory's channels"),
    ("dramc", "DRAM", "the device memory's controllers"),
    ("fbpa", "FB", "the partitions of the frame buffer"),
    ("fbp", "FB", "the partitions of the frame buffer"),
    ("idc", "IDC", "the caches of indexed constants"),
    ("gcc", "GCC", "the caches of constants and instructions"),
    ("pcie", "PCIe", "the PCIe link"),
    ("nvlrx", "NVLink in", "what NVLink receives"),
    ("nvltx", "NVLink out", "what NVLink sends"),
    ("ctc", "C2C", "the chip-to-chip link"),
    ("launch", "launch", "the launch itself: reported by the driver, not measured"),
    ("device", "device", "the device: reported by the driver"),
    ("inst", "inst", "instructions, counted by instrumented code"),
    ("thread", "thread", "threads, counted by instrumented code"),
    ("memory", "memory", "memory accesses, counted by instrumented code"),
    ("sass", "SASS", "instructions of the kernel's code"),
    ("derived", "derived", "computed from other metrics"),
    ("profiler", "profiler", "the profiler"),
    ("smsp__pcsamp", "samples", "samples of the warps' program counters"),
    ("group", "group", "a list of metrics"),
];

fn split_name(name: &str) -> (&str, &str, &str) {
    // In `SM.TriageA.l1tex__…`, the counter follows the prefix.
    let plain = match name.split_once(".Triage") {
        Some((_, rest)) => rest.split_once('.').map_or(name, |(_, counter)| counter),
        None => name,
    };
    let (counter, form) = plain.split_once('.').unwrap_or((plain, ""));
    let (unit, what) = counter.split_once("__").unwrap_or(("", counter));
    (unit, what, form)
}

/// Returns a display name: the title of the metric's concept, or one derived from the metric name, such as `SM: pipe
/// tensor cycles active`.
pub fn display_title(name: &str) -> String {
    // The title of a sum over several metrics is not that of one of them.
    if let Some(concept) = super::catalog::builtin_catalog().of_metric(name).filter(|c| !c.adds_up()) {
        return concept.title.clone();
    }
    let (unit, what, _) = split_name(name);
    short_title(unit, what)
}

/// Returns a display name within a list of similar metrics: unit and words, without the suffix for the kind of value.
pub fn member_title(name: &str) -> String {
    let (unit, what, _) = split_name(name);
    short_title(unit, what)
}

fn short_title(unit: &str, what: &str) -> String {
    let words = what.replace('_', " ");
    let unit = UNITS.iter().find(|(u, ..)| *u == unit).map_or(unit, |(_, short, _)| short);
    if unit.is_empty() { words } else { format!("{unit}: {words}") }
}

/// Explains how a metric is computed, from the words in its name; one sentence per word.
pub fn explain_computation(name: &str) -> Vec<String> {
    let (unit, _, form) = split_name(name);
    let mut out = Vec::new();
    if let Some((_, _, what)) = UNITS.iter().find(|(u, ..)| *u == unit) {
        out.push(format!("Counted at {what}."));
    }
    let mut parts = form.split('.');
    match parts.next().unwrap_or_default() {
        "sum" => out.push("sum: the total over all units of the chip.".to_owned()),
        "avg" => out.push("avg: the mean over the units of the chip.".to_owned()),
        "min" => out.push("min: the unit with the lowest value.".to_owned()),
        "max" => out.push("max: the unit with the highest value.".to_owned()),
        "pct" => out.push("pct: a ratio of two counters, in percent.".to_owned()),
        "ratio" => out.push("ratio: one counter over another.".to_owned()),
        "max_rate" => out.push("max_rate: the highest value that the ratio can have.".to_owned()),
        _ => {}
    }
    for part in parts {
        let text = match part {
            "pct_of_peak_sustained_active" => {
                "In percent of the peak rate over the cycles in which the unit was active: idle units do not lower it."
            }
            "pct_of_peak_sustained_elapsed" => "In percent of the peak rate over all cycles of the kernel: idle units lower it.",
            "per_cycle_active" => "Per cycle in which the unit was active.",
            "per_cycle_elapsed" => "Per cycle of the kernel.",
            "per_second" => "Per second of the kernel's duration.",
            "peak_sustained" => "Not measured: the peak rate of the unit per cycle.",
            _ => continue,
        };
        out.push(text.to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_one_unit_where_that_is_readable() {
        let pair = |a, b, unit| human_pair(a, b, unit).map(|(number, unit)| format!("{number} {unit}"));
        assert_eq!(pair(536_870_912.0, 16_777_216.0, "request"), ["537 Mrequest", "16.8 Mrequest"]);
        assert_eq!(pair(1.86e6, 3.13e6, "nsecond"), ["1.86 ms", "3.13 ms"]);
        assert_eq!(pair(800_000.0, 3.13e6, "nsecond"), ["0.80 ms", "3.13 ms"]);
        assert_eq!(pair(2_000.0, 3.13e6, "nsecond"), ["2.00 µs", "3.13 ms"]);
        assert_eq!(pair(1_074_266_112.0, 67_633_152.0, "sectors"), ["1.07 Gsectors", "67.6 Msectors"]);
        assert_eq!(pair(1.5e9, 12.0, "sectors"), ["1.50 Gsectors", "12 sectors"]);
        assert_eq!(pair(0.0, 3.13e6, "nsecond"), ["0 ns", "3.13 ms"]);
        assert_eq!(pair(5.0, 7.0, "block"), ["5 block", "7 block"]);
    }

    #[test]
    fn values_are_read_at_a_glance() {
        for (value, unit, want) in [
            (489_740_000_000.0, "byte/second", "490 GB/s"),
            (21_600.0, "nsecond", "21.6 µs"),
            (1_710_000_000.0, "cycle/second", "1.71 GHz"),
            (67.841, "%", "67.84 %"),
            (0.001, "%", "<0.01 %"),
            (0.0, "%", "0.00 %"),
            (37_238.0, "cycle", "37,238 cycle"),
            (31_822.17, "cycle", "31,822 cycle"),
            (17_179_869_184.0, "", "17.2 G"),
            (0.72, "inst/cycle", "0.72 inst/cycle"),
            (f64::NAN, "%", "NaN "),
            (0.0, "byte", "0 B"),
        ] {
            let (number, unit) = human_number(value, unit);
            assert_eq!(format!("{number} {unit}"), format!("{want}"));
        }
    }

    #[test]
    fn counts_keep_their_prefix() {
        assert_eq!(
            (format_rounded(14_680_064.0, "sector"), format_rounded(12.0, "inst")),
            ("14.7 M sector".to_owned(), "12 inst".to_owned())
        );
        assert_eq!(
            (format_count(760_086_528.0), format_count(1_234.0), format_count(0.0)),
            ("760 M".to_owned(), "1,234".to_owned(), "0".to_owned())
        );
    }

    #[test]
    fn one_of_several_metrics_has_no_title_of_their_sum() {
        let reads = "dram__bytes_read.sum.pct_of_peak_sustained_elapsed";
        let writes = "dram__bytes_write.sum.pct_of_peak_sustained_elapsed";
        assert_eq!([display_title(reads), display_title(writes)], ["DRAM: bytes read", "DRAM: bytes write"]);
        assert_eq!(display_title("sm__throughput.avg.pct_of_peak_sustained_elapsed"), "Compute (SM) throughput");
        let excessive = "derived__memory_l2_theoretical_sectors_global_excessive";
        assert_eq!((unit_of(excessive, "byte"), unit_of("dram__bytes_read.sum", "byte")), ("sector", "byte"));
    }

    #[test]
    fn names_say_what_and_how() {
        assert_eq!(member_title("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"), "SM: pipe tensor cycles active");
        assert_eq!(display_title("sm__throughput.avg.pct_of_peak_sustained_elapsed"), "Compute (SM) throughput");
        let how = explain_computation("FBSP.TriageCompute.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed").join(" ");
        assert!(how.contains("controllers") && how.contains("mean") && how.contains("all cycles"), "{how}");
        assert!(explain_computation("smsp__cycles_active").len() == 1);
    }
}
