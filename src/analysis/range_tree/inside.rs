//! Device work launched inside a node of the tree: its kernels and its copies.

use super::RangeTree;
use crate::model::{KernelId, MemOpKind, MemoryKind, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A kernel, its time in ns, and its number of launches.
pub type KernelTime = (KernelId, i64, u64);

/// Copies in one direction between memories of the same kinds, or memsets.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyTime {
    pub kind: MemOpKind,
    /// Sum of durations, ns.
    pub ns: i64,
    pub count: u64,
    /// Number of bytes; `None` if it is not known of all of them.
    pub bytes: Option<u64>,
    /// Row of the longest.
    pub longest: u32,
    longest_ns: i64,
}

impl CopyTime {
    /// Name as in a profiler's table: `memcpy HtoD, pageable`.
    pub fn label(&self) -> String {
        let MemOpKind::Copy { kind, from, to } = self.kind else { return "memset".to_owned() };
        let pageable = [from, to].contains(&Some(MemoryKind::Pageable));
        format!("memcpy {}{}", kind.as_str(), if pageable { ", pageable" } else { "" })
    }
}

/// Work launched inside a node, each list by time, longest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkInside {
    pub kernels: Vec<KernelTime>,
    pub copies: Vec<CopyTime>,
}

impl WorkInside {
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty() && self.copies.is_empty()
    }
}

impl RangeTree {
    /// Returns the kernels and copies launched inside a node and the nodes below it.
    pub fn work_inside(&self, profile: &Profile, node: u32) -> WorkInside {
        let mut inside = vec![false; self.nodes.len()];
        let mut stack = vec![node];
        while let Some(n) = stack.pop() {
            if let Some(flag) = inside.get_mut(n as usize) {
                *flag = true;
                stack.extend(&self.nodes[n as usize].children);
            }
        }
        let is_inside = |node: &u32| inside.get(*node as usize).copied().unwrap_or_default();
        let mut sums: FxHashMap<KernelId, (i64, u64)> = FxHashMap::default();
        for (row, _) in self.of_launch.iter().enumerate().filter(|(_, node)| is_inside(node)) {
            let sum = sums.entry(profile.launches.kernel(row)).or_default();
            sum.0 = sum.0.saturating_add(profile.launches.duration(row));
            sum.1 += 1;
        }
        let mut kernels: Vec<KernelTime> = sums.into_iter().map(|(k, (ns, n))| (k, ns, n)).collect();
        kernels.sort_by_key(|(kernel, ns, _)| (Reverse(*ns), *kernel));
        let mut copies: Vec<CopyTime> = Vec::new();
        for (row, _) in (0..).zip(self.of_memop.iter()).filter(|(_, node)| is_inside(node)) {
            let Some(op) = profile.memops.get(row as usize) else { continue };
            let (ns, bytes) = (op.duration.0, op.bytes.map(|b| b.0));
            match copies.iter_mut().find(|c| c.kind == op.kind) {
                None => copies.push(CopyTime { kind: op.kind, ns, count: 1, bytes, longest: row, longest_ns: ns }),
                Some(sum) => {
                    sum.ns = sum.ns.saturating_add(ns);
                    sum.count += 1;
                    sum.bytes = sum.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
                    if ns > sum.longest_ns {
                        (sum.longest, sum.longest_ns) = (row, ns);
                    }
                }
            }
        }
        copies.sort_by_key(|c| Reverse(c.ns));
        WorkInside { kernels, copies }
    }
}
