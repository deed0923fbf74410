//! NVTX ranges that enclose a launch: those open on the launching thread when it calls the launch API.
//!
//! Push/pop ranges nest, so a launch has a path from the outermost to the innermost. A launch outside of them all is
//! assigned to the start/end range of its process that was opened last and is still open.

use super::host_frames::{attributed_frame, frame_label};
use crate::model::{Profile, RangeKind, RangeOrigin};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Maximum number of names to show per path.
pub const DEEPEST: usize = 32;

/// Path of a launch outside of all ranges.
pub const NO_PATH: u32 = u32::MAX;

/// The paths of all launches.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Each path: its parent path (or [`NO_PATH`]) and the index of its last name in
    /// [`Ranges::names`](crate::model::Ranges::names).
    pub nodes: Vec<(u32, u32)>,
    /// Path of each launch; empty if the report has no ranges.
    pub of_launch: Arc<Vec<u32>>,
    /// Program lines at which graph kernels were captured.
    pub lines: CapturedLines,
}

/// Program lines at which graph nodes were captured.
#[derive(Clone, Debug, Default)]
pub struct CapturedLines {
    /// Function, file and line.
    pub names: Vec<String>,
    /// Index into `names` for each launch, or [`NO_PATH`]; empty if no line is known.
    pub of_launch: Arc<Vec<u32>>,
}

/// An open range during the sweep over a thread's time.
struct Open {
    end: i64,
    /// Earliest end among this range and all ranges below it on the stack.
    earliest: i64,
    name: u32,
    path: Option<u32>,
}

#[derive(Default)]
struct Interner {
    ids: FxHashMap<(u32, u32), u32>,
    nodes: Vec<(u32, u32)>,
}

impl Interner {
    fn path_names(&self, mut path: u32) -> Vec<u32> {
        let mut names = Vec::new();
        while let Some(&(parent, name)) = self.nodes.get(path as usize) {
            names.push(name);
            path = parent;
        }
        names.reverse();
        names
    }

    /// Appends the inner path to the outer one, without the prefix that both have in common.
    fn join_paths(&mut self, outer: u32, inner: u32) -> u32 {
        let (before, after) = (self.path_names(outer), self.path_names(inner));
        let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        after.into_iter().skip(same).fold(outer, |path, name| self.intern_path(path, name))
    }

    fn intern_path(&mut self, parent: u32, name: u32) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(NO_PATH);
        let id = *self.ids.entry((parent, name)).or_insert(next);
        if id == next {
            self.nodes.push((parent, name));
        }
        id
    }
}

impl Paths {
    /// Finds the path of every launch. O(n log n) in ranges and launches.
    pub fn from_profile(profile: &Profile) -> Self {
        let lines = captured_lines(profile);
        if profile.ranges.is_empty() {
            return Self { lines, ..Self::default() };
        }
        let mut of_launch = vec![NO_PATH; profile.launches.len()];
        let mut interner = Interner::default();
        let by_thread = launches_by(profile, |pid, thread| thread.map(|t| (pid, t)));
        sweep_threads(profile, &by_thread, |row| call_of(profile, row), &mut interner, &mut of_launch);
        if profile.ranges.iter().any(|r| r.kind == RangeKind::StartEnd) {
            let by_process = launches_by(profile, |pid, _| Some(pid));
            sweep_processes(profile, &by_process, &mut interner, &mut of_launch);
        }
        add_captured(profile, &mut interner, &mut of_launch);
        Self { nodes: interner.nodes, of_launch: Arc::new(of_launch), lines }
    }

    /// Path of a launch; `None` outside of all ranges.
    pub fn launch_path(&self, row: usize) -> Option<u32> {
        self.of_launch.get(row).copied().filter(|&p| p != NO_PATH)
    }

    /// Names along a path, outermost first.
    pub fn path_names(&self, profile: &Profile, path: u32) -> Vec<String> {
        let mut out = Vec::new();
        let mut at = path;
        while let Some(&(parent, name)) = self.nodes.get(at as usize) {
            out.push(profile.ranges.label(name));
            at = parent;
        }
        out.reverse();
        out
    }

    /// Formats a path on one line. For a path deeper than [`DEEPEST`], only the outermost and innermost names are
    /// shown, with the number of names omitted between them.
    pub fn path_label(&self, profile: &Profile, path: u32) -> String {
        let mut chain = Vec::new();
        let mut at = path;
        while let Some(&(parent, name)) = self.nodes.get(at as usize) {
            chain.push(name);
            at = parent;
        }
        let name = |&n: &u32| profile.ranges.label(n);
        let names: Vec<String> = if chain.len() <= DEEPEST {
            chain.iter().rev().map(name).collect()
        } else {
            let (inner, outer) = (&chain[..DEEPEST / 2], &chain[chain.len() - DEEPEST / 2..]);
            let between = format!("… {} more …", chain.len() - DEEPEST / 2 * 2);
            outer.iter().rev().map(name).chain([between]).chain(inner.iter().rev().map(name)).collect()
        };
        names.join(" › ")
    }
}

/// Launches that may have ranges, grouped by a key of (process, thread) and sorted by the start of the call.
fn launches_by<K: Eq + std::hash::Hash>(profile: &Profile, key: impl Fn(u32, Option<u32>) -> Option<K>) -> FxHashMap<K, Vec<u32>> {
    let mut out: FxHashMap<K, Vec<u32>> = FxHashMap::default();
    for row in 0..profile.launches.len() {
        let Some(place) = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize)) else {
            continue;
        };
        let (Some(_), Some(key)) = (profile.launches.launched_in(row), key(place.pid.unwrap_or_default(), place.thread)) else {
            continue;
        };
        out.entry(key).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
    }
    for rows in out.values_mut() {
        // Launch order is call order, unless some launches have no calls.
        if !rows.is_sorted_by_key(|&r| call_of(profile, r)) {
            rows.sort_unstable_by_key(|&r| (call_of(profile, r), r));
        }
    }
    out
}

fn call_of(profile: &Profile, row: u32) -> i64 {
    profile.launches.launched_in(row as usize).unwrap_or(i64::MAX)
}

fn captured_lines(profile: &Profile) -> CapturedLines {
    if profile.graph_nodes.is_empty() || !profile.launches.has_graph_nodes() || profile.samples.stacks.is_empty() {
        return CapturedLines::default();
    }
    let mut ids: FxHashMap<String, u32> = FxHashMap::default();
    let mut names = Vec::new();
    let mut of_stack: FxHashMap<u32, u32> = FxHashMap::default();
    let mut line_of = |row: usize| {
        let origin = profile.graph_nodes.origin(profile.launch_pid(row), profile.launches.graph_node(row)?)?;
        let stack = origin.stack?;
        Some(*of_stack.entry(stack).or_insert_with(|| {
            let Some(frame) = attributed_frame(&profile.samples, stack) else { return NO_PATH };
            let next = u32::try_from(names.len()).unwrap_or(NO_PATH);
            *ids.entry(frame_label(frame)).or_insert_with_key(|name| {
                names.push(name.clone());
                next
            })
        }))
    };
    let of_launch: Vec<u32> = (0..profile.launches.len()).map(|row| line_of(row).unwrap_or(NO_PATH)).collect();
    CapturedLines { names, of_launch: Arc::new(of_launch) }
}

/// For each launch in a graph replay, appends the ranges in which its node was captured to its path, except ranges that
/// enclosed both capture and replay.
fn add_captured(profile: &Profile, interner: &mut Interner, of_launch: &mut [u32]) {
    if profile.graph_nodes.is_empty() || !profile.launches.has_graph_nodes() {
        return;
    }
    let mut numbers: FxHashMap<(u32, u64), Option<u32>> = FxHashMap::default();
    let mut origins = Vec::new();
    let mut by_thread: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
    let node_of = |row| Some((profile.launch_pid(row), profile.launches.graph_node(row)?));
    for key in (0..of_launch.len()).filter_map(node_of) {
        numbers.entry(key).or_insert_with(|| {
            let origin = profile.graph_nodes.origin(key.0, key.1)?;
            let number = u32::try_from(origins.len()).ok()?;
            by_thread.entry((origin.pid, origin.thread)).or_default().push(number);
            origins.push(origin);
            Some(number)
        });
    }
    let time_of = |number: u32| origins.get(number as usize).map_or(i64::MAX, |o| o.time);
    for list in by_thread.values_mut() {
        list.sort_by_key(|&n| time_of(n));
    }
    let mut captured = vec![NO_PATH; origins.len()];
    sweep_threads(profile, &by_thread, time_of, interner, &mut captured);
    let mut joined: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (row, path) in of_launch.iter_mut().enumerate() {
        let number = node_of(row).and_then(|key| numbers.get(&key).copied().flatten());
        let Some(inner) = number.and_then(|n| captured.get(n as usize)).copied().filter(|&p| p != NO_PATH) else { continue };
        *path = *joined.entry((*path, inner)).or_insert_with(|| interner.join_paths(*path, inner));
    }
}

fn sweep_threads(
    profile: &Profile,
    launches: &FxHashMap<(u32, u32), Vec<u32>>,
    time_of: impl Fn(u32) -> i64,
    interner: &mut Interner,
    of_launch: &mut [u32],
) {
    let ranges = &profile.ranges;
    let mut by_thread: Vec<Vec<u32>> = vec![Vec::new(); ranges.threads.len()];
    for (i, range) in ranges.iter().enumerate() {
        // Ranges from Python functions belong to a call stack; the program did not mark them.
        if range.kind != RangeKind::StartEnd
            && range.origin != RangeOrigin::Python
            && !range.origin.is_hardware()
            && let (Some(list), Ok(i)) = (by_thread.get_mut(range.thread as usize), u32::try_from(i))
        {
            list.push(i);
        }
    }
    for (thread, mut list) in by_thread.into_iter().enumerate() {
        let Some(launches) = ranges.threads.get(thread).and_then(|t| launches.get(t)) else {
            continue;
        };
        // If two ranges start together, the outer one comes first.
        let key = |&i: &u32| {
            let r = ranges.get(i as usize);
            (r.start, std::cmp::Reverse(r.end))
        };
        if !list.is_sorted_by_key(key) {
            list.sort_by_key(key);
        }
        let mut stack: Vec<Open> = Vec::new();
        let mut next = list.iter().map(|&i| ranges.get(i as usize)).peekable();
        for &row in launches {
            let call = time_of(row);
            while let Some(range) = next.next_if(|r| r.start <= call) {
                // Drop ranges that ended before this one began.
                while stack.last().is_some_and(|o| o.end <= range.start) {
                    stack.pop();
                }
                let earliest = stack.last().map_or(range.end, |o| o.earliest.min(range.end));
                stack.push(Open { end: range.end, earliest, name: range.name, path: None });
            }
            while stack.last().is_some_and(|o| o.end < call) {
                stack.pop();
            }
            // If a range below the top of the stack has ended, it was popped out of order and does not enclose this
            // launch.
            if stack.last().is_some_and(|o| o.earliest < call) {
                stack.retain(|o| o.end >= call);
                let mut earliest = i64::MAX;
                for open in &mut stack {
                    earliest = earliest.min(open.end);
                    (open.earliest, open.path) = (earliest, None);
                }
            }
            let mut path = NO_PATH;
            let known = stack.iter().rposition(|o| o.path.is_some());
            if let Some(at) = known {
                path = stack[at].path.unwrap_or(NO_PATH);
            }
            for open in stack.iter_mut().skip(known.map_or(0, |k| k + 1)) {
                path = interner.intern_path(path, open.name);
                open.path = Some(path);
            }
            of_launch[row as usize] = path;
        }
    }
}

fn sweep_processes(profile: &Profile, launches: &FxHashMap<u32, Vec<u32>>, interner: &mut Interner, of_launch: &mut [u32]) {
    let ranges = &profile.ranges;
    let mut by_process: FxHashMap<u32, Vec<(i64, i64, u32)>> = FxHashMap::default();
    for range in ranges.iter().filter(|r| r.kind == RangeKind::StartEnd) {
        if let Some(&(pid, _)) = ranges.threads.get(range.thread as usize) {
            by_process.entry(pid).or_default().push((range.start, range.end, range.name));
        }
    }
    for (pid, mut list) in by_process {
        let Some(launches) = launches.get(&pid) else {
            continue;
        };
        list.sort_unstable();
        // Open ranges by start, and their ends in order: each launch drops ended ranges and takes the one that started
        // last.
        let mut open: BTreeMap<usize, u32> = BTreeMap::new();
        let mut ends: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        let mut next = list.into_iter().enumerate().peekable();
        for &row in launches {
            let call = call_of(profile, row);
            while let Some((at, (_, end, name))) = next.next_if(|(_, r)| r.0 <= call) {
                open.insert(at, name);
                ends.push(Reverse((end, at)));
            }
            while let Some(Reverse((_, at))) = pop_ended(&mut ends, call) {
                open.remove(&at);
            }
            if of_launch[row as usize] == NO_PATH
                && let Some((_, &name)) = open.last_key_value()
            {
                of_launch[row as usize] = interner.intern_path(NO_PATH, name);
            }
        }
    }
}

/// Pops the range that ended earliest, if that was before `call`.
fn pop_ended(ends: &mut BinaryHeap<Reverse<(i64, usize)>>, call: i64) -> Option<Reverse<(i64, usize)>> {
    if ends.peek().is_some_and(|r| r.0.0 < call) { ends.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::launches::TimesBuilder;
    use crate::model::{LaunchColumns, LaunchSite, Launches, Range, Ranges, Source};

    /// Launches whose calls start at the given times on thread 7 of process 1.
    fn profile(calls: &[i64], ranges: &[(i64, i64, &str, RangeKind)]) -> Profile {
        let mut p = Profile::new(Source::default());
        let mut columns = LaunchColumns::default();
        let (mut since, mut cost) = (TimesBuilder::default(), TimesBuilder::default());
        for &c in calls {
            columns.start.push(c + 1000);
            columns.duration.push(Some(1));
            columns.kernel.push(0);
            since.push(Some(1000));
            cost.push(Some(1));
        }
        p.launches = Launches::new(columns);
        p.launches.set_details(Vec::new(), vec![0; calls.len()], Vec::new(), Vec::new());
        p.launches.set_calls(since, cost);
        p.places.push(LaunchSite { pid: Some(1), thread: Some(7), ..LaunchSite::default() });
        p.ranges = Ranges::default();
        p.ranges.names = ranges.iter().map(|r| (None, r.2.into())).collect();
        p.ranges.threads = vec![(1, 7)];
        for (&(start, end, _, kind), name) in ranges.iter().zip(0..) {
            p.ranges.push(Range { start, end, name, thread: 0, kind, origin: RangeOrigin::Nvtx });
        }
        p
    }

    fn labels(p: &Profile) -> Vec<String> {
        let paths = Paths::from_profile(p);
        (0..p.launches.len()).map(|r| paths.launch_path(r).map_or_else(String::new, |x| paths.path_label(p, x))).collect()
    }

    use RangeKind::{PushPop, StartEnd};

    #[test]
    fn nested_ranges_give_a_path_and_ended_ones_do_not() {
        let p = profile(&[5, 15, 25, 35, 95], &[(10, 90, "a", PushPop), (20, 30, "b", PushPop)]);
        assert_eq!(labels(&p), ["", "a", "a › b", "a", ""]);
    }

    #[test]
    fn ranges_out_of_order_still_open_and_overlapping() {
        let p = profile(&[12, 28, 50], &[(25, 60, "late", PushPop), (10, 30, "early", PushPop), (40, i64::MAX, "open", PushPop)]);
        assert_eq!(labels(&p), ["early", "early › late", "late › open"]);
    }

    #[test]
    fn start_end_ranges_count_only_where_no_push_pop_does() {
        let p = profile(&[15, 25], &[(0, 100, "process", StartEnd), (20, 30, "thread", PushPop)]);
        assert_eq!(labels(&p), ["process", "thread"]);
    }
}
