//! `ranges`: tree of ranges, with the devices' time.

use super::top::SourceJson;
use super::{Format, table};
use crate::analysis::flops::peak_of_all;
use crate::analysis::range_tree::RangeTree;
use crate::analysis::table::ranges::{self, RangeRow};
use crate::model::Profile;
use std::io::{self, Write};

/// Nodes in tree order, down to a depth; with a filter, only nodes whose name contains the filter, ignoring case.
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

/// Writes the nodes as JSON, one after another.
pub fn write_json(out: &mut dyn Write, profile: &Profile, tree: &RangeTree, rows: &[u32]) -> io::Result<()> {
    write!(out, "{{\"source\":{},\"outside_ns\":{},\"rows\":", super::json_text(&SourceJson::from(&profile.source))?, tree.outside.0)?;
    table::write_json_rows(&ranges::columns(true), range_rows(profile, tree, rows), out)?;
    writeln!(out, "}}")
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
