//! Thread activity outside CUDA: system calls, scheduling, Python.

use std::sync::Arc;

/// OS runtime calls, ordered by start; 24 bytes each.
#[derive(Clone, Debug, Default)]
pub struct OsCalls {
    pub names: Vec<Arc<str>>,
    /// ns.
    pub start: Vec<i64>,
    /// ns.
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
    /// Off the CPU.
    Off,
    /// Running for part of the time; the sampling interval was too long to determine when.
    Partly,
}

/// A change of a thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// ns.
    pub time: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    pub state: ThreadState,
    pub cpu: Option<u16>,
}

/// [`Overhead::name`] of periods with counter measurements during the run, in which kernels are serialized.
pub const MEASURING: &str = "measuring counters";

/// Time used by the profiler itself on a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// ns.
    pub start: i64,
    /// ns.
    pub duration: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    pub name: Arc<str>,
}
