//! Roofline of kernels on AMD GPUs. Work and traffic follow rocprof-compute's formulas. Roofs are rates that AMD's
//! benchmark achieved on that machine (`roofline.csv`), or else peaks at the GPU's highest clock.
//!
//! Source of work and traffic: `0400_roofline.yaml` and `roofline_calc.py` of rocprofiler-compute (ROCm/rocm-systems).

use super::chips_amd::{Chip, VECTOR, find_chip, find_product};
use super::metric::Lookup;
use super::roofline_point::{Amount, Level, Placed, Precision, REAL, Traffic, Work};
use crate::model::{Value, Vendor};

/// A kind of work: display name, derived counter, column of `roofline.csv`, matrix-core data type, and precision.
struct Kind {
    name: &'static str,
    counter: &'static str,
    reached: &'static str,
    matrix: &'static str,
    precision: Precision,
}

const fn vector_kind(name: &'static str, counter: &'static str, precision: Precision) -> Kind {
    Kind { name, counter, reached: "", matrix: "", precision }
}

const fn matrix_kind(name: &'static str, counter: &'static str, reached: &'static str, matrix: &'static str) -> Kind {
    Kind { name, counter, reached, matrix, precision: Precision::Tensor }
}

/// Benchmark results for vector instructions are left out: they count packed instructions, which the counters do not
/// distinguish.
const KINDS: [Kind; 9] = [
    vector_kind("FP32 VALU", "VALU FLOPs (F32)", Precision::Single),
    vector_kind("FP64 VALU", "VALU FLOPs (F64)", Precision::Double),
    vector_kind("FP16 VALU", "VALU FLOPs (F16)", Precision::Half),
    matrix_kind("F16 MFMA", "MFMA FLOPs (F16)", "MFMAF16Flops", "F16"),
    matrix_kind("BF16 MFMA", "MFMA FLOPs (BF16)", "MFMABF16Flops", "BF16"),
    matrix_kind("F32 MFMA", "MFMA FLOPs (F32)", "MFMAF32Flops", "F32"),
    matrix_kind("F64 MFMA", "MFMA FLOPs (F64)", "MFMAF64Flops", "F64"),
    matrix_kind("F8 MFMA", "MFMA FLOPs (F8)", "MFMAF8Flops", "F8"),
    matrix_kind("F6F4 MFMA", "MFMA FLOPs (F6F4)", "MFMAF6Flops", "F6F4"),
];

/// GPU of a result, as far as the report describes it.
struct Gpu {
    chip: Option<&'static Chip>,
    /// Compute units × clocks per second, and number of dies.
    units: Option<f64>,
    dies: f64,
    clock: Option<f64>,
    /// Published memory bandwidth, bytes/s.
    memory: Option<f64>,
}

fn read_gpu(lookup: &Lookup<'_>) -> Option<Gpu> {
    let text = |name: &str| match lookup.value(name) {
        Some(Value::Text(t)) => Some(t.to_string()),
        _ => None,
    };
    let arch = text("Agent Name")?;
    let clock = lookup.finite_number("Agent Max_Clock").filter(|c| *c > 0.0);
    let units = lookup.finite_number("Agent Cu_Count").filter(|n| *n > 0.0).zip(clock).map(|(n, c)| n * c);
    Some(Gpu {
        chip: find_chip(&arch),
        units,
        dies: lookup.finite_number("Agent Num_Xcc").unwrap_or(1.0).max(1.0),
        clock,
        memory: text("Agent Product_Name")
            .and_then(|n| find_product(&n))
            .map(|p| p.memory)
            .or_else(|| lookup.finite_number("Agent Memory_Bandwidth")),
    })
}

/// Places a result on the roofline; `None` if it is not from an AMD GPU.
pub(super) fn place_result(lookup: &Lookup<'_>) -> Option<Placed> {
    let gpu = read_gpu(lookup)?;
    let get = |name: &str| lookup.finite_number(name).filter(|v| *v == 0.0 || REAL.contains(v));
    let mut out = Placed { maker: Vendor::Amd, ..Placed::default() };
    let mut measured = false;
    let mut roof = |reached: &str, theory: Option<f64>| {
        let best = get(reached).filter(|v| *v > 0.0);
        measured |= best.is_some();
        best.or(theory).filter(|p| REAL.contains(p))
    };
    let mut vectors = false;
    for kind in &KINDS {
        let per_clock = if kind.matrix.is_empty() { Some(VECTOR) } else { gpu.chip.and_then(|c| c.matrix_rate(kind.matrix)) };
        let peak = roof(kind.reached, per_clock.zip(gpu.units).filter(|_| gpu.chip.is_some()).map(|(n, units)| n * units));
        let Some(achieved) = get(kind.counter) else { continue };
        vectors |= kind.matrix.is_empty() && achieved > 0.0;
        let formula = if kind.matrix.is_empty() {
            "64 × (add + mul + transcendental + 2 × fma) instructions per second; peak 128 per CU and clock".to_owned()
        } else {
            format!(
                "512 × SQ_INSTS_VALU_MFMA_MOPS_{} per second; peak: {}",
                kind.matrix,
                if get(kind.reached).is_some() { "roofline.csv" } else { "of the matrix cores at the highest clock" }
            )
        };
        out.work.push(Work {
            name: kind.name.to_owned(),
            precision: kind.precision,
            achieved: Some(achieved),
            amount: Amount::Counted,
            peak,
            formula,
        });
    }
    // Tables from older releases combine the vector ALU work of all types.
    if let Some(achieved) = get("VALU FLOPs").filter(|_| !out.work.iter().any(|w| w.name.ends_with("VALU"))) {
        let peak = roof("", gpu.units.filter(|_| gpu.chip.is_some()).map(|u| u * VECTOR));
        vectors |= achieved > 0.0;
        let formula =
            "64 × (add + mul + transcendental + 2 × fma) instructions of all types per second; peak 128 per CU and clock".to_owned();
        out.work.insert(
            0,
            Work {
                name: "VALU".to_owned(),
                precision: Precision::Single,
                achieved: Some(achieved),
                amount: Amount::Counted,
                peak,
                formula,
            },
        );
    }
    if out.work.is_empty() {
        out.missing.push("floating-point work (SQ_INSTS_VALU_…_F32, SQ_INSTS_VALU_MFMA_MOPS_…)".to_owned());
    }
    let both = get("L2-Fabric Read BW").zip(get("L2-Fabric Write BW")).map(|(r, w)| r + w);
    let caches = gpu.chip.zip(gpu.clock);
    let levels = [
        (
            Level::Dram,
            "bytes read and written by L2 from and to what is behind it, per second; peak: the memory's",
            both.or_else(|| get("HBM Bandwidth")),
            roof("HBMBw", gpu.memory),
            "HBM traffic (FETCH_SIZE, WRITE_SIZE)",
        ),
        (
            Level::L2,
            "64 × requests of the vector L1 caches to L2 per second; peak: bytes per channel and clock × channels",
            get("L2 Cache Bandwidth"),
            roof("L2Bw", caches.map(|(c, clock)| c.l2 * c.channels * gpu.dies * clock)),
            "L2 traffic (TCP_TCC_…_REQ_sum)",
        ),
        (
            Level::L1,
            "64 × accesses of the vector L1 caches per second; peak: bytes per CU and clock",
            get("L1 Cache Bandwidth"),
            roof("L1Bw", gpu.chip.zip(gpu.units).map(|(c, units)| c.l1 * units)),
            "L1 traffic (TCP_TOTAL_CACHE_ACCESSES_sum)",
        ),
    ];
    for (level, formula, achieved, peak, missing) in levels {
        match (achieved, peak) {
            (Some(_), Some(_)) => out.traffic.push(Traffic { level, formula, achieved, peak }),
            // The work was counted, but this GPU's peak is unknown; collecting more counters would not help.
            (Some(_), None) => {}
            (None, _) => out.missing.push(missing.to_owned()),
        }
    }
    add_remarks(&gpu, measured, vectors, &mut out);
    Some(out)
}

fn add_remarks(gpu: &Gpu, measured: bool, vectors: bool, out: &mut Placed) {
    let clock = gpu.clock.map_or_else(String::new, |c| format!(", {:.0} MHz", c / 1e6));
    if measured {
        out.remarks.push("Roofs of memory, caches and MFMA are what AMD's benchmark reached on this machine (roofline.csv).".to_owned());
    } else if gpu.chip.is_none() {
        out.remarks.push("What this GPU can do at most is not known here: roofs are drawn of MI200, MI300 and MI350.".to_owned());
    } else {
        out.remarks.push(format!(
            "The roofs are what the GPU can do at its highest clock{clock}; AMD's own benchmark reaches 63% to 80% of the memory's, and shares of memory elsewhere are of that."
        ));
    }
    if vectors {
        out.remarks.push(format!(
            "VALU work and roof (at the highest clock{clock}) count all 64 lanes of an instruction, as AMD does, and a packed one once."
        ));
    }
    let hbm = out.traffic.iter().find(|t| t.level == Level::Dram);
    if hbm.and_then(|t| Some(t.achieved? > t.peak?)).unwrap_or(false) {
        out.remarks.push("More bytes came from behind L2 than HBM can deliver: the Infinity Cache held part of them.".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Metrics, ResultMetrics};
    use std::sync::Arc;

    fn placed(values: &[(&str, f64)]) -> Placed {
        let mut names: Vec<Arc<str>> = values.iter().map(|v| Arc::from(v.0)).collect();
        let mut all: Vec<(u32, Value)> = (0..).zip(values).map(|(i, v)| (i, Value::Float(v.1))).collect();
        for (name, text) in [("Agent Name", "gfx942"), ("Agent Product_Name", "AMD Instinct MI300X")] {
            all.push((u32::try_from(names.len()).unwrap(), Value::Text(Arc::from(text))));
            names.push(Arc::from(name));
        }
        let units = names.iter().map(|_| Arc::from("")).collect();
        let metrics = Metrics { names, units, results: vec![ResultMetrics::from_values(all)], ..Metrics::default() };
        place_result(&Lookup::new(&metrics, &metrics.results[0])).unwrap()
    }

    const MI300X: [(&str, f64); 3] = [("Agent Cu_Count", 304.0), ("Agent Num_Xcc", 8.0), ("Agent Max_Clock", 2.1e9)];

    /// Peaks from AMD's data sheet: 81.7 TFLOP/s of FP32 without packed instructions, 1,307 of F16 with matrix cores,
    /// 5.3 TB/s.
    #[test]
    fn roofs_of_an_mi300x() {
        let values = [("VALU FLOPs (F32)", 1e12), ("MFMA FLOPs (F16)", 1e14), ("L2-Fabric Read BW", 1e12), ("L2-Fabric Write BW", 1e11)];
        let p = placed(&[&MI300X[..], &values].concat());
        let peak = |name: &str| p.work.iter().find(|w| w.name == name).and_then(|w| w.peak).unwrap() / 1e12;
        assert!((peak("FP32 VALU") - 81.7).abs() < 0.05 && (peak("F16 MFMA") - 1307.4).abs() < 0.1);
        let hbm = p.traffic[0];
        assert_eq!((hbm.level, hbm.achieved, hbm.peak), (Level::Dram, Some(1.1e12), Some(5.3248e12)));
        assert_eq!((p.traffic.len(), p.missing.len(), p.level_name(Level::Dram)), (1, 2, "HBM"));
        assert!(p.remarks[0].contains("2100 MHz"), "{:?}", p.remarks);
    }

    /// The machine's benchmark results are the roofs; traffic in one direction alone is not used.
    #[test]
    fn measured_roofs_and_half_of_the_traffic() {
        let values = [("MFMA FLOPs (F16)", 1e14), ("L2-Fabric Read BW", 1e12), ("MFMAF16Flops", 917e12), ("HBMBw", 4.2e12)];
        let p = placed(&[&MI300X[..], &values].concat());
        assert_eq!((p.work[0].peak, p.traffic.len()), (Some(917e12), 0));
        assert!(p.missing[0].starts_with("HBM traffic") && p.remarks[0].contains("roofline.csv"));
    }
}
