//! Roofline of results: operations per second against operations per byte, with ceilings at the measured clocks.
//!
//! Formulas are those of NVIDIA's `SpeedOfLight_*RooflineChart.section` files, with two corrections: FP16 on the CUDA
//! cores counts two operations per packed instruction lane (files up to 2024.4 count one), and tensor work is taken
//! from `sm__ops_path_tensor_*`, which counts operations, never from tensor instructions (files up to 2024.x multiply
//! those by 512, which is correct only for Volta's HMMA.884). The peak of an `ops_path` counter without `_sparsity_off`
//! is the sparse one: twice the dense.

use super::metric::Lookup;
use super::roofline_point::REAL;
pub use super::roofline_point::{Amount, Level, Placed, Precision, Traffic, Work};
use super::{roofline_amd, tensor};
use crate::model::{Metrics, ResultMetrics};
use std::sync::Arc;

/// One point of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub result: usize,
    pub kernel: String,
    pub work: String,
    pub precision: Precision,
    pub amount: Amount,
    /// Memory level of the traffic.
    pub level: Level,
    /// Operations per byte; infinite if no bytes were moved.
    pub intensity: f64,
    /// Operations per second.
    pub achieved: f64,
    /// Attainable rate at this intensity: the lower of the two roofs.
    pub attainable: f64,
    /// Compute roof for this kind of work.
    pub peak: f64,
    /// True if the memory roof is the lower one at this intensity.
    pub memory_bound: bool,
    /// Duration, ns; determines the size of the point.
    pub duration: f64,
    /// True if the point belongs to the selected result.
    pub own: bool,
    /// True if the user marked the kernel.
    pub marked: bool,
}

impl Point {
    /// Returns the name of the work, marked if it is an upper bound.
    pub fn work_label(&self) -> String {
        self.amount.mark_name(&self.work)
    }
}

/// Contents of the roofline plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Work and traffic of the selected result.
    pub placed: Placed,
    /// Points of the selected result, then points of other results.
    pub points: Vec<Point>,
}

/// Bytes per L1 writeback cycle.
const L1_BYTES: f64 = 128.0;
/// Bytes per cycle between L2 and the crossbar.
const L2_BYTES: f64 = 32.0;

pub fn place_result(metrics: &Metrics, result: &ResultMetrics) -> Placed {
    let lookup = Lookup::new(metrics, result);
    if let Some(placed) = roofline_amd::place_result(&lookup) {
        return placed;
    }
    let get = |name: &str| lookup.finite_number(name);
    let seconds = metrics.duration(result).map(crate::model::Nanos::as_seconds).filter(|s| *s > 0.0);
    let smsp = get("smsp__cycles_elapsed.avg.per_second").or_else(|| get("sm__cycles_elapsed.avg.per_second"));
    let sm = get("sm__cycles_elapsed.avg.per_second").or(smsp).or_else(|| get("gpc__cycles_elapsed.avg.per_second"));
    let mut out = Placed { clock: sm, ..Placed::default() };
    cuda_cores(&lookup, (smsp, sm, seconds), &mut out);
    tensor::add_tensor_work(&lookup, sm, seconds, &mut out);
    let traffic = |level, formula, bases: &[&str], bytes: f64, clock: Option<f64>| {
        let found =
            bases.iter().find(|b| ["sum.per_second", "sum", "sum.peak_sustained"].iter().any(|f| get(&format!("{b}.{f}")).is_some()));
        let base = found.copied().unwrap_or_default();
        let rate = get(&format!("{base}.sum.per_second")).or_else(|| Some(get(&format!("{base}.sum"))? / seconds?));
        let peak = get(&format!("{base}.sum.peak_sustained")).zip(clock).map(|(p, c)| p * c * bytes);
        // Drop corrupt or absurd values.
        let real = |v: Option<f64>| v.filter(|v| REAL.contains(v));
        Traffic { level, formula, achieved: rate.map(|r| r * bytes).filter(|r| *r == 0.0 || REAL.contains(r)), peak: real(peak) }
    };
    let all = [
        traffic(
            Level::Dram,
            "dram__bytes per second; peak: bytes per cycle × DRAM clock",
            &["dram__bytes"],
            1.0,
            get("dram__cycles_elapsed.avg.per_second"),
        ),
        traffic(
            Level::L2,
            "32 × lts__lts2xbar_cycles_active per second; peak: the same × L2 clock",
            &["lts__lts2xbar_cycles_active"],
            L2_BYTES,
            get("lts__cycles_elapsed.avg.per_second"),
        ),
        traffic(
            Level::L1,
            "128 × l1tex__lsu_writeback_active per second: data returned to registers; TMA and wgmma operands are not included",
            &["l1tex__lsu_writeback_active_mem_lgds", "l1tex__lsu_writeback_active_mem_lg", "l1tex__lsu_writeback_active"],
            L1_BYTES,
            get("l1tex__cycles_elapsed.avg.per_second"),
        ),
    ];
    for mut t in all {
        if t.level == Level::Dram && t.peak.is_none() {
            t.peak = dram_peak(metrics, result).filter(|peak| REAL.contains(peak));
        }
        if t.achieved.is_some() && t.peak.is_some() {
            out.traffic.push(t);
        } else {
            let section =
                if t.level == Level::Dram { "SpeedOfLight_RooflineChart" } else { "SpeedOfLight_HierarchicalSingleRooflineChart" };
            out.missing.push(format!("{} traffic or its peak: --section {section}", t.level.display_name()));
        }
    }
    if result.clocks_locked == Some(true) {
        out.remarks.push("The clocks were locked to base: peaks and rates are at that clock, not at the boost clock.".to_owned());
    }
    out
}

/// Shares of the peak below this, in percent, have too few digits to derive the peak from.
const LEAST_SHARE: f64 = 1.0;

/// Peak rate of device memory, bytes/s, if it was not collected itself: the rate over the shares of the peak at which
/// it was read and written. Another launch on the same GPU gives the bytes per cycle if this one hardly used it.
fn dram_peak(metrics: &Metrics, result: &ResultMetrics) -> Option<f64> {
    const CLOCK: &str = "dram__cycles_elapsed.avg.per_second";
    let per_cycle = |result: &ResultMetrics| {
        let lookup = Lookup::new(metrics, result);
        let share = |way: &str| lookup.finite_number(&format!("dram__bytes_{way}.sum.pct_of_peak_sustained_elapsed"));
        let percent = share("read")? + share("write")?;
        let bytes = lookup.finite_number("dram__bytes.sum.per_second")? / lookup.finite_number(CLOCK)?;
        (percent >= LEAST_SHARE).then(|| bytes / percent * 100.0)
    };
    let same = |other: &&ResultMetrics| other.device == result.device;
    let bytes = per_cycle(result).or_else(|| metrics.results.iter().filter(same).find_map(per_cycle))?;
    Some(bytes * Lookup::new(metrics, result).finite_number(CLOCK)?)
}

/// Share of the FP16 peak below which we assume that FMAs without any add or multiply only load constants: in the
/// available reports, kernels that compute nothing in FP16 reach at most 0.04% of peak.
const LOADED_CONSTANTS: f64 = 0.002;

fn cuda_cores(lookup: &Lookup<'_>, (smsp, sm, seconds): (Option<f64>, Option<f64>, Option<f64>), out: &mut Placed) {
    let kinds = [
        // Precision, letter in instruction names, operations per add, and section with the metrics.
        (Precision::Single, 'f', 1.0, "SpeedOfLight_RooflineChart"),
        (Precision::Double, 'd', 1.0, "SpeedOfLight_RooflineChart"),
        (Precision::Half, 'h', 2.0, "SpeedOfLight_HierarchicalHalfRooflineChart"),
    ];
    for (precision, letter, each, section) in kinds {
        let name = precision.display_name();
        let executed = |op: &str| format!("smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum");
        let ops: [Option<f64>; 3] = ["add", "mul", "fma"].map(|op| {
            let rate = lookup.finite_number(&format!("{}.per_cycle_elapsed", executed(op))).zip(smsp).map(|(n, clock)| n * clock);
            rate.or_else(|| Some(lookup.finite_number(&executed(op))? / seconds?))
        });
        // Data-center Blackwell chips have an FFMA2 instruction on two pairs of values: four operations each.
        let pairs = lookup.finite_number("smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum.per_cycle_elapsed").zip(smsp);
        let pairs = pairs.filter(|_| letter == 'f').map_or(0.0, |(n, clock)| 4.0 * n * clock);
        // If any of the three is missing, the sum would be too small.
        let achieved = match ops {
            [Some(add), Some(mul), Some(fma)] => Some(each * (add + mul + 2.0 * fma) + pairs),
            _ => None,
        };
        let bound = at_most(lookup, precision).zip(seconds).filter(|_| achieved.is_none()).map(|(ops, s)| ops / s);
        let base = format!("sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained");
        let peak = lookup.finite_number(&base).zip(sm).map(|(p, clock)| each * 2.0 * p * clock);
        // Compilers load constants with one HFMA2 of zeros per thread, which is not FP16 work.
        let only_fma = matches!(ops, [Some(add), Some(mul), _] if add == 0.0 && mul == 0.0);
        if letter == 'h' && only_fma && achieved.zip(peak).is_some_and(|(a, p)| a > 0.0 && a < p * LOADED_CONSTANTS) {
            out.remarks.push("Its few HFMA2 instructions are not counted as FP16 work: compilers load constants with them.".to_owned());
            continue;
        }
        if let Some(most) = bound {
            let amount = if most > 0.0 { Amount::AtMost } else { Amount::Counted };
            let formula = "2 × thread instructions of its pipe per second; peak 2 × fma peak × SM clock".to_owned();
            out.work.push(Work { name: name.to_owned(), precision, achieved: Some(most), amount, peak, formula });
            continue;
        }
        if achieved.is_none() && peak.is_none() {
            out.missing.push(format!("{name} work: --section {section}"));
            continue;
        }
        let (n, two) = if each > 1.5 { ("2×", 4) } else { ("", 2) };
        let formula =
            format!("({n}{letter}add + {n}{letter}mul + {two}×{letter}fma per cycle) × SM clock; peak {two}×{letter}fma peak × SM clock");
        out.work.push(Work { name: name.to_owned(), precision, achieved, amount: Amount::Counted, peak, formula });
    }
    if out.work.iter().any(|w| w.amount == Amount::AtMost) {
        out.remarks.push(AT_MOST.to_owned());
    }
}

const AT_MOST: &str = "(≤) is an upper bound: each instruction of the pipe counts as a multiply-add, integer ones on the same pipe, too. A launch that is measured by its number (M) has its operations counted.";

/// Upper bound on a kernel's operations in a precision on the CUDA cores, from the instruction count of the executing
/// pipe, which the hardware provides without instrumentation. Among 69 kernels on an H100 with both counts, none
/// exceeded this bound, and half of them reached at least half of it.
fn at_most(lookup: &Lookup<'_>, precision: Precision) -> Option<f64> {
    let threads = |pipe: &str| lookup.finite_number(&format!("smsp__thread_inst_executed_pipe_{pipe}_pred_on.sum"));
    // FP16 runs on the FMA pipe on chips without an FP16 pipe (Turing, GA100).
    let half = threads("fma_type_fp16").unwrap_or(0.0);
    match precision {
        Precision::Single => {
            let all = (threads("fma")? - half).max(0.0);
            // The half of the pipe without an integer multiplier executes at least half of the FP32 instructions: a
            // share of 0.50 to 1.00 in those 69 kernels.
            let hopper = lookup.result.compute_capability == Some((9, 0));
            let float = threads("fmalite").filter(|_| hopper && half == 0.0).map_or(all, |lite| all.min(2.0 * lite));
            Some(2.0 * float)
        }
        Precision::Double => threads("fp64").map(|n| 2.0 * n),
        // On Hopper, the tensor pipe executes half of the FP16 multiply-adds, so the FMA pipe's count is not a bound
        // unless it is zero.
        Precision::Half => threads("fma_type_fp16").or_else(|| threads("fp16")).filter(|n| *n == 0.0),
        Precision::Tensor => None,
    }
}

fn result_points(metrics: &Metrics, at: usize, result: &ResultMetrics, placed: &Placed, own: bool, marked: bool) -> Vec<Point> {
    let mut out = Vec::new();
    for work in &placed.work {
        let (Some(achieved), Some(peak)) = (work.achieved.filter(|a| REAL.contains(a)), work.peak.filter(|p| REAL.contains(p))) else {
            continue;
        };
        for t in &placed.traffic {
            let (Some(rate), Some(roof)) = (t.achieved, t.peak) else { continue };
            let intensity = if rate > 0.0 { achieved / rate } else { f64::INFINITY };
            let slope = intensity * roof;
            out.push(Point {
                result: at,
                kernel: result.kernel.function().to_owned(),
                work: work.name.clone(),
                precision: work.precision,
                amount: work.amount,
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
    /// Builds the plot for a result and the others in its report; `marked` contains results whose kernels the user
    /// marked.
    pub fn from_result(metrics: &Arc<Metrics>, at: usize, marked: &[usize]) -> Self {
        let Some(result) = metrics.results.get(at) else { return Self::default() };
        let placed = place_result(metrics, result);
        let mut out = Self { points: result_points(metrics, at, result, &placed, true, marked.contains(&at)), placed };
        out.points.sort_by(|a, b| b.achieved.total_cmp(&a.achieved).then(a.level.cmp(&b.level)));
        // Plot other results by their main work over device memory. Skip results from other chips, because their roofs
        // differ.
        let mut others: Vec<Point> = Vec::new();
        let mut rest: Vec<(usize, &ResultMetrics)> =
            metrics.results.iter().enumerate().filter(|(i, o)| *i != at && same_chip(o, result)).collect();
        if rest.len() > MOST_OTHERS {
            rest.sort_by_cached_key(|(i, o)| (!marked.contains(i), std::cmp::Reverse(metrics.duration(o).map_or(0, |d| d.0))));
            out.placed.remarks.push(format!("Of {} other results only the {MOST_OTHERS} longest are shown.", rest.len()));
            rest.truncate(MOST_OTHERS);
        }
        let mut clocks: Option<(f64, f64)> = None;
        for (i, other) in rest {
            let placed = place_result(metrics, other);
            let all = result_points(metrics, i, other, &placed, false, marked.contains(&i));
            if let Some(clock) = placed.clock.filter(|_| !all.is_empty()) {
                clocks = Some(clocks.map_or((clock, clock), |(low, high)| (low.min(clock), high.max(clock))));
            }
            others.extend(all.into_iter().filter(|p| p.level == Level::Dram).max_by(|a, b| a.achieved.total_cmp(&b.achieved)));
        }
        // Each point's shares refer to the roofs at its own launch's clock; the lines use this result's clock.
        if let Some((own, (low, high))) = out
            .placed
            .clock
            .zip(clocks)
            .filter(|(own, (low, high))| *low < own * (1.0 - CLOCKS_ALIKE) || *high > own * (1.0 + CLOCKS_ALIKE))
        {
            let mhz = |hz: f64| format!("{:.0}", hz / 1e6);
            let theirs = if mhz(low) == mhz(high) { mhz(low) } else { format!("{} to {}", mhz(low), mhz(high)) };
            out.placed.remarks.push(format!(
                "The lines are at this launch's SM clock, {} MHz; other launches ran at {theirs} MHz, and their shares are of their own roofs.",
                mhz(own)
            ));
        }
        others.sort_by(|a, b| b.marked.cmp(&a.marked).then(b.duration.total_cmp(&a.duration)));
        out.points.append(&mut others);
        out
    }

    /// Returns all known roofs, highest first, and for each whether work was done under it. Work below a hundredth of
    /// this result's main work does not count.
    pub fn known_roofs(&self) -> Vec<Roof<'_>> {
        let main = self.placed.work.iter().filter_map(|w| w.achieved).fold(0.0, f64::max);
        let plotted = |w: &Work| self.points.iter().any(|p| p.precision == w.precision);
        let used = |w: &Work| w.achieved.is_some_and(|a| a > 0.0 && a > main / 100.0) || plotted(w);
        let peak = |w: &Work| w.peak.filter(|p| REAL.contains(p));
        let mut out: Vec<Roof<'_>> = self
            .placed
            .work
            .iter()
            .filter_map(|w| Some(Roof { work: w, peak: peak(w)?, used: used(w), counted: w.achieved.is_some() }))
            .collect();
        out.sort_by(|a, b| b.peak.total_cmp(&a.peak));
        out
    }
}

/// Roof for a kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof<'a> {
    pub work: &'a Work,
    /// Operations per second.
    pub peak: f64,
    /// True if this result, or another point in the plot, does work of this kind.
    pub used: bool,
    /// True if work of this kind was counted at all.
    pub counted: bool,
}

/// Maximum number of other results to plot, because the screen must respond to a key within 16 ms.
const MOST_OTHERS: usize = 100;

/// Relative difference up to which SM clocks count as equal: a chart with 100 columns cannot resolve it.
const CLOCKS_ALIKE: f64 = 0.02;

fn same_chip(a: &ResultMetrics, b: &ResultMetrics) -> bool {
    a.compute_capability == b.compute_capability && a.device == b.device
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(values: &[(&str, f64)]) -> Metrics {
        use crate::model::Value;
        let names = values.iter().map(|(n, _)| Arc::from(*n)).collect::<Vec<_>>();
        let one = ResultMetrics {
            device: Some(0),
            compute_capability: Some((9, 0)),
            clocks_locked: Some(false),
            ..ResultMetrics::from_values((0..).zip(values).map(|(i, (_, v))| (i, Value::Float(*v))).collect())
        };
        Metrics { units: names.iter().map(|_| Arc::from("")).collect(), names, results: vec![one], ..Metrics::default() }
    }

    /// A GEMM of 2048³ in BF16 on an H200: 674.5 TFLOP/s at 1.711 GHz is 72.9% of 4096 × 132 × clock, the same as its
    /// tensor pipe reports.
    #[test]
    fn a_gemm_is_placed_where_its_tensor_pipe_says() {
        let (clock, peak) = (1.711e9, 8192.0 * 132.0);
        let seconds = 17_179_869_184.0 / 674.5e12;
        let metrics = result(&[
            ("sm__ops_path_tensor_src_bf16_dst_fp32.sum.per_cycle_elapsed", 674.5e12 / clock),
            ("sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained", peak),
            ("sm__cycles_elapsed.avg.per_second", clock),
            ("dram__bytes.sum.per_second", 1e12),
            ("dram__bytes.sum.peak_sustained", 1500.0),
            ("dram__cycles_elapsed.avg.per_second", 3.2e9),
            ("gpu__time_duration.sum", seconds * 1e9),
        ]);
        let plot = Plot::from_result(&Arc::new(metrics), 0, &[]);
        let p = &plot.points[0];
        assert_eq!((p.work.as_str(), p.level), ("BF16 tensor", Level::Dram));
        assert!((p.achieved / p.peak * 100.0 - 72.9).abs() < 0.05, "{}", p.achieved / p.peak);
        assert!((p.intensity - 674.5).abs() < 0.1 && !p.memory_bound, "{p:?}");
    }

    /// The lines of the chart use the clock of one launch: a launch at another clock gets a remark, but a difference of
    /// 1% does not matter.
    #[test]
    fn other_clocks_are_said() {
        let names = [
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed",
            "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed",
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
            "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained",
            "dram__bytes.sum.per_second",
            "dram__bytes.sum.peak_sustained",
            "dram__cycles_elapsed.avg.per_second",
            "sm__cycles_elapsed.avg.per_second",
        ];
        let said = |clock: f64| {
            let mut metrics = result(&names.map(|n| (n, 10.0)));
            let clock_of = |hz: f64| ResultMetrics {
                values: (0..)
                    .zip(names)
                    .map(|(i, n)| (i, crate::model::Value::Float(if n.starts_with("sm__cycles") { hz } else { 10.0 })))
                    .collect(),
                ..metrics.results[0].clone()
            };
            metrics.results = vec![clock_of(541e6), clock_of(clock)];
            Plot::from_result(&Arc::new(metrics), 0, &[]).placed.remarks
        };
        assert_eq!(said(545e6), Vec::<String>::new());
        let one =
            "The lines are at this launch's SM clock, 541 MHz; other launches ran at 584 MHz, and their shares are of their own roofs.";
        assert_eq!(said(584e6), [one]);
    }

    /// Sparse work has its own roof, and work that a report counts twice is not added twice.
    #[test]
    fn sparse_work_and_work_by_instruction() {
        let metrics = result(&[
            ("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.per_cycle_elapsed", 100.0),
            ("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_on.sum.per_cycle_elapsed", 700.0),
            ("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32.sum.per_cycle_elapsed", 800.0),
            ("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained", 500.0),
            ("sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_on.sum.peak_sustained", 1000.0),
            ("sm__cycles_elapsed.avg.per_second", 1.0),
        ]);
        let placed = place_result(&metrics, &metrics.results[0]);
        let work: Vec<(&str, f64, f64)> = placed.work.iter().map(|w| (w.name.as_str(), w.achieved.unwrap(), w.peak.unwrap())).collect();
        assert_eq!(work, [("BF16 tensor", 100.0, 500.0), ("BF16 tensor, sparse", 700.0, 1000.0)]);
    }

    /// CUDA cores: FP16 counts both halves, and missing values are not zero.
    #[test]
    fn work_of_the_cuda_cores() {
        let t = |op: &str| format!("smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed");
        let names = [t("hadd"), t("hmul"), t("hfma"), t("fadd"), t("fmul")];
        let values = [1.0, 2.0, 3.0, 1.0, 1.0];
        let mut all: Vec<(&str, f64)> = names.iter().map(String::as_str).zip(values).collect();
        all.push(("smsp__cycles_elapsed.avg.per_second", 10.0));
        let metrics = result(&all);
        let placed = place_result(&metrics, &metrics.results[0]);
        // (2 × 1 + 2 × 2 + 4 × 3) × 10; the FP32 sum is missing without FFMA.
        assert_eq!(placed.work.len(), 1);
        assert_eq!((placed.work[0].name.as_str(), placed.work[0].achieved), ("FP16", Some(180.0)));
        assert!(placed.missing.iter().any(|m| m.starts_with("FP32")));
    }
}
