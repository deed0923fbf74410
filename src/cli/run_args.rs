//! Arguments of `run`, `attach` and `runs`.

use super::values::word_parser;
use super::values::{check_kernel, parse_percent};
use super::which_args::Which;
use crate::report::Format;
use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

/// `warpscope run`.
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct Run {
    /// Profiler: trace (built in), nsys, ncu, torch, rocprofv3 [default: trace if libcupti is found, else nsys, else ncu].
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Recipe, by its word in `warpscope recipes` [default: trace; of nsys exact, of ncu scan].
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// Shorthand for `--recipe trace-survey`: counters of the kernels that take the most time, without ncu; PERCENT of the run's time may be added [default: 3].
    #[arg(long, conflicts_with_all = ["recipe", "tool"], value_name = "PERCENT", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = parse_percent)]
    pub survey: Option<f64>,
    /// Measure counters of KERNEL's next launches while the program runs, or with #N of its N-th launch from 1, without ncu; may be repeated.
    #[arg(long, value_name = "KERNEL[#N]", value_parser = check_kernel)]
    pub measure: Vec<String>,
    /// Sample the stall reasons of KERNEL's first launch, or with #N of its N-th from 1, instruction by instruction, without ncu; may be repeated.
    #[arg(long, value_name = "KERNEL[#N]", value_parser = check_kernel)]
    pub stalls: Vec<String>,
    #[command(flatten)]
    pub which: Which,
    /// Built-in tracer only: stacks of the threads that launch, of Python code (the default) or none.
    #[arg(long, value_name = "WHICH", value_parser = ["python", "off"])]
    pub stacks: Option<String>,
    /// Built-in tracer only: samples of each of these threads a second [default: 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub stack_rate: Option<u32>,
    /// NVTX range to record, for the recipe that needs one: NAME, or NAME@DOMAIN.
    #[arg(long, value_name = "NAME")]
    pub range: Option<String>,
    /// Only this kernel, by its exact name, for recipes that choose launches.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub kernel: Option<String>,
    /// Launches to skip first.
    #[arg(long, value_name = "N")]
    pub launch_skip: Option<u64>,
    /// Launches to profile.
    #[arg(long, value_name = "N")]
    pub launch_count: Option<u64>,
    /// Seconds that the tracer or PyTorch's profiler records.
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Under mpirun, srun or torchrun: one report per rank.
    #[arg(long)]
    pub ranks: bool,
    /// Report to write, without its suffix [default: in the run library].
    #[arg(long, short = 'o', value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Tag of the run; may be repeated.
    #[arg(long, value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tag: Vec<String>,
    /// Detach: the run continues even if this ssh session ends; `warpscope attach` shows it.
    #[arg(long, conflicts_with = "tty")]
    pub detach: bool,
    /// Give the terminal to the program, for prompts, full-screen output or a debugger. Its output is not kept.
    #[arg(long)]
    pub tty: bool,
    /// Without the explorer: output to stderr, the reports' names to stdout.
    #[arg(long)]
    pub plain: bool,
    /// Run even if preflight checks found a blocker.
    #[arg(long)]
    pub force: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub program: Vec<String>,
}

/// `warpscope attach`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct Attach {
    /// A run's number; or, with `--open`, `--close`, `--measure` and `--snapshot`, a program that `warpscope trace` started: PATH of its -o, a file, a
    /// folder, a process id [default: the newest run in progress].
    pub what: Option<PathBuf>,
    /// Record a program that was started without warpscope; without PID, list the programs that use a GPU. Ends with Ctrl-C or --seconds; the program goes on.
    #[arg(long, group = "word", value_name = "PID", num_args = 0..=1, value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "what")]
    pub pid: Option<Option<i32>>,
    /// With --pid: record for SECONDS seconds.
    #[arg(long, value_name = "SECONDS", requires = "pid", value_parser = super::values::parse_seconds)]
    pub seconds: Option<f64>,
    /// Without the explorer: output to stderr, the reports' names to stdout.
    #[arg(long)]
    pub plain: bool,
    /// Stop the run; each repetition escalates: INT, TERM, KILL.
    #[arg(long, group = "word")]
    pub stop: bool,
    /// Built-in tracer only: start recording now.
    #[arg(long, group = "word")]
    pub open: bool,
    /// Built-in tracer only: stop recording; the program keeps running.
    #[arg(long, group = "word")]
    pub close: bool,
    /// Built-in tracer only: save the last seconds as a report, and print its name.
    #[arg(long, group = "word")]
    pub snapshot: bool,
    /// Built-in tracer only: measure counters of the next launches of KERNEL, by its function or mangled name.
    #[arg(long, group = "word", value_name = "KERNEL", value_parser = NonEmptyStringValueParser::new())]
    pub measure: Option<String>,
    /// Length of the snapshot, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "snapshot", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub last: u32,
    /// Name of the snapshot [default: beside the run's traces]; with --pid, of the trace, PATH.PID.wstrace [default: attached].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `warpscope watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct Watch {
    /// A run's number, or a program that `warpscope trace` started: PATH of its -o, a file, a folder, a process id [default: the newest run in progress].
    pub what: Option<PathBuf>,
    /// Without the explorer: a line each second.
    #[arg(long)]
    pub plain: bool,
    /// Lines as text or as JSON objects.
    #[arg(long, value_name = "FORMAT", value_parser = ["table", "json"])]
    pub format: Option<String>,
    /// End after so many seconds; the program keeps running.
    #[arg(long, value_name = "SECONDS", value_parser = super::values::parse_seconds)]
    pub seconds: Option<f64>,
}

/// `warpscope runs`.
#[derive(Clone, Debug, clap::Args)]
pub struct Runs {
    /// Action [default: list].
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// Actions on recorded runs.
#[derive(Clone, Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, the newest first.
    List {
        /// Only runs that contain all these words, in program, folder, profiler, recipe, state, tags, notes.
        search: Vec<String>,
        /// Output format [default: table on a terminal, else csv].
        #[arg(long, value_parser = word_parser::<Format>())]
        format: Option<Format>,
    },
    /// Show the details of a run.
    Show {
        /// Number, process while it runs, report, or folder of the run [default: the newest].
        run: Option<PathBuf>,
        /// Output format [default: lines for people].
        #[arg(long, value_parser = word_parser::<Format>())]
        format: Option<Format>,
    },
    /// Free space: delete old runs, compress old reports (they still open). Asks first; runs in progress and those tagged `keep` stay.
    Gc(Gc),
    /// Copy a run's reports into a folder, to share them. They contain the environment of every process; --clean removes it from timelines.
    Export {
        /// The run's number.
        run: i64,
        /// Folder for the copies.
        folder: PathBuf,
        /// For timelines, copy an SQLite export without environment variables, verified byte by byte.
        #[arg(long)]
        clean: bool,
    },
    /// Set a run's note.
    Note {
        /// The run's number.
        run: i64,
        /// The note.
        text: String,
    },
    /// Add tags to a run.
    Tag {
        /// The run's number.
        run: i64,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
        /// Remove them instead.
        #[arg(long)]
        remove: bool,
    },
    /// Delete a run with its reports.
    Delete {
        /// The run's number.
        run: i64,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// `warpscope runs gc`.
#[derive(Clone, Debug, clap::Args)]
pub struct Gc {
    /// Keep the newest N runs.
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Keep the newest runs up to this size of reports: 500M, 10G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub keep_size: Option<u64>,
    /// Compress reports of runs older than DAYS with zstd.
    #[arg(long, value_name = "DAYS")]
    pub pack_after: Option<u32>,
    /// Only show what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Parses a size in bytes, with K, M, G or T (powers of 1024).
fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches(['B', 'b', 'i']);
    let (digits, unit) = match text.chars().last() {
        Some(c) if c.is_ascii_alphabetic() => (&text[..text.len() - 1], Some(c.to_ascii_uppercase())),
        _ => (text, None),
    };
    let factor = match unit {
        None => 1.0,
        Some('K') => 1024.0,
        Some('M') => 1_048_576.0,
        Some('G') => 1_073_741_824.0,
        Some('T') => 1_099_511_627_776.0,
        Some(c) => return Err(format!("unknown size suffix {c}; write 500M or 10G")),
    };
    match digits.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok((n * factor) as u64),
        _ => Err("write a size as 500M or 10G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_with_their_units() {
        assert_eq!((parse_size("10G"), parse_size("1.5 MiB"), parse_size("7")), (Ok(10 << 30), Ok(1_572_864), Ok(7)));
        assert!(parse_size("G").is_err() && parse_size("-1M").is_err() && parse_size("3x").is_err());
    }
}
