//! Data available about a program while it is being traced.

use std::sync::Arc;

/// Sentinel in [`Ran::kernel`] for a memcpy or memset.
pub const NO_KERNEL: u32 = u32::MAX;

/// An operation that ran on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Start time in nanoseconds since 1970.
    pub start: i64,
    /// Duration in nanoseconds.
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
    /// Milliseconds since the launch.
    pub ms: i64,
    /// Number of replay passes, if the kernel is being replayed.
    pub passes: Option<u64>,
}

/// State of the recording of one process.
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
    /// True if the capture gate is open.
    pub open: bool,
    /// True if only short periods are recorded, at random times.
    pub sampled: bool,
    /// True if the process has ended.
    pub ended: bool,
    /// Reason why nothing is recorded.
    pub not_recorded: Option<String>,
    /// Reason why recording ended although the process may still be running: the disk was full, or the trace was
    /// deleted.
    pub stopped: Option<String>,
    /// Reason why counters are not measured, or no longer measured.
    pub not_measured: Option<String>,
    /// Number of launches whose counters were measured or whose stall reasons were sampled, and the time that this
    /// added to the run, ns.
    pub measured: u64,
    pub measuring_ns: i64,
    /// The launch being measured, if it has been running for some seconds.
    pub measuring: Option<Measuring>,
    /// Number of recorded kernels.
    pub kernels: u64,
    /// Number of bytes written.
    pub bytes: u64,
    /// Time that threads of the tracer and of CUPTI spent compressing and flushing, ns.
    pub cost: i64,
    /// Number of lost records: dropped by CUPTI, or lost because no buffer was available.
    pub lost: u64,
    /// Start of the available data, ns since 1970, if earlier rows were removed before the first read; otherwise 0.
    pub since: i64,
    /// Length of the recording window in milliseconds, if only the most recent data is kept.
    pub kept_ms: Option<u64>,
}

/// New data found by one read of a growing trace.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    pub ran: Vec<Ran>,
    /// Names of new kernels; indices continue from earlier reads.
    pub kernels: Vec<Arc<str>>,
    /// Names of new GPUs; indices continue from earlier reads.
    pub devices: Vec<Arc<str>>,
    /// State records of the processes: time in ns since 1970, and true if the process was being recorded.
    pub states: Vec<(i64, bool)>,
    /// Starts and ends of recorded periods in sampled processes: pid, time in ns since 1970, and true for a start.
    pub turns: Vec<(u32, i64, bool)>,
    /// State of every traced process.
    pub recorders: Vec<Recorder>,
    /// Number of bytes available but not yet read.
    pub behind: u64,
    /// Incremented by every new counter measurement.
    pub measured: u64,
}
