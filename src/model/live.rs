//! Data about a program while it is being traced.

use std::sync::Arc;

/// Marks a memcpy or a memset among the kernels of [`Ran`].
pub const NO_KERNEL: u32 = u32::MAX;

/// An operation that ran on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// ns since 1970.
    pub start: i64,
    /// ns.
    pub duration: i64,
    /// Index of the GPU.
    pub device: u32,
    /// Index of the kernel's name, or [`NO_KERNEL`].
    pub kernel: u32,
}

/// A launch whose counters are being measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measuring {
    /// Name of its function.
    pub kernel: Arc<str>,
    /// Time since it was launched, ms.
    pub ms: i64,
    /// Number of passes, if it is being replayed.
    pub passes: Option<u64>,
}

/// State of the recording of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    pub pid: u32,
    /// Name of the executable.
    pub program: String,
    pub rank: Option<u32>,
    /// Time of its last state, ns since 1970; 0 before the first one.
    pub time: i64,
    /// Start of the process, ns since 1970.
    pub started: i64,
    /// The capture gate is open.
    pub open: bool,
    /// The process has ended.
    pub ended: bool,
    /// Reason for which nothing is recorded.
    pub not_recorded: Option<String>,
    /// Reason for which recording ended although the process may still run: the disk was full, its trace was deleted.
    pub stopped: Option<String>,
    /// Reason for which counters are not measured, or no longer.
    pub not_measured: Option<String>,
    /// Launches whose counters were measured or whose stall reasons were sampled, and the time added by that, ns.
    pub measured: u64,
    pub measuring_ns: i64,
    /// A measured launch that has not returned for some seconds.
    pub measuring: Option<Measuring>,
    /// Recorded kernels.
    pub kernels: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time spent packing and flushing on threads of the tracer and of CUPTI, ns.
    pub cost: i64,
    /// Missing records: dropped by CUPTI, or without a buffer.
    pub lost: u64,
    /// Start of the available data, ns since 1970, if earlier rows were already removed at the first read; else 0.
    pub since: i64,
    /// Length of the kept recording in milliseconds, if only the last seconds are kept.
    pub kept_ms: Option<u64>,
}

/// Data found by one read of a growing trace.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    pub ran: Vec<Ran>,
    /// Names of new kernels, whose indices continue the earlier ones.
    pub kernels: Vec<Arc<str>>,
    /// New GPUs, likewise.
    pub devices: Vec<Arc<str>>,
    /// Times of the processes' states, ns since 1970, and a flag for those that were being recorded.
    pub states: Vec<(i64, bool)>,
    /// All processes.
    pub recorders: Vec<Recorder>,
    /// Available bytes that were not read yet.
    pub behind: u64,
    /// Increases when there are new measurements of counters.
    pub measured: u64,
}
