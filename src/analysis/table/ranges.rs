//! Columns for the range tree.

use super::column::{Column, Outputs};
use super::sort::Sort;
use super::value::{Unit, Value};
use crate::analysis::range_tree::{Node, RangeTree};
use crate::model::RangeOrigin;
use crate::model::units;
use std::borrow::Cow;

/// A node of the tree, with the data for its cells.
#[derive(Clone, Copy)]
pub struct RangeRow<'p> {
    pub tree: &'p RangeTree,
    pub id: u32,
    pub node: &'p Node,
    /// Peak rate of the devices, FLOP/s.
    pub peak: Option<f64>,
}

impl<'p> RangeRow<'p> {
    /// Creates the row of a node; `None` if there is no such node.
    pub fn new(tree: &'p RangeTree, id: u32, peak: Option<f64>) -> Option<Self> {
        Some(Self { tree, id, node: tree.nodes.get(id as usize)?, peak })
    }

    fn path(&self) -> Vec<Cow<'p, str>> {
        let mut ids = self.tree.path_from_root(self.id);
        ids.drain(..ids.len().saturating_sub(DEEPEST));
        ids.into_iter().filter_map(|id| self.tree.nodes.get(id as usize)).map(|n| Cow::Borrowed(n.name.as_str())).collect()
    }
}

/// Maximum number of levels in a printed path, and of indentation in a tree.
pub const DEEPEST: usize = 32;

pub const GPU_BUSY: Sort = Sort::descending("GPU busy", 'g');
pub const GPU_IDLE: Sort = Sort::descending("GPU idle", 'i');
pub const NAME: Sort = Sort::ascending("name", 'n');

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

/// Model FLOPs utilization of a node: its floating-point rate, from its first to its last operation on the devices, as
/// a share of the peak.
pub fn mfu(n: &Node, peak: Option<f64>) -> Option<f64> {
    Some(n.flops_per_second()? / peak.filter(|p| *p > 0.0)?)
}

/// Label of a node, with its count: `decode # ×16`.
pub fn node_label(n: &Node) -> String {
    let backward = if n.backward { "backward: " } else { "" };
    let count = if n.count > 1 { format!(" ×{}", units::format_grouped(n.count)) } else { String::new() };
    format!("{backward}{}{count}", n.name)
}

type RangeColumn<'p> = Column<RangeRow<'p>>;

/// A time on the host; absent for ranges that were not open in the shown time, of which only the work on a GPU is in it.
fn on_host<'a>(r: &RangeRow<'_>, ns: i64) -> Value<'a> {
    Value::maybe_int(Some(ns).filter(|_| r.node.count > 0))
}

/// Columns, in order. `counted` is true if some nodes have floating-point work.
pub fn columns<'p>(counted: bool) -> Vec<RangeColumn<'p>> {
    const MACHINE: Outputs = Outputs::CSV.with(Outputs::JSON);
    let rates = if counted { Outputs::PRINTED } else { MACHINE };
    vec![
        RangeColumn::new("depth", "depth", Unit::Id, "level in the tree, from 0", |r| Value::int(r.node.depth)).only(MACHINE),
        RangeColumn::new("name", "range", Unit::Text, "name of the range; numbers that differ are #", |r| {
            let indent = "  ".repeat((r.node.depth as usize).min(DEEPEST));
            Value::Labelled(Cow::Borrowed(&r.node.name), format!("{indent}{}", node_label(r.node)).into())
        })
        .sorted(NAME),
        RangeColumn::new("path", "path", Unit::Path, "names from the root to the range", |r| Value::Path(r.path())).only(Outputs::JSON),
        RangeColumn::new("count", "count", Unit::Count, "number of ranges", |r| Value::int(r.node.count))
            .only(MACHINE)
            .sorted(Sort::descending("count", 'c')),
        RangeColumn::new("wall_ns", "host", Unit::Ns, "time on the host", |r| on_host(r, r.node.wall))
            .priority(1)
            .on_screen(8)
            .sorted(Sort::descending("host", 'h')),
        RangeColumn::new(
            "gpu_busy_ns",
            "GPU busy",
            Unit::Ns,
            "time in which the GPU worked (kernels, memcpys, memsets) on what was launched inside",
            |r| Value::Int(r.node.busy),
        )
        .on_screen(8)
        .sorted(GPU_BUSY),
        RangeColumn::new(
            "gpu_idle_ns",
            "GPU idle",
            Unit::Ns,
            "time on the host in which no GPU worked, from the first operation of the report to the last",
            |r| on_host(r, r.node.idle),
        )
        .priority(2)
        .on_screen(8)
        .sorted(GPU_IDLE),
        RangeColumn::new(
            "gpu_span_ns",
            "GPU span",
            Unit::Ns,
            "from the start of the first operation on the GPU to the end of the last",
            |r| Value::Int(r.node.projected),
        )
        .only(Outputs::JSON),
        RangeColumn::new("backward", "backward", Unit::Flag, "in the backward pass", |r| Value::Flag(r.node.backward, ""))
            .only(Outputs::JSON),
        RangeColumn::new("kernels", "kernels", Unit::Count, "kernels launched inside", |r| Value::int(r.node.kernels))
            .priority(4)
            .on_screen(8),
        RangeColumn::new("copies", "memops", Unit::Count, "memcpys and memsets launched inside", |r| Value::int(r.node.copies))
            .priority(7)
            .on_screen(7),
        RangeColumn::new("collectives", "NCCL", Unit::Count, "kernels of collectives launched inside", |r| Value::int(r.node.collectives))
            .priority(4)
            .on_screen(6),
        RangeColumn::new(
            "helpers_percent",
            "helpers",
            Unit::Percent,
            "share of this work that other threads launched while this one waited (a backward pass)",
            |r| Value::maybe_real(r.node.helped_percent()),
        )
        .only(Outputs::SCREEN.with(Outputs::JSON))
        .priority(10)
        .on_screen(8),
        RangeColumn::new("self_ns", "self", Unit::Ns, "time on the host outside of inner ranges", |r| on_host(r, r.node.own))
            .priority(5)
            .on_screen(8)
            .sorted(Sort::descending("self", 'f')),
        RangeColumn::new("avg_ns", "avg", Unit::Ns, "mean time on the host", |r| {
            Value::maybe_real(Some(r.node.wall as f64 / r.node.count as f64).filter(|_| r.node.count > 0))
        })
        .priority(3)
        .on_screen(8),
        RangeColumn::new("min_ns", "min", Unit::Ns, "shortest time on the host", |r| on_host(r, r.node.min)).priority(9).on_screen(8),
        RangeColumn::new("max_ns", "max", Unit::Ns, "longest time on the host", |r| on_host(r, r.node.max)).priority(6).on_screen(8),
        RangeColumn::new("flops", "FLOPs", Unit::Count, "floating-point operations of the operators with recorded shapes", |r| {
            Value::maybe_real(Some(r.node.flops).filter(|f| *f > 0.0))
        })
        .only(Outputs::JSON),
        RangeColumn::new(
            "flops_per_second",
            "FLOP/s",
            Unit::FlopPerSecond,
            "their rate from the first to the last operation on the GPU",
            |r| Value::maybe_real(r.node.flops_per_second()),
        )
        .only(rates)
        .priority(4)
        .on_screen(12),
        RangeColumn::new("mfu_percent", "MFU", Unit::Percent, "rate as a share of the GPUs' dense BF16 peak", |r| {
            Value::maybe_real(mfu(r.node, r.peak).map(|u| u * 100.0))
        })
        .only(rates)
        .priority(4)
        .on_screen(6),
        RangeColumn::new("start_ns", "start", Unit::Time, "start of the first range", |r| Value::Int(r.node.first))
            .only(Outputs::JSON)
            .sorted(Sort::ascending("start", 't')),
        RangeColumn::new("end_ns", "end", Unit::Time, "end of the last range", |r| Value::Int(r.node.last)).only(Outputs::JSON),
        RangeColumn::new("origin", "by", Unit::Text, "what marked the range: nvtx, roctx, annotation, operator, python", |r| {
            Value::text(origin_word(r.node.origin))
        })
        .only(MACHINE),
    ]
}

/// Sorts sibling nodes; ties are sorted by name.
pub fn sort_nodes(tree: &RangeTree, by: Sort, ids: &mut [u32], ascending: bool) {
    let columns = columns(true);
    let Some(value) = by.column(&columns).map(|c| c.value) else { return };
    let key = |id: u32| {
        let number = RangeRow::new(tree, id, None).map_or(i64::MIN, |r| value(&r).sort_key());
        let name = tree.nodes.get(id as usize).map(|n| n.name.clone());
        (if ascending { number } else { number.saturating_neg() }, name)
    };
    ids.sort_by_cached_key(|&id| key(id));
    if by == NAME && !ascending {
        ids.reverse();
    }
}
