//! Vocabulary of kernel diagnoses, problems and healthy states. An id is stable: its meaning never changes, because
//! scripts rely on it.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Diagnosis {
    /// Device memory is near its peak and the traffic is useful.
    DramBandwidth,
    /// L2 is the busiest unit.
    L2Bandwidth,
    /// L1/TEX is the busiest unit.
    L1Bandwidth,
    /// Shared memory's bandwidth is the limit, without bank conflicts.
    SharedBandwidth,
    BankConflicts,
    /// Few of the fetched bytes are used.
    Uncoalesced,
    /// Warps wait for loads, but no unit is near its peak.
    MemoryLatency,
    /// Spills to local memory.
    Spilling,
    /// Local arrays, not spills.
    LocalMemory,
    /// Atomics on few addresses serialise.
    Atomics,
    /// Warps wait for each other.
    Barriers,
    /// Blocks are smaller than a warp, or not a multiple of it.
    PartialWarps,
    /// Threads of a warp execute different paths.
    Divergence,
    /// Too little instruction-level parallelism to hide fixed latencies.
    Dependencies,
    /// Registers limit the occupancy, which costs time.
    OccupancyRegisters,
    /// Shared memory limits the occupancy, which costs time.
    OccupancyShared,
    /// The block's size limits the occupancy, which costs time.
    OccupancyBlock,
    /// Barriers limit the occupancy, which costs time.
    OccupancyBarriers,
    /// Fewer blocks than the GPU can hold at once.
    SmallGrid,
    /// The last wave is mostly empty.
    Tail,
    /// Some SMs or blocks work much longer than others.
    Imbalance,
    /// An arithmetic pipe is near its peak.
    Compute,
    /// Integer and logic instructions fill the pipe of a kernel with another purpose.
    Alu,
    /// The FP64 pipe is the busiest.
    Fp64,
    /// The special-function pipe is the busiest.
    Sfu,
    /// Tensor pipes are near their peak.
    Tensor,
    /// Matrix-like work of low precision on the ordinary pipes.
    NoTensor,
    /// Warps wait for instruction fetches.
    InstructionCache,
    /// The kernel is too short relative to the cost of its launch.
    LaunchOverhead,
}

use Diagnosis as D;

/// Diagnoses with ids and meanings. Causes precede their effects; this order breaks ties.
pub const DIAGNOSES: [(Diagnosis, &str, &str); 29] = [
    (D::LaunchOverhead, "launch-overhead", "the kernel is too short to amortize its launch cost"),
    (D::SmallGrid, "grid-too-small", "fewer blocks than the GPU can hold at once"),
    (D::Imbalance, "workload-imbalance", "some SMs or blocks work much longer than others"),
    (D::Tail, "tail-effect", "the last wave of blocks is only partly filled"),
    (D::PartialWarps, "partial-warps", "blocks are smaller than a warp, or no multiple of it: some lanes never work"),
    (D::Divergence, "warp-divergence", "threads of a warp take different paths"),
    (D::Spilling, "register-spilling", "registers spill to local memory"),
    (D::LocalMemory, "local-memory-traffic", "local arrays (dynamically indexed, or the stack) live in memory"),
    (D::Atomics, "atomic-contention", "atomics contend for a few addresses"),
    (D::Uncoalesced, "uncoalesced-global", "few of the fetched bytes are used"),
    (D::BankConflicts, "shared-bank-conflicts", "shared memory accesses collide on the same banks"),
    (D::NoTensor, "no-tensor-cores", "low-precision matrix-like work does not use the tensor cores"),
    (D::OccupancyShared, "occupancy-shared-memory", "shared memory limits occupancy, and it hurts"),
    (D::OccupancyRegisters, "occupancy-registers", "registers limit occupancy, and it hurts"),
    (D::OccupancyBlock, "occupancy-block-size", "the block size limits occupancy, and it hurts"),
    (D::OccupancyBarriers, "occupancy-barriers", "barriers limit occupancy, and it hurts"),
    (D::Barriers, "barrier-stalls", "warps wait for each other at barriers"),
    (D::InstructionCache, "instruction-cache", "warps wait for instructions to be fetched"),
    (D::Alu, "alu-bound", "integer and logic instructions fill the pipes"),
    (D::Fp64, "fp64-bound", "the FP64 pipe is the busiest"),
    (D::Sfu, "sfu-bound", "the special-function pipe is the busiest"),
    (D::SharedBandwidth, "shared-bandwidth-bound", "shared memory bandwidth is the limit"),
    (D::L1Bandwidth, "l1-bandwidth-bound", "L1 is the busiest unit"),
    (D::L2Bandwidth, "l2-bandwidth-bound", "L2 is the busiest unit"),
    (D::MemoryLatency, "memory-latency", "warps wait for loads and no unit is near its peak"),
    (D::Dependencies, "dependency-latency", "each instruction waits for the previous one"),
    (D::Tensor, "tensor-bound", "the tensor pipes are near their peak"),
    (D::DramBandwidth, "dram-bandwidth-bound", "device memory is near its peak and the traffic is useful"),
    (D::Compute, "compute-bound", "an arithmetic pipe is near its peak"),
];

impl Diagnosis {
    fn table_row(self) -> Option<(usize, &'static (Diagnosis, &'static str, &'static str))> {
        DIAGNOSES.iter().enumerate().find(|(_, d)| d.0 == self)
    }

    /// Stable id for scripts.
    pub fn id(self) -> &'static str {
        self.table_row().map_or("", |(_, d)| d.1)
    }

    /// Parses an id.
    pub fn from_id(id: &str) -> Option<Self> {
        DIAGNOSES.iter().find(|d| d.1 == id).map(|d| d.0)
    }

    pub fn meaning(self) -> &'static str {
        self.table_row().map_or("", |(_, d)| d.2)
    }

    /// Position in [`DIAGNOSES`], where causes precede effects; breaks ties between hints of equal cost.
    pub fn sort_position(self) -> usize {
        self.table_row().map_or(usize::MAX, |(at, _)| at)
    }

    /// Returns true if the diagnosis names a unit at its limit, not a waste.
    pub fn is_bound(self) -> bool {
        matches!(
            self,
            Self::DramBandwidth
                | Self::L2Bandwidth
                | Self::L1Bandwidth
                | Self::SharedBandwidth
                | Self::Compute
                | Self::Alu
                | Self::Fp64
                | Self::Sfu
                | Self::Tensor
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_diagnosis_has_one_id() {
        let ids: BTreeSet<&str> = DIAGNOSES.iter().map(|d| d.1).collect();
        assert_eq!(ids.len(), DIAGNOSES.len());
        assert!(DIAGNOSES.iter().all(|d| d.0.id() == d.1 && !d.0.meaning().is_empty()));
    }
}
