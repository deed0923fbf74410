//! The roofline of results: work per second over work per byte, with the ceilings of the clocks that were really used.
//!
//! Formulas are those of NVIDIA's `SpeedOfLight_*RooflineChart.section` files, with two corrections: FP16 on the CUDA cores counts two
//! operations per packed instruction lane (files up to 2024.4 count one), and tensor work is taken from `sm__ops_path_tensor_*`, which
//! counts operations, never from tensor instructions (files up to 2024.x multiply those by 512, which is right for Volta's HMMA.884 only).
//! The peak of an `ops_path` counter without `_sparsity_off` is the sparse one: twice the dense.

use super::metric::Lookup;
use crate::model::{Metrics, ResultMetrics};
use std::sync::Arc;

/// A level of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Device memory.
    Dram,
    /// L2 cache.
    L2,
    /// L1 cache: data returned to registers.
    L1,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Dram, Self::L2, Self::L1];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L2 => "L2",
            Self::L1 => "L1",
        }
    }
}

/// Work of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// `FP32`, `BF16 tensor`.
    pub name: String,
    /// Operations per second; `None` when they were not counted.
    pub achieved: Option<f64>,
    /// The most that the chip can do at the clock it had.
    pub peak: Option<f64>,
    /// How both were reckoned.
    pub formula: String,
}

/// Traffic at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Level.
    pub level: Level,
    /// Bytes per second; `None` when they were not counted.
    pub achieved: Option<f64>,
    /// The most at the clock it had.
    pub peak: Option<f64>,
}

/// Work and traffic of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placed {
    /// Kinds of work that the report knows.
    pub work: Vec<Work>,
    /// Levels that the report knows.
    pub traffic: Vec<Traffic>,
    /// The SM clock during the kernel, Hz.
    pub clock: Option<f64>,
    /// What to collect for what is missing.
    pub missing: Vec<String>,
    /// What to know about these figures.
    pub remarks: Vec<String>,
}

/// One point of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Index of the result.
    pub result: usize,
    /// Function name.
    pub kernel: String,
    /// Kind of work.
    pub work: String,
    /// Level of the traffic.
    pub level: Level,
    /// Operations per byte; infinite when no byte was moved.
    pub intensity: f64,
    /// Operations per second.
    pub achieved: f64,
    /// The most at this intensity: the lower of the two roofs.
    pub attainable: f64,
    /// The roof of the work.
    pub peak: f64,
    /// Whether the memory's roof is the lower one here.
    pub memory_bound: bool,
    /// Duration, ns: its size on the plot.
    pub duration: f64,
    /// Of the result that the screen is about.
    pub own: bool,
    /// The user marked its kernel.
    pub marked: bool,
}

/// What the screen draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Work and traffic of the result that the screen is about.
    pub placed: Placed,
    /// Its points first, then those of the others.
    pub points: Vec<Point>,
}

/// Bytes that an L1 writeback cycle returns.
const L1_BYTES: f64 = 128.0;
/// Bytes of a cycle between L2 and the crossbar.
const L2_BYTES: f64 = 32.0;

/// Places a result.
#[must_use]
pub fn place(metrics: &Metrics, result: &ResultMetrics) -> Placed {
    let lookup = Lookup::new(metrics, result);
    let get = |name: &str| lookup.finite(name);
    let seconds = metrics.duration(result).map(crate::model::Nanos::seconds).filter(|s| *s > 0.0);
    let smsp = get("smsp__cycles_elapsed.avg.per_second").or_else(|| get("sm__cycles_elapsed.avg.per_second"));
    let sm = get("sm__cycles_elapsed.avg.per_second").or(smsp).or_else(|| get("gpc__cycles_elapsed.avg.per_second"));
    let mut out = Placed { clock: sm, ..Placed::default() };
    cuda_cores(&lookup, (smsp, sm, seconds), &mut out);
    tensor(&lookup, sm, seconds, &mut out);
    let traffic = |level, bases: &[&str], bytes: f64, clock: Option<f64>| {
        let found =
            bases.iter().find(|b| ["sum.per_second", "sum", "sum.peak_sustained"].iter().any(|f| get(&format!("{b}.{f}")).is_some()));
        let base = found.copied().unwrap_or_default();
        let rate = get(&format!("{base}.sum.per_second")).or_else(|| Some(get(&format!("{base}.sum"))? / seconds?));
        let peak = get(&format!("{base}.sum.peak_sustained")).zip(clock).map(|(p, c)| p * c * bytes);
        Traffic { level, achieved: rate.map(|r| r * bytes), peak }
    };
    let all = [
        traffic(Level::Dram, &["dram__bytes"], 1.0, get("dram__cycles_elapsed.avg.per_second")),
        traffic(Level::L2, &["lts__lts2xbar_cycles_active"], L2_BYTES, get("lts__cycles_elapsed.avg.per_second")),
        traffic(
            Level::L1,
            &["l1tex__lsu_writeback_active_mem_lgds", "l1tex__lsu_writeback_active_mem_lg", "l1tex__lsu_writeback_active"],
            L1_BYTES,
            get("l1tex__cycles_elapsed.avg.per_second"),
        ),
    ];
    for t in all {
        if t.achieved.is_some() && t.peak.is_some() {
            out.traffic.push(t);
        } else {
            let section =
                if t.level == Level::Dram { "SpeedOfLight_RooflineChart" } else { "SpeedOfLight_HierarchicalSingleRooflineChart" };
            out.missing.push(format!("{} traffic or its peak: --section {section}", t.level.word()));
        }
    }
    if result.clocks_locked == Some(true) {
        out.remarks
            .push("The clocks were locked to their base: peaks and rates are those of that clock, not of the boost clock.".to_owned());
    }
    out
}

fn cuda_cores(lookup: &Lookup<'_>, (smsp, sm, seconds): (Option<f64>, Option<f64>, Option<f64>), out: &mut Placed) {
    let kinds = [
        // Letter of the instructions, operations of an add, section that has them.
        ("FP32", 'f', 1.0, "SpeedOfLight_RooflineChart"),
        ("FP64", 'd', 1.0, "SpeedOfLight_RooflineChart"),
        ("FP16", 'h', 2.0, "SpeedOfLight_HierarchicalHalfRooflineChart"),
    ];
    for (name, letter, each, section) in kinds {
        let executed = |op: &str| format!("smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum");
        let ops: [Option<f64>; 3] = ["add", "mul", "fma"].map(|op| {
            let rate = lookup.finite(&format!("{}.per_cycle_elapsed", executed(op))).zip(smsp).map(|(n, clock)| n * clock);
            rate.or_else(|| Some(lookup.finite(&executed(op))? / seconds?))
        });
        // Without one of the three the sum would be too small.
        let achieved = match ops {
            [Some(add), Some(mul), Some(fma)] => Some(each * (add + mul + 2.0 * fma)),
            _ => None,
        };
        let base = format!("sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained");
        let peak = lookup.finite(&base).zip(sm).map(|(p, clock)| each * 2.0 * p * clock);
        if achieved.is_none() && peak.is_none() {
            out.missing.push(format!("{name} work: --section {section}"));
            continue;
        }
        let (n, two) = if each > 1.5 { ("2×", 4) } else { ("", 2) };
        let formula =
            format!("({n}{letter}add + {n}{letter}mul + {two}×{letter}fma per cycle) × SM clock; peak {two}×{letter}fma peak × SM clock");
        out.work.push(Work { name: name.to_owned(), achieved, peak, formula });
    }
}

/// Types of tensor operands in metric names, and the words for them.
const TYPES: [(&str, &str); 12] = [
    ("src_bf16", "BF16"),
    ("src_fp16_bf16_tf32", "FP16/BF16"),
    ("src_fp16", "FP16"),
    ("src_tf32", "TF32"),
    ("src_fp4_fp6_fp8", "FP8/FP6/FP4"),
    ("src_fp4_fp6", "FP6/FP4"),
    ("src_fp8", "FP8"),
    ("src_fp4", "FP4"),
    ("src_fp64", "FP64"),
    ("src_int8", "INT8"),
    ("src_int4", "INT4"),
    ("src_int1", "INT1"),
];

/// A tensor counter taken apart.
struct Counter<'a> {
    base: &'a str,
    op: Option<&'a str>,
    kind: &'static str,
    sparsity: Option<bool>,
}

fn counter(base: &str) -> Option<Counter<'_>> {
    let rest = base.strip_prefix("sm__ops_path_tensor_")?;
    let (op, rest) = match rest.strip_prefix("op_") {
        Some(r) => {
            let at = r.find("_src_")?;
            (Some(&r[..at]), &r[at + 1..])
        }
        None => (None, rest),
    };
    let sparsity = if rest.ends_with("_sparsity_on") {
        Some(true)
    } else if rest.ends_with("_sparsity_off") {
        Some(false)
    } else {
        None
    };
    let plain = rest.trim_end_matches("_sparsity_on").trim_end_matches("_sparsity_off");
    let src = plain.split("_dst_").next().unwrap_or(plain);
    let kind = TYPES.iter().find(|(t, _)| *t == src).map(|(_, word)| *word)?;
    Some(Counter { base, op, kind, sparsity })
}

fn tensor(lookup: &Lookup<'_>, sm: Option<f64>, seconds: Option<f64>, out: &mut Placed) {
    let mut bases: Vec<&str> = Vec::new();
    for (n, _) in &lookup.result.values {
        let Some(name) = lookup.metrics.names.get(*n as usize) else { continue };
        if let Some((base, form)) = name.split_once(".sum")
            && base.starts_with("sm__ops_path_tensor_")
            && ["", ".per_cycle_elapsed", ".per_second", ".peak_sustained"].contains(&form)
            && !bases.contains(&base)
        {
            bases.push(base);
        }
    }
    let counters: Vec<Counter<'_>> = bases.iter().filter_map(|b| counter(b)).collect();
    let rate = |base: &str| {
        let per_cycle = lookup.finite(&format!("{base}.sum.per_cycle_elapsed")).zip(sm).map(|(n, clock)| n * clock);
        let per_second = || lookup.finite(&format!("{base}.sum.per_second"));
        per_cycle.or_else(per_second).or_else(|| Some(lookup.finite(&format!("{base}.sum"))? / seconds?))
    };
    let peak = |base: &str| lookup.finite(&format!("{base}.sum.peak_sustained")).zip(sm).map(|(p, clock)| p * clock);
    let mut kinds: Vec<&str> = Vec::new();
    for c in &counters {
        if !kinds.contains(&c.kind) {
            kinds.push(c.kind);
        }
    }
    for kind in &kinds {
        let of = || counters.iter().filter(|c| c.kind == *kind);
        // A total where there is one, else its parts: by instruction or by sparsity, never both.
        let totals: Vec<f64> = of().filter(|c| c.op.is_none() && c.sparsity.is_none()).filter_map(|c| rate(c.base)).collect();
        let by_sparsity = || of().filter(|c| c.op.is_none() && c.sparsity.is_some()).filter_map(|c| rate(c.base)).collect::<Vec<f64>>();
        let by_op = || of().filter(|c| c.op.is_some()).filter_map(|c| rate(c.base)).collect::<Vec<f64>>();
        let parts = [totals, by_sparsity(), by_op()].into_iter().find(|p| !p.is_empty());
        let achieved = parts.map(|p| p.iter().sum::<f64>());
        let dense = of()
            .filter(|c| c.sparsity == Some(false))
            .filter_map(|c| peak(c.base))
            .fold(None, |m: Option<f64>, p| Some(m.map_or(p, |m| m.max(p))));
        let whole = || {
            of().filter(|c| c.sparsity.is_none())
                .filter_map(|c| peak(c.base))
                .fold(None, |m: Option<f64>, p| Some(m.map_or(p, |m| m.max(p))))
        };
        // FP64 and INT1 have no sparse form: their counter's peak is the dense one. On chips before Ampere nothing has.
        let sparse_chip = lookup.result.compute_capability.is_none_or(|(major, _)| major >= 8);
        let halves = sparse_chip && !matches!(*kind, "FP64" | "INT1");
        let peak_rate = dense.or_else(|| whole().map(|p| if halves { p / 2.0 } else { p }));
        if achieved.is_none_or(|a| a == 0.0) {
            continue;
        }
        let formula = "sm__ops_path_tensor per cycle × SM clock; peak: the dense one (sparsity off) × SM clock".to_owned();
        out.work.push(Work { name: format!("{kind} tensor"), achieved, peak: peak_rate, formula });
        let old = of().filter(|c| c.op == Some("hmma") || c.op == Some("imma")).filter_map(|c| rate(c.base)).sum::<f64>();
        if lookup.result.compute_capability.is_some_and(|(major, _)| major == 9) && old > 0.0 {
            out.remarks
                .push(format!("{kind} work runs on mma.sync instructions, which reach two thirds of the peak of wgmma on this chip."));
        }
    }
    let pipe = lookup.first(&["sm__inst_executed_pipe_tensor.sum", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"]);
    if kinds.is_empty() && pipe.is_none_or(|p| p > 0.0) {
        out.missing.push("tensor work: --section SpeedOfLight_HierarchicalTensorRooflineChart, of ncu 2025 or later".to_owned());
    }
    if let Some(active) = lookup.finite("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed").filter(|a| *a > 1.0)
        && kinds.is_empty()
    {
        out.remarks.push(format!(
            "The tensor pipe was active for {active:.1}% of the cycles: that is its share of the peak at this clock, whatever the type."
        ));
    }
}

/// Points of a placed result.
fn points(metrics: &Metrics, at: usize, result: &ResultMetrics, placed: &Placed, own: bool, marked: bool) -> Vec<Point> {
    let mut out = Vec::new();
    for work in &placed.work {
        let (Some(achieved), Some(peak)) = (work.achieved.filter(|a| *a > 0.0), work.peak.filter(|p| *p > 0.0)) else { continue };
        for t in &placed.traffic {
            let (Some(rate), Some(roof)) = (t.achieved, t.peak) else { continue };
            let intensity = if rate > 0.0 { achieved / rate } else { f64::INFINITY };
            let slope = intensity * roof;
            out.push(Point {
                result: at,
                kernel: result.kernel.function().to_owned(),
                work: work.name.clone(),
                level: t.level,
                intensity,
                achieved,
                attainable: peak.min(slope),
                peak,
                memory_bound: slope < peak,
                duration: metrics.duration(result).map_or(0.0, |d| d.0 as f64),
                own,
                marked,
            });
        }
    }
    out
}

impl Plot {
    /// The plot of a result among the others of its report; `marked` are results whose kernels the user marked.
    #[must_use]
    pub fn of(metrics: &Arc<Metrics>, at: usize, marked: &[usize]) -> Self {
        let Some(result) = metrics.results.get(at) else { return Self::default() };
        let placed = place(metrics, result);
        let mut out = Self { points: points(metrics, at, result, &placed, true, marked.contains(&at)), placed };
        out.points.sort_by(|a, b| b.achieved.total_cmp(&a.achieved).then(a.level.cmp(&b.level)));
        // Of the others their main work over device memory, the longest first; of another chip they have other roofs.
        let mut others: Vec<Point> = Vec::new();
        let mut rest: Vec<(usize, &ResultMetrics)> =
            metrics.results.iter().enumerate().filter(|(i, o)| *i != at && same_chip(o, result)).collect();
        if rest.len() > MOST_OTHERS {
            rest.sort_by_cached_key(|(i, o)| (!marked.contains(i), std::cmp::Reverse(metrics.duration(o).map_or(0, |d| d.0))));
            out.placed.remarks.push(format!("Of {} other results the {MOST_OTHERS} longest are shown.", rest.len()));
            rest.truncate(MOST_OTHERS);
        }
        for (i, other) in rest {
            let all = points(metrics, i, other, &place(metrics, other), false, marked.contains(&i));
            others.extend(all.into_iter().filter(|p| p.level == Level::Dram).max_by(|a, b| a.achieved.total_cmp(&b.achieved)));
        }
        others.sort_by(|a, b| b.marked.cmp(&a.marked).then(b.duration.total_cmp(&a.duration)));
        out.points.append(&mut others);
        out
    }

    /// Names of work whose roofs are drawn: what this result does, or all where it does nothing.
    #[must_use]
    pub fn roofs(&self) -> Vec<(&Work, f64)> {
        let with_peak = || self.placed.work.iter().filter_map(|w| Some((w, w.peak?)));
        // Work that is less than a hundredth of the main one is no reason to draw its roof.
        let main = self.placed.work.iter().filter_map(|w| w.achieved).fold(0.0, f64::max);
        let used: Vec<_> = with_peak().filter(|(w, _)| w.achieved.is_some_and(|a| a > main / 100.0)).collect();
        if used.is_empty() { with_peak().collect() } else { used }
    }
}

/// Results of a report that are placed beside the one that is looked at: a key must be answered within 16 ms.
const MOST_OTHERS: usize = 100;

fn same_chip(a: &ResultMetrics, b: &ResultMetrics) -> bool {
    a.compute_capability == b.compute_capability && a.device == b.device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_counters_are_taken_apart() {
        let c = counter("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off").unwrap();
        assert_eq!((c.op, c.kind, c.sparsity), (Some("hgmma"), "BF16", Some(false)));
        let c = counter("sm__ops_path_tensor_src_fp64").unwrap();
        assert_eq!((c.op, c.kind, c.sparsity), (None, "FP64", None));
        let c = counter("sm__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32").unwrap();
        assert_eq!(c.kind, "FP8/FP6/FP4");
        assert!(counter("sm__inst_executed_pipe_tensor").is_none());
    }
}
