//! `ranges`: tree of ranges with device time.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::{Format, table};
use crate::analysis::flops::peak_of_all;
use crate::analysis::range_tree::RangeTree;
use crate::analysis::table::Column;
use crate::analysis::table::ranges::{self, RangeRow};
use crate::model::Profile;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// Nodes in tree order, down to a depth; with a filter, only nodes whose name contains it, ignoring case.
pub fn listed_nodes(tree: &RangeTree, depth: Option<u32>, filter: &str) -> Vec<u32> {
    let needle = filter.to_lowercase();
    let mut out = Vec::new();
    let mut stack: Vec<u32> = tree.roots.iter().rev().copied().collect();
    while let Some(id) = stack.pop() {
        let Some(node) = tree.nodes.get(id as usize).filter(|n| depth.is_none_or(|d| n.depth < d)) else { continue };
        if needle.is_empty() || node.name.to_lowercase().contains(&needle) {
            out.push(id);
        }
        stack.extend(node.children.iter().rev());
    }
    out
}

fn range_rows<'a>(profile: &Profile, tree: &'a RangeTree, rows: &'a [u32]) -> impl Iterator<Item = RangeRow<'a>> {
    let peak = peak_of_all(profile);
    rows.iter().filter_map(move |&id| RangeRow::new(tree, id, peak))
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct RangesJson<'a> {
    /// Time of kernels that no range encloses.
    outside_ns: i64,
    rows: Rows<'a, RangeRow<'a>>,
}

impl JsonDocument for RangesJson<'_> {
    const NAME: &'static str = "ranges";
}

impl TableRow for RangeRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        ranges::columns(true)
    }
}

/// Writes the nodes as JSON.
pub fn write_json(out: &mut dyn Write, profile: &Profile, tree: &RangeTree, rows: &[u32]) -> io::Result<()> {
    let document = RangesJson { outside_ns: tree.outside.0, rows: Rows::new(range_rows(profile, tree, rows)) };
    let largest = rows.iter().filter_map(|&id| tree.nodes.get(id as usize)).filter(|n| n.busy > 0).max_by_key(|n| n.busy);
    let next = largest
        .map(|n| NextJson::on_report("triage", &profile.source, ["--range", &n.name, "--format", "json"], "says what limits this range"));
    Envelope::of_profile(profile).then(next).write(out, &document)
}

/// Prints nodes in a format other than JSON.
pub fn print_rows(
    out: &mut dyn Write,
    profile: &Profile,
    tree: &RangeTree,
    rows: &[u32],
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let counted = rows.iter().any(|&id| tree.nodes[id as usize].flops > 0.0);
    table::print_rows(ranges::columns(counted), range_rows(profile, tree, rows), out, format, width)
}
