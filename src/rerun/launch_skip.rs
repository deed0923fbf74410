//! Counts the launches that ncu sees before the selected one.
//!
//! ncu counts every launch that passes its filters and whose name matches, in the order of the launching API calls on
//! the host, across all threads and streams. The nodes of a CUDA graph count individually, or each graph counts as one
//! launch named `graph` when graphs are profiled as a whole. The count covers all processes that ncu follows.

use super::nvtx::Cover;
use super::tuning_trials::TuningTrials;
use crate::model::kernel::truncated_prefix;
use crate::model::{CallKind, GraphMode, Kernel, NameForm, Profile};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Launches that pass ncu's filters.
#[derive(Debug, Default)]
pub struct Population {
    /// Only launches inside this range.
    pub cover: Option<Cover>,
    /// Excludes launches without a recorded call: the program made them before the capture opened, and a filter that
    /// opens at the same point in the re-run also excludes them.
    pub only_called: bool,
    /// Excludes graph nodes, because graphs are profiled as a whole.
    pub without_nodes: bool,
    /// Calls to `cudaProfilerStart` (true) and `cudaProfilerStop` (false) with their processes and times, if they limit
    /// the capture: after a stop, launches do not count until the next start.
    pub stops: Vec<(u32, i64, bool)>,
    /// Counts only launches before the first stop.
    pub first_window: bool,
}

impl Population {
    /// Returns true if ncu would see the launch.
    pub fn contains_launch(&self, profile: &Profile, row: usize) -> bool {
        !(self.only_called && profile.launches.call(row).is_none()
            || self.without_nodes && profile.launches.graph_node(row).is_some()
            || self.cover.as_ref().is_some_and(|c| !c.contains_launch(profile, row))
            || self.is_stopped(profile, row))
    }

    /// Returns true if the launch follows a `cudaProfilerStop` without a later start.
    pub fn is_stopped(&self, profile: &Profile, row: usize) -> bool {
        if self.stops.is_empty() {
            return false;
        }
        let pid = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| p.pid).unwrap_or_default();
        let at = profile.launches.order_key(row).0;
        let before = &self.stops[..self.stops.partition_point(|c| c.1 <= at)];
        let mut mine = before.iter().rev().filter(|c| c.0 == pid);
        if self.first_window { mine.any(|c| !c.2) } else { mine.next().is_some_and(|c| !c.2) }
    }
}

/// Returns the name of a kernel in the form that ncu compares; `None` if the report does not have that form.
pub fn compared_name(kernel: &Kernel, base: NameForm) -> Option<&str> {
    let given = match base {
        // The function name can be extracted from the demangled name. A mangled name alone is not enough, unless it is
        // a C symbol.
        NameForm::Function => match (&kernel.function, &kernel.demangled, &kernel.mangled) {
            (None, None, Some(mangled)) => (!mangled.starts_with("_Z")).then_some(&**mangled),
            (None, None, None) => None,
            _ => Some(kernel.function()),
        },
        NameForm::Demangled => kernel.demangled.as_deref(),
        NameForm::Mangled => kernel.mangled.as_deref(),
    };
    // An empty name would match every kernel.
    given.filter(|n| !n.is_empty())
}

/// Items that are counted: launches of these kernels, or whole graphs.
#[derive(Debug)]
pub enum Unit {
    /// Launches of the marked kernels, by kernel id.
    Kernels(Vec<bool>),
    /// Graph launches, each represented by its first node. Kernels named `graph` also count.
    Graphs(Vec<bool>),
}

impl Unit {
    /// Selects launches of kernels with this name in this form; all launches if `wanted` is `None`.
    pub fn with_name(profile: &Profile, base: NameForm, wanted: Option<&str>) -> Self {
        // A truncated name matches all names that begin with it.
        let prefix = wanted.and_then(truncated_prefix);
        let same =
            |k: &Kernel, wanted: &str| compared_name(k, base).is_some_and(|n| n == wanted || prefix.is_some_and(|p| n.starts_with(p)));
        Self::Kernels(profile.kernels.iter().map(|k| wanted.is_none_or(|w| same(k, w))).collect())
    }

    pub fn whole_graphs(profile: &Profile) -> Self {
        Self::Graphs(profile.kernels.iter().map(|k| compared_name(k, NameForm::Function) == Some("graph")).collect())
    }

    fn matches_launch(&self, profile: &Profile, row: usize, last_graph: &mut Option<i64>) -> bool {
        let marked = |list: &Vec<bool>| list.get(profile.launches.kernel(row).0 as usize).copied().unwrap_or(false);
        match self {
            Self::Kernels(list) => marked(list),
            Self::Graphs(list) => {
                if profile.launches.graph_node(row).is_none() {
                    return marked(list);
                }
                // Nodes of one graph launch share its call and are adjacent in launch order.
                let call = profile.launches.order_key(row).0;
                last_graph.replace(call) != Some(call)
            }
        }
    }
}

/// Threads that launch candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    pub count: usize,
    /// The threads launch concurrently: their calls overlap, or they alternate after a few launches.
    pub race: bool,
}

/// Lengths of the launch sequences that a thread makes before another thread launches.
#[derive(Default)]
struct Turns {
    last: u64,
    launches: u64,
    count: u64,
}

impl Turns {
    /// Minimum average number of launches per turn for threads to count as taking turns, one waiting while another
    /// runs, as PyTorch's forward and backward threads do. Concurrent threads alternate after one or a few launches.
    const LONG: u64 = 8;

    fn add_launch(&mut self, thread: Option<u32>) {
        self.launches += 1;
        // 0: before the first launch, 1: unknown thread.
        let now = thread.map_or(1, |t| u64::from(t) + 2);
        if std::mem::replace(&mut self.last, now) != now {
            self.count += 1;
        }
    }

    fn are_short(&self) -> bool {
        self.launches < self.count.saturating_mul(Self::LONG)
    }
}

#[derive(Debug, Default)]
pub struct Count {
    /// Candidates before each selected launch (in the requested order) in its own process.
    pub in_process: Vec<u64>,
    /// Candidates before each selected launch in all processes.
    pub in_all: Vec<u64>,
    /// Number of candidates per process.
    pub by_process: BTreeMap<u32, u64>,
    /// Launches before the last selected one that are not candidates.
    pub others: u64,
    /// Threads that launch candidates, up to the last selected launch.
    pub threads: Threads,
    /// Launches with these names and without a recorded call in the counted processes, so that their order is
    /// estimated.
    pub uncalled: u64,
    /// Distinct kernels among the candidates.
    pub kernels: usize,
    /// Distinct combinations of block size and shared memory among the candidates before the first selected launch.
    pub shapes: usize,
    /// Ways in which one of the kernels was compiled and tried before the first selected launch.
    pub variants: usize,
}

/// Counts candidates. `wanted` are rows in launch order; each must be a candidate (or a node of a candidate graph).
pub fn count_candidates(profile: &Profile, population: &Population, unit: &Unit, wanted: &[usize]) -> Count {
    let launches = &profile.launches;
    let pids: Vec<u32> = profile.places.iter().map(|p| p.pid.unwrap_or_default()).collect();
    let pid = |row: usize| launches.place(row).and_then(|p| pids.get(p.0 as usize)).copied().unwrap_or_default();
    let (first, last) = (wanted.iter().min().copied().unwrap_or(0), wanted.iter().max().copied().unwrap_or(0));
    let mine = pid(first);
    let mut turns = Turns::default();
    let mut out = Count::default();
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut all, mut last_graph) = (0_u64, None);
    let mut kernels: BTreeSet<u32> = BTreeSet::new();
    let mut shapes = BTreeSet::new();
    let (mut trials, mut number) = (TuningTrials::default(), 0);
    let mut ends: BTreeMap<(u32, Option<u32>), i64> = BTreeMap::new();
    let mut next = wanted.iter().copied().peekable();
    for row in 0..launches.len() {
        let candidate = unit.matches_launch(profile, row, &mut last_graph);
        let passes = candidate && population.contains_launch(profile, row);
        let of = if candidate || next.peek() == Some(&row) { pid(row) } else { 0 };
        if passes {
            *seen.entry(of).or_default() += 1;
            all += 1;
            kernels.insert(launches.kernel(row).0);
        }
        if candidate && launches.call(row).is_none() && !population.only_called {
            out.uncalled += 1;
        }
        while next.next_if_eq(&row).is_some() {
            // The count includes the launch itself, or the graph whose first node was already seen.
            out.in_process.push(seen.get(&of).copied().unwrap_or_default().saturating_sub(1));
            out.in_all.push(all.saturating_sub(1));
        }
        if row > last {
            continue;
        }
        if let Some(place) =
            launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).filter(|p| p.pid.unwrap_or_default() == mine)
        {
            turns.add_launch(place.thread);
            number += 1;
        }
        if !passes {
            out.others += 1;
            continue;
        }
        if row < first
            && let Some(c) = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize))
        {
            shapes.insert((c.block, c.shared_memory().map(|b| b.0)));
            if let Some(registers) = c.registers.filter(|_| of == mine) {
                trials.add_launch(launches.kernel(row).0, registers, number);
            }
        }
        if let Some((call, cost)) = launches.call(row) {
            let thread = launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| p.thread);
            out.threads.race |= ends.iter().any(|(&(p, t), &end)| p == of && t != thread && end > call);
            ends.insert((of, thread), call.saturating_add(cost));
        }
    }
    out.by_process = seen;
    out.kernels = kernels.len();
    out.shapes = shapes.len();
    out.variants = trials.variants();
    // Count threads per process.
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for (of, _) in ends.keys() {
        *threads.entry(*of).or_default() += 1;
    }
    out.threads.count = threads.into_values().max().unwrap_or(0);
    out.threads.race |= out.threads.count > 1 && turns.are_short();
    out
}

/// Returns true if the processes used CUDA strictly one after another: none made a call while another was active. A
/// parent that waits for a child between its own calls also qualifies.
pub fn one_after_another(profile: &Profile, pids: &BTreeSet<u32>) -> bool {
    let mut busy: BTreeMap<u32, Vec<(i64, i64)>> = pids.iter().map(|&p| (p, Vec::new())).collect();
    for row in 0..profile.launches.len() {
        let pid = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| p.pid).unwrap_or_default();
        if let Some(list) = busy.get_mut(&pid) {
            let start = profile.launches.order_key(row).0;
            list.push((start, profile.launches.call(row).map_or(start, |(call, cost)| call.saturating_add(cost))));
        }
    }
    let calls = &profile.calls;
    for i in 0..calls.len() {
        if let (Some(list), Some(&start), Some(&duration)) =
            (busy.get_mut(&calls.thread_of(i).0), calls.start.get(i), calls.duration.get(i))
        {
            list.push((start, start.saturating_add(duration)));
        }
    }
    for list in busy.values_mut() {
        list.sort_unstable();
    }
    let span = |list: &[(i64, i64)]| Some((list.first()?.0, list.iter().map(|c| c.1).max()?));
    // True if none of A's calls overlaps B's time span.
    let around = |a: &[(i64, i64)], (from, to): (i64, i64)| {
        let at = a.partition_point(|c| c.0 < from);
        a[..at].iter().all(|c| c.1 <= from) && a.get(at).is_none_or(|c| c.0 >= to)
    };
    let lists: Vec<&Vec<(i64, i64)>> = busy.values().collect();
    lists.iter().enumerate().all(|(i, a)| {
        lists[i + 1..].iter().all(|b| match (span(a), span(b)) {
            (Some(x), Some(y)) => around(a, y) || around(b, x),
            _ => true,
        })
    })
}

/// Effect of an API call on the number of calls without a kernel.
#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Launch,
    Begin,
    End,
    None,
}

/// Counts the launch calls without a kernel that some processes made before a given time while no graph was being
/// captured: their kernels are missing from the report. Calls between `cudaStreamBeginCapture` and
/// `cudaStreamEndCapture` never launch directly.
pub fn calls_without_kernel(profile: &Profile, pids: &BTreeSet<u32>, before: i64) -> u64 {
    let calls = &profile.calls;
    let graphs = profile.graphs.is_empty() && profile.capture.graphs != Some(GraphMode::Graph);
    let effects: Vec<Effect> = calls
        .names
        .iter()
        .map(|n| match n.kind {
            CallKind::Launch => Effect::Launch,
            CallKind::GraphLaunch if graphs => Effect::Launch,
            CallKind::Graph if n.name.contains("StreamBeginCapture") => Effect::Begin,
            CallKind::Graph if n.name.contains("StreamEndCapture") => Effect::End,
            _ => Effect::None,
        })
        .collect();
    if !effects.contains(&Effect::Launch) {
        return 0;
    }
    // A graph may contain nothing but copies.
    let copies: HashSet<u32> = profile.memops.iter().filter_map(|op| op.call).collect();
    let mut calls: Vec<(i64, Effect)> = (0..calls.len())
        .filter(|&i| calls.kind(i) != CallKind::GraphLaunch || !u32::try_from(i).is_ok_and(|i| copies.contains(&i)))
        .filter(|&i| pids.contains(&calls.thread_of(i).0) && calls.start[i] < before)
        .filter_map(|i| Some((calls.start[i], *effects.get(*calls.name.get(i)? as usize)?)))
        .filter(|c| c.1 != Effect::None)
        .collect();
    calls.sort_by_key(|c| c.0);
    let mut recording = 0_u32;
    let mut out = 0;
    for (_, effect) in calls {
        match effect {
            Effect::Begin => recording += 1,
            Effect::End => recording = recording.saturating_sub(1),
            Effect::Launch if recording == 0 => out += 1,
            _ => {}
        }
    }
    out
}
