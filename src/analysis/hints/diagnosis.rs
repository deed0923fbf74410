//! Vocabulary of kernel diagnoses: problems and healthy states. Ids are stable: their meanings never change, because
//! scripts rely on them.

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
    /// Only few of the fetched bytes are used.
    Uncoalesced,
    /// Warps wait for loads, but no unit is near its peak.
    MemoryLatency,
    /// Spills to local memory.
    Spilling,
    /// Local arrays, not spills.
    LocalMemory,
    /// Atomics on few addresses are serialized.
    Atomics,
    /// Warps wait for each other.
    Barriers,
    /// Blocks are smaller than a warp, or not a multiple of it.
    PartialWarps,
    /// Threads in a warp execute different paths.
    Divergence,
    /// Too little instruction-level parallelism to hide fixed latencies.
    Dependencies,
    /// Registers limit occupancy, which costs time.
    OccupancyRegisters,
    /// Shared memory limits occupancy, which costs time.
    OccupancyShared,
    /// The block size limits occupancy, which costs time.
    OccupancyBlock,
    /// Barriers limit occupancy, which costs time.
    OccupancyBarriers,
    /// Fewer blocks than the GPU can hold at once.
    SmallGrid,
    /// The last wave is mostly empty.
    Tail,
    /// Some SMs or blocks work much longer than others.
    Imbalance,
    /// An arithmetic pipe is near its peak.
    Compute,
    /// Integer and logic instructions keep a pipe busy although they are not the purpose of the kernel.
    Alu,
    /// The FP64 pipe is the busiest.
    Fp64,
    /// The special-function pipe is the busiest.
    Sfu,
    /// Tensor pipes are near their peak.
    Tensor,
    /// Matrix-like work in low precision runs on the ordinary pipes instead of the tensor cores.
    NoTensor,
    /// Warps wait for instruction fetches.
    InstructionCache,
    /// The kernel is too short relative to the cost of its launch.
    LaunchOverhead,
}

use Diagnosis as D;

/// Role of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosisKind {
    /// A unit at its limit rather than waste.
    Bound,
    /// A cause of idle issue slots.
    IdleSlots,
    /// Wasted work or capacity.
    Waste,
}

/// Properties of a diagnosis that do not depend on a kernel.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisInfo {
    pub diagnosis: Diagnosis,
    /// Stable id for scripts.
    pub id: &'static str,
    pub kind: DiagnosisKind,
    pub meaning: &'static str,
    /// Effects of this cause, each with a minimum fraction: the cause explains an effect if its gain is at least that
    /// fraction of the effect's gain. The fraction is 0.7 if both cause and effect are about filling the GPU, about
    /// half if the cause is one of several reasons for waiting, and less if the effect is a unit at its limit, because
    /// other work may also keep that unit busy. Our own estimates, verified with the sets in `fixtures/hints`.
    pub effects: &'static [(f64, &'static [Diagnosis])],
}

impl DiagnosisInfo {
    const fn explains(mut self, effects: &'static [(f64, &'static [Diagnosis])]) -> Self {
        self.effects = effects;
        self
    }
}

const fn row(diagnosis: Diagnosis, id: &'static str, kind: DiagnosisKind, meaning: &'static str) -> DiagnosisInfo {
    DiagnosisInfo { diagnosis, id, kind, meaning, effects: &[] }
}

/// All diagnoses. Causes come before their effects; this order breaks ties.
pub static DIAGNOSES: &[DiagnosisInfo] = &[
    row(D::LaunchOverhead, "launch-overhead", DiagnosisKind::Waste, "the kernel is too short to amortize its launch cost")
        .explains(&[(0.7, &[D::SmallGrid, D::MemoryLatency, D::Dependencies, D::Imbalance, D::Tail, D::Barriers, D::InstructionCache])]),
    row(D::SmallGrid, "grid-too-small", DiagnosisKind::Waste, "fewer blocks than the GPU can hold at once")
        .explains(&[(0.7, &[D::Imbalance, D::Tail, D::MemoryLatency, D::Dependencies])]),
    row(D::Imbalance, "workload-imbalance", DiagnosisKind::Waste, "some SMs or blocks work much longer than others")
        .explains(&[(0.7, &[D::MemoryLatency, D::Dependencies, D::Barriers])]),
    row(D::Tail, "tail-effect", DiagnosisKind::Waste, "the last wave of blocks is only partly filled").explains(&[(0.7, &[D::Imbalance])]),
    row(
        D::PartialWarps,
        "partial-warps",
        DiagnosisKind::Waste,
        "blocks are smaller than a warp, or no multiple of it: some lanes never work",
    )
    .explains(&[(
        0.5,
        &[
            D::OccupancyBlock,
            D::Divergence,
            D::SharedBandwidth,
            D::L1Bandwidth,
            D::Compute,
            D::Alu,
            D::Sfu,
            D::Fp64,
            D::Dependencies,
            D::MemoryLatency,
            D::Uncoalesced,
            D::NoTensor,
        ],
    )]),
    row(D::Divergence, "warp-divergence", DiagnosisKind::Waste, "threads of a warp take different paths").explains(&[(
        0.5,
        &[D::SharedBandwidth, D::L1Bandwidth, D::Compute, D::Alu, D::Sfu, D::Fp64, D::Dependencies, D::Uncoalesced, D::NoTensor],
    )]),
    row(D::Spilling, "register-spilling", DiagnosisKind::Waste, "registers spill to local memory")
        .explains(&[(0.4, &[D::LocalMemory, D::MemoryLatency, D::DramBandwidth, D::L2Bandwidth, D::L1Bandwidth, D::Uncoalesced])]),
    row(D::LocalMemory, "local-memory-traffic", DiagnosisKind::Waste, "local arrays (dynamically indexed, or the stack) live in memory")
        .explains(&[(0.4, &[D::MemoryLatency, D::DramBandwidth, D::L2Bandwidth, D::L1Bandwidth])]),
    row(D::Atomics, "atomic-contention", DiagnosisKind::Waste, "atomics contend for a few addresses").explains(&[(
        0.4,
        &[D::MemoryLatency, D::L2Bandwidth, D::L1Bandwidth, D::Dependencies, D::BankConflicts, D::Barriers, D::Imbalance],
    )]),
    row(D::Uncoalesced, "uncoalesced-global", DiagnosisKind::Waste, "few of the fetched bytes are used")
        .explains(&[(0.4, &[D::MemoryLatency, D::DramBandwidth, D::L2Bandwidth, D::L1Bandwidth])]),
    // While much of its work is waste, a unit at its limit is an effect, not the cause.
    row(D::BankConflicts, "shared-bank-conflicts", DiagnosisKind::Waste, "shared memory accesses collide on the same banks")
        .explains(&[(0.25, &[D::SharedBandwidth, D::L1Bandwidth]), (0.4, &[D::Dependencies, D::Barriers, D::MemoryLatency])]),
    row(D::NoTensor, "no-tensor-cores", DiagnosisKind::Waste, "low-precision matrix-like work does not use the tensor cores")
        .explains(&[(0.4, &[D::Compute, D::SharedBandwidth, D::L1Bandwidth])]),
    row(D::OccupancyShared, "occupancy-shared-memory", DiagnosisKind::IdleSlots, "shared memory limits occupancy, and it hurts")
        .explains(&[(0.5, &[D::MemoryLatency, D::Dependencies]), (0.7, &[D::Barriers])]),
    row(D::OccupancyRegisters, "occupancy-registers", DiagnosisKind::IdleSlots, "registers limit occupancy, and it hurts")
        .explains(&[(0.5, &[D::MemoryLatency, D::Dependencies]), (0.7, &[D::Barriers])]),
    row(D::OccupancyBlock, "occupancy-block-size", DiagnosisKind::IdleSlots, "the block size limits occupancy, and it hurts")
        .explains(&[(0.5, &[D::MemoryLatency, D::Dependencies]), (0.7, &[D::Barriers])]),
    row(D::OccupancyBarriers, "occupancy-barriers", DiagnosisKind::IdleSlots, "barriers limit occupancy, and it hurts")
        .explains(&[(0.5, &[D::MemoryLatency, D::Dependencies]), (0.7, &[D::Barriers])]),
    row(D::Barriers, "barrier-stalls", DiagnosisKind::Waste, "warps wait for each other at barriers")
        .explains(&[(0.7, &[D::MemoryLatency, D::Dependencies])]),
    row(D::InstructionCache, "instruction-cache", DiagnosisKind::Waste, "warps wait for instructions to be fetched"),
    row(D::Alu, "alu-bound", DiagnosisKind::Bound, "integer and logic instructions fill the pipes"),
    row(D::Fp64, "fp64-bound", DiagnosisKind::Bound, "the FP64 pipe is the busiest"),
    row(D::Sfu, "sfu-bound", DiagnosisKind::Bound, "the special-function pipe is the busiest"),
    row(D::SharedBandwidth, "shared-bandwidth-bound", DiagnosisKind::Bound, "shared memory bandwidth is the limit"),
    row(D::L1Bandwidth, "l1-bandwidth-bound", DiagnosisKind::Bound, "L1 is the busiest unit"),
    row(D::L2Bandwidth, "l2-bandwidth-bound", DiagnosisKind::Bound, "L2 is the busiest unit"),
    row(D::MemoryLatency, "memory-latency", DiagnosisKind::IdleSlots, "warps wait for loads and no unit is near its peak"),
    row(D::Dependencies, "dependency-latency", DiagnosisKind::IdleSlots, "each instruction waits for the previous one"),
    row(D::Tensor, "tensor-bound", DiagnosisKind::Bound, "the tensor pipes are near their peak"),
    row(D::DramBandwidth, "dram-bandwidth-bound", DiagnosisKind::Bound, "device memory is near its peak and the traffic is useful"),
    row(D::Compute, "compute-bound", DiagnosisKind::Bound, "an arithmetic pipe is near its peak"),
];

impl Diagnosis {
    fn place(self) -> Option<(usize, &'static DiagnosisInfo)> {
        DIAGNOSES.iter().enumerate().find(|(_, d)| d.diagnosis == self)
    }

    fn info(self) -> Option<&'static DiagnosisInfo> {
        self.place().map(|(_, info)| info)
    }

    /// Stable id for scripts.
    pub fn id(self) -> &'static str {
        self.info().map_or("", |d| d.id)
    }

    pub fn from_id(id: &str) -> Option<Self> {
        DIAGNOSES.iter().find(|d| d.id == id).map(|d| d.diagnosis)
    }

    pub fn meaning(self) -> &'static str {
        self.info().map_or("", |d| d.meaning)
    }

    /// Position in [`DIAGNOSES`], where causes come before effects; breaks ties between hints of equal cost.
    pub fn sort_position(self) -> usize {
        self.place().map_or(usize::MAX, |(at, _)| at)
    }

    /// Returns true if the diagnosis names a unit at its limit rather than waste.
    pub fn is_bound(self) -> bool {
        self.info().is_some_and(|d| d.kind == DiagnosisKind::Bound)
    }

    /// Returns true if the diagnosis names a cause of idle issue slots.
    pub fn idles(self) -> bool {
        self.info().is_some_and(|d| d.kind == DiagnosisKind::IdleSlots)
    }

    /// Effects of this cause, each with the minimum ratio of the cause's gain to the effect's for the cause to explain
    /// it.
    pub fn effects(self) -> &'static [(f64, &'static [Self])] {
        self.info().map_or(&[], |d| d.effects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_diagnosis_has_one_id() {
        let ids: BTreeSet<&str> = DIAGNOSES.iter().map(|d| d.id).collect();
        assert_eq!(ids.len(), DIAGNOSES.len());
        assert!(DIAGNOSES.iter().all(|d| d.diagnosis.id() == d.id && !d.meaning.is_empty()));
    }
}
