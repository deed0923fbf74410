//! Builds the range tree: nests the ranges of each thread, assigns operations to the ranges around their calls, and
//! adds up times.

mod backward;
mod helper_threads;
mod links;

use super::node::{Node, RangeTree};
use crate::analysis::flops::{Operators, may_multiply};
use crate::analysis::name_pattern::name_pattern;
use crate::analysis::triage::device_ops::{Class, DeviceOp, DeviceOps, OperationRow, clamp_time};
use crate::analysis::triage::intervals::{Covered, Intervals};
use crate::model::range::NONE;
use crate::model::{Cancel, Profile, Range, RangeKind, RangeOrigin};
use backward::Backward;
use helper_threads::ThreadKey;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Maximum number of enclosing ranges to which an operation's time is added; no plausible program nests more deeply.
const DEEPEST: usize = 256;

/// A range and the running sums of its operations.
#[derive(Clone, Copy)]
struct Instance {
    parent: u32,
    node: u32,
    /// First start and last end of the range's operations, and the time in which at least one of them ran, ns.
    first: i64,
    until: i64,
    busy: i64,
    /// Device time of joined backward operators, ns. It is kept apart because it lies outside the span of the forward
    /// operations.
    later: i64,
    /// Relation to the parent.
    link: Link,
    /// True for an operator whose floating-point operations are counted.
    counted: bool,
}

/// Relation of a range to its parent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Link {
    /// It is inside of the parent, on the same thread.
    Inside,
    /// A backward operator, whose parent is its forward operator rather than the range around it.
    Forward,
    /// It is open on a thread that launches work while the parent's thread waits.
    Helper,
}

/// Innermost node around each launch and each copy, and the tree's `outside`.
struct Operations {
    of_launch: Vec<u32>,
    of_memop: Vec<u32>,
    outside: (i64, i64),
}

struct Builder<'a> {
    profile: &'a Profile,
    window: Option<(i64, i64)>,
    nodes: Vec<Node>,
    ids: FxHashMap<(u32, u32, RangeOrigin, Link), u32>,
    /// End assigned to ranges that are still open at the end of the report, by process: after the last event on the host.
    ends: FxHashMap<u32, i64>,
    /// Index into `texts` of each name's pattern.
    likes: Vec<u32>,
    texts: Vec<String>,
    instances: Vec<Instance>,
    /// Ranges of each thread with their instances, in order of start.
    by_thread: Vec<Vec<(u32, u32)>>,
    /// Process-level ranges: start, end, node.
    of_process: Vec<(i64, i64, u32)>,
    /// Threads on which the program marked ranges, by process: thread id, index into `by_thread`.
    marked: FxHashMap<u32, Vec<(u32, usize)>>,
    /// Pairs of a thread that launches work for another, and that thread.
    helpers: FxHashSet<(ThreadKey, ThreadKey)>,
}

/// Marks an instance whose ancestors are still being resolved, to detect cycles.
const PENDING: u32 = NONE - 1;

impl Instance {
    fn new(parent: u32, node: u32) -> Self {
        Self { parent, node, first: i64::MAX, until: i64::MIN, busy: 0, later: 0, link: Link::Inside, counted: false }
    }
}

impl RangeTree {
    /// Builds the tree; it is empty if there are no ranges. `None` if cancelled.
    pub fn from_profile(profile: &Profile, cancel: &Cancel) -> Option<Self> {
        Self::from_window(profile, None, cancel)
    }

    /// Builds the tree for a window, ns (from, to). It contains the ranges open in the window, with their host time
    /// clipped to it, and the operations that started in it.
    pub fn from_window(profile: &Profile, window: Option<(i64, i64)>, cancel: &Cancel) -> Option<Self> {
        let mut builder = Builder::new(profile, window);
        builder.collect_threads();
        if cancel.is_cancelled() {
            return None;
        }
        builder.assign_flops();
        let operations = builder.assign_operations(cancel)?;
        builder.add_idle_times();
        Some(builder.finish_tree(operations))
    }
}

/// Returns the time after the last call and the last closed range of each process.
fn last_events(profile: &Profile) -> FxHashMap<u32, i64> {
    let ranges = &profile.ranges;
    let mut out: FxHashMap<u32, i64> = FxHashMap::default();
    let mut add = |pid: u32, end: i64| {
        let last = out.entry(pid).or_insert(i64::MIN);
        *last = (*last).max(clamp_time(end).saturating_add(1));
    };
    for range in ranges.iter() {
        if let Some(&(pid, _)) = ranges.threads.get(range.thread as usize) {
            add(pid, if range.end == i64::MAX { range.start } else { range.end });
        }
    }
    for row in 0..profile.calls.len() {
        add(profile.calls.thread_of(row).0, profile.calls.start[row].saturating_add(profile.calls.duration[row]));
    }
    for row in 0..profile.launches.len() {
        if let Some((start, cost)) = profile.launches.call(row) {
            add(profile.launch_pid(row), start.saturating_add(cost));
        }
    }
    out
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, window: Option<(i64, i64)>) -> Self {
        let ranges = &profile.ranges;
        let mut ids: FxHashMap<String, u32> = FxHashMap::default();
        let mut texts = Vec::new();
        let likes = (0..u32::try_from(ranges.names.len()).unwrap_or(u32::MAX))
            .map(|n| {
                let text = name_pattern(&ranges.label(n));
                *ids.entry(text.clone()).or_insert_with(|| {
                    texts.push(text);
                    u32::try_from(texts.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        Self {
            profile,
            window,
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            ends: if ranges.iter().any(|r| r.end == i64::MAX) { last_events(profile) } else { FxHashMap::default() },
            likes,
            texts,
            instances: Vec::with_capacity(ranges.len()),
            by_thread: vec![Vec::new(); ranges.threads.len()],
            of_process: Vec::new(),
            marked: FxHashMap::default(),
            helpers: FxHashSet::default(),
        }
    }

    fn intern_node(&mut self, parent: u32, range: Range, link: Link) -> u32 {
        let Range { name, origin, kind, .. } = range;
        let like = self.likes.get(name as usize).copied().unwrap_or_default();
        let next = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let id = *self.ids.entry((parent, like, origin, link)).or_insert(next);
        if id == next {
            let depth = self.nodes.get(parent as usize).map_or(0, |p| p.depth + 1);
            self.nodes.push(Node {
                name: self.texts.get(like as usize).cloned().unwrap_or_default(),
                origin,
                kind,
                parent: (parent != NONE).then_some(parent),
                children: Vec::new(),
                depth,
                count: 0,
                wall: 0,
                min: i64::MAX,
                max: 0,
                own: 0,
                busy: 0,
                projected: 0,
                idle: 0,
                beyond: 0,
                kernels: 0,
                copies: 0,
                work: 0,
                helped: 0,
                collectives: 0,
                flops: 0.0,
                kernel_ns: 0,
                unknown_ns: 0,
                first: i64::MAX,
                last: i64::MIN,
                example: name,
                mixed: false,
                backward: link == Link::Forward,
                elsewhere: link != Link::Inside,
            });
        }
        let node = &mut self.nodes[id as usize];
        node.mixed |= node.example != name;
        id
    }

    /// Collects the ranges of each thread, outer before inner.
    fn collect_threads(&mut self) {
        let ranges = &self.profile.ranges;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); ranges.threads.len()];
        for (row, range) in (0..).zip(ranges.iter()) {
            if range.kind != RangeKind::StartEnd
                && range.origin != RangeOrigin::Python
                && !range.origin.is_hardware()
                && let Some(list) = rows.get_mut(range.thread as usize)
            {
                list.push(row);
            }
        }
        let mut backward = Backward::default();
        let engine: Vec<bool> = ranges.names.iter().map(|(_, n)| backward::is_engine(n)).collect();
        for (thread, mut list) in rows.into_iter().enumerate() {
            let key = |&row: &u32| {
                let r = ranges.get(row as usize);
                (r.start, std::cmp::Reverse(r.end))
            };
            if !list.is_sorted_by_key(key) {
                list.sort_by_key(key);
            }
            // End and instance of each open range.
            let mut open: Vec<(i64, u32)> = Vec::new();
            for row in list {
                let (start, end) = self.range_times(row);
                while open.last().is_some_and(|o| o.0 <= start) {
                    open.pop();
                }
                let parent = open.last().map_or(NONE, |o| o.1);
                let instance = u32::try_from(self.instances.len()).unwrap_or(NONE);
                self.instances.push(Instance::new(parent, NONE));
                if let Some(s) = ranges.operator(row as usize).map(|o| o.sequence).filter(|&s| s != NONE) {
                    if !engine[ranges.get(row as usize).name as usize] {
                        backward.add_forward(s, (start, instance, thread));
                    } else if parent == NONE {
                        backward.add_engine(s, (start, instance, thread));
                    }
                }
                open.push((end, instance));
                self.by_thread[thread].push((row, instance));
            }
        }
        self.link_backward(backward);
        self.link_helpers();
        self.nodes_of_instances();
    }

    /// Start and end of a range. Ranges that are still open when the report ends last until after everything else that
    /// their process did.
    fn range_times(&self, row: u32) -> (i64, i64) {
        let range = self.profile.ranges.get(row as usize);
        let start = clamp_time(range.start);
        if range.end < i64::MAX {
            return (start, clamp_time(range.end).max(start));
        }
        let thread = self.profile.ranges.threads.get(range.thread as usize);
        (start, thread.and_then(|(pid, _)| self.ends.get(pid)).copied().unwrap_or(start).max(start))
    }

    /// Clips a range to the window; `None` if it is outside.
    fn clip_to_window(&self, start: i64, end: i64) -> Option<(i64, i64)> {
        let Some((from, to)) = self.window else { return Some((start, end)) };
        (start < to && (end > from || start >= from)).then(|| (start.max(from), end.min(to)))
    }

    /// Returns true if `start` is inside the window, or if there is no window.
    fn began_inside(&self, start: i64) -> bool {
        self.window.is_none_or(|(from, to)| (from..to).contains(&start))
    }

    /// Merges instances with the same name pattern and parent node into one node, and adds up their host times.
    fn nodes_of_instances(&mut self) {
        let lists = std::mem::take(&mut self.by_thread);
        // Instances are numbered thread by thread, so this list maps an instance to its row.
        let rows: Vec<u32> = lists.iter().flatten().map(|&(row, _)| row).collect();
        let mut up = Vec::new();
        for at in 0..rows.len() {
            // The parent may be a forward operator of a thread that comes later, so walk up to an instance that already
            // has a node.
            let mut instance = at;
            while self.instances[instance].node == NONE {
                self.instances[instance].node = PENDING;
                up.push(instance);
                match self.instances.get(self.instances[instance].parent as usize) {
                    // No plausible program has a cycle of ranges: cut the link.
                    Some(parent) if parent.node == PENDING => {
                        (self.instances[instance].parent, self.instances[instance].link) = (NONE, Link::Inside);
                        break;
                    }
                    Some(_) => instance = self.instances[instance].parent as usize,
                    None => break,
                }
            }
            while let Some(instance) = up.pop() {
                let Instance { parent, link, .. } = self.instances[instance];
                let parent_node = self.instances.get(parent as usize).map_or(NONE, |i| i.node);
                let node = self.intern_node(parent_node, self.profile.ranges.get(rows[instance] as usize), link);
                self.instances[instance].node = node;
                let whole = self.range_times(rows[instance]);
                let Some((start, end)) = self.clip_to_window(whole.0, whole.1) else { continue };
                self.add_time(node, (start, end), (start, end) == whole);
                if let Some(&row) = rows.get(parent as usize).filter(|_| link == Link::Inside) {
                    // A range that was not popped in order may extend beyond its parent, so count only the part inside.
                    self.nodes[parent_node as usize].own -= self.range_times(row).1.min(end) - start;
                }
            }
        }
        self.by_thread = lists;
    }

    /// Adds the part of a range inside the window; one that is cut off says nothing about how short the range can be.
    fn add_time(&mut self, node: u32, (start, end): (i64, i64), whole: bool) {
        let length = end - start;
        let n = &mut self.nodes[node as usize];
        n.count += 1;
        n.wall = n.wall.saturating_add(length);
        n.own = n.own.saturating_add(length);
        if whole {
            n.min = n.min.min(length);
        }
        n.max = n.max.max(length);
        n.first = n.first.min(start);
        n.last = n.last.max(end);
    }

    /// Assigns every operation to the innermost range around its call, and adds its time to that range and all ranges
    /// around it.
    fn assign_operations(&mut self, cancel: &Cancel) -> Option<Operations> {
        let ops = DeviceOps::from_profile(self.profile);
        let threads: FxHashMap<(u32, u32), usize> = self.profile.ranges.threads.iter().copied().zip(0..).collect();
        let mut out = Operations {
            of_launch: vec![NONE; self.profile.launches.len()],
            of_memop: vec![NONE; self.profile.memops.len()],
            outside: (0, 0),
        };
        let process = self.process_ranges();
        let has_flops = self.instances.iter().any(|i| i.counted);
        let multiplies: Vec<bool> = if has_flops { self.profile.kernels.iter().map(may_multiply).collect() } else { Vec::new() };
        for (at, op) in ops.iter().enumerate() {
            if at % (1 << 16) == 0 && cancel.is_cancelled() {
                return None;
            }
            if !self.began_inside(op.start) {
                continue;
            }
            out.outside.1 = i64::saturating_add(out.outside.1, op.end - op.start);
            let origin = ops.find_origin(&op);
            let own = origin.and_then(|(pid, tid, time)| self.innermost_range(*threads.get(&(pid, tid))?, time));
            let found = own.or_else(|| {
                let (pid, tid, time) = origin?;
                if let Some(instance) = self.range_of_waiting((pid, tid), time) {
                    return Some(instance);
                }
                let list = process.get(&pid)?;
                // The latest range that is still open.
                let until = list.partition_point(|r| r.0 <= time);
                list[..until].iter().rev().take(64).find(|r| r.1 >= time).map(|r| r.2)
            });
            let Some(mut instance) = found else {
                out.outside.0 = i64::saturating_add(out.outside.0, op.end - op.start);
                continue;
            };
            let node = self.instances[instance as usize].node;
            match op.row {
                OperationRow::Launch(row) => out.of_launch[row as usize] = node,
                OperationRow::Mem(row) => out.of_memop[row as usize] = node,
                OperationRow::Graph(_) => {}
            }
            let length = if has_flops && op.class == Class::Kernel { op.end - op.start } else { 0 };
            let candidate = || match op.row {
                OperationRow::Launch(row) => multiplies.get(self.profile.launches.kernel(row as usize).0 as usize).is_none_or(|m| *m),
                _ => true,
            };
            let is_missing = length > 0 && candidate() && self.may_be_missing(instance, ops.in_graph(&op).is_some());
            let missing = if is_missing { length } else { 0 };
            // Ancestors of a forward operator get only the part of this operation's time that was new to the backward
            // operator.
            let mut joined = None;
            let mut helps = own.is_none() && origin.is_some_and(|o| self.is_helper((o.0, o.1)));
            for _ in 0..DEEPEST {
                let Some(i) = self.instances.get_mut(instance as usize) else { break };
                if let Some(new) = joined {
                    i.later = i.later.saturating_add(new);
                } else {
                    let new = (op.end - op.start.max(i.until)).max(0);
                    i.first = i.first.min(op.start);
                    i.busy = i.busy.saturating_add(new);
                    i.until = i.until.max(op.end);
                    joined = (i.link == Link::Forward).then_some(new);
                }
                let (node, parent, link) = (i.node, i.parent, i.link);
                self.count_operation(node, &op);
                let n = &mut self.nodes[node as usize];
                n.work = n.work.saturating_add(op.end - op.start);
                if helps {
                    n.helped = n.helped.saturating_add(op.end - op.start);
                }
                helps |= link == Link::Helper;
                n.kernel_ns = n.kernel_ns.saturating_add(length);
                n.unknown_ns = n.unknown_ns.saturating_add(missing);
                instance = parent;
            }
        }
        Some(out)
    }

    /// Adds the floating-point work of operators to all enclosing ranges.
    fn assign_flops(&mut self) {
        let mut operators = Operators::from_profile(self.profile);
        for &(row, instance) in self.by_thread.iter().flatten() {
            let range = self.profile.ranges.get(row as usize);
            let Some(flops) = operators.operator_flops(row as usize, range.name).filter(|_| self.began_inside(range.start)) else {
                continue;
            };
            if let Some(own) = self.instances.get_mut(instance as usize) {
                own.counted = true;
            }
            let mut at = instance;
            for _ in 0..DEEPEST {
                let Some(i) = self.instances.get(at as usize) else { break };
                self.nodes[i.node as usize].flops += flops;
                at = i.parent;
            }
        }
    }

    /// Returns true if the floating-point work of an operation that was launched in a range may be missing from the
    /// sums: no operator around it was counted, or it is part of a graph, whose replays have no operators.
    fn may_be_missing(&self, mut instance: u32, in_graph: bool) -> bool {
        for _ in 0..DEEPEST {
            let Some(i) = self.instances.get(instance as usize).filter(|_| !in_graph) else { break };
            if i.counted {
                return false;
            }
            instance = i.parent;
        }
        true
    }

    /// For each node, adds up the time during which its ranges were open and all devices were idle.
    fn add_idle_times(&mut self) {
        let mut busy = Intervals::default();
        for op in DeviceOps::from_profile(self.profile).iter() {
            busy.push(op.start, op.end);
        }
        let busy = Covered::from_intervals(&busy);
        let Some((first, last)) = busy.span() else { return };
        let mut open = std::mem::take(&mut self.of_process);
        for &(row, instance) in self.by_thread.iter().flatten() {
            let (start, end) = self.range_times(row);
            open.push((start, end, self.instances[instance as usize].node));
        }
        // Time before the first and after the last operation is not idle: the work has not started or is done.
        for (start, end, node) in open {
            let Some((start, end)) = self.clip_to_window(start, end).filter(|(start, end)| start < end) else { continue };
            let (from, to) = (start.max(first), end.min(last));
            let inside = (to - from).max(0);
            self.nodes[node as usize].beyond += end - start - inside;
            if inside > 0 {
                self.nodes[node as usize].idle += inside - busy.length_within(from, to);
            }
        }
    }

    fn count_operation(&mut self, node: u32, op: &DeviceOp) {
        let node = &mut self.nodes[node as usize];
        match op.class {
            Class::Kernel => node.kernels += 1,
            Class::Collective => node.collectives += 1,
            Class::Copy => node.copies += 1,
        }
    }

    /// Process-level ranges (start, end, instance), in order of start.
    fn process_ranges(&mut self) -> FxHashMap<u32, Vec<(i64, i64, u32)>> {
        let ranges = &self.profile.ranges;
        let mut out: FxHashMap<u32, Vec<(i64, i64, u32)>> = FxHashMap::default();
        let found: Vec<_> = ranges.iter().filter(|r| r.kind == RangeKind::StartEnd).collect();
        for range in found {
            let pid = ranges.threads.get(range.thread as usize).map_or(0, |t| t.0);
            let node = self.intern_node(NONE, range, Link::Inside);
            let instance = u32::try_from(self.instances.len()).unwrap_or(NONE);
            self.instances.push(Instance::new(NONE, node));
            let start = clamp_time(range.start);
            let whole = (start, if range.end == i64::MAX { start } else { clamp_time(range.end).max(start) });
            if let Some((start, end)) = self.clip_to_window(whole.0, whole.1) {
                self.add_time(node, (start, end), (start, end) == whole);
                self.of_process.push((start, end, node));
            }
            out.entry(pid).or_default().push((range.start, range.end, instance));
        }
        for list in out.values_mut() {
            list.sort_unstable();
        }
        out
    }

    /// Returns the innermost range of a thread that is open at a time.
    fn innermost_range(&self, thread: usize, time: i64) -> Option<u32> {
        let list = self.by_thread.get(thread)?;
        let ranges = &self.profile.ranges;
        let until = list.partition_point(|&(row, _)| ranges.get(row as usize).start <= time);
        // Start with the last range that was opened; if it has ended, try the ranges around it.
        let mut at = list.get(until.checked_sub(1)?)?.1;
        let base = list.first()?.1;
        loop {
            let (row, _) = *list.get((at - base) as usize)?;
            if ranges.get(row as usize).end >= time {
                return Some(at);
            }
            at = self.instances.get(at as usize)?.parent;
            // A parent on another thread is a forward operator, which does not enclose the operation.
            if at == NONE || at < base || (at - base) as usize >= list.len() {
                return None;
            }
        }
    }

    /// Removes nodes without ranges or operations in the window. Nodes always come after their parents.
    fn prune_nodes(&mut self, operations: &mut Operations) {
        let mut kept: Vec<bool> = self.nodes.iter().map(|n| n.count > 0 || n.kernels + n.copies + n.collectives > 0).collect();
        for id in (0..self.nodes.len()).rev() {
            if let Some(parent) = self.nodes[id].parent.filter(|_| kept[id]) {
                kept[parent as usize] = true;
            }
        }
        let mut next = 0;
        let numbers: Vec<u32> = kept
            .iter()
            .map(|&kept| {
                next += u32::from(kept);
                if kept { next - 1 } else { NONE }
            })
            .collect();
        let number = |node: u32| numbers.get(node as usize).copied().unwrap_or(NONE);
        let mut kept = kept.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or_default());
        for node in &mut self.nodes {
            node.parent = node.parent.map(number);
            if node.count == 0 {
                // The range itself is outside the window; only some of its operations started inside.
                (node.first, node.last) = self.window.unwrap_or_default();
            }
        }
        for node in operations.of_launch.iter_mut().chain(&mut operations.of_memop) {
            *node = number(*node);
        }
    }

    fn finish_tree(mut self, mut operations: Operations) -> RangeTree {
        for i in &self.instances {
            let node = &mut self.nodes[i.node as usize];
            node.busy += i.busy + i.later;
            node.projected += i.later;
            if i.first < i64::MAX {
                node.projected += i.until - i.first;
            }
        }
        if self.window.is_some() {
            self.prune_nodes(&mut operations);
        }
        let mut roots = Vec::new();
        for id in 0..self.nodes.len() {
            let number = u32::try_from(id).unwrap_or(NONE);
            match self.nodes[id].parent {
                Some(parent) => self.nodes[parent as usize].children.push(number),
                None => roots.push(number),
            }
            if !self.nodes[id].mixed {
                self.nodes[id].name = self.profile.ranges.label(self.nodes[id].example);
            }
            self.nodes[id].min = self.nodes[id].min.min(self.nodes[id].max);
        }
        let weight: Vec<(i64, i64)> = self.nodes.iter().map(|n| (-n.busy, -n.wall)).collect();
        for node in &mut self.nodes {
            node.children.sort_by_key(|&c| (weight[c as usize], c));
        }
        roots.sort_by_key(|&c| (weight[c as usize], c));
        let Operations { of_launch, of_memop, outside } = operations;
        RangeTree { nodes: self.nodes, roots, of_launch: Arc::new(of_launch), of_memop: Arc::new(of_memop), outside }
    }
}
