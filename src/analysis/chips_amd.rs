//! Peak rates of AMD GPUs: memory bandwidth by product, arithmetic and caches by architecture.

/// A product, with its memory bandwidth.
pub struct Product {
    /// Substring of the device name that the driver reports.
    name: &'static str,
    /// Published memory bandwidth, bytes/s.
    pub memory: f64,
    /// Fraction of the published bandwidth achieved by AMD's own benchmark, if measured.
    pub reached: Option<f64>,
}

/// Sources: AMD's product pages; for `reached`, `roofline.csv` of rocprof-compute 3.3 on an MI300X (4,234 of 5,325
/// GB/s) and 3.5 on an MI350X (4,886 of 7,782 GB/s).
const PRODUCTS: [Product; 9] = [
    Product { name: "MI210", memory: 1.6384e12, reached: None },
    Product { name: "MI250", memory: 1.6384e12, reached: None },
    Product { name: "MI300A", memory: 5.3e12, reached: None },
    Product { name: "MI300X", memory: 5.3248e12, reached: Some(0.795) },
    Product { name: "MI308X", memory: 5.3e12, reached: None },
    Product { name: "MI325X", memory: 6e12, reached: None },
    Product { name: "MI350X", memory: 7.7824e12, reached: Some(0.628) },
    Product { name: "MI355X", memory: 8e12, reached: None },
    Product { name: "7900 XTX", memory: 9.6e11, reached: None },
];

/// Returns the product whose name occurs in `name`; the longest match wins. `None` for a partition (`… of 8 XCDs`): its
/// share of the bandwidth depends on the other partitions and on the memory partitioning, which reports do not record.
pub fn find_product(name: &str) -> Option<&'static Product> {
    if name.ends_with(" XCDs)") {
        return None;
    }
    PRODUCTS.iter().filter(|p| name.contains(p.name)).max_by_key(|p| p.name.len())
}

/// Peak operations and bytes per clock.
pub struct Chip {
    arch: &'static str,
    /// Matrix-core operations per CU and clock, by data type.
    matrix: &'static [(&'static str, f64)],
    /// Bytes per clock of a CU's vector L1 cache.
    pub l1: f64,
    /// Bytes per clock of an L2 channel.
    pub l2: f64,
    /// L2 channels per die.
    pub channels: f64,
}

/// Floating-point operations per clock of a CU's vector ALUs: 64 lanes with one fused multiply-add each, without packed
/// instructions.
pub const VECTOR: f64 = 128.0;

/// Sources: rocprofiler-compute's `0200_system_speed_of_light.yaml` and `mi_gpu_spec.yaml` (ROCm/rocm-systems
/// @1b1610fc2b); F6F4 from AMD's CDNA 4 white paper (16834 in the file is a typo).
const CHIPS: [Chip; 3] = [
    Chip {
        arch: "gfx90a",
        matrix: &[("F64", 256.0), ("F32", 256.0), ("F16", 1024.0), ("BF16", 1024.0), ("I8", 1024.0)],
        l1: 64.0,
        l2: 64.0,
        channels: 32.0,
    },
    Chip {
        arch: "gfx942",
        matrix: &[("F64", 256.0), ("F32", 256.0), ("F16", 2048.0), ("BF16", 2048.0), ("F8", 4096.0), ("I8", 4096.0)],
        l1: 128.0,
        l2: 128.0,
        channels: 16.0,
    },
    Chip {
        arch: "gfx950",
        matrix: &[("F64", 128.0), ("F32", 256.0), ("F16", 4096.0), ("BF16", 4096.0), ("F8", 8192.0), ("F6F4", 16384.0), ("I8", 8192.0)],
        l1: 128.0,
        l2: 128.0,
        channels: 16.0,
    },
];

/// Returns the chip of an architecture; suffixes of APUs and features (`gfx90a:sramecc+:xnack-`) are ignored.
pub fn find_chip(arch: &str) -> Option<&'static Chip> {
    let arch = arch.split(':').next().unwrap_or_default();
    CHIPS.iter().find(|c| c.arch == arch)
}

impl Chip {
    /// Matrix-core operations per CU and clock for a data type; `None` if the chip does not support it.
    pub fn matrix_rate(&self, of: &str) -> Option<f64> {
        self.matrix.iter().find(|m| m.0 == of).map(|m| m.1)
    }
}
