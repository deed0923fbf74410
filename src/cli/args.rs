//! The command line's grammar.

use crate::analysis::{GroupBy, SortBy};
use crate::app::launches::LaunchSort;
use crate::config::ColorMode;
use crate::report::Format;
use clap::builder::PossibleValue;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Explore GPU profiles in the terminal.
#[derive(Debug, Parser)]
#[command(
    name = "warpscope",
    version,
    about,
    max_term_width = 100,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = false
)]
pub struct Args {
    /// What to do; without a command the reports are opened in the explorer.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Reports to open: .nsys-rep, .qdrep, .sqlite, `nsys stats` CSV; also .gz and .zst of these.
    pub files: Vec<PathBuf>,
    /// Theme [default: dark, sixteen or mono, by the terminal's colours]; `warpscope themes` lists them.
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,
    /// Colours [default: by `NO_COLOR`, `COLORTERM` and `TERM`].
    #[arg(long, global = true)]
    pub color: Option<ColorMode>,
    /// Draw with ASCII characters only [default: unless the locale is UTF-8].
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ascii: Option<bool>,
    /// How the explorer opens.
    #[command(flatten)]
    pub opening: Opening,
    /// Configuration file [default: `$XDG_CONFIG_HOME/warpscope/config.toml`].
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The nsys that exports .nsys-rep files [default: the first that is new enough, on PATH, then where NVIDIA installs it].
    #[arg(long, global = true, value_name = "PATH")]
    pub nsys: Option<PathBuf>,
}

/// How the explorer opens a report.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Opening {
    /// Grouping that the explorer opens with [default: name].
    #[arg(long, value_name = "GROUPING")]
    pub group: Option<GroupBy>,
    /// Order that the explorer opens with [default: total].
    #[arg(long)]
    pub sort: Option<SortBy>,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Rank kernels, or other groups of launches, by time.
    Top(Top),
    /// List kernel launches in launch order.
    Launches(Launches),
    /// Open the explorer on a capture that is built in: a small transformer on an H200.
    Demo(Opening),
    /// List the themes.
    Themes,
}

/// `warpscope top`.
#[derive(Debug, clap::Args)]
pub struct Top {
    /// Report.
    pub file: PathBuf,
    /// What launches are grouped by.
    #[arg(long, default_value = "name")]
    pub by: GroupBy,
    /// What groups are ranked by.
    #[arg(long, default_value = "total")]
    pub sort: SortBy,
    /// List at most N groups.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Only groups whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long)]
    pub format: Option<Format>,
}

/// `warpscope launches`.
#[derive(Debug, clap::Args)]
pub struct Launches {
    /// Report.
    pub file: PathBuf,
    /// Only launches of this kernel: an exact function or demangled name, else a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Order [default: launch order on the host].
    #[arg(long)]
    pub sort: Option<LaunchSort>,
    /// List at most N launches.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long)]
    pub format: Option<Format>,
}

impl ValueEnum for GroupBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for SortBy {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for LaunchSort {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Csv, Self::Json, Self::Md]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Md => "md",
        }))
    }
}

impl ValueEnum for ColorMode {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::None, Self::Sixteen, Self::Indexed, Self::True]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Self::ALL.iter().find(|(_, m)| m == self).map(|(w, _)| PossibleValue::new(*w))
    }
}
