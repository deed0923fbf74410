//! Arguments of the commands that analyse a run as a whole.

use super::values::word_parser;
use crate::analysis::memory::MemoryVerdict;
use crate::analysis::ranks::OF_JOBS;
use crate::analysis::triage::{Phase, VERDICTS, Verdict};
use crate::report::Format;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// `warpscope triage`.
#[derive(Debug, clap::Args)]
pub struct Triage {
    /// Timelines of nsys, torch.profiler, rocprofv3 or the built-in tracer.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Judge only what was launched in ranges of this name (numbers may be written as #: `step #`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub range: Option<String>,
    /// Judge only this phase of the run [default: steady, which leaves out the others].
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)), conflicts_with_all = ["from", "to", "range"])]
    pub phase: Option<String>,
    /// Judge only this window.
    #[command(flatten)]
    pub between: super::timeline_args::Between,
    /// Judge only this device, by its number.
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Floating-point operations of one step (6.2e15), to have TFLOP/s and MFU; PyTorch traces with shapes have them.
    #[arg(long, value_name = "N", value_parser = parse_operations)]
    pub flops: Option<f64>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(VERDICTS.iter().map(|v| v.id)))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope lines`.
#[derive(Debug, clap::Args)]
pub struct Lines {
    /// Timeline with stacks of the threads that launch: of the built-in tracer, or of nsys with CPU samples.
    pub file: PathBuf,
    /// Only the idle time while ranges of this name were executed (numbers may be written as #: `step #`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub range: Option<String>,
    /// Only this phase of the run [default: steady].
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)), conflicts_with_all = ["from", "to", "range"])]
    pub phase: Option<String>,
    /// Only this window.
    #[command(flatten)]
    pub between: super::timeline_args::Between,
    /// Compare with another run: functions by the change of the idle time at them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "range", "tree"])]
    pub before: Option<PathBuf>,
    /// List calls as a tree: callers first, each with the idle time in it and in what it calls.
    #[arg(long)]
    pub tree: bool,
    /// List only so many levels of the tree.
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Parses a number of operations.
fn parse_operations(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("write a number of operations, such as 6.2e15".to_owned()),
    }
}

/// `warpscope ranks`.
#[derive(Debug, clap::Args)]
pub struct Ranks {
    /// Reports or digests of the ranks, or folders of them.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub files: Vec<PathBuf>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(OF_JOBS.map(Verdict::id)))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Time for which `warpscope memory` lists the holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWhen {
    Peak,
    End,
    /// Time, ns.
    At(i64),
}

fn memory_when(text: &str) -> Result<MemoryWhen, String> {
    match text {
        "peak" => Ok(MemoryWhen::Peak),
        "end" => Ok(MemoryWhen::End),
        time => super::timeline_args::parse_time(time).map(MemoryWhen::At).map_err(|e| format!("write peak, end, or a time: {e}")),
    }
}

/// `warpscope memory`.
#[derive(Debug, clap::Args)]
pub struct MemoryArgs {
    /// Memory snapshot (.pickle), or a timeline with memory (nsys, torch.profiler, our own trace).
    pub file: PathBuf,
    /// Compare with this report: what holds more than before, and what less.
    #[arg(long, value_name = "FILE")]
    pub before: Option<PathBuf>,
    /// List who holds memory at this time: peak, end, or a time in the report such as 1.25s or 340ms.
    #[arg(long, value_name = "WHEN", default_value = "peak", value_parser = memory_when)]
    pub at: MemoryWhen,
    /// Rows at most.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(MemoryVerdict::ALL.map(MemoryVerdict::id)))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Reports: timelines, results of ncu or rocprofv3, memory snapshots; several of one job are compared as ranks.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file to write; its extension sets the format: .html or .md.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Keep paths of files; without it only their names are written.
    #[arg(long)]
    pub paths: bool,
    /// Replace a file that exists.
    #[arg(long)]
    pub force: bool,
}

/// Formats of `warpscope export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// A file for each table and report, in folders by run and rank: for `DuckDB`, Spark, pandas.
    Parquet,
    /// One file of protobuf for Perfetto (ui.perfetto.dev, `trace_processor`): tracks, flows from calls to kernels, counters, findings.
    Perfetto,
    /// The same as JSON, for viewers that read Chrome's traces.
    Chrome,
}

/// `warpscope export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// Timelines: of one run, or of the ranks of a job.
    #[arg(required = true, value_name = "REPORT")]
    pub files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, default_value = "parquet")]
    pub format: ExportFormat,
    /// The folder to write to (created if missing); for a trace, the file.
    #[arg(short, long, value_name = "FOLDER|FILE")]
    pub output: PathBuf,
    /// Only what happened in this window; of traces.
    #[command(flatten)]
    pub between: super::timeline_args::Between,
    /// Only these tables; several with commas: launches, calls, memcpys, ranges, collectives, findings.
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Name of the run in the partitions [default: the common part of the reports' names].
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,
}

/// `warpscope digest`.
#[derive(Debug, clap::Args)]
pub struct DigestArgs {
    /// A rank's report, or one of several ranks.
    #[arg(value_name = "REPORT")]
    pub file: PathBuf,
    /// The digest's name; {rank} stands for the rank [default: the report's name with .wsd].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The rank, where neither the report nor the launcher's environment says it.
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Replace a file that exists.
    #[arg(long)]
    pub force: bool,
}

/// `warpscope ranges`.
#[derive(Debug, clap::Args)]
pub struct Ranges {
    /// Timeline with NVTX ranges, or a PyTorch trace.
    pub file: PathBuf,
    /// Only what happened in this window.
    #[command(flatten)]
    pub between: super::timeline_args::Between,
    /// List only so many levels.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Only ranges whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}
