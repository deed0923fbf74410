//! Metrics of profiled launches, as collected by Nsight Compute: many names, the same for most results, each with one
//! value.

use super::sections::Details;
use super::value::Value;
use super::{Device, Kernel, LaunchConfig, Nanos, Note, Source};
use std::sync::Arc;

/// [`Source::tool`] of measurements that the built-in tracer made while the program ran.
pub const IN_PLACE: &str = "CUPTI range profiler";

/// Metric of such results: numbers, from 1, of the measured launches of their kernel, grid and block, as text separated
/// by blanks.
pub const MEASURED_LAUNCHES: &str = "profiler__measured_launches";

/// Launches whose stall reasons were sampled, in the format of [`MEASURED_LAUNCHES`].
pub const SAMPLED_LAUNCHES: &str = "profiler__sampled_launches";

/// Subject of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One launch of a kernel.
    Kernel,
    /// A range of the program.
    Range,
    CommandList,
    Graph,
}

/// Location of a message in a report, from which more of it can be read on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub at: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A kernel's binary and sources, which are read on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceAt {
    /// Reference used by results. Several entries may share one: one contains the binary, another the files' texts.
    pub reference: u64,
    pub place: Extent,
}

/// One profiled launch, range or graph.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultMetrics {
    pub kind: ResultKind,
    /// Names of the kernel; for a range or graph, that word as the function.
    pub kernel: Kernel,
    /// Blocks in x, y, z; `None` if the launch failed, and for ranges and graphs.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y, z.
    pub block: Option<[u32; 3]>,
    pub pid: Option<u32>,
    /// Index of the device in the tool's numbering.
    pub device: Option<u64>,
    /// Compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    pub context: Option<u64>,
    pub stream: Option<u64>,
    /// The tool could not profile it.
    pub failed: bool,
    /// The tool held the GPU's clocks at their base while it measured.
    pub clocks_locked: Option<bool>,
    /// Configuration and device of the launch, if a timeline recorded them.
    pub launched: Option<Arc<(LaunchConfig, Device)>>,
    /// Samples of its instructions, if taken while the program ran.
    pub sampled: Option<Arc<Sampled>>,
    /// Location in the report; `None` if it was read from text.
    pub place: Option<Extent>,
    /// Index into [`Metrics::names`] and value, in the order of the file; each name once.
    pub values: Vec<(u32, Value)>,
}

impl ResultMetrics {
    /// Creates the result of a kernel launch with these values and nothing else known.
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

/// PC samples of a launch, taken while the program ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Values per instruction; the sources are the modules that contain them.
    pub details: Details,
    /// Its functions, by module and name.
    pub functions: Vec<SampledFunction>,
}

/// A function with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFunction {
    /// Reference to its module.
    pub module: u64,
    /// Its mangled name.
    pub name: Arc<str>,
    /// Base address of its instructions' keys: CUPTI has offsets only.
    pub address: u64,
}

/// All results of a report.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub source: Source,
    pub names: Vec<Arc<str>>,
    /// Base unit of each metric, in ncu's spelling (`byte/second`); empty for a plain number.
    pub units: Vec<Arc<str>>,
    /// Results, in the order in which they were collected.
    pub results: Vec<ResultMetrics>,
    /// Size of the report's (unpacked) bytes, to detect another file in its place; 0 for a text.
    pub size: u64,
    /// Binaries and sources of the kernels.
    pub sources: Vec<SourceAt>,
    /// The tool's own command line, if in the report. Private: never shown unless asked for.
    pub tool_argv: Vec<String>,
    /// The program and its arguments, if in the report. Private, too.
    pub program: Vec<String>,
    /// Name of the profiled process, as in the report. Private, too.
    pub process: Option<String>,
    pub directory: Option<String>,
    /// Notes for the reader.
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

    /// Duration of a result on the device, under the tool's own conditions (locked clocks, flushed caches, one replay
    /// pass); `None` if not collected. `gpu__time_duration` is in ns.
    pub fn duration(&self, result: &ResultMetrics) -> Option<Nanos> {
        // The last two are printed on details pages: by ncu since 2022, and by earlier versions.
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
