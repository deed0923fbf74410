//! What a tree of ranges consists of, and what can be asked of it.

use crate::model::{KernelId, Profile, RangeKind, RangeOrigin};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One node: ranges of like names under one parent. Times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// With its domain; numbers as `#` where several ranges are together.
    pub name: String,
    pub origin: RangeOrigin,
    pub kind: RangeKind,
    pub parent: Option<u32>,
    /// Its children, those with the most time on the devices first.
    pub children: Vec<u32>,
    /// Distance from the root.
    pub depth: u32,
    pub count: u64,
    /// Summed length on the host.
    pub wall: i64,
    pub min: i64,
    pub max: i64,
    /// Length without what lies in children of the same thread.
    pub own: i64,
    /// Time in which the devices worked on what was launched inside: the union for each range, summed.
    pub busy: i64,
    /// From the first to the last operation that was launched inside, summed over ranges.
    pub projected: i64,
    /// Time of these ranges on the host in which no device worked.
    pub idle: i64,
    pub kernels: u64,
    pub copies: u64,
    pub collectives: u64,
    /// Floating-point operations of the operators inside whose shapes were recorded; 0 where there are none.
    pub flops: f64,
    /// Earliest start.
    pub first: i64,
    /// Latest end.
    pub last: i64,
    /// A name that is in the report: what a re-run is gated with.
    pub example: u32,
    /// Whether ranges of several names are together.
    pub mixed: bool,
    /// Whether it is of the backward pass, and stands under its forward operator.
    pub backward: bool,
}

impl Node {
    /// Floating-point operations per second from the first to the last operation that was launched inside.
    #[must_use]
    pub fn flops_per_second(&self) -> Option<f64> {
        (self.flops > 0.0 && self.projected > 0).then(|| self.flops / (self.projected as f64 / 1e9))
    }
}

/// A kernel with its time in ns and its launches.
pub type KernelTime = (KernelId, i64, u64);

/// All nodes; the roots have no parent.
#[derive(Clone, Debug, Default)]
pub struct RangeTree {
    pub nodes: Vec<Node>,
    pub roots: Vec<u32>,
    /// Node of each launch: the innermost range around it; [`NONE`](crate::model::range::NONE) outside of all.
    pub of_launch: Arc<Vec<u32>>,
    /// Time of the devices on what was launched outside of every range, and in all, ns: sums of durations.
    pub outside: (i64, i64),
}

impl RangeTree {
    /// The path from the root to a node.
    #[must_use]
    pub fn path(&self, node: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = Some(node);
        while let Some(n) = at.and_then(|n| self.nodes.get(n as usize).map(|node| (n, node))) {
            out.push(n.0);
            at = n.1.parent;
        }
        out.reverse();
        out
    }

    /// Kernels that were launched inside a node with their time in ns and number, longest first.
    #[must_use]
    pub fn kernels(&self, profile: &Profile, node: u32) -> Vec<KernelTime> {
        let mut inside = vec![false; self.nodes.len()];
        let mut stack = vec![node];
        while let Some(n) = stack.pop() {
            if let Some(flag) = inside.get_mut(n as usize) {
                *flag = true;
                stack.extend(&self.nodes[n as usize].children);
            }
        }
        let mut sums: FxHashMap<KernelId, (i64, u64)> = FxHashMap::default();
        for (row, node) in self.of_launch.iter().enumerate() {
            if inside.get(*node as usize).copied().unwrap_or_default() {
                let sum = sums.entry(profile.launches.kernel(row)).or_default();
                sum.0 += profile.launches.duration(row);
                sum.1 += 1;
            }
        }
        let mut out: Vec<KernelTime> = sums.into_iter().map(|(k, (ns, n))| (k, ns, n)).collect();
        out.sort_by_key(|(kernel, ns, _)| (std::cmp::Reverse(*ns), *kernel));
        out
    }

    /// Of a kernel's launches inside a node the one of median duration.
    #[must_use]
    pub fn typical(&self, profile: &Profile, node: u32, kernel: KernelId) -> Option<u32> {
        let mut of: Vec<(i64, u32)> = (0..)
            .zip(self.of_launch.iter())
            .filter(|(row, n)| profile.launches.kernel(*row as usize) == kernel && self.inside(**n, node))
            .map(|(row, _)| (profile.launches.duration(row as usize), row))
            .collect();
        let middle = of.len().checked_sub(1)? / 2;
        Some(of.select_nth_unstable(middle).1.1)
    }

    /// Whether a node is another one, or lies in it.
    #[must_use]
    pub fn inside(&self, node: u32, ancestor: u32) -> bool {
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
