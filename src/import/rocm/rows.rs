//! Rows common to all formats of AMD's profilers: dispatches, calls, copies and markers, with the profiler's ids.

use super::rocpd_durations::Durations;
use crate::model::{Bytes, Device, LaunchConfig};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: Option<String>,
    pub host: Option<String>,
    /// Rank, taken from an environment variable.
    pub rank: Option<u32>,
    pub world: Option<u32>,
    /// Number of the profiling pass, if the counters required several passes.
    pub pass: Option<u32>,
}

/// An agent of a process: a GPU, or the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    /// The GPU; `None` for the host.
    pub device: Option<Device>,
    /// Number of dies (XCCs), each with its own counters; 0 if unknown.
    pub dies: u32,
    /// Peaks measured by AMD's benchmark: column of `roofline.csv`, and value in bytes or operations per second.
    pub reached: Vec<(Arc<str>, f64)>,
}

/// A kernel symbol loaded by a process on an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Index of the process.
    pub process: u32,
    /// Id that AMD's profiler gave the symbol within the process.
    pub kernel_id: u64,
    /// Name that rocprofv3's filters match against, without `.kd`; empty if unknown.
    pub formatted: Arc<str>,
    /// Name of the symbol in the code object.
    pub mangled: Option<Arc<str>>,
    /// Vector registers per work-item, including accumulation registers.
    pub registers: Option<u32>,
}

/// A kernel dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Indices of process, agent and symbol.
    pub process: u32,
    pub agent: u32,
    pub symbol: u32,
    pub thread: u32,
    /// Position in the order of dispatch packets; 0 if unknown.
    pub id: u64,
    pub queue: u32,
    pub stream: Option<u32>,
    /// Correlation id shared with the launching call.
    pub correlation: u64,
    /// Start, ns.
    pub start: i64,
    pub end: i64,
    pub workgroup: [u32; 3],
    /// Grid size in work-items.
    pub grid: [u32; 3],
    /// LDS in bytes per workgroup, and scratch memory in bytes per work-item.
    pub lds: Option<u32>,
    pub scratch: Option<u32>,
    pub registers: Option<u32>,
}

/// An API call, or a `ROCTx` range or mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub process: u32,
    pub thread: u32,
    /// Index into [`Rows::texts`].
    pub name: u32,
    /// True for a `ROCTx` range or mark.
    pub marker: bool,
    /// True for a range that another thread may end.
    pub of_process: bool,
    pub correlation: u64,
    pub start: i64,
    pub end: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    pub process: u32,
    pub thread: u32,
    /// Agent indices of the source and destination.
    pub from: Option<u32>,
    pub to: Option<u32>,
    /// Index into [`Rows::texts`] of the name that AMD uses for the copy.
    pub name: u32,
    pub bytes: Option<u64>,
    pub stream: Option<u32>,
    pub correlation: u64,
    pub start: i64,
    pub end: i64,
}

/// An allocation (positive `bytes`) or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub process: u32,
    pub agent: Option<u32>,
    pub time: i64,
    pub address: u64,
    pub bytes: i64,
}

/// Value of a counter for one dispatch, summed over the GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    pub process: u32,
    pub dispatch: u64,
    /// Index into [`Rows::texts`].
    pub name: u32,
    pub value: f64,
}

/// All rows of a report.
#[derive(Debug, Default)]
pub struct Rows {
    pub processes: Vec<Process>,
    pub agents: Vec<Agent>,
    pub symbols: Vec<Symbol>,
    pub dispatches: Vec<Dispatch>,
    pub calls: Vec<Call>,
    pub copies: Vec<Copy>,
    pub allocations: Vec<Allocation>,
    pub counters: Vec<Counter>,
    /// Kernel and duration of every dispatch, if nothing more was requested; `dispatches` is empty in that case.
    pub durations: Option<Durations>,
    /// Nodes of HIP graphs, by process and dispatch id.
    pub graph_nodes: FxHashMap<(u32, u64), u64>,
    pub texts: Vec<Arc<str>>,
    /// Thread names.
    pub threads: Vec<(u32, u32, Arc<str>)>,
    /// True if process ids are unknown and thread ids are used instead.
    pub by_guid: bool,
    /// True if the report is from rocprof v1 or v2.
    pub legacy: bool,
    /// True if the report contains only dispatches that have counters.
    pub chosen: bool,
    /// Number of rows with dangling references.
    pub broken: u64,
    /// Number of records from the kernel driver, which are not calls made by the program.
    pub driver_records: u64,
    /// Number of repeated runs of dispatches: rocprofv3 replays kernels to collect more counters.
    pub replays: u64,
}

impl Rows {
    /// Appends the rows of another report from the same run, shifting their indices (except `u32::MAX`, which means
    /// none).
    pub fn append(&mut self, other: Self) {
        let chosen = |rows: &Self| rows.chosen || rows.dispatches.is_empty();
        self.chosen = chosen(self) && chosen(&other) && (self.chosen || other.chosen);
        let after = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let (process, agent, symbol, text) =
            (after(self.processes.len()), after(self.agents.len()), after(self.symbols.len()), after(self.texts.len()));
        self.processes.extend(other.processes);
        self.agents.extend(other.agents);
        self.symbols.extend(other.symbols.into_iter().map(|s| Symbol { process: s.process.saturating_add(process), ..s }));
        self.dispatches.extend(other.dispatches.into_iter().map(|d| Dispatch {
            process: d.process.saturating_add(process),
            agent: d.agent.saturating_add(agent),
            symbol: d.symbol.saturating_add(symbol),
            ..d
        }));
        self.calls.extend(other.calls.into_iter().map(|c| Call {
            process: c.process.saturating_add(process),
            name: c.name.saturating_add(text),
            ..c
        }));
        let agents = |a: Option<u32>| a.map(|a| a.saturating_add(agent));
        self.copies.extend(other.copies.into_iter().map(|c| Copy {
            process: c.process.saturating_add(process),
            name: c.name.saturating_add(text),
            from: agents(c.from),
            to: agents(c.to),
            ..c
        }));
        let allocations = other.allocations.into_iter();
        self.allocations.extend(allocations.map(|a| Allocation {
            process: a.process.saturating_add(process),
            agent: agents(a.agent),
            ..a
        }));
        self.counters.extend(other.counters.into_iter().map(|c| Counter {
            process: c.process.saturating_add(process),
            name: c.name.saturating_add(text),
            ..c
        }));
        let nodes = other.graph_nodes.into_iter();
        self.graph_nodes.extend(nodes.map(|((of, id), node)| ((of.saturating_add(process), id), node)));
        self.texts.extend(other.texts);
        self.threads.extend(other.threads.into_iter().map(|(p, tid, name)| (p.saturating_add(process), tid, name)));
        self.by_guid |= other.by_guid;
        self.legacy |= other.legacy;
        self.broken += other.broken;
        self.driver_records += other.driver_records;
        self.replays += other.replays;
    }

    /// Sets `chosen` if all dispatches of a report have counters: the run collected counters for selected dispatches,
    /// and recorded no others.
    pub fn choose_counted(&mut self) {
        let counted: FxHashSet<(u32, u64)> = self.counters.iter().map(|c| (c.process, c.dispatch)).collect();
        self.chosen |= !counted.is_empty() && self.dispatches.iter().all(|d| counted.contains(&(d.process, d.id)));
    }

    /// Sorts the dispatches by process and id.
    pub fn sort_dispatches(&mut self) {
        let key = |d: &Dispatch| (d.process, d.id, d.correlation, d.start);
        if !self.dispatches.is_sorted_by_key(key) {
            self.dispatches.sort_by_key(key);
        }
    }

    /// Keeps only the first run of each replayed dispatch. The runs of a dispatch are consecutive and have the same
    /// number, call, thread and size.
    pub fn drop_replays(&mut self) {
        self.sort_dispatches();
        // Kernels are replayed only in a process whose counters are collected.
        let counting: FxHashSet<u32> = self.counters.iter().map(|c| c.process).collect();
        if counting.is_empty() {
            return;
        }
        let same = |d: &Dispatch| (d.process, d.id, d.correlation, d.thread, d.agent, d.symbol, d.queue, d.workgroup, d.grid);
        let before = self.dispatches.len();
        self.dispatches.dedup_by(|later, kept| {
            let numbered = later.id != 0 && later.correlation != 0 && counting.contains(&later.process);
            numbered && later.start > kept.start && later.start >= kept.end && same(later) == same(kept)
        });
        self.replays += (before - self.dispatches.len()) as u64;
    }
}

/// Looks up [`Rows::texts`] by bytes, for formats that repeat strings instead of numbering them.
#[derive(Default)]
pub struct Texts {
    of: FxHashMap<Vec<u8>, u32>,
}

impl Texts {
    /// Returns the index of a string, adding the string if it is new.
    pub fn text_number(&mut self, bytes: &[u8], texts: &mut Vec<Arc<str>>) -> u32 {
        if let Some(&known) = self.of.get(bytes) {
            return known;
        }
        let number = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        texts.push(Arc::from(String::from_utf8_lossy(bytes)));
        self.of.insert(bytes.to_vec(), number);
        number
    }
}

/// Removes the suffix of kernel descriptors from a name, as rocprofv3's filters do.
pub fn strip_kd_suffix(name: &str) -> &str {
    [" [clone .kd]", " (.kd)", ".kd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

impl Dispatch {
    /// Returns sizes and resources. If the dispatch has no register count, uses the count from the symbol.
    pub fn launch_config(&self, symbol: Option<&Symbol>) -> LaunchConfig {
        // Grids are in work-items; the last workgroup of a dimension may be partial.
        let groups = |i: usize| if self.workgroup[i] == 0 { 0 } else { self.grid[i].div_ceil(self.workgroup[i]) };
        let known = self.workgroup.iter().all(|&n| n > 0) && self.grid.iter().all(|&n| n > 0);
        let bytes = |n: Option<u32>| n.map(|n| Bytes(u64::from(n)));
        LaunchConfig {
            grid: known.then(|| [groups(0), groups(1), groups(2)]),
            block: known.then_some(self.workgroup),
            registers: self.registers.or_else(|| symbol.and_then(|s| s.registers)),
            static_shared: bytes(self.lds),
            local_per_thread: bytes(self.scratch),
            ..LaunchConfig::default()
        }
    }
}
