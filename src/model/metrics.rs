//! Metrics of profiled launches, as Nsight Compute collects them: many names, the same for most results, each with one value.

use super::{Kernel, Note, Source};
use std::sync::Arc;

/// A metric's value. What the tool did not collect is absent from the list, never zero.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Integer(u64),
    /// A measured or derived number; may be NaN, which is neither absent nor zero.
    Float(f64),
    /// Text, such as a device's name.
    Text(Arc<str>),
}

/// What a result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One launch of a kernel.
    Kernel,
    /// A range of the program.
    Range,
    /// A command list.
    CommandList,
    /// A CUDA graph.
    Graph,
}

/// One profiled launch, range or graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultMetrics {
    /// What it is about.
    pub kind: ResultKind,
    /// Names of the kernel; of a range or graph, that word as the function.
    pub kernel: Kernel,
    /// Blocks in x, y, z; `None` when the launch failed, and for ranges and graphs.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y, z.
    pub block: Option<[u32; 3]>,
    /// Operating-system process id.
    pub pid: Option<u32>,
    /// Index of the device, as the tool counts them.
    pub device: Option<u64>,
    /// Compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    /// CUDA context id.
    pub context: Option<u64>,
    /// Stream id.
    pub stream: Option<u64>,
    /// The tool could not profile it.
    pub failed: bool,
    /// Index into [`Metrics::names`] and value, in the order of the file; each name once.
    pub values: Vec<(u32, Value)>,
}

/// All results of a report.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Where they come from.
    pub source: Source,
    /// Metric names.
    pub names: Vec<Arc<str>>,
    /// Base unit of each, in ncu's spelling (`byte/second`); empty for a plain number.
    pub units: Vec<Arc<str>>,
    /// Results, in the order in which they were collected.
    pub results: Vec<ResultMetrics>,
    /// What the reader should know.
    pub notes: Vec<Note>,
}

impl Metrics {
    /// A metric of a result by its name.
    #[must_use]
    pub fn value<'a>(&self, result: &'a ResultMetrics, name: &str) -> Option<&'a Value> {
        result.values.iter().find(|(n, _)| self.names.get(*n as usize).is_some_and(|t| &**t == name)).map(|(_, v)| v)
    }

    /// A whole number by its name.
    #[must_use]
    pub fn integer(&self, result: &ResultMetrics, name: &str) -> Option<u64> {
        match self.value(result, name)? {
            Value::Integer(n) => Some(*n),
            Value::Float(f) if f.fract() == 0.0 && (0.0..9e15).contains(f) => Some(*f as u64),
            _ => None,
        }
    }
}
