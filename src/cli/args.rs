//! Definition of the command line.

pub use super::recipes_args::{CheckJobs, Recipes, RecipesCommand, RerunFormat};
pub use super::run_args::{Attach, Gc, Run, Runs, RunsCommand, Watch};
pub use super::timeline_args::{Between, EventsArgs, TimelineArgs};
pub use super::trace_args::Trace;
pub use super::triage_args::{DigestArgs, Export, Lines, MemoryArgs, Ranges, Ranks, ReportArgs, Triage};
use super::values::{kernel_sort_parser, launch_sort_parser, word_parser};
use crate::analysis::GroupBy;
use crate::analysis::table::Sort;
use crate::analysis::triage::Phase;
use crate::app::KeyScope;
use crate::config::ColorMode;
use crate::model::NameForm;
use crate::report::Format;
use crate::rerun::{CacheControl, ClockControl, Replay};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Explore GPU profiles in the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "warpscope",
    version,
    about,
    max_term_width = 100,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = false
)]
pub struct Args {
    /// Command; without one, the reports open in the explorer.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[arg(help = format!("Reports to open: {}; also .gz and .zst of these", crate::import::open::supported_files().join(", ")))]
    pub files: Vec<PathBuf>,
    /// Theme [default: dark, sixteen or mono, depending on the terminal's colours]; `warpscope themes` lists them.
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "NAME")]
    pub theme: Option<String>,
    /// Colours [default: by `NO_COLOR`, `COLORTERM` and `TERM`].
    #[arg(long, global = true, help_heading = "Everywhere", value_parser = word_parser::<ColorMode>())]
    pub color: Option<ColorMode>,
    /// Draw with ASCII characters only [default: unless the locale is UTF-8].
    #[arg(long, global = true, help_heading = "Everywhere", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ascii: Option<bool>,
    /// Print at most about this many tokens of 4 bytes: what matters least is left out, and the output says how much.
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "TOKENS", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(50..))]
    pub budget: Option<u32>,
    /// Print no header above the rows of CSV, Markdown and tables.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub no_header: bool,
    /// Print no notes and warnings, only errors, on stderr.
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
    /// Initial state of the explorer.
    #[command(flatten)]
    pub opening: Opening,
    /// Configuration file [default: `$XDG_CONFIG_HOME/warpscope/config.toml`].
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The nsys to export .nsys-rep files with [default: the first that is new enough, on PATH, then where NVIDIA installs it].
    #[arg(long, global = true, help_heading = "Everywhere", value_name = "PATH")]
    pub nsys: Option<PathBuf>,
}

/// Initial state of the explorer for a report.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Opening {
    /// Initial grouping of the explorer [default: kernel].
    #[arg(long, value_name = "GROUPING", value_parser = word_parser::<GroupBy>())]
    pub group: Option<GroupBy>,
    /// Screen that the report opens with [default: overview of a timeline]; `Y` copies the command that opens a place again.
    #[arg(long, value_name = "SCREEN", value_parser = word_parser::<KeyScope>())]
    pub first: Option<KeyScope>,
    /// Kernel that is selected there, by its name in the table.
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Launch that is selected there, by its number from 0.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub launch: Option<u32>,
    /// Result of ncu, or of counters in a trace, by its number from 0.
    #[arg(long, value_name = "N")]
    pub result: Option<usize>,
    /// Range that is selected among the ranges.
    #[arg(long, value_name = "NAME")]
    pub range: Option<String>,
    /// Window of the timeline, or that all screens are narrowed to.
    #[command(flatten)]
    pub between: Between,
    /// Initial sort order of the explorer [default: total].
    #[arg(long, value_parser = kernel_sort_parser())]
    pub sort: Option<Sort>,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program with a profiler, watch its progress, and open the report.
    Run(Box<Run>),
    /// Follow a detached run.
    Attach(Attach),
    /// Watch a program that is being traced: how busy its GPUs are, what limits it, which kernels take the time.
    Watch(Watch),
    /// Run a program with the built-in tracer, and nothing else: each process that uses CUDA writes a trace.
    Trace(Box<Trace>),
    /// The library of recorded runs: list, show, tag, share, free space.
    Runs(Runs),
    /// Say what limits a run: where its time went, why the GPU is idle, and what to do.
    Triage(Triage),
    /// Compare the ranks of a job: which one makes the others wait, and why.
    Ranks(Ranks),
    /// Summarize a rank's report in a small file, to compare it with those of hundreds of others.
    Digest(DigestArgs),
    /// Write reports as Parquet tables, or as a trace for Perfetto or Chrome's viewer.
    Export(Export),
    /// Say how memory is used: the peak and who holds it, what grows, what is in pieces, why it ran out.
    Memory(MemoryArgs),
    /// Write one file to hand on, HTML or Markdown: verdict, where the time went, kernels, evidence, commands.
    Report(ReportArgs),
    /// Print a window of time as text: what ran where, and why nothing did.
    Timeline(TimelineArgs),
    /// List what happens in a window of time, in order.
    Events(EventsArgs),
    /// List NVTX ranges or operators as a tree, with the GPU's time inside each.
    Ranges(Ranges),
    /// List the lines of the program at which the GPU waits for the host, by the GPU's idle time.
    Lines(Lines),
    /// Rank kernels, or other groups of launches, by time.
    Top(Top),
    /// List kernel launches in launch order.
    Launches(Launches),
    /// List the metrics of single kernels, as Nsight Compute or AMD's profilers measured them.
    Metrics(Metrics),
    /// Say what limits the kernels of a report, why, and what to change.
    Hints(Hints),
    /// Print the ncu command that profiles exactly the chosen launches again.
    Rerun(Box<Rerun>),
    /// Check this machine: what prevents profiling here, what it means, and how to fix it. Changes nothing.
    Doctor(Doctor),
    /// Compare two runs: what got slower or faster, what is new or gone, and whether the change is significant.
    Diff(Diff),
    /// List ways to record a program, or print the command of one.
    Recipes(Recipes),
    /// Open the explorer on a built-in capture: a small transformer on an H200.
    Demo {
        #[command(flatten)]
        opening: Opening,
        /// Begin with a tour of five steps.
        #[arg(long)]
        tour: bool,
    },
    /// List the themes.
    Themes,
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page of the program or of one command.
    Man(ManArgs),
    /// Print the JSON Schema of what a command prints, or its fields.
    Schema(Schema),
    /// Print a page for coding agents: which command answers which question, and what not to conclude.
    Agent(Agent),
    /// Serve coding agents over stdin and stdout (Model Context Protocol): reports in a folder, read-only.
    Mcp(Mcp),
    /// Explain a topic: run, rerun, triage, timeline, hints, formats, keys, words and more.
    Help {
        /// The topic, or a command; without one, all topics are listed.
        topic: Option<String>,
    },
    /// Supervisor process of a profiler.
    #[command(name = "__supervise", hide = true)]
    Supervise {
        /// The run.
        run: i64,
        /// The run continues without the process that started it.
        #[arg(long)]
        detached: bool,
        /// Run the supervisor itself, not its keeper process.
        #[arg(long)]
        kept: bool,
    },
    /// Process that owns the terminal during a run.
    #[command(name = "__foreground", hide = true)]
    Foreground {
        /// The run.
        run: i64,
        /// Process id of the explorer.
        explorer: i32,
    },
    /// Process that restores the terminal if the explorer cannot.
    #[command(name = "__terminal", hide = true)]
    Terminal {
        /// Saved modes of the terminal.
        modes: String,
        /// Process group of the explorer.
        group: i32,
    },
    /// Process that samples a server's metrics.
    #[command(name = "__sample-metrics", hide = true)]
    SampleMetrics {
        /// Process id of the traced program.
        pid: u32,
        /// URL of the page, or `auto`.
        url: String,
        /// Start time of the program.
        #[arg(long)]
        started: u64,
        /// Sample, rather than start the process that does.
        #[arg(long)]
        detached: bool,
    },
    /// Last step before the profiler is executed.
    #[command(name = "__exec", hide = true)]
    Exec {
        /// Process id of the supervisor.
        supervisor: i32,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        argv: Vec<std::ffi::OsString>,
    },
}

/// `warpscope man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The command; without one, the program itself.
    pub command: Option<String>,
    /// Write all pages into this folder instead.
    #[arg(long, short = 'o', value_name = "DIR", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}

/// `warpscope top`.
#[derive(Debug, clap::Args)]
pub struct Top {
    /// Report.
    pub file: PathBuf,
    /// How to group launches.
    #[arg(long, default_value = "kernel", value_parser = word_parser::<GroupBy>())]
    pub by: GroupBy,
    /// How to rank groups.
    #[arg(long, default_value = "total", value_parser = kernel_sort_parser())]
    pub sort: Sort,
    /// List at most N groups.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only groups whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT", alias = "kernel")]
    pub filter: Option<String>,
    /// Only launches that start on the GPU in this window.
    #[command(flatten)]
    pub between: Between,
    /// Output format [default: table on a terminal, else csv]. JSON has what the run would save without each kernel, too: `warpscope help formats`.
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope launches`.
#[derive(Debug, clap::Args)]
pub struct Launches {
    /// Report.
    pub file: PathBuf,
    /// Only launches of this kernel: an exact function or demangled name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Order [default: launch order on the host].
    #[arg(long, value_parser = launch_sort_parser())]
    pub sort: Option<Sort>,
    /// List at most N launches.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only launches that start on the GPU in this window.
    #[command(flatten)]
    pub between: Between,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope metrics`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct Metrics {
    /// Report: .ncu-rep, the output of `ncu --csv`, or a trace with measured kernels; also compressed as .gz or .zst.
    pub file: PathBuf,
    /// Only results of this kernel: an exact name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Only this result, by its number from 0.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub launch: Option<usize>,
    /// Only metrics whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub metric: Option<String>,
    /// The decimal separator, for a CSV in which it is ambiguous (117.344).
    #[arg(long)]
    pub decimal: Option<DecimalSign>,
    /// Instead of all metrics, the report's own sections with their labels, as in `ncu --page details`.
    #[arg(long, conflicts_with_all = ["metric", "rules", "session"])]
    pub sections: bool,
    /// Instead of metrics, what NVIDIA's rules say, with their estimated speedups.
    #[arg(long, conflicts_with_all = ["metric", "session"])]
    pub rules: bool,
    /// Instead of metrics, the hottest source lines, with stall reasons and excess traffic.
    #[arg(long, conflicts_with_all = ["metric", "session", "sections", "rules"])]
    pub source: bool,
    /// Instead of metrics, the hottest instructions; their text needs nvdisasm, cuobjdump or ncu.
    #[arg(long, conflicts_with_all = ["metric", "session", "sections", "rules", "source"])]
    pub sass: bool,
    /// Instead of metrics, the session information: machines, versions, the program with its directory and environment. Private: check it before you share it.
    #[arg(long, conflicts_with_all = ["kernel", "launch", "metric"])]
    pub session: bool,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope hints`.
#[derive(Debug, clap::Args)]
pub struct Hints {
    /// Report: from Nsight Compute, or a timeline (from which only the launch itself can be judged).
    pub file: PathBuf,
    /// Only this kernel: an exact name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Only this launch, by its number in `warpscope launches` (for an Nsight Compute report, the result's number).
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub launch: Option<u32>,
    /// Print the chain of reasoning with its numbers, what to change, and the command that confirms it, as text (without --format).
    #[arg(long, conflicts_with = "format")]
    pub explain: bool,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Output format [default: lines for people].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope diff`.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// The report before the change.
    pub before: PathBuf,
    /// The report after it.
    pub after: PathBuf,
    /// How to group launches.
    #[arg(long, default_value = "kernel", value_parser = word_parser::<GroupBy>())]
    pub by: GroupBy,
    /// List at most N groups.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only groups whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Exit with code 1 if the total kernel time grew by more than PCT percent. Both reports are timelines, or both of
    /// counters: another pair is refused.
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    pub fail_above: Option<f64>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Parses a percentage, with or without `%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().map_err(|e| e.to_string())?;
    if number.is_finite() { Ok(number) } else { Err("write a percentage, such as 5%".to_owned()) }
}

/// `metrics --decimal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DecimalSign {
    /// 27,199.72
    Point,
    /// 27.199,72
    Comma,
}

/// `warpscope rerun`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct Rerun {
    /// Report.
    pub file: PathBuf,
    /// The launch, by its number in `warpscope launches`; several with commas.
    #[arg(long, value_name = "ID", allow_negative_numbers = true, value_delimiter = ',', conflicts_with_all = ["kernel", "top", "graph", "nth", "slowest", "median", "every"], help_heading = "Which launches")]
    pub launch: Vec<u32>,
    /// A launch of this kernel: an exact function or demangled name, otherwise a fuzzy match that must be unique. The median launch by default.
    #[arg(long, value_name = "SEL", conflicts_with_all = ["top", "graph"], help_heading = "Which launches")]
    pub kernel: Option<String>,
    /// One launch of each of the N kernels that take the most time; the commands come in launch order.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "graph", help_heading = "Which launches")]
    pub top: Option<u16>,
    /// The Nth launch of a CUDA graph, from 0, in a report with graphs traced as a whole.
    #[arg(long, value_name = "N", conflicts_with_all = ["nth", "slowest", "median", "every", "within", "whole_graph", "base"], help_heading = "Which launches")]
    pub graph: Option<u32>,
    /// The Nth launch of the kernel's function in its process, from 0.
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Which launches")]
    pub nth: Option<u64>,
    /// The slowest launch, or with =K the K slowest; without --kernel, of all kernels.
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Which launches")]
    pub slowest: Option<u16>,
    /// The launch nearest to the median duration; with --slowest both.
    #[arg(long, help_heading = "Which launches")]
    pub median: bool,
    /// Every launch.
    #[arg(long, conflicts_with_all = ["nth", "slowest", "median"], help_heading = "Which launches")]
    pub every: bool,
    /// The whole CUDA graph that the launch belongs to.
    #[arg(long, help_heading = "Which launches")]
    pub whole_graph: bool,
    /// Form of the kernel name that ncu matches [default: function].
    #[arg(long, value_name = "FORM", help_heading = "Counting", value_parser = word_parser::<NameForm>())]
    pub base: Option<NameForm>,
    /// Choose only among the launches in this phase of the run. `--launch-skip` still counts from the start of the program.
    #[arg(long, value_name = "PHASE", help_heading = "Which launches", conflicts_with_all = ["launch", "graph"], value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)))]
    pub phase: Option<String>,
    /// Only launches inside this NVTX range are chosen and counted.
    #[arg(long, value_name = "RANGE", help_heading = "Counting")]
    pub within: Option<String>,
    /// Only number N of these ranges, from 1.
    #[arg(long, value_name = "N", requires = "within", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Counting")]
    pub instance: Option<u32>,
    /// Start of the capture, if it is not in the report: start, profiler, profiler:N, nvtx:RANGE, late.
    #[arg(long, value_name = "WHAT", help_heading = "Counting")]
    pub opened_by: Option<String>,
    /// Rank of the process to profile where several launch the kernel at the same time.
    #[arg(long, value_name = "N", help_heading = "Counting")]
    pub rank: Option<u32>,
    /// Set of sections: basic, detailed, full, roofline, pmsampling, nvlink [default: basic].
    #[arg(long, value_name = "SET", conflicts_with_all = ["section", "question"], help_heading = "Collecting")]
    pub set: Option<String>,
    /// A section by its identifier; may be repeated.
    #[arg(long, value_name = "ID", conflicts_with = "question", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Collecting")]
    pub section: Vec<String>,
    /// The sections that answer a question: bound, memory, stalls, compute, occupancy, source.
    #[arg(long, value_name = "WORD", help_heading = "Collecting")]
    pub question: Option<String>,
    /// Clocks: base locks them, none does not [default: base].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<ClockControl>())]
    pub clock_control: Option<ClockControl>,
    /// Caches: all flushes them before each pass, none does not [default: all].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<CacheControl>())]
    pub cache_control: Option<CacheControl>,
    /// Replay: kernel, application, app-range [default: kernel, or app-range for kernels that wait for other GPUs].
    #[arg(long, value_name = "MODE", help_heading = "Collecting", value_parser = word_parser::<Replay>())]
    pub replay_mode: Option<Replay>,
    /// Measure with the built-in tracer while the program runs, not with ncu.
    #[arg(long, conflicts_with_all = ["set", "section", "replay_mode", "whole_graph", "import_source", "kill"], help_heading = "Collecting")]
    pub in_place: bool,
    /// Import CUDA source into the report.
    #[arg(long, help_heading = "Collecting")]
    pub import_source: bool,
    /// Terminate the program after the last result.
    #[arg(long, help_heading = "Collecting")]
    pub kill: bool,
    /// Report to write, without .ncu-rep [default: from kernel and launch; for several commands a directory].
    #[arg(long, short = 'o', value_name = "PATH", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = "Output")]
    pub export: Option<String>,
    /// Overwrite the report if it exists.
    #[arg(long, short = 'f', help_heading = "Output")]
    pub force_overwrite: bool,
    /// Working directory of the program [default: as recorded].
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub directory: Option<String>,
    /// Compare results (.ncu-rep, CSV, or what rocprofv3 wrote; several in the order of the commands) with what is selected, instead of printing the command.
    #[arg(long, value_name = "RESULT", num_args = 1.., help_heading = "Output")]
    pub verify: Vec<PathBuf>,
    /// Output format [default: text on a terminal, else shell].
    #[arg(long, help_heading = "Output")]
    pub format: Option<RerunFormat>,
    /// The program and its arguments [default: as recorded].
    #[arg(last = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// `warpscope schema`.
#[derive(Debug, clap::Args)]
pub struct Schema {
    /// The command, as in `triage` or `runs show`, or the name of a schema; without one, all schemas are listed.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Output format: json is the JSON Schema, the others list the fields [default: table on a terminal, else json].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope mcp`.
#[derive(Debug, clap::Args)]
pub struct Mcp {
    /// Folders whose reports may be read, with those below [default: the current folder].
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
}

/// `warpscope agent`.
#[derive(Debug, clap::Args)]
pub struct Agent {
    /// Write the page as a skill, `DIR/warpscope/SKILL.md` [default: ~/.claude/skills].
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "absent, without a folder, or with one")]
    pub install: Option<Option<PathBuf>>,
}
