//! What threads did outside of CUDA: calls of the operating system, being scheduled, running Python.

use std::sync::Arc;

/// Calls of the operating system's runtime, by start. 24 bytes each.
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

/// What a thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    Running,
    /// Not on a processor.
    Off,
    /// On one for part of the time: it was looked at too rarely to tell when.
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

/// A look at what a thread was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// ns.
    pub time: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    /// Index into [`Samples::stacks`].
    pub stack: u32,
}

/// Looks at threads, by time; stacks and frames are interned.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Distinct frames: a function with its file or module.
    pub frames: Vec<Arc<str>>,
    /// Indices into `frames`, innermost first.
    pub stacks: Vec<Arc<[u32]>>,
    pub samples: Vec<Sample>,
}

/// [`Overhead::name`] of times in which counters were measured while the program ran: kernels run one by one then.
pub const MEASURING: &str = "measuring counters";

/// Time that the profiler itself took on a thread.
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
