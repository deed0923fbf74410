//! Merges the parts read by all threads into a profile, with launches in the order of their calls.

use super::event::EventKind;
use super::metadata::{Facts, Writer};
use super::other_events::OtherEvents;
use super::ranges;
use super::shard::{Call, Numbers, OnGpu, ShardEvents};
use crate::import::launch_order;
use crate::model::api_call::NONE;
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::{
    Bytes, CallKind, CallName, CopyKind, Device, HostCalls, Kernel, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, MemOp,
    MemOpKind, MemoryKind, Nanos, Note, NoteKind, PlaceId, Process, Profile, RangeOrigin, Severity, kernel,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All parts merged, with a single numbering of names and configurations.
#[derive(Default)]
struct Whole {
    names: Numbers<Arc<str>>,
    configs: Numbers<LaunchConfig>,
    on_gpu: Vec<OnGpu>,
    calls: Vec<Call>,
    /// Ranges that launched kernels; used only if there are no calls.
    launch_ranges: Vec<Call>,
    places: Numbers<LaunchSite>,
    only_process: Option<u32>,
    /// Device index by ordinal.
    devices: FxHashMap<u32, u32>,
    processes: BTreeMap<u32, String>,
    /// Start of the first valid event, ns.
    begin: i64,
}

#[derive(Clone, Copy)]
struct Launching {
    start: i64,
    cost: i64,
    thread: (u32, u32),
    graph: bool,
    /// True if calls of two threads share this correlation id, so that the match may be wrong.
    doubtful: bool,
}

/// Builds the profile. The launch order is unknown if calls were not read.
pub fn build_profile(mut parts: Vec<ShardEvents>, mut facts: Facts, with_calls: bool, mut profile: Profile) -> Profile {
    let mut whole = Whole { begin: find_begin(&parts), ..Whole::default() };
    profile.ranges = ranges::join_ranges(&mut parts, whole.begin);
    facts.other |= parts.iter().any(|p| p.other);
    let mut aside = OtherEvents::default();
    for mut part in parts {
        aside.append_rows(std::mem::take(&mut part.aside));
        whole.merge_part(part);
    }
    whole.on_gpu.sort_unstable_by_key(|g| g.at);
    whole.calls.sort_unstable_by_key(|c| c.at);
    // A merged trace may have lost its metadata, but HIP calls also identify AMD.
    facts.amd |= whole.calls.iter().any(|c| whole.names.list.get(c.name as usize).is_some_and(|n| n.starts_with("hip")));
    add_devices(&whole.on_gpu, &facts, &mut profile);
    whole.devices = (0..).zip(&profile.devices).map(|(index, d)| (d.id, index)).collect();
    let launching = whole.launch_calls();
    whole.only_process = whole.only_process();
    if launching.is_empty() && with_calls {
        whole.build_launches(&whole.find_launch_ranges(), true, &mut profile);
    } else {
        whole.build_launches(&launching, false, &mut profile);
    }
    if !with_calls {
        profile.order = LaunchOrder::Unread;
    }
    let calls = whole.build_calls(&launching, &mut profile);
    whole.build_memops(&launching, &calls, &mut profile);
    profile.places = std::mem::take(&mut whole.places.list);
    aside.fill_profile(whole.begin, &whole.devices, &mut profile);
    let mut pids: Vec<u32> = profile.places.iter().filter_map(|p| p.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    profile.processes = pids.into_iter().map(|pid| Process { pid, name: whole.processes.get(&pid).cloned(), rank: None }).collect();
    add_notes(&facts, &mut profile);
    facts.apply_to(whole.begin, &mut profile);
    profile
}

/// Maximum time by which GPU work may precede the first host event, ns; such work was launched before the trace began.
const BEFORE_NS: i64 = 60_000_000_000;

/// Start of the first valid event, which becomes the origin of all times. Kernels without a valid time (0, or long
/// before all other events) are ignored.
pub fn find_begin(parts: &[ShardEvents]) -> i64 {
    let on_host = |p: &ShardEvents| {
        let calls = p.calls.iter().map(|c| c.start);
        calls.chain(p.spans.iter().filter(|s| s.origin != RangeOrigin::Python).map(|s| s.start)).min()
    };
    let host = parts.iter().filter_map(on_host).min();
    let on_gpu = || parts.iter().flat_map(|p| &p.on_gpu).map(|g| g.start);
    let mut least = host.map_or(1, |h| h.saturating_sub(BEFORE_NS));
    // If most kernels are earlier, the GPU and the host use different clocks.
    if on_gpu().filter(|&s| s < least).count() * 2 > on_gpu().count() {
        least = i64::MIN;
    }
    let gpu = on_gpu().filter(|&s| s >= least).min();
    [host, gpu].into_iter().flatten().min().unwrap_or_default()
}

/// Adds the GPUs that were used, or all visible GPUs if none was.
fn add_devices(on_gpu: &[OnGpu], facts: &Facts, profile: &mut Profile) {
    let known = &facts.devices;
    let mut used: Vec<u32> = on_gpu.iter().filter_map(|g| g.device).collect();
    used.sort_unstable();
    used.dedup();
    let by_id: FxHashMap<u32, &Device> = known.iter().rev().map(|d| (d.id, d)).collect();
    // ROCm numbers the GPUs of operations after its other agents, so an id may not be listed.
    let alike = known.first().filter(|first| known.iter().all(|d| d.name == first.name));
    let unlisted = |id: u32| match alike {
        Some(device) => Device { id, ..device.clone() },
        None => Device { id, maker: facts.maker(), ..Device::default() },
    };
    profile.devices = if used.is_empty() {
        known.clone()
    } else {
        used.iter().map(|id| by_id.get(id).map_or_else(|| unlisted(*id), |d| (*d).clone())).collect()
    };
    for device in &mut profile.devices {
        device.maker = facts.maker();
        if facts.amd || facts.other {
            device.compute_capability = None;
        }
    }
}

/// Calls by correlation id; `graphs` is true for names of calls that launch graphs. If a runtime call and its nested
/// driver call share an id, the runtime call is used.
fn launching_by_id(calls: &[Call], graphs: &[bool]) -> FxHashMap<(u32, i64), Launching> {
    let mut wanted: FxHashMap<(u32, i64), Launching> = FxHashMap::default();
    for call in calls {
        let Some(correlation) = call.correlation else { continue };
        let graph = graphs.get(call.name as usize).copied().unwrap_or(false);
        let new = Launching { start: call.start, cost: call.duration, thread: call.thread, graph, doubtful: false };
        wanted
            .entry(correlation)
            .and_modify(|old| {
                let doubtful = old.doubtful || old.thread != new.thread;
                if new.start < old.start {
                    *old = new;
                }
                old.graph |= graph;
                old.doubtful = doubtful;
            })
            .or_insert(new);
    }
    wanted
}

impl Whole {
    fn merge_part(&mut self, part: ShardEvents) {
        let names: Vec<u32> = part.names.list.iter().map(|n| self.names.value_id(n)).collect();
        let configs: Vec<u32> = part.configs.list.iter().map(|c| self.configs.value_id(c)).collect();
        let of = |ids: &[u32], id: u32| ids.get(id as usize).copied().unwrap_or_default();
        self.on_gpu.extend(part.on_gpu.into_iter().map(|g| OnGpu { name: of(&names, g.name), config: of(&configs, g.config), ..g }));
        self.calls.extend(part.calls.into_iter().map(|c| Call { name: of(&names, c.name), ..c }));
        self.launch_ranges.extend(part.launch_ranges);
        for (pid, name) in part.processes {
            self.processes.entry(pid).or_insert(name);
        }
    }

    fn name(&self, id: u32) -> Arc<str> {
        self.names.list.get(id as usize).cloned().unwrap_or_else(|| Arc::from(""))
    }

    /// Calls by correlation id.
    fn launch_calls(&self) -> FxHashMap<(u32, i64), Launching> {
        let graphs: Vec<bool> = self.names.list.iter().map(|n| n.contains("GraphLaunch")).collect();
        launching_by_id(&self.calls, &graphs)
    }

    /// Ranges that launched kernels, by flow id.
    fn find_launch_ranges(&self) -> FxHashMap<(u32, i64), Launching> {
        launching_by_id(&self.launch_ranges, &[])
    }

    /// Process of GPU work that has no call; known only if all calls are from one process.
    fn only_process(&self) -> Option<u32> {
        let first = self.calls.first()?.thread.0;
        self.calls.iter().all(|c| c.thread.0 == first).then_some(first)
    }

    fn place_id(&mut self, row: &OnGpu, call: Option<&Launching>) -> u32 {
        let index = row.device.and_then(|id| self.devices.get(&id)).copied();
        self.places.value_id(&LaunchSite {
            pid: call.map(|c| c.thread.0).filter(|pid| *pid != 0).or(self.only_process),
            device: index,
            ordinal: row.device,
            context: row.context,
            stream: row.stream,
            thread: call.map(|c| c.thread.1),
        })
    }

    /// Builds the launches with the calls that started them or, for a trace without calls, with the ranges in which
    /// they were launched.
    fn build_launches(&mut self, launching: &FxHashMap<(u32, i64), Launching>, by_range: bool, profile: &mut Profile) {
        let mut kernels: FxHashMap<u32, u32> = FxHashMap::default();
        let mut columns = LaunchColumns::default();
        let (mut config, mut place, mut node, mut nodes) = (Vec::new(), Vec::new(), Vec::new(), Numbers::default());
        let (mut since, mut cost) = (TimesBuilder::default(), TimesBuilder::default());
        let (mut missing, mut doubtful, mut unnumbered) = (0, 0, 0);
        // If the trace has no graph node ids, number nodes by their order on the device.
        let mut in_graph: FxHashMap<(u32, i64), Vec<(i64, usize)>> = FxHashMap::default();
        // Renumber configurations by first launch, because their order so far depends on thread timing.
        let mut met = vec![u32::MAX; self.configs.list.len()];
        let rows = std::mem::take(&mut self.on_gpu);
        for row in rows.iter().filter(|g| g.kind == EventKind::Kernel) {
            let call = row.correlation.and_then(|c| launching.get(&c));
            let at = columns.kernel.len();
            let next = u32::try_from(kernels.len()).unwrap_or(u32::MAX);
            let kernel = *kernels.entry(row.name).or_insert_with(|| {
                profile.kernels.push(kernel_of(&self.name(row.name)));
                next
            });
            columns.kernel.push(kernel);
            columns.start.push(row.start - self.begin);
            columns.duration.push(Some(row.duration));
            config.push(match met.get_mut(row.config as usize) {
                Some(number) => {
                    if *number == u32::MAX {
                        *number = u32::try_from(profile.configs.len()).unwrap_or(u32::MAX);
                        profile.configs.extend(self.configs.list.get(row.config as usize).cloned());
                    }
                    *number
                }
                None => u32::MAX,
            });
            place.push(self.place_id(row, call));
            since.push(call.map(|c| row.start.saturating_sub(c.start)));
            cost.push(call.map(|c| c.cost));
            missing += u64::from(by_range || call.is_none());
            doubtful += u64::from(call.is_some_and(|c| c.doubtful));
            node.push(row.node.map_or(NO_NODE, |n| nodes.value_id(&n)));
            if let Some((key, call)) = row.correlation.zip(call)
                && call.graph
                && row.node.is_none()
            {
                in_graph.entry(key).or_default().push((row.start, at));
            }
        }
        // Start above all node ids in the trace, so that ids stay unique.
        let first = rows.iter().filter_map(|g| g.node).max().map_or(0, |n| n.saturating_add(1));
        for list in in_graph.values_mut() {
            list.sort_unstable();
            unnumbered += list.len() as u64;
            for (number, (_, at)) in (first..).zip(list.iter()) {
                node[*at] = nodes.value_id(&number);
            }
        }
        self.on_gpu = rows;
        let any = missing < columns.kernel.len() as u64;
        profile.launches = Launches::new(columns);
        profile.launches.set_details(config, place, node, nodes.list);
        if by_range {
            profile.launches.set_ranges(since);
        } else {
            profile.launches.set_calls(since, cost);
        }
        if unnumbered > 0 {
            profile.launches.set_graphs_unidentified();
        }
        let (launches, order) = launch_order::sort_launches(std::mem::take(&mut profile.launches), any.then_some(missing));
        profile.launches = launches;
        profile.order = order;
        if doubtful > 0 {
            let text = format!(
                "{} launches share their correlation ID with a call of another thread (a trace merged from several?): which call is theirs is a guess.",
                crate::model::units::format_grouped(doubtful)
            );
            profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
        }
        if unnumbered > 0 {
            let text = format!(
                "{} launches are nodes of graphs, and the trace does not number them: they are numbered by their order on the GPU.",
                crate::model::units::format_grouped(unnumbered)
            );
            profile.notes.push(Note::new(Severity::Info, NoteKind::Graphs, text));
        }
    }

    fn build_memops(&mut self, launching: &FxHashMap<(u32, i64), Launching>, calls: &FxHashMap<(u32, i64), u32>, profile: &mut Profile) {
        let rows = std::mem::take(&mut self.on_gpu);
        let graphs = profile.launches.by_call(&self.places.list, |row| profile.launches.graph_node(row).is_some());
        for row in rows.iter().filter(|g| g.kind != EventKind::Kernel) {
            let started = row.correlation.and_then(|c| launching.get(&c));
            let place = PlaceId(self.place_id(row, started));
            let call = row.correlation.and_then(|c| calls.get(&c)).copied();
            let graph = started.filter(|s| call.is_none() && s.graph && !s.doubtful);
            profile.memops.push(MemOp {
                call,
                launch: graph.and_then(|s| graphs.get(&(s.thread.0, s.start - self.begin))).copied(),
                graph_node: row.node,
                start: Nanos(row.start - self.begin),
                duration: Nanos(row.duration),
                kind: if row.kind == EventKind::Set { MemOpKind::Set } else { copy_kind(&self.name(row.name)) },
                bytes: row.bytes.map(Bytes),
                place,
            });
        }
        profile.memops.sort_by_start();
        self.on_gpu = rows;
    }

    /// Builds the totals of all calls, and timeline rows for the calls that did not launch a kernel. Returns these
    /// rows by correlation id.
    fn build_calls(&self, launching: &FxHashMap<(u32, i64), Launching>, profile: &mut Profile) -> FxHashMap<(u32, i64), u32> {
        let launched: FxHashSet<(u32, i64)> = self
            .on_gpu
            .iter()
            .filter(|g| g.kind == EventKind::Kernel)
            .filter_map(|g| g.correlation.filter(|c| launching.contains_key(c)))
            .collect();
        let mut totals: FxHashMap<u32, (u64, i64)> = FxHashMap::default();
        for call in &self.calls {
            let total = totals.entry(call.name).or_default();
            total.0 += 1;
            total.1 = total.1.saturating_add(call.duration);
        }
        let mut rows: Vec<(u32, (u64, i64))> = totals.into_iter().collect();
        rows.sort_by_key(|(name, (_, total))| (std::cmp::Reverse(*total), *name));
        let mut calls = HostCalls::default();
        let mut index: FxHashMap<u32, u32> = FxHashMap::default();
        for (at, (name, (count, total))) in (0..).zip(rows) {
            index.insert(name, at);
            calls.names.push(CallName::new(self.name(name), count, Nanos(total)));
        }
        let mut threads: Numbers<(u32, u32)> = Numbers::default();
        let mut by_correlation: FxHashMap<(u32, i64), u32> = FxHashMap::default();
        for call in self.calls.iter().filter(|c| c.correlation.is_none_or(|id| !launched.contains(&id))) {
            let name = index.get(&call.name).copied().unwrap_or(NONE);
            if calls.names.get(name as usize).is_some_and(|n| !n.kind.is_kept()) {
                continue;
            }
            let row = u32::try_from(calls.len()).unwrap_or(NONE);
            let starts_work = calls.names.get(name as usize).is_none_or(|n| n.kind.may_start_work());
            let sure = |id| launching.get(&id).is_some_and(|l| !l.doubtful);
            if let Some(id) = call.correlation.filter(|&id| starts_work && sure(id)) {
                // Keep the runtime call, not the nested driver call.
                let outer = by_correlation.entry(id).or_insert(row);
                if calls.start.get(*outer as usize).is_some_and(|&start| call.start - self.begin < start) {
                    *outer = row;
                }
            }
            calls.start.push(call.start - self.begin);
            calls.duration.push(call.duration);
            calls.name.push(name);
            calls.thread.push(threads.value_id(&call.thread));
            calls.correlation.push(call.correlation.and_then(|(_, id)| u32::try_from(id).ok()).unwrap_or(NONE));
        }
        calls.threads = threads.list;
        profile.calls = calls;
        by_correlation
    }
}

/// Creates a kernel from its name in a trace, which is demangled in c++filt's spelling (never nvcc's), or a symbol
/// that could not be demangled.
fn kernel_of(name: &str) -> Kernel {
    if name.is_empty() {
        return Kernel::default();
    }
    if name.starts_with("_Z") {
        return Kernel { mangled: Some(Arc::from(name)), ..Kernel::default() };
    }
    let function: Arc<str> = Arc::from(kernel::function_of(name));
    Kernel { function: Some(function), spelled: Some(Arc::from(name)), ..Kernel::default() }
}

/// Parses `Memcpy HtoD (Pinned -> Device)`, and the spellings of other tools: `MemcpyH2D`,
/// `[CUDA memcpy Host-to-Device]`, `CopyHostToDevice`.
fn copy_kind(name: &str) -> MemOpKind {
    let words = name.strip_prefix("Memcpy").unwrap_or(name);
    let (direction, ends) = words.split_once('(').unwrap_or((words, ""));
    let letters: String = direction.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let letters = letters.trim_start_matches("cuda").trim_start_matches("memcpy").trim_start_matches("copy");
    let kind = match letters {
        "htod" | "h2d" | "hosttodevice" => CopyKind::HostToDevice,
        "dtoh" | "d2h" | "devicetohost" => CopyKind::DeviceToHost,
        "dtod" | "d2d" | "devicetodevice" => CopyKind::DeviceToDevice,
        "htoh" | "h2h" | "hosttohost" => CopyKind::HostToHost,
        "ptop" | "p2p" | "peertopeer" => CopyKind::PeerToPeer,
        d if d.ends_with("toa") || d.starts_with("ato") => CopyKind::Array,
        _ => CopyKind::Other,
    };
    let (from, to) = ends.trim_end_matches(')').split_once("->").unwrap_or(("", ""));
    let memory = |word: &str| match word.trim() {
        "Pageable" => Some(MemoryKind::Pageable),
        "Pinned" => Some(MemoryKind::Pinned),
        "Device" => Some(MemoryKind::Device),
        "Array" => Some(MemoryKind::Array),
        "Managed" | "Unified" => Some(MemoryKind::Managed),
        _ => None,
    };
    MemOpKind::Copy { kind, from: memory(from), to: memory(to) }
}

/// Returns why a trace has no kernels, and the remedy. Kineto writes `deviceProperties` if it was built for GPUs and
/// finds one, whichever activities were asked for (`libkineto/src/GenericActivityProfiler.cpp`); CUDA's calls are of
/// CUPTI, too.
fn reason_for_no_kernels(facts: &Facts, profile: &Profile) -> (&'static str, &'static str) {
    const ASK: &str = "pass activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], and look for CUPTI errors in the program's output";
    let launched = profile.calls.names.iter().any(|n| matches!(n.kind, CallKind::Launch | CallKind::GraphLaunch));
    if profile.notes.iter().any(|n| n.kind == NoteKind::Damaged) {
        ("No kernels in the part of this trace that could be read.", "record it again, or copy the whole file")
    } else if !profile.memops.is_empty() {
        ("No kernels in this trace, only memcpys and memsets.", ASK)
    } else if launched {
        (
            "No kernels in this trace, only the calls that launched them.",
            "look for CUPTI errors in the program's output, and let no other profiler use CUPTI at the same time",
        )
    } else if !facts.devices.is_empty() {
        (
            "No GPU activity in this trace, although PyTorch found a GPU: only the CPU was profiled, or no kernel was launched meanwhile.",
            ASK,
        )
    } else if facts.writer == Writer::Kineto {
        (
            "No GPU activity in this trace, which names no GPU: PyTorch found none, or was built without support for profiling GPUs.",
            "`python -c 'import torch; print(torch.cuda.is_available(), torch.profiler.supported_activities())'` has to print True and \
             ProfilerActivity.CUDA",
        )
    } else {
        ("No GPU activity in this trace.", ASK)
    }
}

fn add_notes(facts: &Facts, profile: &mut Profile) {
    let launches = &profile.launches;
    if launches.is_empty() {
        let (text, fix) = reason_for_no_kernels(facts, profile);
        profile.notes.push(Note::new(Severity::Error, NoteKind::Empty, text).with_fix(fix));
        return;
    }
    let missing = match profile.order {
        LaunchOrder::Partly(missing) => Some(format!(
            "{} launches have no call in the trace; they are ordered by their start on the device.",
            crate::model::units::format_grouped(missing)
        )),
        LaunchOrder::Device => Some("The trace has no calls for its launches; they are ordered by their start on the device.".to_owned()),
        _ => None,
    };
    profile.notes.extend(missing.map(|text| Note::new(Severity::Warning, NoteKind::Order, text)));
    if facts.other {
        let text = "These kernels ran on a GPU of neither NVIDIA nor AMD: ncu and rocprofv3 cannot measure them.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    } else if facts.amd {
        let text = "These kernels ran on an AMD GPU: ncu cannot profile them again, and PyTorch records neither registers nor LDS.";
        profile.notes.push(
            Note::new(Severity::Info, NoteKind::Guess, text).with_fix("`warpscope recipes rocprof-counters` shows rocprofv3's command"),
        );
    } else if facts.writer != Writer::Other && profile.configs.iter().any(|c| c.dynamic_shared.is_some()) {
        let text =
            "Names are spelled as PyTorch does, which ncu cannot match: re-runs use function names. Shared memory is static plus dynamic.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_by_their_names() {
        let k = kernel_of("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, true>(int, float)");
        assert_eq!((k.function(), k.demangled.is_none()), ("vectorized_layer_norm_kernel", true));
        assert_eq!(kernel_of("triton_poi_fused_add_0").function(), "triton_poi_fused_add_0");
        let symbol = kernel_of("_ZN7ck_tile6kentryILi1EE");
        assert_eq!((symbol.function.is_none(), symbol.mangled()), (true, "_ZN7ck_tile6kentryILi1EE"));
    }

    #[test]
    fn copies_by_their_names() {
        let of = |kind, from, to| MemOpKind::Copy { kind, from, to };
        assert_eq!(
            copy_kind("Memcpy HtoD (Pinned -> Device)"),
            of(CopyKind::HostToDevice, Some(MemoryKind::Pinned), Some(MemoryKind::Device))
        );
        assert_eq!(copy_kind("Memcpy DtoH"), of(CopyKind::DeviceToHost, None, None));
        assert_eq!(copy_kind("CopyDeviceToDevice"), of(CopyKind::DeviceToDevice, None, None));
    }
}
