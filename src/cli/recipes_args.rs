//! Arguments of `warpscope recipes`.

use crate::report::Format;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// `warpscope recipes check`.
#[derive(Debug, Subcommand)]
pub enum RecipesCommand {
    /// Check rocprofv3's input files: what their jobs really select, and what breaks in which release.
    Check(CheckJobs),
}

/// `warpscope recipes check`.
#[derive(Debug, clap::Args)]
pub struct CheckJobs {
    /// Input files as `rocprofv3 --input` takes them: YAML, JSON or text.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A trace of the program, to list which of its launches each job selects.
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Output format [default: lines for people].
    #[arg(long, value_parser = super::values::word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope recipes`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Recipes {
    #[command(subcommand)]
    pub command: Option<RecipesCommand>,
    /// The recipe; without one they are listed.
    pub recipe: Option<String>,
    /// NVTX range to record, for the recipe that needs one: NAME, or NAME@DOMAIN; an @ of the name itself is written \\@.
    #[arg(long, value_name = "NAME", requires = "recipe")]
    pub range: Option<String>,
    /// Kernel to profile, for recipes of ncu (exact function name) and rocprofv3 (beginning of the name that it prints).
    #[arg(long, value_name = "NAME", requires = "recipe")]
    pub kernel: Option<String>,
    /// Launches (TensorRT-LLM: iterations) to skip first.
    #[arg(long, value_name = "N", requires = "recipe")]
    pub launch_skip: Option<u64>,
    /// Launches (TensorRT-LLM: iterations) to profile.
    #[arg(long, value_name = "N", requires = "recipe")]
    pub launch_count: Option<u64>,
    /// Seconds that PyTorch traces [default: 60].
    #[arg(long, value_name = "N", requires = "recipe")]
    pub seconds: Option<u64>,
    /// Put the profiler between the launcher (torchrun, mpirun, mpiexec, srun) and the program: one report per rank.
    #[arg(long, requires = "recipe")]
    pub ranks: bool,
    /// Report to write, without its suffix [default: report].
    #[arg(long, short = 'o', value_name = "PATH")]
    pub output: Option<String>,
    /// Output format [default: text on a terminal, else shell].
    #[arg(long)]
    pub format: Option<RerunFormat>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// Output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RerunFormat {
    /// Explained, for people.
    #[value(alias = "table")]
    Text,
    /// One line for a POSIX shell.
    Shell,
    /// A shell script.
    Script,
    /// JSON with stable field names.
    Json,
}
