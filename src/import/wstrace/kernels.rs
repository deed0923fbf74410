//! Launches in host order, each with its configuration, place and API call.

use super::names::{Names, Places};
use super::rows::{Config, INLINE, Kernel as Row, NO_CONFIG, Rows};
use crate::model::kernel::function_of;
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::{Bytes, Kernel, LaunchColumns, LaunchConfig, Launches};
use cpp_demangle::{DemangleOptions, Symbol};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Launches, kernels and configurations, as built from kernel rows.
#[derive(Default)]
pub struct Built {
    pub launches: Launches,
    pub kernels: Vec<Kernel>,
    pub configs: Vec<LaunchConfig>,
    /// For each process, one flag per call, true if it launched a kernel.
    pub launching: Vec<Vec<bool>>,
}

/// Extends wrapping 32-bit ids to 64 bits, in order of allocation. Assumes that consecutive ids in the file differ by
/// less than half of the id range.
pub struct Unwrap {
    last: i64,
}

impl Unwrap {
    pub fn starting_at(first: u32) -> Self {
        Self { last: (1 << 32) + i64::from(first) }
    }

    pub fn unwrap_id(&mut self, id: u32) -> i64 {
        let step = id.wrapping_sub(self.last as u32).cast_signed();
        self.last += i64::from(step);
        self.last
    }
}

/// Returns the full signature as spelled by c++filt; `None` for names that are not C++ symbols or cannot be demangled.
fn demangle_symbol(mangled: &str) -> Option<Arc<str>> {
    let symbol = Symbol::new(mangled.as_bytes()).ok().filter(|_| mangled.starts_with("_Z"))?;
    symbol.demangle_with_options(&DemangleOptions::default()).ok().map(Arc::from)
}

/// Builds a kernel from the mangled name that CUPTI reports. For C names, all forms are the same. The function name
/// extracted from c++filt's spelling was the same as in nsys for all 91 mangled names in real reports; nvcc's
/// spelling of the full signature cannot be derived from the mangled name.
pub fn build_kernel(name: Option<Arc<str>>) -> Kernel {
    let Some(name) = name else { return Kernel::default() };
    if name.starts_with("_Z") {
        let spelled = demangle_symbol(&name);
        let function = spelled.as_deref().map(|s| Arc::from(function_of(s)));
        return Kernel { function, demangled: None, mangled: Some(name), spelled };
    }
    Kernel { function: Some(name.clone()), demangled: Some(name.clone()), mangled: Some(name), spelled: None }
}

/// Returns the function name for the kernel table.
pub fn function_name(name: Arc<str>) -> Arc<str> {
    let kernel = build_kernel(Some(name.clone()));
    kernel.function.unwrap_or(name)
}

pub fn launch_config(c: &Config) -> LaunchConfig {
    if c.name == NO_CONFIG {
        return LaunchConfig::default();
    }
    let bytes = |n: u32| Some(Bytes(u64::from(n)));
    LaunchConfig {
        grid: Some(c.grid),
        block: Some(c.block),
        registers: Some(c.registers),
        static_shared: bytes(c.static_shared),
        dynamic_shared: bytes(c.dynamic_shared),
        shared_carveout: bytes(c.executed).filter(|b| b.0 > 0),
        local_per_thread: bytes(c.local),
        cluster: (c.cluster != [0; 3]).then_some(c.cluster),
        cooperative: matches!(c.kind & 255, 1 | 2),
    }
}

/// Distinct kernels and configurations, numbered in order of first appearance.
#[derive(Default)]
struct Interned {
    kernels: FxHashMap<Option<Arc<str>>, u32>,
    list: Vec<Kernel>,
    by_launch: FxHashMap<LaunchConfig, u32>,
    configs: Vec<LaunchConfig>,
}

impl Interned {
    fn intern_kernel(&mut self, names: &Names, name: u32) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let name = names.get(name);
        if let Some(&id) = self.kernels.get(&name) {
            return id;
        }
        self.kernels.insert(name.clone(), next);
        self.list.push(build_kernel(name));
        next
    }

    fn intern_config(&mut self, c: &Config) -> u32 {
        let next = u32::try_from(self.configs.len()).unwrap_or(u32::MAX);
        let config = launch_config(c);
        if let Some(&id) = self.by_launch.get(&config) {
            return id;
        }
        self.configs.push(config.clone());
        self.by_launch.insert(config, next);
        next
    }
}

/// Ids assigned to a configuration of the trace.
#[derive(Clone, Copy)]
struct Known {
    kernel: u32,
    config: u32,
    queue: [u32; 3],
}

/// A launch that has not yet been merged with those of other processes.
struct Placed {
    /// Launch time, ns: start of the launch call, or of the kernel if the call is unknown, but no earlier than the
    /// launch time of the preceding launch.
    at: i64,
    process: u32,
    row: u32,
}

/// Sorts the kernel rows of a process by launch, because correlation ids are assigned in call order. Nodes of a graph
/// share an id and are sorted by start on the device.
fn in_order(all: &[Row], process: u32, call: impl Fn(&Row) -> Option<i64>) -> Vec<Placed> {
    let mut unwrap = Unwrap::starting_at(all.first().map_or(0, |k| k.correlation));
    let keys: Vec<(i64, i64)> = all.iter().map(|k| (unwrap.unwrap_id(k.correlation), k.start)).collect();
    let mut order: Vec<u32> = (0..u32::try_from(all.len()).unwrap_or(u32::MAX)).collect();
    if !keys.is_sorted() {
        order.sort_by_key(|&i| keys[i as usize]);
    }
    let mut last = i64::MIN;
    order
        .into_iter()
        .map(|row| {
            let k = &all[row as usize];
            last = last.max(call(k).unwrap_or(k.start));
            Placed { at: last, process, row }
        })
        .collect()
}

/// Builds the launches of all processes in launch order.
pub fn build_launches(processes: &mut [(Names, Rows)], places: &mut Places, details: bool) -> Built {
    let mut out = Built::default();
    let mut order: Vec<Placed> = Vec::new();
    let mut calls: Vec<FxHashMap<u32, u32>> = Vec::new();
    for (process, (_, rows)) in (0..).zip(processes.iter_mut()) {
        out.launching.push(vec![false; rows.calls.len()]);
        let by_id: FxHashMap<u32, u32> = rows.calls.iter().zip(0..).map(|(c, i)| (c.correlation, i)).collect();
        let start = |k: &Row| Some(rows.calls.get(*by_id.get(&k.correlation)? as usize)?.start);
        order.extend(in_order(&rows.kernels, process, start));
        calls.push(by_id);
    }
    if processes.len() > 1 {
        order.sort_by_key(|p| p.at);
    }
    let n = order.len();
    let mut columns =
        LaunchColumns { start: Vec::with_capacity(n), duration: TimesBuilder::with_capacity(n), kernel: Vec::with_capacity(n) };
    let (mut config, mut place, mut node) = (Vec::new(), Vec::new(), Vec::new());
    let (mut since, mut cost) = (TimesBuilder::default(), TimesBuilder::default());
    let (mut nodes, mut node_ids): (Vec<u64>, FxHashMap<u64, u32>) = (Vec::new(), FxHashMap::default());
    let mut interned = Interned::default();
    let mut known: FxHashMap<(u32, u32), Known> = FxHashMap::default();
    let configs: Vec<FxHashMap<u32, Config>> = processes
        .iter()
        .map(|(_, rows)| rows.configs.iter().copied().chain((INLINE..).zip(rows.inline.iter().copied())).collect())
        .collect();
    for placed in &order {
        let process = placed.process as usize;
        let Some((names, rows)) = processes.get(process) else { continue };
        let Some(row) = rows.kernels.get(placed.row as usize) else { continue };
        let k = *known.entry((placed.process, row.config)).or_insert_with(|| {
            let none = Config { name: NO_CONFIG, ..Config::default() };
            let c = configs.get(process).and_then(|c| c.get(&row.config)).copied().unwrap_or(none);
            // Intern configurations only if needed: there may be one per launch, and the kernel table needs none of
            // them.
            let config = if details { interned.intern_config(&c) } else { 0 };
            Known { kernel: interned.intern_kernel(names, c.name), config, queue: [c.device, c.context, c.stream] }
        });
        let start = names.session_time(row.start);
        columns.start.push(start);
        columns.duration.push(Some(row.duration.max(0)));
        columns.kernel.push(k.kernel);
        if !details {
            continue;
        }
        let call = calls.get(process).and_then(|c| c.get(&row.correlation)).and_then(|&i| Some((i as usize, rows.calls.get(i as usize)?)));
        if let Some((i, _)) = call
            && let Some(launching) = out.launching.get_mut(process).and_then(|l| l.get_mut(i))
        {
            *launching = true;
        }
        since.push(call.map(|(_, c)| start.saturating_sub(names.session_time(c.start))));
        cost.push(call.map(|(_, c)| c.duration));
        config.push(k.config);
        let thread = call.map_or(row.thread, |(_, c)| c.thread);
        let [device, context, stream] = k.queue;
        place.push(places.place_id(names, [device, context, stream, thread]).0);
        node.push(node_of(row, &mut nodes, &mut node_ids));
    }
    let mut launches = Launches::new(columns);
    if details {
        launches.set_details(config, place, node, nodes);
        if processes.iter().any(|(_, rows)| !rows.calls.is_empty()) {
            launches.set_calls(since, cost);
        }
    }
    out.launches = launches;
    out.kernels = interned.list;
    out.configs = interned.configs;
    out
}

fn node_of(row: &Row, nodes: &mut Vec<u64>, ids: &mut FxHashMap<u64, u32>) -> u32 {
    if row.node == 0 {
        return NO_NODE;
    }
    *ids.entry(row.node).or_insert_with(|| {
        nodes.push(row.node);
        u32::try_from(nodes.len() - 1).unwrap_or(NO_NODE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_wrap_stay_in_order() {
        let ids = [u32::MAX - 2, u32::MAX, u32::MAX - 1, 0, 2, 1, 3];
        let mut unwrap = Unwrap::starting_at(ids[0]);
        let mut all: Vec<i64> = ids.iter().map(|&i| unwrap.unwrap_id(i)).collect();
        all.sort_unstable();
        assert_eq!(all.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>(), [1; 6]);
    }

    #[test]
    fn names_in_all_the_forms_that_are_known() {
        let cpp = build_kernel(Some("_ZN1a1b2tkIfLi3EEEvPT_".into()));
        assert_eq!((cpp.function.as_deref(), cpp.mangled()), (Some("tk"), "_ZN1a1b2tkIfLi3EEEvPT_"));
        assert_eq!(cpp.demangled(), "void a::b::tk<float, 3>(float*)");
        let c = build_kernel(Some("nvjet_hsh_64x8".into()));
        assert_eq!((c.function.as_deref(), c.demangled.as_deref()), (Some("nvjet_hsh_64x8"), Some("nvjet_hsh_64x8")));
        assert_eq!(build_kernel(None), Kernel::default());
    }
}
