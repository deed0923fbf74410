//! Launch configuration: grid, block, shared memory and registers.

use super::Bytes;

/// Index into [`Profile::configs`](super::Profile::configs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigId(pub u32);

/// A launch configuration. Grid sizes are in blocks and block sizes in threads, as in CUDA.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Shared memory declared by the kernel, per block.
    pub static_shared: Option<Bytes>,
    /// Shared memory requested by the launch, per block.
    pub dynamic_shared: Option<Bytes>,
    /// Shared memory reserved by the driver on an SM for this launch (the carveout).
    pub shared_carveout: Option<Bytes>,
    /// Local memory per thread: register spills, and arrays that do not fit in registers.
    pub local_per_thread: Option<Bytes>,
    /// Blocks per cluster in x, y, z (compute capability 9.0 and higher).
    pub cluster: Option<[u32; 3]>,
    /// True for a cooperative launch, in which all blocks must be resident at once.
    pub cooperative: bool,
}

/// Formats dimensions, omitting trailing dimensions of 1: `132×8×4`, `132×8`, `132`.
pub fn format_dim3(dims: [u32; 3]) -> String {
    match dims {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}×{y}"),
        [x, y, z] => format!("{x}×{y}×{z}"),
    }
}

impl LaunchConfig {
    /// Static plus dynamic shared memory per block; `None` if neither is known.
    pub fn shared_memory(&self) -> Option<Bytes> {
        match (self.static_shared, self.dynamic_shared) {
            (None, None) => None,
            (a, b) => Some(Bytes(a.unwrap_or_default().0.saturating_add(b.unwrap_or_default().0))),
        }
    }

    /// Number of blocks in the grid; `None` if the grid is not recorded, which some tools express as zeros.
    pub fn block_count(&self) -> Option<u64> {
        self.grid.map(dim_product).filter(|n| *n > 0)
    }

    /// Number of threads in a block; `None` if the block size is not recorded.
    pub fn threads_per_block(&self) -> Option<u64> {
        self.block.map(dim_product).filter(|n| *n > 0)
    }

    /// Describes the configuration in one line: grid × block, shared memory, registers.
    pub fn label(&self) -> String {
        self.label_in("shared", "regs")
    }

    /// Like [`Self::label`], but uses the GPU vendor's terms.
    pub fn label_for(&self, amd: bool) -> String {
        if amd { self.label_in("LDS", "VGPRs") } else { self.label() }
    }

    fn label_in(&self, memory: &str, registers: &str) -> String {
        let dims = |d: Option<[u32; 3]>| d.map_or_else(|| "?".to_owned(), format_dim3);
        let shared = self.shared_memory().map_or_else(String::new, |s| format!(" · {s} {memory}"));
        let count = self.registers.map_or_else(String::new, |r| format!(" · {r} {registers}"));
        format!("({}) × ({}){shared}{count}", dims(self.grid), dims(self.block))
    }
}

fn dim_product(dims: [u32; 3]) -> u64 {
    dims.iter().fold(1_u64, |a, &b| a.saturating_mul(u64::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_drop_trailing_ones_and_unknown_parts() {
        let config = LaunchConfig {
            grid: Some([264, 1, 1]),
            block: Some([32, 8, 1]),
            registers: Some(40),
            dynamic_shared: Some(Bytes(163_840)),
            ..LaunchConfig::default()
        };
        assert_eq!(config.label(), "(264) × (32×8) · 160 KiB shared · 40 regs");
        assert_eq!(config.label_for(true), "(264) × (32×8) · 160 KiB LDS · 40 VGPRs");
        assert_eq!(LaunchConfig::default().label(), "(?) × (?)");
        assert_eq!(LaunchConfig::default().shared_memory(), None);
    }
}
