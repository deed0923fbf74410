//! Metric values of one launch by concept: measured by ncu, or computed from the launch configuration and the device's
//! limits.
//!
//! Metric names differ between chips and are resolved once, when the values are collected. A value that was not
//! collected, one that is not a number, and zero are three different readings.

use super::super::catalog::{Catalog, Concept, builtin_catalog};
use super::super::metric::Lookup;
use super::super::occupancy::{Limiter, Occupancy};
use crate::model::{Device, LaunchConfig, Metrics, Nanos, ResultKind, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Value of a concept in a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Not collected.
    Missing,
    /// Collected, but not a number, i.e. a ratio with a denominator of zero.
    NotANumber,
    Is(Measured),
}

/// A number and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Metric name; for computed values, the id of the concept.
    pub metric: Arc<str>,
    /// Value in `unit`.
    pub value: f64,
    /// Base unit in ncu's spelling.
    pub unit: String,
}

/// Amount of data collected for a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Only the launch and its duration, as in a timeline.
    #[default]
    Timeline,
    /// Throughputs, launch and occupancy.
    Basic,
    /// Also data that distinguishes causes: sectors per instruction, stall samples.
    Detailed,
    /// Also stall cycles and traffic by kind.
    Full,
}

impl Depth {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Basic => "basic",
            Self::Detailed => "detailed",
            Self::Full => "full",
        }
    }
}

/// Concepts that only apply to a single launch.
const LAUNCH: [&str; 9] = [
    "grid_size",
    "block_size",
    "waves_per_sm",
    "theoretical_occupancy",
    "registers_per_thread",
    "smem_per_block_static",
    "smem_per_block_dynamic",
    "achieved_occupancy",
    "sm_count",
];

/// Concepts that only counters provide.
const MEASURED: [&str; 9] = [
    "sm_throughput",
    "memory_throughput",
    "dram_throughput",
    "dram_directions",
    "l2_throughput",
    "l1_throughput",
    "achieved_occupancy",
    "global_requests",
    "instructions_executed",
];

#[derive(Clone, Debug, Default)]
pub struct Facts {
    readings: HashMap<&'static str, Reading>,
}

/// Chip name in `metrics.toml` for a compute capability; `None` if unknown. Unknown chips use the usual metric names.
pub fn chip_name((major, minor): (u64, u64)) -> Option<&'static str> {
    Some(match (major, minor) {
        (7, 0 | 2) => "gv100",
        (7, 5) => "tu102",
        (8, 0) => "ga100",
        (8, 6 | 7) => "ga102",
        (8, 9) => "ad102",
        (9, _) => "gh100",
        (10, 0) => "gb100",
        (10, 3) => "gb110",
        (10 | 11, _) => "gb10b",
        (12, _) => "gb202",
        _ => return None,
    })
}

/// Section titles on ncu's pages, which are prefixes of metric names in CSV details pages.
const SECTION_TITLES: [(&str, &[&str]); 8] = [
    ("SpeedOfLight", &["GPU Speed Of Light Throughput", "GPU Speed Of Light"]),
    ("MemoryWorkloadAnalysis", &["Memory Workload Analysis"]),
    ("ComputeWorkloadAnalysis", &["Compute Workload Analysis"]),
    ("Occupancy", &["Occupancy"]),
    ("LaunchStats", &["Launch Statistics"]),
    ("SchedulerStats", &["Scheduler Statistics"]),
    ("WarpStateStats", &["Warp State Statistics"]),
    ("InstructionStats", &["Instruction Statistics"]),
];

/// Returns true if a value is plausible: a counter is neither negative nor beyond 2⁶⁰, and a unit does not exceed ten
/// times its peak.
fn is_plausible(value: f64, unit: &str) -> bool {
    value.is_finite() && (0.0..1.2e18).contains(&value) && (unit != "%" || value <= 1_000.0)
}

/// Combines several metrics as specified by the concept: `first` takes the first one present, `sum` adds up all of
/// them, `any` adds up those present, and `max` takes the largest. `Missing` if none is present, or if `sum` does not
/// have all of them.
fn combine_metrics(lookup: &Lookup<'_>, names: &[String], how: &str) -> Reading {
    let mut seen = false;
    let mut found: Vec<Measured> = Vec::new();
    for name in names {
        match lookup.value(name).and_then(Value::as_number) {
            Some(value) if is_plausible(value, lookup.unit(name)) => {
                found.push(Measured { metric: Arc::from(name.as_str()), value, unit: lookup.unit(name).to_owned() });
            }
            Some(_) => seen = true,
            None => {}
        }
    }
    let whole = how != "sum" || found.len() == names.len();
    let combined = match how {
        "sum" | "any" => sum_metrics(&found),
        "max" => found.iter().max_by(|a, b| a.value.total_cmp(&b.value)).cloned(),
        _ => found.first().cloned(),
    };
    match combined {
        Some(combined) if whole => Reading::Is(combined),
        _ if seen => Reading::NotANumber,
        _ => Reading::Missing,
    }
}

/// Separates the names of metrics that were added up.
pub const PLUS: &str = " + ";

/// Adds up metrics, and joins the names of those that are not zero.
fn sum_metrics(found: &[Measured]) -> Option<Measured> {
    let first = found.first()?;
    let counted: Vec<&str> = found.iter().filter(|m| m.value != 0.0).map(|m| &*m.metric).collect();
    let metric = if counted.is_empty() { Arc::clone(&first.metric) } else { Arc::from(counted.join(PLUS)) };
    Some(Measured { metric, value: found.iter().map(|m| m.value).sum(), unit: first.unit.clone() })
}

fn read_concept(lookup: &Lookup<'_>, concept: &'static Concept, chip: Option<&str>) -> Reading {
    // A chip's own names replace the usual ones; an unknown chip may use any of them.
    let own = chip.and_then(|c| concept.alias.get(c));
    let strange = concept.alias.values().filter(|_| chip.is_none());
    let lists = own.into_iter().chain(own.is_none().then_some(&concept.names)).chain(strange);
    let mut seen = false;
    for names in lists {
        match combine_metrics(lookup, names, &concept.combine) {
            Reading::Missing => {}
            Reading::NotANumber => seen = true,
            is @ Reading::Is(_) => return is,
        }
    }
    if let (Some(section), Some(label)) = (&concept.section, &concept.label) {
        let titles = SECTION_TITLES.iter().find(|s| s.0 == section).map_or(&[][..], |s| s.1);
        for name in titles.iter().map(|t| format!("{t}: {label}")) {
            if let Some(value) = lookup.finite_number(&name).filter(|v| is_plausible(*v, lookup.unit(&name))) {
                return Reading::Is(Measured { unit: lookup.unit(&name).to_owned(), metric: Arc::from(name), value });
            }
        }
    }
    if seen { Reading::NotANumber } else { Reading::Missing }
}

impl Facts {
    /// Values of an ncu result; empty for a launch that could not be profiled.
    pub fn of_result(metrics: &Metrics, result: usize) -> Self {
        let mut out = Self::default();
        let Some(result) = metrics.results.get(result).filter(|r| !r.failed) else { return out };
        let lookup = Lookup::new(metrics, result);
        let chip = result.compute_capability.and_then(chip_name);
        let all: &'static Catalog = builtin_catalog();
        for concept in &all.concepts {
            out.readings.insert(&concept.id, read_concept(&lookup, concept, chip));
        }
        if result.kind != ResultKind::Kernel {
            // A result for several kernels does not have a single grid or occupancy.
            out.readings.retain(|id, _| !LAUNCH.contains(id) && !id.starts_with("occupancy_limit"));
            return out;
        }
        // Raw pages with few metrics contain the launch configuration in separate columns rather than among the
        // metrics.
        let product = |d: Option<[u32; 3]>| d.map(|d| d.iter().map(|&n| f64::from(n)).product::<f64>()).filter(|n| *n > 0.0);
        out.insert_missing("grid_size", product(result.grid), "block");
        out.insert_missing("block_size", product(result.block), "thread");
        let device = |name: &str| lookup.finite_number(&format!("device__attribute_{name}"));
        out.insert_missing("sm_count", device("multiprocessor_count"), "SM");
        let misses = "lts__t_sectors_srcunit_tex_aperture_device_op_read_lookup_miss.sum";
        let peak = device("memory_clock_rate").zip(device("global_memory_bus_width")).map(|(khz, bits)| 2.0 * khz * 1e3 * bits / 8.0);
        if let (Some(sectors), Some(ns), Some(peak)) = (lookup.finite_number(misses), out.duration_ns(), peak.filter(|p| *p > 0.0)) {
            // Memory transfers twice a clock (NVIDIA's deviceQuery computes its peak in the same way).
            let value = (sectors * 32.0 / (ns / 1e9) / peak * 100.0).min(100.0);
            out.readings.insert("dram_by_misses", Reading::Is(Measured { metric: Arc::from(misses), value, unit: "%".to_owned() }));
        }
        if let Some((config, device)) = result.launched.as_deref() {
            // For kernels measured in the running program, the record contains the launch configuration.
            for (id, reading) in Self::of_launch(config, device, Nanos(0)).readings {
                let known = out.get(id).is_some();
                if !known {
                    out.readings.insert(id, reading);
                }
            }
        }
        out
    }

    /// Values for a launch in a timeline: its configuration, its duration and the device's limits.
    pub fn of_launch(config: &LaunchConfig, device: &Device, duration: Nanos) -> Self {
        let mut out = Self::default();
        out.insert_missing("duration", Some(duration.0 as f64).filter(|d| *d > 0.0), "nsecond");
        out.insert_missing("grid_size", config.block_count().map(|b| b as f64), "block");
        out.insert_missing("block_size", config.threads_per_block().map(|t| t as f64), "thread");
        out.insert_missing("registers_per_thread", config.registers.map(f64::from), "register/thread");
        out.insert_missing("sm_count", device.sm_count.map(f64::from), "SM");
        if let Some(o) = Occupancy::from_config(config, device) {
            out.insert_missing("theoretical_occupancy", Some(o.percent), "%");
            out.insert_missing("waves_per_sm", o.waves, "");
            for (limiter, blocks) in &o.limits {
                let id = match limiter {
                    Limiter::Warps => "occupancy_limit_warps",
                    Limiter::Registers => "occupancy_limit_registers",
                    Limiter::SharedMemory => "occupancy_limit_shared_mem",
                    Limiter::Blocks => "occupancy_limit_blocks",
                };
                out.insert_missing(id, blocks.map(f64::from), "block");
            }
        }
        out
    }

    /// Sets the duration in ns, unless it is already known.
    pub fn with_duration(mut self, ns: Option<f64>) -> Self {
        self.insert_missing("duration", ns, "nsecond");
        self
    }

    /// Builds values from a list, for tests.
    #[cfg(test)]
    pub(crate) fn from_pairs(pairs: &[(&'static str, f64)]) -> Self {
        let mut out = Self::default();
        for (id, value) in pairs {
            out.insert_missing(id, Some(*value), builtin_catalog().find_concept(id).map_or("", |c| &c.unit));
        }
        out
    }

    fn insert_missing(&mut self, id: &'static str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|_| self.get(id).is_none()) {
            let value = Measured { metric: Arc::from(id), value, unit: unit.to_owned() };
            self.readings.insert(id, Reading::Is(value));
        }
    }

    /// Returns the reading of a concept; `Missing` for an unknown id.
    pub fn reading(&self, id: &str) -> &Reading {
        self.readings.get(id).unwrap_or(&Reading::Missing)
    }

    /// Returns the value of a concept with its metric; `None` if it is not a number.
    pub fn measured_value(&self, id: &str) -> Option<&Measured> {
        match self.reading(id) {
            Reading::Is(m) => Some(m),
            Reading::Missing | Reading::NotANumber => None,
        }
    }

    pub fn get(&self, id: &str) -> Option<f64> {
        self.measured_value(id).map(|m| m.value)
    }

    /// Returns a percentage as a share, 0 to 1.
    pub fn share(&self, id: &str) -> Option<f64> {
        self.get(id).map(|p| (p / 100.0).clamp(0.0, 1.0))
    }

    /// Returns a value that is greater than zero.
    pub fn positive_value(&self, id: &str) -> Option<f64> {
        self.get(id).filter(|v| *v > 0.0)
    }

    /// Determines the amount of data collected from the concepts present.
    pub fn depth(&self) -> Depth {
        let has = |id: &str| self.get(id).is_some();
        if has("stall_wait") && (has("global_requests") || has("shared_bank_conflicts")) {
            Depth::Full
        } else if has("pcsamp_selected") || has("l2_sectors_global") || has("stall_wait") {
            Depth::Detailed
        } else if MEASURED.iter().any(|id| has(id)) {
            Depth::Basic
        } else {
            Depth::Timeline
        }
    }

    /// Returns true if the kernel is known not to use shared memory.
    pub fn without_shared(&self) -> bool {
        self.get("smem_per_block_static") == Some(0.0) && self.get("smem_per_block_dynamic") == Some(0.0)
    }

    /// Ratio of the bytes between L1 and L2 to those of device memory: 1 for a plain stream, higher if L2 serves the
    /// same bytes several times.
    pub fn l2_reuse(&self) -> Option<f64> {
        let moved = self.positive_value("l2_sectors_from_l1").map(|s| s * 32.0).or_else(|| self.positive_value("l1_l2_bytes"))?;
        Some(moved / self.dram_bytes()?)
    }

    /// Bytes transferred by device memory: from the total, the sum of both directions, or the rate.
    pub fn dram_bytes(&self) -> Option<f64> {
        let both = || Some(self.get("dram_bytes_read")? + self.get("dram_bytes_write")?);
        let by_rate = || Some(self.positive_value("dram_bandwidth")? * self.duration_ns()? / 1e9);
        self.positive_value("dram_bytes").or_else(|| both().filter(|b| *b > 0.0)).or_else(by_rate)
    }

    /// Returns true if writes make up a quarter to three quarters of device memory traffic, because switching
    /// directions costs time. False if unknown.
    pub fn has_mixed_traffic(&self) -> bool {
        self.get("dram_bytes_write").zip(self.dram_bytes()).is_some_and(|(w, all)| (0.25..0.75).contains(&(w / all)))
    }

    pub fn duration_ns(&self) -> Option<f64> {
        self.positive_value("duration")
    }

    /// Share of the kernel's cycles during which an average SM had work, 0 to 1; `None` if unknown. Computed as
    /// `sm__cycles_active.avg` over `gpc__cycles_elapsed.max`.
    pub fn active_share(&self) -> Option<f64> {
        let (active, elapsed) = (self.get("sm_active_cycles")?, self.positive_value("elapsed_cycles")?);
        Some((active / elapsed).clamp(0.0, 1.0))
    }

    /// Blocks per SM; `None` if either number is unknown.
    pub fn blocks_per_sm(&self) -> Option<f64> {
        Some(self.positive_value("grid_size")? / self.positive_value("sm_count")?)
    }

    /// Mean number of active threads per executed instruction, at most 32.
    pub fn threads_per_instruction(&self) -> Option<f64> {
        self.positive_value("threads_per_inst")
            .or_else(|| Some(self.positive_value("source_threads")? / self.positive_value("source_warps")?))
    }

    /// Mean number of active threads per executed instruction, excluding threads that were predicated off.
    pub fn threads_not_off(&self) -> Option<f64> {
        self.positive_value("threads_per_inst_pred")
            .or_else(|| Some(self.positive_value("source_threads_on")? / self.positive_value("source_warps")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_zero_are_two_things() {
        let facts = Facts::from_pairs(&[("dram_throughput", 0.0)]);
        assert_eq!((facts.get("dram_throughput"), facts.get("l2_throughput")), (Some(0.0), None));
        assert_eq!(facts.reading("l2_throughput"), &Reading::Missing);
        assert_eq!(facts.positive_value("dram_throughput"), None);
    }

    #[test]
    fn a_sum_names_what_it_adds_up() {
        let one = |metric: &str, value| Measured { metric: Arc::from(metric), value, unit: "inst".to_owned() };
        let sum = |values: [f64; 3]| sum_metrics(&[one("add", values[0]), one("mul", values[1]), one("fma", values[2])]).unwrap();
        let text = |m: Measured| format!("{} {}", m.metric, m.value);
        assert_eq!(text(sum([0.0, 0.0, 5.0])), "fma 5");
        assert_eq!(text(sum([1.0, 0.0, 5.0])), "add + fma 6");
        assert_eq!(text(sum([0.0, 0.0, 0.0])), "add 0");
    }

    #[test]
    fn chips_by_compute_capability() {
        assert_eq!([(7, 0), (8, 6), (9, 0), (12, 0)].map(chip_name), [Some("gv100"), Some("ga102"), Some("gh100"), Some("gb202")]);
        assert_eq!(chip_name((6, 1)), None);
    }
}
