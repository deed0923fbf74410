//! Nodes of the range tree, and queries on them.

use crate::analysis::flops::MOST_UNKNOWN;
use crate::analysis::median_launch::median_launch;
use crate::model::{KernelId, Profile, RangeKind, RangeOrigin};
use std::sync::Arc;

/// A node: ranges with the same parent whose names differ only in numbers. Times are in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Name with its domain; numbers are replaced with `#` if ranges with different names are merged.
    pub name: String,
    pub origin: RangeOrigin,
    pub kind: RangeKind,
    pub parent: Option<u32>,
    /// Children by device time, longest first.
    pub children: Vec<u32>,
    /// Distance from the root.
    pub depth: u32,
    pub count: u64,
    /// Total length on the host.
    pub wall: i64,
    pub min: i64,
    pub max: i64,
    /// Total length without the time in children on the same thread.
    pub own: i64,
    /// Time during which a device ran operations launched inside, counting overlapping operations of one range once,
    /// and summed over ranges.
    pub busy: i64,
    /// Time from the first to the last operation launched inside, summed over ranges.
    pub projected: i64,
    /// Host time of these ranges during which all devices were idle.
    pub idle: i64,
    /// Host time of these ranges before the first and after the last operation of the report, ns.
    pub beyond: i64,
    pub kernels: u64,
    pub copies: u64,
    pub collectives: u64,
    /// Sum of the durations of all operations launched inside, ns, and the part of it that other threads launched while
    /// the thread of these ranges waited.
    pub work: i64,
    pub helped: i64,
    /// Floating-point operations of the operators inside whose shapes were recorded; 0 if there are none.
    pub flops: f64,
    /// Kernel time inside, and the part of it in kernels that may multiply matrices but whose operations are not known;
    /// sums of durations, ns. Both are 0 if no operator has recorded shapes.
    pub kernel_ns: i64,
    pub unknown_ns: i64,
    /// Earliest start.
    pub first: i64,
    /// Latest end.
    pub last: i64,
    /// Index of one of the merged names, used as the capture range of a re-run.
    pub example: u32,
    /// True if ranges with different names are merged.
    pub mixed: bool,
    /// True for ranges of the backward pass, which are placed under their forward operators.
    pub backward: bool,
    /// True if these ranges were open on another thread than the parent's.
    pub elsewhere: bool,
}

impl Node {
    /// Share of the work that other threads launched while the thread of these ranges waited, in percent; `None` if they
    /// launched nothing.
    pub fn helped_percent(&self) -> Option<f64> {
        (self.helped > 0).then(|| self.helped as f64 / self.work.max(1) as f64 * 100.0)
    }

    /// Floating-point operations per second, over the time from the first to the last operation launched inside; `None`
    /// if too many of the operations are not known.
    pub fn flops_per_second(&self) -> Option<f64> {
        let known = self.unknown_ns as f64 <= MOST_UNKNOWN * self.kernel_ns as f64;
        (self.flops > 0.0 && self.projected > 0 && known).then(|| self.flops / (self.projected as f64 / 1e9))
    }
}

/// All nodes; the roots have no parent.
#[derive(Clone, Debug, Default)]
pub struct RangeTree {
    pub nodes: Vec<Node>,
    pub roots: Vec<u32>,
    /// Innermost node around each launch; [`NONE`](crate::model::range::NONE) outside of all ranges.
    pub of_launch: Arc<Vec<u32>>,
    /// The same for each copy.
    pub of_memop: Arc<Vec<u32>>,
    /// Device time of operations launched outside of all ranges, and of all operations, ns: sums of durations.
    pub outside: (i64, i64),
}

impl RangeTree {
    /// Share of GPU time that was launched outside of ranges, percent.
    pub fn outside_percent(&self) -> f64 {
        self.outside.0 as f64 / self.outside.1.max(1) as f64 * 100.0
    }

    /// Says how much GPU time is in no range, if it is 1% or more: work that other threads launch, such as a backward
    /// pass, is in no range of this one.
    pub fn outside_text(&self) -> Option<String> {
        let share = self.outside_percent();
        (share >= 1.0).then(|| format!("{} of GPU time was launched outside of ranges", crate::model::units::format_percent(share)))
    }

    /// Returns the path from the root to a node.
    pub fn path_from_root(&self, node: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = Some(node);
        while let Some(n) = at.and_then(|n| self.nodes.get(n as usize).map(|node| (n, node))) {
            out.push(n.0);
            at = n.1.parent;
        }
        out.reverse();
        out
    }

    /// Returns the launch with the median duration among a kernel's launches inside a node.
    pub fn median_launch(&self, profile: &Profile, node: u32, kernel: KernelId) -> Option<u32> {
        let inside = |(row, n): &(u32, &u32)| profile.launches.kernel(*row as usize) == kernel && self.is_inside(**n, node);
        let rows: Vec<u32> = (0..).zip(self.of_launch.iter()).filter(inside).map(|(row, _)| row).collect();
        median_launch(profile, &rows)
    }

    /// Returns true if a node is `ancestor` or inside it.
    pub fn is_inside(&self, node: u32, ancestor: u32) -> bool {
        let mut at = Some(node);
        while let Some(n) = at {
            if n == ancestor {
                return true;
            }
            at = self.nodes.get(n as usize).and_then(|n| n.parent);
        }
        false
    }
}
