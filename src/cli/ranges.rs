//! `warpscope ranges`: tree of ranges with device time.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::range_tree::RangeTree;
use crate::import::{Parts, Wants};
use crate::model::Cancel;
use crate::report::{self, Format};
use std::path::PathBuf;

/// `warpscope ranges`.
#[derive(Debug, clap::Args)]
pub struct RangesArgs {
    /// Timeline with NVTX ranges, or a PyTorch trace.
    pub file: PathBuf,
    /// Only what happened in this window.
    #[command(flatten)]
    pub between: super::time_window::Between,
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

/// Runs `warpscope ranges`: prints NVTX ranges or operators with the GPU's time inside each.
pub fn print_ranges(args: &RangesArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let profile = interrupt::open_report(&args.file, nsys, Wants::EXPLORER.with(Parts::RANGE_DETAILS))?;
    print::warn(&profile);
    let between = args.between.to_window().map_err(Failure::usage)?;
    let Some(tree) = RangeTree::from_window(&profile, between, &Cancel::default()) else { return Ok(()) };
    if tree.nodes.is_empty() && between.is_some() && !profile.ranges.is_empty() {
        return Err(Failure::wrong(format!("{}: no range is open between these times", args.file.display())));
    }
    if tree.nodes.is_empty() {
        return Err(Failure::wrong(format!(
            "{}: it has no ranges; mark steps and layers: {}",
            args.file.display(),
            crate::analysis::checklist::range_apis(profile.is_amd())
        )));
    }
    let rows = report::ranges::listed_nodes(&tree, args.depth, args.filter.as_deref().unwrap_or_default());
    let format = print::format_or_default(args.format);
    print::to_stdout(|out| match format {
        Format::Json => report::ranges::write_json(out, &profile, &tree, &rows),
        format => report::ranges::print_rows(out, &profile, &tree, &rows, format, print::terminal_width()),
    })?;
    if format != Format::Json
        && let Some(text) = tree.outside_text()
    {
        print::note(&text);
    }
    Ok(())
}
