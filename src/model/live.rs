//! Data about a program during tracing.

use std::sync::Arc;

/// Value of [`Ran::kernel`] for a memcpy or memset.
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
    /// Function name of the kernel.
    pub kernel: Arc<str>,
    /// Time since the launch, ms.
    pub ms: i64,
    /// Number of replay passes, if the kernel is being replayed.
    pub passes: Option<u64>,
}

/// State of the recording of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    pub pid: u32,
    /// Name of the executable.
    pub program: String,
    pub rank: Option<u32>,
    /// Time of the last state record, ns since 1970; 0 before the first one.
    pub time: i64,
    /// Start of the process, ns since 1970.
    pub started: i64,
    /// The capture gate is open.
    pub open: bool,
    /// Only short moments are recorded, at random times.
    pub sampled: bool,
    /// The process has ended.
    pub ended: bool,
    /// Reason why nothing is recorded.
    pub not_recorded: Option<String>,
    /// Reason why recording ended while the process may still be running: the disk was full, or the trace was deleted.
    pub stopped: Option<String>,
    /// Reason why counters are not measured, or no longer measured.
    pub not_measured: Option<String>,
    /// Number of launches with measured counters or sampled stall reasons, and the time that this added, ns.
    pub measured: u64,
    pub measuring_ns: i64,
    /// Measured launch that has been running for some seconds.
    pub measuring: Option<Measuring>,
    /// Number of recorded kernels.
    pub kernels: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time spent packing and flushing on threads of the tracer and of CUPTI, ns.
    pub cost: i64,
    /// Number of lost records: dropped by CUPTI, or because buffers were unavailable.
    pub lost: u64,
    /// Start of the available data, ns since 1970, if earlier rows were removed before the first read; else 0.
    pub since: i64,
    /// Length of the recording window in milliseconds, if only the last seconds are kept.
    pub kept_ms: Option<u64>,
}

/// Data found by one read of a growing trace.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    pub ran: Vec<Ran>,
    /// Names of new kernels; their indices follow those of earlier reads.
    pub kernels: Vec<Arc<str>>,
    /// Names of new GPUs; their indices follow those of earlier reads.
    pub devices: Vec<Arc<str>>,
    /// State records of the processes: time, ns since 1970, and true if the process was being recorded.
    pub states: Vec<(i64, bool)>,
    /// Openings (true) and closings of the recordings of sampled processes: pid, and time, ns since 1970.
    pub turns: Vec<(u32, i64, bool)>,
    /// State of every traced process.
    pub recorders: Vec<Recorder>,
    /// Bytes available but not yet read.
    pub behind: u64,
    /// Increases with every new counter measurement.
    pub measured: u64,
}
