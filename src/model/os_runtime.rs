//! Thread activity outside of CUDA: system calls, scheduling, Python.

use std::sync::Arc;

/// OS runtime calls, sorted by start; 24 bytes each.
#[derive(Clone, Debug, Default)]
pub struct OsCalls {
    pub names: Vec<Arc<str>>,
    /// Start time in nanoseconds.
    pub start: Vec<i64>,
    /// Duration in nanoseconds.
    pub duration: Vec<i64>,
    /// Index into `names`.
    pub name: Vec<u32>,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: Vec<u32>,
}

/// Scheduling state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    Running,
    /// Not running on a CPU.
    Off,
    /// Running part of the time; the sampling interval was too long to tell when.
    Partly,
}

/// A change in the state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Nanoseconds since the session began.
    pub time: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    pub state: ThreadState,
    pub cpu: Option<u16>,
}

/// [`Overhead::name`] of periods in which counters were measured during the run, which serializes kernels.
pub const MEASURING: &str = "measuring counters";

/// Time that the profiler itself spent on a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Start time in nanoseconds.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    pub name: Arc<str>,
}
