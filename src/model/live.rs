//! What is learnt of a program while it is being traced.

use std::sync::Arc;

/// Stands for a memcpy or a memset among the kernels of [`Ran`].
pub const NO_KERNEL: u32 = u32::MAX;

/// Something that ran on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// ns since 1970.
    pub start: i64,
    /// ns.
    pub duration: i64,
    /// Number of the GPU.
    pub device: u32,
    /// Number of the kernel's name, or [`NO_KERNEL`].
    pub kernel: u32,
}

/// A launch whose counters are being measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measuring {
    /// Its function.
    pub kernel: Arc<str>,
    /// For how long it has been running, ms.
    pub ms: i64,
    /// In how many passes it is replayed, where it is.
    pub passes: Option<u64>,
}

/// How the recording of a process stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    pub pid: u32,
    /// Name of the executable.
    pub program: String,
    pub rank: Option<u32>,
    /// When it said so, ns since 1970; 0 before it said anything.
    pub time: i64,
    /// When the process began, ns since 1970.
    pub started: i64,
    /// Whether its gate is open.
    pub open: bool,
    /// It has ended.
    pub ended: bool,
    /// Why nothing is recorded of it.
    pub not_recorded: Option<String>,
    /// Why it is no longer recorded although it may still run: the disk was full, its trace was deleted.
    pub stopped: Option<String>,
    /// Why counters are not measured, or no longer.
    pub not_measured: Option<String>,
    /// Launches whose counters were measured or whose stall reasons were sampled, and the time that this added, ns.
    pub measured: u64,
    pub measuring_ns: i64,
    /// A measured launch that has not returned for some seconds.
    pub measuring: Option<Measuring>,
    /// Kernels that were recorded.
    pub kernels: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Time that packing and flushing took on threads of the tracer and of CUPTI, ns.
    pub cost: i64,
    /// Records that are missing: CUPTI dropped them, or had no buffer for them.
    pub lost: u64,
    /// Since when what ran is known, ns since 1970, where earlier rows were gone when they were first looked for; else 0.
    pub since: i64,
    /// Milliseconds that are kept where only the last seconds are.
    pub kept_ms: Option<u64>,
}

/// What one look at a trace that grows found.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    pub ran: Vec<Ran>,
    /// Names of kernels that were met for the first time: their numbers go on from those before.
    pub kernels: Vec<Arc<str>>,
    /// Likewise the GPUs.
    pub devices: Vec<Arc<str>>,
    /// When processes said how they stand, ns since 1970, and whether they were recorded then.
    pub states: Vec<(i64, bool)>,
    /// All processes.
    pub recorders: Vec<Recorder>,
    /// Bytes that are there and were not read yet.
    pub behind: u64,
    /// Grows when more is known of what was measured in place.
    pub measured: u64,
}
