//! Call tree of the host's code, with the devices' idle time under each call.

use super::triage::{Cause, FunctionKey, HostTime, LaunchSum, LineTime, TimeCategory, frame_label};
use crate::model::{Activity, StackFrame};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A function, as reached by one call path.
#[derive(Clone, Debug, PartialEq)]
pub struct CallNode {
    /// The function, with the line that accounts for most of its time. A node without a function is a wait for the
    /// interpreter lock that another thread holds.
    pub frame: StackFrame,
    pub depth: u32,
    pub parent: Option<u32>,
    /// Longest first.
    pub children: Vec<u32>,
    /// Inclusive idle time (with callees), ns; `own_ns` is the exclusive idle time.
    pub ns: i64,
    pub own_ns: i64,
    /// Idle time attributed to the line of `frame`, ns; part of `ns`.
    pub line_ns: i64,
    pub samples: u64,
    /// Main cause of the idle time, and the thread's most common activity.
    pub cause: Cause,
    pub activity: Activity,
    /// Longest idle interval in the function (start, end), ns; if it has none, a moment at which it was running.
    pub longest: (i64, i64),
    /// Launches by the function and its callees, and the host time spent in them.
    pub launching: LaunchSum,
}

impl CallNode {
    /// Formats the node, e.g. `collate (dataset.py:88)`.
    pub fn label(&self) -> String {
        frame_label(&self.frame)
    }

    pub fn category(&self) -> TimeCategory {
        self.cause.part()
    }

    /// Converts the node to a row of a table of lines.
    pub fn to_line(&self) -> LineTime {
        LineTime {
            frame: self.frame.clone(),
            inside: None,
            activity: self.activity,
            held_by: None,
            ns: self.ns,
            line_ns: self.line_ns,
            samples: self.samples,
            cause: self.cause,
            longest: self.longest,
            launching: self.launching,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallTree {
    /// Parents precede their children.
    pub nodes: Vec<CallNode>,
    /// Longest first.
    pub roots: Vec<u32>,
    /// Idle time under all roots (`known`) and idle time without samples (`unknown`), ns.
    pub known: i64,
    pub unknown: i64,
}

/// A function and the index of its frame; `None` for the holder of the interpreter lock, which has no frame.
type Call = (FunctionKey, Option<u32>);

/// Running sums for a node.
struct Sum {
    name: FunctionKey,
    parent: Option<u32>,
    depth: u32,
    ns: f64,
    own: f64,
    samples: u64,
    lines: FxHashMap<u32, f64>,
    causes: FxHashMap<Cause, f64>,
    activities: FxHashMap<Activity, f64>,
    longest: (i64, i64),
    launching: LaunchSum,
    /// Host time of each frame, for nodes without idle time.
    host_lines: FxHashMap<u32, f64>,
}

/// Parent and function of a node.
type NodeKey = (Option<u32>, FunctionKey);

/// Nodes under construction: `ids` maps a parent and a function to an index into `list`.
#[derive(Default)]
struct Sums {
    ids: FxHashMap<NodeKey, u32>,
    list: Vec<Sum>,
}

impl Sums {
    /// Calls `add` for each node on a path, outermost first, with the node's frame and a flag that is true for the
    /// innermost node.
    fn add_path(
        &mut self,
        time: &HostTime,
        stack: Option<u32>,
        holder: Option<Call>,
        longest: (i64, i64),
        add: impl Fn(&mut Sum, Option<u32>, bool),
    ) {
        let frames: Vec<u32> = time.frames_of(stack).collect();
        let named = frames.iter().rev().filter_map(|&f| {
            let frame = time.frames.get(f as usize)?;
            Some((time.function_key(frame), Some(f)))
        });
        let mut path: Vec<Call> = Vec::new();
        for call in holder.into_iter().chain(named) {
            // A function that calls itself is one node, at its innermost line.
            match path.last_mut() {
                Some(last) if last.0 == call.0 => *last = call,
                _ => path.push(call),
            }
        }
        if path.is_empty() {
            path.push(((Arc::from(time.label_without_stack()), None, None), None));
        }
        let mut parent = None;
        let last = path.len() - 1;
        for (depth, (function, frame)) in path.into_iter().enumerate() {
            let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            let id = *self.ids.entry((parent, function.clone())).or_insert(next);
            if id == next {
                self.list.push(Sum {
                    name: function,
                    parent,
                    depth: u32::try_from(depth).unwrap_or(u32::MAX),
                    ns: 0.0,
                    own: 0.0,
                    samples: 0,
                    lines: FxHashMap::default(),
                    causes: FxHashMap::default(),
                    activities: FxHashMap::default(),
                    longest,
                    launching: LaunchSum::default(),
                    host_lines: FxHashMap::default(),
                });
            }
            if let Some(sum) = self.list.get_mut(id as usize) {
                add(sum, frame, depth == last);
            }
            parent = Some(id);
        }
    }
}

/// Returns the key with the largest sum. Ties go to the smallest key, so that the result does not depend on map order.
fn largest<K: Copy + Ord>(of: impl Iterator<Item = (K, f64)>) -> Option<K> {
    of.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|e| e.0)
}

impl CallNode {
    /// Length of the longest idle time in which the host was in the function, ns. Only a part of that time may be the
    /// function's, which has no more than all of its own.
    pub fn longest_ns(&self) -> i64 {
        (self.longest.1 - self.longest.0).min(self.ns)
    }
}

impl CallTree {
    /// Builds the tree. `name_of` names the thread that held the interpreter lock.
    pub fn from_time(time: &HostTime, name_of: impl Fn(u32) -> String) -> Self {
        let mut sums = Sums::default();
        let mut known = 0.0;
        for entry in &time.times {
            known += entry.ns;
            let holder =
                entry.held_by.map(|thread| ((Arc::from(format!("interpreter lock (GIL), held by {}", name_of(thread))), None, None), None));
            sums.add_path(time, entry.stack, holder, entry.longest, |sum, frame, innermost| {
                sum.ns += entry.ns;
                sum.own += if innermost { entry.ns } else { 0.0 };
                sum.samples += entry.samples;
                if let Some(frame) = frame {
                    *sum.lines.entry(frame).or_default() += entry.ns;
                }
                *sum.causes.entry(entry.cause).or_default() += entry.ns;
                *sum.activities.entry(entry.activity).or_default() += entry.ns;
                if entry.longest.1 - entry.longest.0 > sum.longest.1 - sum.longest.0 {
                    sum.longest = entry.longest;
                }
            });
        }
        for entry in &time.launching {
            sums.add_path(time, entry.stack, None, (entry.time, entry.time), |sum, frame, _| {
                sum.launching.add(&entry.sum);
                if let Some(frame) = frame {
                    *sum.host_lines.entry(frame).or_default() += entry.sum.weight();
                }
            });
        }
        let nodes: Vec<CallNode> = sums
            .list
            .into_iter()
            .map(|sum| {
                let lines = if sum.lines.is_empty() { &sum.host_lines } else { &sum.lines };
                let line = largest(lines.iter().map(|(&f, &ns)| (f, ns)));
                let bare = StackFrame { function: sum.name.0, file: sum.name.1, ..StackFrame::default() };
                CallNode {
                    frame: line.and_then(|f| time.frames.get(f as usize)).cloned().unwrap_or(bare),
                    depth: sum.depth,
                    parent: sum.parent,
                    children: Vec::new(),
                    ns: sum.ns.round() as i64,
                    own_ns: sum.own.round() as i64,
                    line_ns: line.and_then(|l| sum.lines.get(&l)).map_or(0, |ns| ns.round() as i64),
                    samples: sum.samples,
                    cause: largest(sum.causes.into_iter()).unwrap_or(Cause::Unknown),
                    activity: largest(sum.activities.into_iter().map(|(a, ns)| (a as u8, ns)))
                        .and_then(|a| Activity::ALL.get(usize::from(a)).copied())
                        .unwrap_or_default(),
                    longest: sum.longest,
                    launching: sum.launching,
                }
            })
            .collect();
        let mut out = Self { nodes, roots: Vec::new(), known: known.round() as i64, unknown: time.unknown };
        out.link();
        out
    }

    /// Fills in the lists of children.
    fn link(&mut self) {
        let key = |nodes: &[CallNode], id: u32| {
            let node = nodes.get(id as usize);
            (std::cmp::Reverse(node.map_or(0, |n| n.ns)), node.map(|n| n.frame.function.clone()))
        };
        for id in 0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX) {
            match self.nodes[id as usize].parent {
                Some(parent) => self.nodes[parent as usize].children.push(id),
                None => self.roots.push(id),
            }
        }
        for id in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[id].children);
            children.sort_by_cached_key(|&c| key(&self.nodes, c));
            self.nodes[id].children = children;
        }
        let mut roots = std::mem::take(&mut self.roots);
        roots.sort_by_cached_key(|&r| key(&self.nodes, r));
        self.roots = roots;
    }

    /// Returns nodes in depth-first order down to a depth, omitting those below a minimum share of all idle time.
    pub fn listed_nodes(&self, depth: Option<u32>, least: f64) -> Vec<u32> {
        let mut out = Vec::new();
        let mut open: Vec<u32> = self.roots.iter().rev().copied().collect();
        while let Some(id) = open.pop() {
            let Some(node) = self.nodes.get(id as usize).filter(|n| depth.is_none_or(|d| n.depth < d)) else { continue };
            if node.ns as f64 >= least * self.known as f64 {
                out.push(id);
                open.extend(node.children.iter().rev());
            }
        }
        out
    }
}
