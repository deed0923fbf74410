//! `warpscope trace`: executes the program with the tracer loaded into it.

use super::failure::Failure;
use super::print;
use super::values::named_range;
use super::values::parse_kernel;
use super::values::parse_metrics_url;
use super::values::parse_percent;
use super::values::parse_ranks;
use super::values::parse_seconds;
use super::which_args::Which;
use crate::import::cache;
use crate::launch::tracer::{
    Chosen, Frames, Gate, Measure, Obstacle, Record, can_be_preloaded, explain_failed_start, find_hidden_gpu, find_libraries,
    find_obstacle, is_there, loads_address_sanitizer, traced_command, try_to_write, write_object,
};
use crate::model::Bytes;
use clap::builder::NonEmptyStringValueParser;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// `warpscope trace`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct TraceArgs {
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
    /// Stacks of the threads that launch, sampled while the program runs: of Python code if the program has an interpreter and else of native code (auto), of either, of Python and of native code where a thread runs no Python (both), or none.
    #[arg(long, value_name = "WHICH", default_value = "auto", value_parser = ["auto", "python", "native", "both", "off"])]
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
    #[allow(clippy::doc_markdown, reason = "this is the text of --help")]
    /// Sample the metrics of an inference server once a second, beside the traces: URL of its Prometheus page, or without one that of a vLLM or SGLang server that the program starts.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_parser = parse_metrics_url)]
    pub metrics: Option<String>,
    /// The libcupti to use, also instead of the program's own: it is preloaded [default: the program's own; else the first that works with the driver, see `warpscope doctor`].
    #[arg(long, value_name = "FILE")]
    pub cupti: Option<PathBuf>,
    /// Do not preload the tracer (`LD_PRELOAD`): a process that ends with `_exit` may then lose up to its last tenth of a second.
    #[arg(long)]
    pub no_preload: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD", required = true)]
    pub program: Vec<OsString>,
}

fn range_gate(named: &str, nth: Option<u32>) -> Result<Gate, Failure> {
    let (domain, text) = named_range(named).map_err(Failure::wrong)?;
    Ok(Gate::Nvtx { domain, text, nth })
}

/// Minimum free space for a trace, bytes.
const LEAST_ROOM: u64 = 64 << 20;

/// Checks that files can be written to a folder, and warns if the disk is nearly full.
fn check_writable(folder: &Path) -> Result<(), Failure> {
    let refused = |e| Failure::unable(format!("{}: nothing can be written there ({e}); name another place with -o", folder.display()));
    let room = try_to_write(folder).map_err(refused)?;
    if room < LEAST_ROOM {
        let left = Bytes(room);
        print::note(&format!("warning: {} has {left} left, which a trace may fill; name another place with -o", folder.display()));
    }
    Ok(())
}

/// Replaces this process with the program. Returns only on failure.
pub fn exec_traced(args: &TraceArgs) -> Failure {
    match start_tracer(args) {
        Err(failure) => failure,
        Ok(never) => match never {},
    }
}

fn start_tracer(args: &TraceArgs) -> Result<std::convert::Infallible, Failure> {
    let ms = |s: f64| (s * 1000.0).max(1.0) as u64;
    // The argument group allows only one of these options.
    let gate = match args {
        TraceArgs { profiler_api: true, .. } => Some(Gate::ProfilerApi),
        TraceArgs { closed: true, .. } => Some(Gate::ByHand),
        TraceArgs { overhead: Some(percent), .. } => Some(Gate::Overhead((percent * 100.0).round().max(1.0) as u32)),
        TraceArgs { range: Some(named), nth, .. } => Some(range_gate(named, *nth)?),
        TraceArgs { kernel: Some(name), .. } => Some(Gate::Kernel(name.clone())),
        TraceArgs { after_launches: Some(n), .. } => Some(Gate::Launches(*n)),
        TraceArgs { delay, .. } => delay.map(|s| Gate::Delay(ms(s))),
    };
    let output = std::path::absolute(&args.output)?;
    let folder = output.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        let shown = folder.display();
        return Err(Failure::wrong(format!("the folder {shown} does not exist; `mkdir -p {shown}` creates it")));
    }
    let words: Vec<String> = args.program.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let first = words.first().map_or("", String::as_str);
    // The traced program may still be unable to write there, but that cannot be reported in advance.
    check_writable(folder)?;
    let obstacle = find_obstacle(&words);
    if args.overhead.is_some() && args.graphs == "whole" {
        let why = "--overhead leaves CUPTI between its moments, and CUPTI then records no graph as a whole that was instantiated before";
        return Err(Failure::wrong(format!("{why}; leave out --graphs whole")));
    }
    // The program is itself a profiler, such as nsys: it and the tracer would both fail.
    if let Some(obstacle @ Obstacle::Profiler(_)) = &obstacle {
        return Err(Failure::wrong(obstacle.to_string()));
    }
    if let Some(obstacle) = &obstacle {
        print::note(&format!("warning: {obstacle}"));
    }
    let named = args.cupti.as_ref().map(std::path::absolute).transpose()?;
    if let Some(path) = named.as_ref().filter(|path| !path.is_file()) {
        return Err(Failure::wrong(format!("{}: no such file", path.display())));
    }
    let record = Record {
        output,
        lean: args.lean,
        all_calls: args.api == "all",
        whole_graphs: args.graphs == "whole",
        stack_rate: if args.stacks == "off" { 0 } else { args.stack_rate },
        frames: Frames::from_word(&args.stacks),
        memory: args.memory,
        gate,
        length: args.seconds.map(ms),
        keep: args.keep_last.map(ms),
        preload: !args.no_preload && !loads_address_sanitizer(first),
        plan: None,
        library: named.clone().filter(|path| can_be_preloaded(path)),
        ranks: args.ranks.clone(),
    };
    let failed = |e: crate::launch::tracer::Unable| Failure::unable(e.to_string());
    let object = write_object(&cache::default_folder()).map_err(failed)?;
    // Always write a plan: the user may request a kernel while the program runs.
    let survey = args.survey.map_or(0, super::values::to_thousandths);
    let measure = Measure {
        survey,
        chosen: args.measure.iter().cloned().chain(args.stalls.iter().map(|c| Chosen { stalls: true, ..c.clone() })).collect(),
        only: args.which.launch_filter().map_err(Failure::wrong)?,
        questions: args.which.questions.clone(),
    };
    let record = Record { plan: Some(measure.write_plan(&cache::default_folder()).map_err(failed)?), ..record };
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let mut all = find_libraries(Path::new("/"), &words, variable);
    all.splice(0..0, named.map(|path| crate::launch::tracer::Library { path, of: "named" }));
    let mut command = traced_command(&record, &args.program, &object, &all).map_err(failed)?;
    // At its end, the program reports if nothing was recorded, unless the reason has just been reported.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs());
    if obstacle.is_none() {
        command.env("WARPSCOPE_TRACE_ROOT", format!("{}:{now}", std::process::id()));
    }
    let ranks = (!args.ranks.is_empty()).then(|| "only the ranks that `--ranks` names are recorded: leave it out".to_owned());
    let hidden = find_hidden_gpu(Path::new("/"), |name| std::env::var_os(name));
    command.env("WARPSCOPE_TRACE_WHY", ranks.into_iter().chain(hidden).collect::<Vec<_>>().join("; "));
    // Start no sampler for a program that cannot be started: sampling would overwrite the samples of an earlier run.
    let starts = is_there(first);
    if let Some(url) = args.metrics.as_ref().filter(|_| starts) {
        super::server_metrics::start_sampling(url, &record.output);
    }
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    let why = explain_failed_start(first, &error).map_or_else(String::new, |why| format!(": {why}"));
    print::error(&format!("cannot start {first}: {error}{why}"));
    if args.survey.is_some() && super::values::parse_percent(first).is_ok() {
        print::error(&format!("a percentage is written `--survey={first}`"));
    }
    Err(Failure { text: String::new(), code, reason: crate::cli::reason::Reason::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_hold_an_at_sign() {
        let of = |named: &str| range_gate(named, None).ok();
        let gate =
            |domain: Option<&str>, text: &str| Some(Gate::Nvtx { domain: domain.map(str::to_owned), text: text.to_owned(), nth: None });
        assert_eq!(of("step"), gate(None, "step"));
        assert_eq!(of("step@LLM"), gate(Some("LLM"), "step"));
        assert_eq!(of("a\\@b@LLM"), gate(Some("LLM"), "a@b"));
        assert_eq!(of("a\\@b"), gate(None, "a@b"));
        assert_eq!(of("x@a:b"), None);
    }
}
