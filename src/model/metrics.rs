//! Metrics of profiled launches, as Nsight Compute collects them: many names, the same for most results, each with one value.

use super::sections::Details;
use super::value::Value;
use super::{Device, Kernel, LaunchConfig, Nanos, Note, Source};
use std::sync::Arc;

/// [`Source::tool`] of what the built-in tracer measured while the program ran.
pub const IN_PLACE: &str = "CUPTI range profiler";

/// Metric of such results: which launches of their kernel, grid and block they are of, from 1, as text with blanks between.
pub const MEASURED_LAUNCHES: &str = "profiler__measured_launches";

/// Which launches their stall reasons are of, as [`MEASURED_LAUNCHES`] has it.
pub const SAMPLED_LAUNCHES: &str = "profiler__sampled_launches";

/// What a result is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// One launch of a kernel.
    Kernel,
    /// A range of the program.
    Range,
    CommandList,
    Graph,
}

/// Where a message lies in a report, so that more of it can be read when somebody looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub at: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A kernel's binary and sources, which are not read before they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceAt {
    /// What results refer to it by. Several may have the same: one holds the binary, another the files' texts.
    pub reference: u64,
    pub place: Extent,
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
    pub pid: Option<u32>,
    /// Index of the device, as the tool counts them.
    pub device: Option<u64>,
    /// Compute capability of the device.
    pub compute_capability: Option<(u64, u64)>,
    pub context: Option<u64>,
    pub stream: Option<u64>,
    /// The tool could not profile it.
    pub failed: bool,
    /// Whether the tool held the GPU's clocks at their base while it measured.
    pub clocks_locked: Option<bool>,
    /// The launch's configuration and device, where a timeline recorded them.
    pub launched: Option<Arc<(LaunchConfig, Device)>>,
    /// Samples of its instructions, where they were taken while the program ran.
    pub sampled: Option<Arc<Sampled>>,
    /// Where it lies in the report; `None` when it was read from text.
    pub place: Option<Extent>,
    /// Index into [`Metrics::names`] and value, in the order of the file; each name once.
    pub values: Vec<(u32, Value)>,
}

impl ResultMetrics {
    /// A kernel launch with these values and nothing else known.
    #[must_use]
    pub fn with(values: Vec<(u32, Value)>) -> Self {
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

/// What PC sampling saw of a launch while the program ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Values of instructions; the sources are the modules that they are in.
    pub details: Details,
    /// Its functions, by module and name.
    pub functions: Vec<SampledFunction>,
}

/// A function that was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFunction {
    /// What its module is referred to by.
    pub module: u64,
    /// Its mangled name.
    pub name: Arc<str>,
    /// The address that the keys of its instructions begin with: CUPTI has offsets only.
    pub address: u64,
}

/// All results of a report.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Where they come from.
    pub source: Source,
    pub names: Vec<Arc<str>>,
    /// Base unit of each, in ncu's spelling (`byte/second`); empty for a plain number.
    pub units: Vec<Arc<str>>,
    /// Results, in the order in which they were collected.
    pub results: Vec<ResultMetrics>,
    /// Size of the report's (unpacked) bytes, to notice another file in its place; 0 for a text.
    pub size: u64,
    /// Binaries and sources of their kernels.
    pub sources: Vec<SourceAt>,
    /// The tool's own command line, when the report holds it. Private: never shown unless asked for.
    pub tool_argv: Vec<String>,
    /// The program and its arguments, when the report holds them. As private.
    pub program: Vec<String>,
    /// Name of the process that was profiled, as the report has it. As private.
    pub process: Option<String>,
    pub directory: Option<String>,
    /// Things that the reader should know.
    pub notes: Vec<Note>,
}

impl Metrics {
    /// A metric of a result by its name.
    #[must_use]
    pub fn value<'a>(&self, result: &'a ResultMetrics, name: &str) -> Option<&'a Value> {
        result.values.iter().find(|(n, _)| self.names.get(*n as usize).is_some_and(|t| &**t == name)).map(|(_, v)| v)
    }

    /// A number by its name; NaN is one.
    #[must_use]
    pub fn number(&self, result: &ResultMetrics, name: &str) -> Option<f64> {
        self.value(result, name)?.number()
    }

    /// How long a result took on the device, under the tool's own conditions (locked clocks, flushed caches, one replay pass); `None` when
    /// that was not collected. `gpu__time_duration` is in ns.
    #[must_use]
    pub fn duration(&self, result: &ResultMetrics) -> Option<Nanos> {
        // The last two are what a details page prints, of ncu since 2022 and before.
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
