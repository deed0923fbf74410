//! Options of all commands, and the initial state of the explorer.

use super::time_window::Between;
use super::values::{kernel_sort_parser, word_parser};
use crate::analysis::GroupBy;
use crate::analysis::table::Sort;
use crate::app::KeyScope;
use crate::config::ColorMode;
use std::path::PathBuf;

/// Options of all commands.
#[derive(Debug, clap::Args)]
pub struct GlobalArgs {
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
