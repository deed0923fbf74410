//! Metric values of a kernel on an AMD GPU.

use crate::analysis::Occupancy;
use crate::analysis::chips_amd::{Product, find_product};
use crate::analysis::hints::hint::{Evidence, Threshold};
use crate::analysis::metric::Lookup;
use crate::model::{Bytes, Device, LaunchConfig, Metrics, Value, Vendor};

/// Share of the published bandwidth that streams achieve, if the report does not record it: the MI300X's value.
const REACHED: f64 = 0.8;
/// Percentage of a unit's peak at which the unit is the limit.
pub const BOUND: Threshold = Threshold { op: "≥", value: 80.0, source: "analogous to NVIDIA's SpeedOfLight rule" };
/// Share of a unit's peak at which the unit may be the limit.
pub const MAY: f64 = 0.6;

/// A kernel with its launch, GPU and counters.
pub struct Amd<'a> {
    counters: Option<Lookup<'a>>,
    /// Duration, ns; if there are counters, the duration of a dispatch that ran alone.
    pub ns: Option<f64>,
    pub workgroups: Option<f64>,
    /// Work-items per workgroup.
    pub items: Option<f64>,
    /// Number of compute units.
    pub units: Option<f64>,
    /// Scratch memory per work-item, bytes.
    pub scratch: Option<f64>,
    pub occupancy: Option<Occupancy>,
    product: Option<&'static Product>,
    rdna: bool,
    /// Lanes per wave, if known.
    pub wave: Option<f64>,
}

/// AMD's metrics that are shares of the GPU's cycles (`GRBM_GUI_ACTIVE`), percent.
const CYCLE_SHARES: [&str; 8] = [
    "VALUBusy",
    "SALUBusy",
    "MfmaUtil",
    "OccupancyPercent",
    "SIMD_UTILIZATION",
    "LDSBankConflict",
    "LDS Utilization",
    "LDS Unaligned Stall",
];

/// Lanes per wave of an architecture. RDNA can run wave32 and wave64; we assume wave32 and do not evaluate the other
/// lanes.
fn lanes_per_wave(arch: &str) -> Option<f64> {
    if arch.starts_with("gfx9") { Some(64.0) } else { arch.starts_with("gfx1").then_some(32.0) }
}

/// Label of the vector L1 cache among the units.
pub const VECTOR_L1: &str = "L1";

/// Values that describe a dispatch, which need no counters.
const FACTS: [&str; 5] = ["Dispatch_Id", "Duration", "VGPR_Count", "LDS_Block_Size", "Scratch_Size"];

impl<'a> Amd<'a> {
    /// Values for a launch in a timeline.
    pub fn of_launch(config: &LaunchConfig, device: &Device, ns: f64) -> Self {
        let name = device.name.as_deref().unwrap_or_default();
        Self {
            counters: None,
            ns: Some(ns).filter(|ns| *ns > 0.0),
            workgroups: config.block_count().map(|b| b as f64),
            items: config.threads_per_block().map(|t| t as f64),
            units: device.sm_count.map(f64::from),
            scratch: config.local_per_thread.map(|b| b.0 as f64),
            occupancy: Occupancy::from_config(config, device),
            rdna: device.arch.as_deref().is_some_and(|a| a.starts_with("gfx1")),
            product: find_product(name),
            wave: device.warp_size.map(f64::from).or_else(|| lanes_per_wave(device.arch.as_deref()?)),
        }
    }

    /// Values for a rocprofv3 result, whose counters include the data of the dispatch and the agent.
    pub fn of_result(metrics: &'a Metrics, result: usize) -> Option<Self> {
        let result = metrics.results.get(result)?;
        let lookup = Lookup::new(metrics, result);
        let whole = |name: &str| lookup.value(name).and_then(Value::as_number).filter(|n| *n >= 0.0).map(|n| n as u32);
        let bytes = |name: &str| whole(name).map(|n| Bytes(u64::from(n)));
        let text = |name: &str| match lookup.value(name) {
            Some(Value::Text(t)) => Some(t.to_string()),
            _ => None,
        };
        let config = LaunchConfig {
            grid: result.grid,
            block: result.block,
            registers: whole("VGPR_Count"),
            static_shared: bytes("LDS_Block_Size"),
            local_per_thread: bytes("Scratch_Size"),
            ..LaunchConfig::default()
        };
        let device = Device {
            maker: Vendor::Amd,
            name: text("Agent Product_Name"),
            arch: text("Agent Name"),
            sm_count: whole("Agent Cu_Count"),
            ..Device::default()
        };
        let ns = lookup.finite_number("Duration").unwrap_or(0.0);
        Some(Self { counters: Some(lookup), ..Self::of_launch(&config, &device, ns) })
    }

    /// Returns true if the kernel was profiled rather than just traced. Reports that combine both have the data of the
    /// dispatch and the agent for all of them.
    pub fn has_counters(&self) -> bool {
        self.counter_count() > 0
    }

    /// Number of collected counters and of the metrics derived from them.
    pub fn counter_count(&self) -> usize {
        let is_fact = |name: &str| name.starts_with("Agent ") || FACTS.contains(&name);
        let is_counter = |l: &Lookup<'_>, id: u32| l.metrics.names.get(id as usize).is_some_and(|n| !is_fact(n));
        self.counters.as_ref().map_or(0, |l| l.result.values.iter().filter(|(id, _)| is_counter(l, *id)).count())
    }

    /// Value of a counter, or of a metric that AMD derives from counters; `None` if it was not collected or did not
    /// count. Shares of a cycle count that does not fit into the kernel's duration are of that duration instead.
    pub fn get(&self, name: &str) -> Option<f64> {
        let value = self.counters.as_ref()?.finite_number(name)?;
        let value = if CYCLE_SHARES.contains(&name) { (value * self.overcount().unwrap_or(1.0)).min(value.max(100.0)) } else { value };
        (value != 0.0 || self.not_counted().is_none_or(|names| names.split(", ").all(|n| n != name))).then_some(value)
    }

    /// Counters with an implausible value of 0, as found by the importer.
    pub fn not_counted(&self) -> Option<&str> {
        match self.counters.as_ref()?.value("Not Counted")? {
            Value::Text(names) => Some(names),
            _ => None,
        }
    }

    /// Total cycles of all waves: from a thread trace, those at instructions and those idle before them; otherwise the
    /// number of PC samples, which is proportional to cycles.
    pub fn wave_cycles(&self) -> Option<f64> {
        let cycles = self.get("Latency").zip(self.get("Idle")).map(|(at, before)| at + before);
        cycles.or_else(|| self.get("PC_Samples")).filter(|n| *n > 0.0)
    }

    /// Name of the metric for wave cycles, or PC samples, at a kind of instruction.
    pub fn name_at(&self, kind: &str) -> String {
        if self.get("PC_Samples").is_some() { format!("PC samples at {kind}") } else { format!("Latency of {kind}") }
    }

    /// Share of the wave cycles spent at a kind of instruction.
    pub fn wave_share(&self, kind: &str) -> Option<f64> {
        Some(self.get(&self.name_at(kind))? / self.wave_cycles()?)
    }

    /// Converts a percentage to a share. It may slightly exceed 100 if counters of several runs were combined; larger
    /// values are corrupt.
    pub fn share(&self, name: &str) -> Option<f64> {
        self.get(name).filter(|p| (0.0..=150.0).contains(p)).map(|p| (p / 100.0).min(1.0))
    }

    /// Returns true if the duration is unknown. The GPU's cycle count then cannot be checked against it, and shares of
    /// that count may be too low.
    pub fn cycles_unknown(&self) -> bool {
        self.ns.is_none() && self.get("GRBM_GUI_ACTIVE").is_some()
    }

    /// Share of the GPU's cycles during which its workgroup dispatcher was busy, i.e. while waves were being launched
    /// or running; `None` if it was not collected (`GRBM_SPI_BUSY`: "the shader processor input is busy", metrics of
    /// rocprofiler-compute).
    pub fn with_waves(&self) -> Option<f64> {
        let share = self.get("GRBM_SPI_BUSY")? / self.get("GRBM_GUI_ACTIVE").filter(|n| *n > 0.0)?;
        (0.0..=1.5).contains(&share).then(|| (share * self.overcount().unwrap_or(1.0)).min(1.0))
    }

    /// Returns true if the GPU's cycle count is possible for the duration at its highest clock. If not, the counters
    /// also ran before and after the kernel, as happens with short kernels, and every share of the cycles is too low.
    pub fn cycles_fit(&self) -> bool {
        self.overcount().is_none()
    }

    /// Ratio of the GPU's cycle count to the cycles of the duration at the highest clock, if that is clearly more than 1.
    fn overcount(&self) -> Option<f64> {
        let cycles = self.get("GRBM_GUI_ACTIVE")? / self.get("Agent Num_Xcc")?.max(1.0);
        let most = self.ns? / 1e9 * self.get("Agent Max_Clock")?;
        Some(cycles / most).filter(|ratio| most > 0.0 && *ratio > 1.05)
    }

    /// Returns true if the numbers of CUs and dies of the GPU are known.
    pub fn gpu_known(&self) -> bool {
        self.units.is_some() && self.get("Agent Num_Xcc").is_some()
    }

    /// Returns true for a CDNA or unknown GPU: some of AMD's counters mean something else on RDNA.
    pub fn is_cdna(&self) -> bool {
        !self.rdna
    }

    /// Bytes per second between L2 and the memory behind it, and true if both directions are known.
    pub fn memory_bandwidth(&self) -> Option<(f64, bool)> {
        let (read, write) = (self.get("L2-Fabric Read BW"), self.get("L2-Fabric Write BW"));
        (read.is_some() || write.is_some()).then(|| (read.unwrap_or(0.0) + write.unwrap_or(0.0), read.is_some() && write.is_some()))
    }

    /// Published and attainable memory bandwidth, bytes per second.
    pub fn memory_peaks(&self) -> Option<(f64, f64)> {
        // The bandwidth achieved on this very machine (`roofline.csv`) is the best estimate.
        if let Some(reached) = self.get("HBMBw").filter(|n| *n > 0.0) {
            return Some((self.product.map_or(reached, |p| p.memory.max(reached)), reached));
        }
        // A name such as `MI200` is of several products.
        let Some(product) = self.product else {
            let published = self.get("Agent Memory_Bandwidth").filter(|n| *n > 0.0)?;
            return Some((published, published * REACHED));
        };
        Some((product.memory, product.memory * product.reached.unwrap_or(REACHED)))
    }

    /// Traffic behind L2 as a share of the attainable memory bandwidth.
    pub fn memory_share(&self) -> Option<f64> {
        Some(self.memory_bandwidth()?.0 / self.memory_peaks()?.1).filter(|s| (0.0..=3.0).contains(s))
    }

    /// Rate of the vector L1 as a share of what AMD's benchmark reached on this machine (`roofline.csv`).
    pub fn l1_share(&self) -> Option<f64> {
        let share = self.get("L1 Cache Bandwidth")? / self.get("L1Bw").filter(|n| *n > 0.0)?;
        (0.0..=3.0).contains(&share).then_some(share)
    }

    /// Measured units with their shares of peak, busiest first.
    pub fn ranked_units(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("VALU", self.share("VALUBusy")),
            ("MFMA", self.share("MfmaUtil")),
            ("SALU", self.share("SALUBusy")),
            ("LDS", self.lds_share()),
            (VECTOR_L1, self.l1_share()),
            ("memory", self.memory_share()),
        ];
        let mut all: Vec<_> = all.into_iter().filter_map(|(word, share)| Some((word, share?.min(1.0)))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// Units to show, busiest first. The memory unit is also busy while it waits for memory, so it is no limit by itself.
    pub fn shown_units(&self) -> Vec<(&'static str, f64)> {
        let mut all = self.ranked_units();
        all.extend(self.share("MemUnitBusy").map(|s| ("mem. unit", s.min(1.0))));
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    /// Busiest measured unit.
    pub fn busiest_unit(&self) -> Option<(&'static str, f64)> {
        self.ranked_units().into_iter().next()
    }

    /// Activities of waves as shares of their cycles, in rocprof-compute's terms; empty if not collected.
    pub fn waves_spend(&self) -> Vec<(&'static str, f64)> {
        if let Some(all) = self.wave_cycles() {
            let parts = [
                ("vmcnt", &["s_waitcnt vmcnt", "s_waitcnt vmcnt, lgkmcnt", "s_waitcnt vscnt"][..]),
                ("VMEM", &["VMEM"]),
                ("lgkmcnt", &["s_waitcnt lgkmcnt"]),
                ("LDS", &["LDS"]),
                ("barrier", &["s_barrier"]),
                ("MFMA", &["MFMA"]),
                ("VALU", &["VALU"]),
                ("other", &["SALU", "SMEM", "s_waitcnt"]),
            ];
            let sum = |kinds: &[&str]| kinds.iter().filter_map(|k| self.wave_share(k)).sum::<f64>();
            let mut all: Vec<_> = parts
                .into_iter()
                .map(|(word, kinds)| (word, sum(kinds)))
                .chain([("idle", self.get("Idle").unwrap_or(0.0) / all)])
                .collect();
            all.retain(|p| p.1 >= 0.005);
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            return all;
        }
        let Some(all) = self.get("Wave Cycles").filter(|n| *n > 0.0) else { return Vec::new() };
        let parts = [("dependency wait", "Dependency Wait Cycles"), ("issue wait", "Issue Wait Cycles"), ("active", "Active Cycles")];
        parts.into_iter().filter_map(|(word, name)| Some((word, (self.get(name)? / all).clamp(0.0, 1.0)))).collect()
    }

    /// Share of the busiest unit; 0 if nothing was measured.
    pub fn peak_share(&self) -> f64 {
        self.busiest_unit().map_or(0.0, |b| b.1)
    }

    /// Returns true if both arithmetic and memory were measured. Otherwise, any unit may be near its peak.
    pub fn roofs_known(&self) -> bool {
        self.share("VALUBusy").is_some() && self.memory_share().is_some() && self.memory_bandwidth().is_some_and(|(_, both)| both)
    }

    /// Share of the time during which LDS was accessed, including conflicts.
    pub fn lds_share(&self) -> Option<f64> {
        self.share("LDS Utilization")
    }

    /// Returns a counter as evidence.
    pub fn evidence(&self, label: &str, name: &str, threshold: Option<Threshold>) -> Option<Evidence> {
        let value = self.get(name)?;
        let unit = self.counters.as_ref()?.unit(name).to_owned().into();
        Some(Evidence { metric: name.to_owned(), unit, ..Evidence::from_value(label, value, "", threshold)? })
    }
}
