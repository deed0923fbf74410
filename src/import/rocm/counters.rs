//! Builds results from hardware counters: one result per dispatch, including AMD's derived metrics.

use super::rows::{Dispatch, Rows, Symbol, strip_kd_suffix};
use crate::model::kernel::function_of;
use crate::model::{Device, Kernel, Metrics, Profile, ResultMetrics, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// Device and dispatch parameters used by the formulas.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// Number of compute units, and number of dies (XCCs); each die has its own counters.
    pub units: f64,
    pub dies: f64,
    /// Duration of the dispatch, ns.
    pub ns: f64,
}

/// A derived metric: name, unit, and formula over counters. If rocprofv3 has the metric, its name is used.
type Derived = (&'static str, &'static str, fn(&dyn Fn(&str) -> Option<f64>, Gpu) -> Option<f64>);

/// Returns the busy cycles of one die; the counter is the sum over all dies.
fn busy_cycles(c: &dyn Fn(&str) -> Option<f64>, gpu: Gpu) -> Option<f64> {
    c("GRBM_GUI_ACTIVE").map(|n| n / gpu.dies)
}

/// Formulas for CDNA GPUs, from `counter_defs.yaml` of rocprofiler-sdk and from the analysis in rocprofiler-compute
/// (ROCm/rocm-systems @1b1610fc2b).
static DERIVED: [Derived; 33] = [
    ("VALUBusy", "%", |c, g| Some(100.0 * c("SQ_ACTIVE_INST_VALU")? / (busy_cycles(c, g)? * g.units))),
    ("SALUBusy", "%", |c, g| Some(100.0 * c("SQ_ACTIVE_INST_SCA")? / (busy_cycles(c, g)? * g.units))),
    ("MfmaUtil", "%", |c, g| Some(100.0 * c("SQ_VALU_MFMA_BUSY_CYCLES")? / (busy_cycles(c, g)? * g.units * 4.0))),
    ("VALUUtilization", "%", |c, _| Some(100.0 * c("SQ_THREAD_CYCLES_VALU")? / c("SQ_ACTIVE_INST_VALU")? / 64.0)),
    ("OccupancyPercent", "%", |c, g| Some(100.0 * 4.0 * c("SQ_WAVE_CYCLES")? / (busy_cycles(c, g)? * g.units * 32.0))),
    ("SIMD_UTILIZATION", "%", |c, g| Some(100.0 * c("SQ_BUSY_CU_CYCLES")? / (busy_cycles(c, g)? * g.units))),
    ("IPC", "inst/cycle", |c, _| Some(c("SQ_INSTS")? / c("SQ_BUSY_CU_CYCLES")?)),
    ("L2CacheHit", "%", |c, _| {
        let hits = c("TCC_HIT_sum")?;
        Some(100.0 * hits / (hits + c("TCC_MISS_sum")?))
    }),
    ("LDSBankConflict", "%", |c, g| Some(100.0 * c("SQ_LDS_BANK_CONFLICT")? / (busy_cycles(c, g)? * g.units))),
    ("LDS Utilization", "%", |c, g| Some(100.0 * c("SQ_LDS_IDX_ACTIVE")? / (busy_cycles(c, g)? * g.units))),
    ("LDS Unaligned Stall", "%", |c, g| Some(100.0 * c("SQ_LDS_UNALIGNED_STALL")? / (busy_cycles(c, g)? * g.units))),
    ("Bank Conflicts/Access", "", |c, _| {
        let conflicts = c("SQ_LDS_BANK_CONFLICT")?;
        Some(conflicts / (c("SQ_LDS_IDX_ACTIVE")? - conflicts))
    }),
    ("L2-Fabric Read BW", "byte/second", |c, g| Some(bytes_read(c)? / g.ns * 1e9)),
    ("L2-Fabric Write BW", "byte/second", |c, g| Some(bytes_written(c)? / g.ns * 1e9)),
    ("vL1D Coalescing", "%", |c, _| Some(100.0 * 64.0 * c("TA_TOTAL_WAVEFRONTS_sum")? / (c("TCP_TOTAL_ACCESSES_sum")? * 4.0))),
    ("L2 Input Stalled", "%", |c, _| Some(100.0 * c("TCC_IB_STALL_sum")? / c("TCC_BUSY_sum")?)),
    ("L2 Stalled for HBM Credits", "%", |c, _| {
        let stalled = c("TCC_EA0_RDREQ_DRAM_CREDIT_STALL_sum")? + c("TCC_EA0_WRREQ_DRAM_CREDIT_STALL_sum")?;
        Some(100.0 * stalled / c("TCC_BUSY_sum")?)
    }),
    ("Wave Cycles", "", |c, _| c("SQ_WAVE_CYCLES")),
    ("Dependency Wait Cycles", "", |c, _| c("SQ_WAIT_ANY")),
    ("Issue Wait Cycles", "", |c, _| c("SQ_WAIT_INST_ANY")),
    ("Active Cycles", "", |c, _| c("SQ_ACTIVE_INST_ANY")),
    ("VALU FLOPs (F16)", "flop/second", |c, g| Some(vector_flops(c, "F16")? / g.ns * 1e9)),
    ("VALU FLOPs (F32)", "flop/second", |c, g| Some(vector_flops(c, "F32")? / g.ns * 1e9)),
    ("VALU FLOPs (F64)", "flop/second", |c, g| Some(vector_flops(c, "F64")? / g.ns * 1e9)),
    ("MFMA FLOPs (F6F4)", "flop/second", |c, g| Some(matrix_ops(c, "F6F4")? / g.ns * 1e9)),
    ("MFMA FLOPs (F8)", "flop/second", |c, g| Some(matrix_ops(c, "F8")? / g.ns * 1e9)),
    ("MFMA FLOPs (F16)", "flop/second", |c, g| Some(matrix_ops(c, "F16")? / g.ns * 1e9)),
    ("MFMA FLOPs (BF16)", "flop/second", |c, g| Some(matrix_ops(c, "BF16")? / g.ns * 1e9)),
    ("MFMA FLOPs (F32)", "flop/second", |c, g| Some(matrix_ops(c, "F32")? / g.ns * 1e9)),
    ("MFMA FLOPs (F64)", "flop/second", |c, g| Some(matrix_ops(c, "F64")? / g.ns * 1e9)),
    ("MFMA IOPs (Int8)", "op/second", |c, g| Some(matrix_ops(c, "I8")? / g.ns * 1e9)),
    // 64 bytes per request on every GPU, as in rocprofiler-compute's roofline, although its table of the vector L1
    // counts 128 bytes per read on CDNA 3: the roofs were measured with the same assumption.
    ("L2 Cache Bandwidth", "byte/second", |c, g| {
        let kinds = ["READ", "WRITE", "ATOMIC_WITH_RET", "ATOMIC_WITHOUT_RET"];
        let requests: Option<f64> = kinds.iter().map(|k| c(&format!("TCP_TCC_{k}_REQ_sum"))).sum();
        Some(64.0 * requests? / g.ns * 1e9)
    }),
    ("L1 Cache Bandwidth", "byte/second", |c, g| Some(64.0 * c("TCP_TOTAL_CACHE_ACCESSES_sum")? / g.ns * 1e9)),
];

/// Returns the floating-point operations of the vector ALUs. All 64 lanes of a wave count as active, and a fused
/// multiply-add counts as two operations.
fn vector_flops(c: &dyn Fn(&str) -> Option<f64>, of: &str) -> Option<f64> {
    let n = |op: &str| c(&format!("SQ_INSTS_VALU_{op}_{of}"));
    Some(64.0 * (n("ADD")? + n("MUL")? + n("TRANS")? + 2.0 * n("FMA")?))
}

/// Returns the operations of the matrix cores; the counters are in units of 512 operations.
fn matrix_ops(c: &dyn Fn(&str) -> Option<f64>, of: &str) -> Option<f64> {
    c(&format!("SQ_INSTS_VALU_MFMA_MOPS_{of}")).map(|n| 512.0 * n)
}

/// Returns the bytes that L2 read from the next level of memory: AMD's own counter (KiB) if collected, otherwise
/// computed from the number of requests of each size. CDNA 3 also has 128-byte requests.
fn bytes_read(c: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    if let Some(kib) = c("FETCH_SIZE") {
        return Some(kib * 1024.0);
    }
    if let Some(all) = c("TCC_EA0_RDREQ_sum") {
        let (small, large) = (c("TCC_EA0_RDREQ_32B_sum")?, c("TCC_BUBBLE_sum")?);
        return Some(128.0 * large + 64.0 * (all - large - small) + 32.0 * small);
    }
    let (all, small) = (c("TCC_EA_RDREQ_sum")?, c("TCC_EA_RDREQ_32B_sum")?);
    Some(64.0 * (all - small) + 32.0 * small)
}

/// Returns the bytes that L2 wrote to the next level of memory.
fn bytes_written(c: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    if let Some(kib) = c("WRITE_SIZE") {
        return Some(kib * 1024.0);
    }
    let all = c("TCC_EA0_WRREQ_sum").or_else(|| c("TCC_EA_WRREQ_sum"))?;
    let large = c("TCC_EA0_WRREQ_64B_sum").or_else(|| c("TCC_EA_WRREQ_64B_sum"))?;
    Some(64.0 * large + 32.0 * (all - large))
}

/// Architectures to which the formulas apply.
const ARCHITECTURES: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

/// Name of a metric that lists counters whose value of 0 is impossible, because their hardware block did not count.
/// This happens when the GPU's power state turns counters off (ROCm/rocm-systems#5683, #5953), and on chips without
/// the counter (rocprofiler-sdk#47, #57).
const NOT_COUNTED: &str = "Not Counted";
/// Sequencer counters, in cycles or waves, that are nonzero for every dispatch that has waves.
const OF_WAVES: [&str; 4] = ["SQ_WAVES", "SQ_BUSY_CU_CYCLES", "SQ_BUSY_CYCLES", "SQ_WAVE_CYCLES"];

fn not_counted<'v>(values: &FxHashMap<&'v str, f64>, ran: bool) -> Vec<&'v str> {
    let zero = |name: &str| values.get(name).is_some_and(|v| *v == 0.0);
    let sequencer = ran && OF_WAVES.iter().any(|name| zero(name));
    let is = |name: &&str| zero(name) && (sequencer && name.starts_with("SQ_") || ran && *name == "GRBM_GUI_ACTIVE");
    let mut out: Vec<&str> = values.keys().copied().filter(is).collect();
    out.sort_unstable();
    out
}

/// Returns the counters from which a metric is derived; none for facts about the launch or the GPU.
pub fn counters_of(metric: &str) -> Vec<String> {
    let Some((_, _, formula)) = DERIVED.iter().find(|d| d.0 == metric) else { return Vec::new() };
    let asked = RefCell::new(Vec::new());
    let _ = formula(
        &|name| {
            let mut asked = asked.borrow_mut();
            if !asked.iter().any(|known| known == name) {
                asked.push(name.to_owned());
            }
            // Formulas skip nothing if every counter has a value.
            Some(1.0)
        },
        Gpu { units: 1.0, dies: 1.0, ns: 1.0 },
    );
    asked.into_inner()
}

/// Returns the metrics that can be derived, except infinite and NaN values (such as those of a kernel without vector
/// instructions).
pub fn derive_metrics(counter: &dyn Fn(&str) -> Option<f64>, gpu: Gpu) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    let one = move |(name, unit, of): &Derived| {
        let value = of(counter, gpu).filter(|v| v.is_finite() && counter(name).is_none())?;
        Some((*name, *unit, value))
    };
    DERIVED.iter().filter_map(one)
}

/// Counters of bytes in KiB, and the metrics derived from them.
const TRAFFIC: [(&str, &str); 2] = [("FETCH_SIZE", "L2-Fabric Read BW"), ("WRITE_SIZE", "L2-Fabric Write BW")];
/// AMD's own metrics that are percentages and not derived here, from `counter_defs.yaml`.
const PERCENTAGES: [&str; 5] = ["MemUnitBusy", "MemUnitStalled", "WriteUnitStalled", "GPU_UTIL", "ALUStalledByLDS"];

fn counter_unit(counter: &str) -> &'static str {
    // The unit is 1,024 bytes, according to counter_defs.yaml.
    match counter {
        "FETCH_SIZE" | "WRITE_SIZE" => "Kibyte",
        _ if PERCENTAGES.contains(&counter) => "%",
        _ => DERIVED.iter().find(|d| d.0 == counter).map_or("", |d| d.1),
    }
}

/// Dispatch attributes under rocprofv3's column names.
fn dispatch_facts(d: &Dispatch, ns: i64) -> Vec<(&'static str, &'static str, Value)> {
    let number = |n: Option<u32>| n.map(|n| Value::Integer(u64::from(n)));
    let all = [
        ("Dispatch_Id", "", Some(d.id).filter(|&id| id > 0).map(Value::Integer)),
        ("Duration", "nsecond", u64::try_from(ns).ok().filter(|&ns| ns > 0).map(Value::Integer)),
        // The count includes accumulation registers.
        ("VGPR_Count", "register/thread", number(d.registers)),
        ("LDS_Block_Size", "byte/block", number(d.lds)),
        ("Scratch_Size", "byte/thread", number(d.scratch)),
    ];
    all.into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?))).collect()
}

/// GPU attributes under rocprofv3's column names.
pub fn agent_facts(device: &Device, dies: u32) -> Vec<(&'static str, &'static str, Value)> {
    let text = |t: &Option<String>| t.as_ref().map(|t| Value::Text(Arc::from(t.as_str())));
    let number = |n: Option<u32>| n.map(|n| Value::Integer(u64::from(n)));
    let all = [
        ("Agent Name", "", text(&device.arch)),
        ("Agent Product_Name", "", text(&device.name)),
        ("Agent Max_Clock", "hertz", device.clock_hz.map(Value::Integer)),
        ("Agent Cu_Count", "", number(device.sm_count)),
        ("Agent Num_Xcc", "", number(Some(dies).filter(|&n| n > 0))),
        ("Agent Memory_Bandwidth", "byte/second", device.memory_bandwidth.map(Value::Integer)),
    ];
    all.into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?))).collect()
}

/// Returns the unit of a column of `roofline.csv` after scaling by 10⁹.
fn rate_unit(column: &str) -> &'static str {
    match column {
        c if c.ends_with("Bw") => "byte/second",
        c if c.ends_with("Flops") => "flop/second",
        _ => "op/second",
    }
}

/// Builds the results in launch order; `None` unless the report consists solely of dispatches with counters.
pub fn build_metrics(rows: &Rows, order: &[u32], profile: &Profile) -> Option<Arc<Metrics>> {
    if rows.counters.is_empty() || !rows.chosen {
        return None;
    }
    let mut of: FxHashMap<(u32, u64), Vec<(u32, f64)>> = FxHashMap::default();
    let mut seen: FxHashSet<(u32, u64, u32)> = FxHashSet::default();
    for counter in &rows.counters {
        // A replayed kernel has several rows for the same counter; use the first.
        if seen.insert((counter.process, counter.dispatch, counter.name)) {
            of.entry((counter.process, counter.dispatch)).or_default().push((counter.name, counter.value));
        }
    }
    let mut out = Metrics { source: profile.source.clone(), ..Metrics::default() };
    let mut numbers: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    let mut number = |name: &str, unit: &'static str, out: &mut Metrics| {
        if let Some(&known) = numbers.get(name) {
            return known;
        }
        let number = u32::try_from(out.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = Arc::from(name);
        out.names.push(name.clone());
        out.units.push(Arc::from(unit));
        numbers.insert(name, number);
        number
    };
    for d in order.iter().filter_map(|&i| rows.dispatches.get(i as usize)) {
        let agent = rows.agents.get(d.agent as usize);
        let device = agent.and_then(|a| a.device.as_ref());
        let found = of.get(&(d.process, d.id)).map_or(&[][..], Vec::as_slice);
        let name_of = |name: u32| rows.texts.get(name as usize).map_or("", |t| &**t);
        let values: FxHashMap<&str, f64> = found.iter().rev().map(|&(n, value)| (name_of(n), value)).collect();
        let config = d.launch_config(None);
        let uncounted = not_counted(&values, config.block_count().is_some_and(|n| n > 0));
        let counter = |name: &str| values.get(name).copied().filter(|_| !uncounted.contains(&name));
        let told = (!uncounted.is_empty()).then(|| Value::Text(Arc::from(uncounted.join(", "))));
        let mut values: Vec<(u32, Value)> = Vec::new();
        values.extend(told.map(|text| (number(NOT_COUNTED, "", &mut out), text)));
        for (name, value) in found {
            let text = name_of(*name);
            let whole = *value >= 0.0 && value.fract() == 0.0 && *value < 9e15;
            let value = if whole { Value::Integer(*value as u64) } else { Value::Float(*value) };
            values.push((number(text, counter_unit(text), &mut out), value));
        }
        let ns = d.end.saturating_sub(d.start).max(0);
        if let (Some(agent), Some(units)) = (agent, device.and_then(|d| d.sm_count))
            && device.and_then(|d| d.arch.as_deref()).is_some_and(|a| ARCHITECTURES.contains(&a))
        {
            // Metrics per cycle cannot be computed if the number of dies is unknown (NaN).
            let dies = if agent.dies > 0 || device.and_then(|d| d.arch.as_deref()) == Some("gfx90a") {
                f64::from(agent.dies.max(1))
            } else {
                f64::NAN
            };
            let gpu = Gpu { units: f64::from(units), dies, ns: ns as f64 };
            for (name, unit, value) in derive_metrics(&counter, gpu) {
                values.push((number(name, unit, &mut out), Value::Float(value)));
            }
        } else if ns > 0 {
            // These counters have the same unit on every GPU.
            for (counted, name) in TRAFFIC {
                if let Some(kib) = counter(counted) {
                    values.push((number(name, "byte/second", &mut out), Value::Float(kib * 1024.0 / ns as f64 * 1e9)));
                }
            }
        }
        for (name, unit, value) in
            dispatch_facts(d, ns).into_iter().chain(device.map(|d| self::agent_facts(d, agent.map_or(0, |a| a.dies))).unwrap_or_default())
        {
            values.push((number(name, unit, &mut out), value));
        }
        for (name, value) in agent.map_or(&[][..], |a| &a.reached) {
            values.push((number(name, rate_unit(name), &mut out), Value::Float(*value)));
        }
        let kernel = rows.symbols.get(d.symbol as usize).map(symbol_kernel).unwrap_or_default();
        out.results.push(ResultMetrics {
            kernel,
            pid: rows.processes.get(d.process as usize).map(|p| p.pid).filter(|&p| p > 0),
            device: device.map(|d| u64::from(d.id)),
            stream: Some(u64::from(d.queue)),
            grid: config.grid,
            block: config.block,
            ..ResultMetrics::from_values(values)
        });
    }
    Some(Arc::new(out))
}

/// Returns the kernel of a symbol; several symbols may share a kernel name.
pub fn symbol_kernel(symbol: &Symbol) -> Kernel {
    let mangled = symbol.mangled.as_deref().map(strip_kd_suffix).filter(|m| !m.is_empty()).map(Arc::from);
    if symbol.formatted.is_empty() {
        return Kernel { mangled, ..Kernel::default() };
    }
    let function = Some(Arc::from(function_of(&symbol.formatted)));
    Kernel { function, demangled: Some(symbol.formatted.clone()), mangled, spelled: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_that_cannot_be_are_not_counted() {
        let of = |values: &[(&'static str, f64)], ran: bool| not_counted(&values.iter().copied().collect(), ran).join(" ");
        let all = [("SQ_WAVES", 0.0), ("SQ_INSTS_VALU", 0.0), ("GRBM_GUI_ACTIVE", 61_234.0), ("TCC_HIT_sum", 0.0)];
        assert_eq!(of(&all, true), "SQ_INSTS_VALU SQ_WAVES");
        assert_eq!(of(&all, false), "", "nothing is known of what ran");
        // If the kernel has waves but no busy cycles, the sequencer did not count.
        assert_eq!(of(&[("SQ_WAVES", 16_384.0), ("SQ_WAVE_CYCLES", 0.0), ("SQ_INSTS_MFMA", 0.0)], true), "SQ_INSTS_MFMA SQ_WAVE_CYCLES");
        // A kernel without matrix instructions.
        assert_eq!(of(&[("SQ_WAVES", 16_384.0), ("SQ_WAVE_CYCLES", 7.0), ("SQ_INSTS_MFMA", 0.0)], true), "");
        assert_eq!(of(&[("GRBM_GUI_ACTIVE", 0.0)], true), "GRBM_GUI_ACTIVE");
    }

    #[test]
    fn counters_behind_a_metric() {
        assert_eq!(counters_of("LDS Unaligned Stall"), ["SQ_LDS_UNALIGNED_STALL", "GRBM_GUI_ACTIVE"]);
        assert_eq!(counters_of("L2-Fabric Read BW"), ["FETCH_SIZE"]);
        assert_eq!(counters_of("VGPR_Count"), [""; 0], "a fact about the launch");
        for (name, ..) in DERIVED {
            assert!(!counters_of(name).is_empty(), "{name}");
        }
    }

    /// A fill kernel with 151 launches on an MI300X, for which rocprof-compute 3.3 printed SALU 2.77 %, VALU 1.15 %,
    /// 63.18 of 64 threads active, IPC 0.30, and L2 hits 50.82 %. The counters are synthetic and chosen to match
    /// these ratios.
    #[test]
    fn formulas_are_amd_s() {
        let gpu = Gpu { units: 304.0, dies: 8.0, ns: 1e6 };
        let gui = 8.0 * 10_000.0;
        let values = [
            ("GRBM_GUI_ACTIVE", gui),
            ("SQ_ACTIVE_INST_VALU", 0.0115 * 10_000.0 * 304.0),
            ("SQ_ACTIVE_INST_SCA", 0.0277 * 10_000.0 * 304.0),
            ("SQ_THREAD_CYCLES_VALU", 63.18 * 0.0115 * 10_000.0 * 304.0),
            ("SQ_INSTS", 300.0),
            ("SQ_BUSY_CU_CYCLES", 1000.0),
            ("TCC_HIT_sum", 5082.0),
            ("TCC_MISS_sum", 4918.0),
        ];
        let counter = |name: &str| values.iter().find(|v| v.0 == name).map(|v| v.1);
        let found: FxHashMap<&str, f64> = derive_metrics(&counter, gpu).map(|(n, _, v)| (n, v)).collect();
        let near = |name: &str, wanted: f64| assert!((found[name] - wanted).abs() < 1e-9, "{name}: {}", found[name]);
        near("VALUBusy", 1.15);
        near("SALUBusy", 2.77);
        near("VALUUtilization", 63.18 / 64.0 * 100.0);
        near("IPC", 0.3);
        near("L2CacheHit", 50.82);
        assert!(!found.contains_key("MfmaUtil"), "never from absent counters");
    }
}
