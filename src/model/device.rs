//! A GPU and its limits.

use super::Bytes;

/// Vendor of a GPU; determines which profiler applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// Not in the report.
    #[default]
    Unknown,
    /// Counters are measured by ncu.
    Nvidia,
    /// Counters are measured by rocprofv3.
    Amd,
    /// Another vendor (Intel, Huawei, Apple …), for which no profiler is supported.
    Other,
}

/// A vendor's terms for the components of its GPUs.
#[derive(Debug)]
pub struct Words {
    /// Processor that executes thread blocks.
    pub unit: &'static str,
    pub units: &'static str,
    pub warp: &'static str,
    pub warps: &'static str,
    pub block: &'static str,
    pub blocks: &'static str,
    pub shared: &'static str,
    /// The vendor's host API.
    pub api: &'static str,
}

impl Vendor {
    /// `ROCm`'s terms for AMD; CUDA's for all other vendors.
    pub const fn vendor_terms(self) -> &'static Words {
        match self {
            Self::Amd => &Words {
                unit: "CU",
                units: "CUs",
                warp: "wave",
                warps: "waves",
                block: "workgroup",
                blocks: "workgroups",
                shared: "LDS",
                api: "HIP",
            },
            Self::Nvidia | Self::Unknown | Self::Other => &Words {
                unit: "SM",
                units: "SMs",
                warp: "warp",
                warps: "warps",
                block: "block",
                blocks: "blocks",
                shared: "shared memory",
                api: "CUDA",
            },
        }
    }
}

/// A GPU as described in the report. Limits that are not in the report are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Device {
    /// Index of the GPU on this machine, as numbered by the tool.
    pub id: u32,
    pub maker: Vendor,
    /// Product name, such as `NVIDIA H200`.
    pub name: Option<String>,
    /// Chip, such as `GH100`.
    pub chip: Option<String>,
    pub bus: Option<String>,
    /// Architecture name, such as `gfx942`, if in the report.
    pub arch: Option<String>,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// Number of streaming multiprocessors or compute units.
    pub sm_count: Option<u32>,
    /// Maximum SM clock in Hz.
    pub clock_hz: Option<u64>,
    /// Peak memory bandwidth in bytes per second.
    pub memory_bandwidth: Option<u64>,
    pub memory: Option<Bytes>,
    /// L2 cache size.
    pub l2: Option<Bytes>,
    /// Number of threads in a warp or wavefront.
    pub warp_size: Option<u32>,
    /// Maximum number of resident warps per SM.
    pub max_warps_per_sm: Option<u32>,
    /// Maximum number of resident blocks per SM.
    pub max_blocks_per_sm: Option<u32>,
    /// Number of 32-bit registers per SM.
    pub registers_per_sm: Option<u32>,
    /// Maximum number of 32-bit registers per block.
    pub registers_per_block: Option<u32>,
    /// Shared memory per SM.
    pub shared_per_sm: Option<Bytes>,
    /// Maximum shared memory per block (opt-in limit).
    pub shared_per_block: Option<Bytes>,
    /// Maximum number of threads per block.
    pub max_threads_per_block: Option<u32>,
}

impl Device {
    /// Architecture as spelled by compilers: `sm_90`, `gfx942`.
    pub fn architecture(&self) -> Option<String> {
        self.arch.clone().or_else(|| self.compute_capability.map(|(major, minor)| format!("sm_{major}{minor}")))
    }

    /// Name without the vendor, such as `H200`; otherwise the index.
    pub fn short_name(&self) -> String {
        match &self.name {
            Some(name) => name.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ").to_owned(),
            None => format!("GPU {}", self.id),
        }
    }
}
