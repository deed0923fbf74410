//! Metrics of profiled launches, as collected by Nsight Compute. Most results have the same set of metric names.

use super::sections::Details;
use super::value::Value;
use super::{Device, Kernel, LaunchConfig, Nanos, Note, Source};
use std::sync::Arc;

/// [`Source::tool`] of measurements that the built-in tracer takes during the run.
pub const IN_PLACE: &str = "CUPTI range profiler";

/// Metric of [`IN_PLACE`] results that identifies the measured launches: space-separated ordinals, starting at 1,
/// counted among the launches with the same kernel, grid and block.
pub const MEASURED_LAUNCHES: &str = "profiler__measured_launches";

/// Launches whose stall reasons were sampled, in the format of [`MEASURED_LAUNCHES`].
pub const SAMPLED_LAUNCHES: &str = "profiler__sampled_launches";

/// Kind of workload that a result covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// A single launch of a kernel.
    Kernel,
    /// A range of the program.
    Range,
    CommandList,
    Graph,
}

/// Location of a message in a report, so that it can be read on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first byte.
    pub at: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Location of a kernel's binary and sources, so that they can be read on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceAt {
    /// Number by which results refer to this entry. Two entries may share it if one has the binary and the other the
    /// source files.
    pub reference: u64,
    pub place: Extent,
}

/// One profiled launch, range or graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultMetrics {
    pub kind: ResultKind,
    /// Names of the kernel. For other kinds, the function is `range`, `graph` or `cmdlist`.
    pub kernel: Kernel,
    /// Blocks in x, y, z; `None` if the launch failed, and for ranges and graphs.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y, z.
    pub block: Option<[u32; 3]>,
    pub pid: Option<u32>,
    /// Device index as numbered by the tool.
    pub device: Option<u64>,
    /// Compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    pub context: Option<u64>,
    pub stream: Option<u64>,
    /// True if the tool could not profile this launch.
    pub failed: bool,
    /// True if the tool locked the GPU's clocks to the base frequency during the measurement.
    pub clocks_locked: Option<bool>,
    /// Configuration and device of the launch, if they are known from a timeline of the same run.
    pub launched: Option<Arc<(LaunchConfig, Device)>>,
    /// PC samples of the launch, if taken during the run.
    pub sampled: Option<Arc<Sampled>>,
    /// Location in the report; `None` if the result was read from text.
    pub place: Option<Extent>,
    /// Pairs of an index into [`Metrics::names`] and a value, in file order, without duplicate names.
    pub values: Vec<(u32, Value)>,
}

impl ResultMetrics {
    /// Creates the result of a kernel launch for which only these values are known.
    pub fn from_values(values: Vec<(u32, Value)>) -> Self {
        Self {
            kind: ResultKind::Kernel,
            kernel: Kernel::default(),
            grid: None,
            block: None,
            pid: None,
            device: None,
            compute_capability: None,
            context: None,
            stream: None,
            failed: false,
            clocks_locked: None,
            launched: None,
            sampled: None,
            place: None,
            values,
        }
    }
}

/// PC samples of a launch, taken during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Values per instruction; `sources` holds the references of the modules that contain the instructions.
    pub details: Details,
    /// Sampled functions, by module and name.
    pub functions: Vec<SampledFunction>,
}

/// A function that has samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFunction {
    /// Reference of the module.
    pub module: u64,
    /// Mangled name.
    pub name: Arc<str>,
    /// Base address to which the keys of the function's instructions are relative. Assigned by the importer, because
    /// CUPTI reports only offsets.
    pub address: u64,
}

/// All results of a report.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub source: Source,
    pub names: Vec<Arc<str>>,
    /// Base unit of each metric as spelled by ncu (`byte/second`); empty for a plain number.
    pub units: Vec<Arc<str>>,
    /// Results, in the order of collection.
    pub results: Vec<ResultMetrics>,
    /// Decompressed size of the report in bytes, by which a replaced file is detected; 0 if the results were read from
    /// text.
    pub size: u64,
    /// Binaries and sources of the kernels.
    pub sources: Vec<SourceAt>,
    /// Command line of the tool, if in the report. Private: shown only on request.
    pub tool_argv: Vec<String>,
    /// The program and its arguments, if in the report. Also private.
    pub program: Vec<String>,
    /// Name of the profiled process as given in the report. Also private.
    pub process: Option<String>,
    pub directory: Option<String>,
    /// Warnings and remarks to display.
    pub notes: Vec<Note>,
}

impl Metrics {
    /// Value of a metric of a result, by name.
    pub fn value<'a>(&self, result: &'a ResultMetrics, name: &str) -> Option<&'a Value> {
        result.values.iter().find(|(n, _)| self.names.get(*n as usize).is_some_and(|t| &**t == name)).map(|(_, v)| v)
    }

    /// Value of a metric as a number, which may be NaN.
    pub fn number(&self, result: &ResultMetrics, name: &str) -> Option<f64> {
        self.value(result, name)?.as_number()
    }

    /// Device duration of a result under the tool's conditions (locked clocks, flushed caches, one replay pass);
    /// `None` if not collected. `gpu__time_duration` is in ns.
    pub fn duration(&self, result: &ResultMetrics) -> Option<Nanos> {
        // The last two are labels on ncu's details page: since 2022, and in earlier versions.
        let names = [
            "gpu__time_duration.sum",
            "gpu__time_duration.avg",
            "gpu__time_duration.max",
            "gpu__time_active.sum",
            "GPU Speed Of Light Throughput: Duration",
            "GPU Speed Of Light: Duration",
        ];
        let ns = names.iter().find_map(|n| self.number(result, n)).filter(|n| n.is_finite() && (0.0..9e15).contains(n))?;
        Some(Nanos(ns.round() as i64))
    }

    /// Value of a metric as an integer.
    pub fn integer(&self, result: &ResultMetrics, name: &str) -> Option<u64> {
        match self.value(result, name)? {
            Value::Integer(n) => Some(*n),
            Value::Float(f) if f.fract() == 0.0 && (0.0..9e15).contains(f) => Some(*f as u64),
            _ => None,
        }
    }
}
