//! `ranges`: tree of ranges, with the devices' time.

use super::Format;
use super::table::{self, Cell, Column};
use super::top::SourceJson;
use super::triage::format_flops;
use crate::analysis::flops::peak_of_all;
use crate::analysis::range_tree::{Node, RangeTree};
use crate::model::units::format_percent;
use crate::model::{Nanos, Profile, RangeOrigin, units};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    path: Vec<&'a str>,
    depth: u32,
    origin: &'static str,
    count: u64,
    wall_ns: i64,
    avg_ns: f64,
    min_ns: i64,
    max_ns: i64,
    self_ns: i64,
    gpu_busy_ns: i64,
    gpu_idle_ns: i64,
    gpu_span_ns: i64,
    backward: bool,
    kernels: u64,
    copies: u64,
    collectives: u64,
    flops: Option<f64>,
    flops_per_second: Option<f64>,
    mfu_percent: Option<f64>,
    start_ns: i64,
    end_ns: i64,
}

/// Maximum levels of a written path, and of indentation of a tree.
const DEEPEST: usize = 32;

/// Name of a range's origin.
pub fn origin_word(origin: RangeOrigin) -> &'static str {
    match origin {
        RangeOrigin::Nvtx => "nvtx",
        RangeOrigin::Operator => "operator",
        RangeOrigin::Annotation => "annotation",
        RangeOrigin::Python => "python",
        RangeOrigin::Roctx => "roctx",
        RangeOrigin::Wave => "wave",
        RangeOrigin::Instruction => "instruction",
    }
}

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

fn average_wall(n: &Node) -> f64 {
    n.wall as f64 / n.count.max(1) as f64
}

/// Writes the nodes as JSON, one after another.
pub fn write_json(out: &mut dyn Write, profile: &Profile, tree: &RangeTree, rows: &[u32]) -> io::Result<()> {
    let peak = peak_of_all(profile);
    write!(out, "{{\"source\":{},\"outside_ns\":{},\"rows\":[", super::json_text(&SourceJson::from(&profile.source))?, tree.outside.0)?;
    for (at, &id) in rows.iter().enumerate() {
        let n = &tree.nodes[id as usize];
        let row = RowJson {
            name: &n.name,
            path: tree
                .path_from_root(id)
                .into_iter()
                .rev()
                .take(DEEPEST)
                .rev()
                .filter_map(|p| tree.nodes.get(p as usize))
                .map(|n| n.name.as_str())
                .collect(),
            depth: n.depth,
            origin: origin_word(n.origin),
            count: n.count,
            wall_ns: n.wall,
            avg_ns: average_wall(n),
            min_ns: n.min,
            max_ns: n.max,
            self_ns: n.own,
            gpu_busy_ns: n.busy,
            gpu_idle_ns: n.idle,
            gpu_span_ns: n.projected,
            backward: n.backward,
            kernels: n.kernels,
            copies: n.copies,
            collectives: n.collectives,
            flops: Some(n.flops).filter(|f| *f > 0.0),
            flops_per_second: n.flops_per_second(),
            mfu_percent: mfu(n, peak).map(|u| u * 100.0),
            start_ns: n.first,
            end_ns: n.last,
        };
        if at > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(super::json_text(&row)?.as_bytes())?;
    }
    writeln!(out, "]}}")
}

const COLUMNS: &[(&str, &str, bool, u8)] = &[
    ("depth", "depth", true, 9),
    ("name", "range", false, 0),
    ("count", "count", true, 1),
    ("wall_ns", "host", true, 0),
    ("gpu_busy_ns", "GPU busy", true, 0),
    ("gpu_idle_ns", "GPU idle", true, 2),
    ("kernels", "kernels", true, 3),
    ("copies", "copies", true, 5),
    ("collectives", "NCCL", true, 6),
    ("self_ns", "self", true, 4),
    ("avg_ns", "avg", true, 4),
    ("min_ns", "min", true, 8),
    ("max_ns", "max", true, 7),
    ("flops_per_second", "FLOP/s", true, 5),
    ("mfu_percent", "MFU", true, 5),
    ("origin", "by", false, 9),
];

/// Floating-point rate of a node, from its first to its last operation on the devices, as a share of the peak.
pub fn mfu(n: &Node, peak: Option<f64>) -> Option<f64> {
    Some(n.flops_per_second()? / peak.filter(|p| *p > 0.0)?)
}

/// Name of a node with its count: `decode # ×16`.
pub fn node_label(n: &Node) -> String {
    let backward = if n.backward { "backward: " } else { "" };
    let count =
        if n.count > 1 { format!(" ×{}", units::format_grouped(i64::try_from(n.count).unwrap_or(i64::MAX))) } else { String::new() };
    format!("{backward}{}{count}", n.name)
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
    let people = matches!(format, Format::Table | Format::Md);
    let peak = peak_of_all(profile);
    let counted = rows.iter().any(|&id| tree.nodes[id as usize].flops > 0.0);
    let column = |&(field, title, right, rank): &(&'static str, &'static str, bool, u8)| Column {
        field,
        title,
        right,
        machine_only: matches!(field, "depth" | "origin" | "count") || !counted && matches!(field, "flops_per_second" | "mfu_percent"),
        rank,
    };
    let columns: Vec<Column> = COLUMNS.iter().map(column).collect();
    let rows = rows.iter().map(|&id| {
        let n = &tree.nodes[id as usize];
        let ns = |v: i64| Cell::with_raw(v, Nanos(v).to_string());
        let count = |v: u64| Cell::with_raw(v, units::format_grouped(i64::try_from(v).unwrap_or(i64::MAX)));
        let name = if people { format!("{}{}", "  ".repeat((n.depth as usize).min(DEEPEST)), node_label(n)) } else { n.name.clone() };
        vec![
            Cell::text(n.depth.to_string()),
            Cell::text(name),
            count(n.count),
            ns(n.wall),
            ns(n.busy),
            ns(n.idle),
            count(n.kernels),
            count(n.copies),
            count(n.collectives),
            ns(n.own),
            Cell::with_raw(average_wall(n), Nanos::format_ns(average_wall(n))),
            ns(n.min),
            ns(n.max),
            n.flops_per_second().map_or_else(|| Cell::text(""), |f| Cell::with_raw(f, format_flops(f))),
            mfu(n, peak).map_or_else(|| Cell::text(""), |u| Cell::with_raw(u * 100.0, format_percent(u * 100.0))),
            Cell::text(origin_word(n.origin)),
        ]
    });
    table::print_rows(&columns, rows, out, format, width)
}
