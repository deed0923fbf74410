//! Definition of the command line.

use super::agent::AgentArgs;
use super::diff::DiffArgs;
use super::doctor::DoctorArgs;
use super::export::ExportArgs;
use super::global_args::{GlobalArgs, Opening};
use super::handout::ReportArgs;
use super::hints::HintsArgs;
use super::lines::LinesArgs;
use super::man::ManArgs;
use super::mcp::McpArgs;
use super::memory::MemoryArgs;
use super::metrics::MetricsArgs;
use super::print::{LaunchesArgs, TopArgs};
use super::ranges::RangesArgs;
use super::ranks::{DigestArgs, RanksArgs};
use super::recipes::RecipesArgs;
use super::rerun::RerunArgs;
use super::runs::attach::AttachArgs;
use super::runs::list::RunsArgs;
use super::runs::run::RunArgs;
use super::runs::watch::WatchArgs;
use super::schema::SchemaArgs;
use super::timeline::{EventsArgs, TimelineArgs};
use super::trace::TraceArgs;
use super::triage::TriageArgs;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Explore GPU profiles in the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "warpscope",
    version,
    about,
    override_usage = "warpscope [OPTIONS] [FILES]...\n       warpscope [OPTIONS] <COMMAND>",
    max_term_width = 100,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = false
)]
pub struct Args {
    /// Command; without one, the reports open in the explorer.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[arg(help = format!("Reports to open, or a folder of them: {}; also .gz and .zst of these", crate::import::open::supported_files().join(", ")))]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a program with a profiler, watch its progress, and open the report.
    Run(Box<RunArgs>),
    /// Follow a detached run.
    Attach(AttachArgs),
    /// Watch a program that is being traced: how busy its GPUs are, what limits it, which kernels take the time.
    Watch(WatchArgs),
    /// Run a program with the built-in tracer, and nothing else: each process that uses CUDA writes a trace.
    Trace(Box<TraceArgs>),
    /// The library of recorded runs: list, show, tag, share, free space.
    Runs(RunsArgs),
    /// Say what limits a run: where its time went, why the GPU is idle, and what to do.
    Triage(TriageArgs),
    /// Compare the ranks of a job: which one makes the others wait, and why.
    Ranks(RanksArgs),
    /// Summarize a rank's report in a small file, to compare it with those of hundreds of others.
    Digest(DigestArgs),
    /// Write reports as Parquet tables, or as a trace for Perfetto or Chrome's viewer.
    Export(ExportArgs),
    /// Say how memory is used: the peak and who holds it, what grows, what is in pieces, why it ran out.
    Memory(MemoryArgs),
    /// Write one file to hand on, HTML or Markdown: verdict, where the time went, kernels, evidence, commands.
    Report(ReportArgs),
    /// Print a window of time as text: what ran where, and why nothing did.
    Timeline(TimelineArgs),
    /// List what happens in a window of time, in order.
    Events(EventsArgs),
    /// List NVTX ranges or operators as a tree, with the GPU's time inside each.
    Ranges(RangesArgs),
    /// List the lines of the program at which the GPU waits for the host, by the GPU's idle time.
    Lines(LinesArgs),
    /// Rank kernels, or other groups of launches, by time.
    Top(TopArgs),
    /// List kernel launches in launch order.
    Launches(LaunchesArgs),
    /// List the metrics of single kernels, as Nsight Compute or AMD's profilers measured them.
    Metrics(MetricsArgs),
    /// Say what limits the kernels of a report, why, and what to change.
    Hints(HintsArgs),
    /// Print the ncu command that profiles exactly the chosen launches again.
    Rerun(Box<RerunArgs>),
    /// Check this machine: what prevents profiling here, what it means, and how to fix it. Changes nothing.
    Doctor(DoctorArgs),
    /// Compare two runs: what got slower or faster, what is new or gone, and whether the change is significant.
    Diff(DiffArgs),
    /// List ways to record a program, or print the command of one.
    Recipes(RecipesArgs),
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
    Schema(SchemaArgs),
    /// Print a page for coding agents: which command answers which question, and what not to conclude.
    Agent(AgentArgs),
    /// Serve coding agents over stdin and stdout (Model Context Protocol): reports in a folder, read-only.
    Mcp(McpArgs),
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
