//! Arguments of `trace`.

use super::values::{parse_kernel, parse_metrics_url, parse_percent, parse_ranks, parse_seconds};
use super::which_args::Which;
use crate::launch::tracer::Chosen;
use clap::builder::NonEmptyStringValueParser;
use std::ffi::OsString;
use std::path::PathBuf;

/// `warpscope trace`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct Trace {
    /// Name of the traces: each process that uses CUDA writes PATH.PID.wstrace.
    #[arg(long, short = 'o', value_name = "PATH", default_value = "trace")]
    pub output: PathBuf,
    /// Kernels only: no calls, memcpys and memsets.
    #[arg(long)]
    pub lean: bool,
    /// CUDA driver calls: those that launch, copy, wait, allocate or load code, or all.
    #[arg(long, value_name = "WHICH", default_value = "chosen", value_parser = ["chosen", "all"])]
    pub api: String,
    /// CUDA graphs: each node, or the graph as a whole at less cost.
    #[arg(long, value_name = "HOW", default_value = "nodes", value_parser = ["nodes", "whole"])]
    pub graphs: String,
    /// Also record each allocation of device memory.
    #[arg(long)]
    pub memory: bool,
    /// Stacks of the threads that launch, sampled while they run: of Python code, or none.
    #[arg(long, value_name = "WHICH", default_value = "python", value_parser = ["python", "off"])]
    pub stacks: String,
    /// Samples of each thread a second.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub stack_rate: u32,
    /// Record from cudaProfilerStart to cudaProfilerStop, each time.
    #[arg(long, group = "gate")]
    pub profiler_api: bool,
    /// Record inside an NVTX range, each time: NAME, or NAME@DOMAIN.
    #[arg(long, value_name = "NAME", group = "gate", value_parser = NonEmptyStringValueParser::new())]
    pub range: Option<String>,
    /// Only the N-th time that the range is entered, from 1.
    #[arg(long, value_name = "N", requires = "range", value_parser = clap::value_parser!(u32).range(1..))]
    pub nth: Option<u32>,
    /// Begin after SECONDS seconds.
    #[arg(long, value_name = "SECONDS", group = "gate", value_parser = parse_seconds)]
    pub delay: Option<f64>,
    /// Begin with the first launch of a kernel: its function name or its mangled name.
    #[arg(long, value_name = "NAME", group = "gate", value_parser = NonEmptyStringValueParser::new())]
    pub kernel: Option<String>,
    /// Begin after N launches.
    #[arg(long, value_name = "N", group = "gate")]
    pub after_launches: Option<u64>,
    /// Record nothing until it is opened by hand: `warpscope attach --open`.
    #[arg(long, group = "gate")]
    pub closed: bool,
    /// Record short moments, spread over the run, that add at most about PERCENT to its time: totals are estimated from them.
    #[arg(long, group = "gate", value_name = "PERCENT", conflicts_with_all = ["seconds", "keep_last", "survey", "measure", "stalls"], value_parser = parse_percent)]
    pub overhead: Option<f64>,
    /// Record for SECONDS seconds each time that recording opens.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Keep only the last SECONDS seconds (or slightly more), in rotating files: for programs that run for hours.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub keep_last: Option<f64>,
    /// Measure counters of the kernels that take 90% of the time while the program runs; PERCENT of its time may be added [default: 3].
    #[arg(long, conflicts_with = "keep_last", value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = parse_percent)]
    pub survey: Option<f64>,
    /// Measure counters of the next launches of KERNEL (its function or mangled name, or regex:EXPRESSION), or with #N of its N-th launch from 1; may be repeated.
    #[arg(long, conflicts_with = "keep_last", value_name = "KERNEL[#N]", value_parser = parse_kernel)]
    pub measure: Vec<Chosen>,
    /// Sample the stall reasons of KERNEL's first launch (its function or mangled name), or with #N of its N-th from 1; may be repeated.
    #[arg(long, conflicts_with = "keep_last", value_name = "KERNEL[#N]", value_parser = parse_kernel)]
    pub stalls: Vec<Chosen>,
    #[command(flatten)]
    pub which: Which,
    /// Record only these ranks of a job: 0,8,16 or 0-7. A process without a rank from its launcher is recorded.
    #[arg(long, value_name = "RANKS", value_delimiter = ',', value_parser = parse_ranks)]
    pub ranks: Vec<(u32, u32)>,
    /// Sample the metrics of an inference server once a second, beside the traces: URL of its Prometheus page, or without one that of a vLLM or `SGLang` server that the program starts.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = parse_metrics_url)]
    pub metrics: Option<String>,
    /// The libcupti to use [default: the program's own; else the first that works with the driver, see `warpscope doctor`].
    #[arg(long, value_name = "FILE")]
    pub cupti: Option<PathBuf>,
    /// Do not preload the tracer (`LD_PRELOAD`): a process that ends with `_exit` may then lose up to its last tenth of a second.
    #[arg(long)]
    pub no_preload: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD", required = true)]
    pub program: Vec<OsString>,
}
