//! `warpscope ranges`.

use super::triage_args::Ranges;
use super::{Failure, interrupt, print};
use crate::analysis::range_tree::RangeTree;
use crate::import::{Parts, Wants};
use crate::model::Cancel;
use crate::report::{self, Format};
use std::path::PathBuf;

/// Prints the tree of ranges.
pub fn print_ranges(args: &Ranges, nsys: Option<PathBuf>) -> Result<(), Failure> {
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
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => report::ranges::write_json(out, &profile, &tree, &rows),
        format => report::ranges::print_rows(out, &profile, &tree, &rows, format, print::terminal_width()),
    })
}
