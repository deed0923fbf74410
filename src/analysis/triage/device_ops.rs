//! All operations that ran on devices, in order of start.

use super::copy_class::CopyClass;
use crate::analysis::Family;
use crate::model::{CallKind, CopyKind, Kernel, MemOp, MemOpKind, Profile};
use rustc_hash::FxHashMap;

/// A stream: index of its device unit, context, and number.
pub type Stream = (usize, Option<u32>, Option<u32>);

/// Class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Kernel,
    Collective,
    Copy,
}

/// Identifies an operation by its table in the profile and its row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationRow {
    Launch(u32),
    Mem(u32),
    /// A graph that was traced as a whole.
    Graph(u32),
}

/// One operation of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOp {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Index into [`DeviceOps::units`].
    pub unit: usize,
    pub class: Class,
    pub row: OperationRow,
}

/// Limit of plausible times, ns: 104 days from the start of the session.
const FAR: i64 = 1 << 53;

/// Clamps a time to a range in which arithmetic does not overflow.
pub fn clamp_time(time: i64) -> i64 {
    time.clamp(-FAR, FAR)
}

/// A device, identified as far as the report allows. Processes that share a device are analyzed together: it is idle
/// only while none of them uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unit {
    /// Index into [`Profile::devices`].
    pub device: Option<u32>,
    /// The device's ordinal within the process, if the report does not identify the device.
    pub ordinal: Option<u32>,
    /// Process that uses the device; `None` if several do.
    pub pid: Option<u32>,
}

/// Parts of names by which kernels of communication libraries are recognized. Other names that suggest a collective may
/// also belong to reductions within one GPU, such as `block_all_reduce_sum`.
const LIBRARIES: [&str; 5] = ["nccl", "rccl", "nvshmem", "deep_ep", "cross_device_reduce"];

/// Copy class of a kernel with which AMD's runtime copies or sets memory (`__amd_rocclr_copyBuffer`,
/// `__amd_rocclr_fillBufferAligned`; `rocclr/device/blitcl.cpp` in the runtime); `None` for other kernels.
pub fn blit_class(function: &str) -> Option<CopyClass> {
    let name = function.strip_prefix("__amd_rocclr_")?;
    if name.starts_with("copy") { Some(CopyClass::Device) } else { name.starts_with("fill").then_some(CopyClass::Set) }
}

/// Returns true for a kernel of a communication library.
fn of_library(kernel: &Kernel) -> bool {
    let name = kernel.demangled().to_ascii_lowercase();
    LIBRARIES.iter().any(|library| name.contains(library))
}

/// Returns true if the report shows that the program uses several GPUs, some of which may not be in the report.
pub fn uses_several_gpus(profile: &Profile) -> bool {
    let mut devices = profile.places.iter().filter_map(|p| p.device.or(p.ordinal));
    let first = devices.next();
    devices.any(|d| Some(d) != first)
        || profile.rank.world.is_some_and(|n| n > 1)
        || profile.kernels.iter().any(of_library)
        || profile.memops.iter().any(|m| matches!(m.kind, MemOpKind::Copy { kind: CopyKind::PeerToPeer, .. }))
}

/// For each kernel in a report, returns true if the kernel is a collective.
pub fn find_collectives(profile: &Profile) -> Vec<bool> {
    let named: Vec<bool> = profile.kernels.iter().map(|k| Family::guess(k.function(), k.demangled()) == Family::Nccl).collect();
    if !named.contains(&true) {
        return named;
    }
    // Without evidence of a second GPU, the name alone is not sufficient.
    let several = uses_several_gpus(profile);
    profile.kernels.iter().zip(named).map(|(k, named)| named && (several || of_library(k))).collect()
}

/// All operations in a report, in order of start.
pub struct DeviceOps<'a> {
    profile: &'a Profile,
    pub units: Vec<Unit>,
    /// Index into `units` of each place in [`Profile::places`].
    unit_of: Vec<usize>,
    /// True if the kernel is a collective, by kernel index.
    pub collective: Vec<bool>,
    /// Result of [`blit_class`], by kernel index.
    blit: Vec<Option<CopyClass>>,
    /// Launch rows in order of start; empty if the profile already stores them in that order.
    order: Vec<u32>,
    /// Indices of the graphs that were traced as a whole, in order of start.
    graphs: Vec<u32>,
    /// Thread and end of the calls that launched graphs, by process and start of the call.
    graph_calls: FxHashMap<(u32, i64), (u32, i64)>,
    /// Number of the only device to include; `None` for all devices.
    only: Option<u32>,
}

impl<'a> DeviceOps<'a> {
    /// Prepares iteration in order of start. Launches without start times are skipped.
    pub fn from_profile(profile: &'a Profile) -> Self {
        let launches = &profile.launches;
        let mut order: Vec<u32> = Vec::new();
        if launches.has_start_times() && !(1..launches.len()).all(|i| launches.start(i - 1) <= launches.start(i)) {
            order = (0..u32::try_from(launches.len()).unwrap_or(u32::MAX)).collect();
            // Nearly sorted: operations in different queues are only a few places out of order.
            order.sort_by_key(|&r| launches.start(r as usize));
        }
        let mut graphs: Vec<u32> = (0..).take(profile.graphs.len()).collect();
        graphs.sort_by_key(|&g| profile.graphs.get(g as usize).map(|g| g.start));
        let mut ids: FxHashMap<Unit, usize> = FxHashMap::default();
        let mut units = Vec::new();
        let mut unit_of: Vec<usize> = Vec::with_capacity(profile.places.len());
        let mut users: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        for p in &profile.places {
            if let Some(device) = p.device
                && *users.entry(device).or_insert(p.pid) != p.pid
            {
                users.insert(device, None);
            }
        }
        for p in &profile.places {
            let unit = match p.device {
                Some(device) => Unit { device: p.device, ordinal: None, pid: users.get(&device).copied().flatten() },
                None => Unit { device: None, ordinal: p.ordinal, pid: p.pid },
            };
            unit_of.push(*ids.entry(unit).or_insert_with(|| {
                units.push(unit);
                units.len() - 1
            }));
        }
        if units.is_empty() {
            units.push(Unit::default());
        }
        let collective = find_collectives(profile);
        let blit = profile.kernels.iter().map(|k| blit_class(k.function())).collect();
        let mut graph_calls = FxHashMap::default();
        if !profile.graphs.is_empty() {
            for call in (0..profile.calls.len()).filter(|&c| profile.calls.kind(c) == CallKind::GraphLaunch) {
                let ((pid, tid), start) = (profile.calls.thread_of(call), profile.calls.start[call]);
                graph_calls.insert((pid, start), (tid, start.saturating_add(profile.calls.duration[call])));
            }
        }
        Self { profile, units, unit_of, collective, blit, order, graphs, graph_calls, only: None }
    }

    /// Restricts the operations to the device with this number.
    pub fn restrict_to(&mut self, device: Option<u32>) {
        self.only = device;
    }

    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Device number shown to the user.
    pub fn device_number(&self, unit: &Unit) -> Option<u32> {
        unit.device.and_then(|d| self.profile.devices.get(d as usize)).map(|d| d.id).or(unit.ordinal)
    }

    fn is_included(&self, op: &DeviceOp) -> bool {
        self.only.is_none() || self.units.get(op.unit).and_then(|u| self.device_number(u)) == self.only
    }

    fn unit_index(&self, place: Option<u32>) -> usize {
        place.and_then(|p| self.unit_of.get(p as usize)).copied().unwrap_or_default()
    }

    fn launch_op(&self, row: u32) -> DeviceOp {
        let launches = &self.profile.launches;
        let at = row as usize;
        let kernel = launches.kernel(at).0 as usize;
        let is = |list: &[bool]| list.get(kernel).copied().unwrap_or_default();
        let class = if is(&self.collective) {
            Class::Collective
        } else if self.blit.get(kernel).copied().flatten().is_some() {
            Class::Copy
        } else {
            Class::Kernel
        };
        DeviceOp {
            start: clamp_time(launches.start(at)),
            end: clamp_time(launches.end(at)).max(clamp_time(launches.start(at))),
            unit: self.unit_index(launches.place(at).map(|p| p.0)),
            class,
            row: OperationRow::Launch(row),
        }
    }

    /// Class of a copy, or of a kernel that copies or sets memory.
    pub fn copy_class(&self, op: &DeviceOp) -> Option<CopyClass> {
        match op.row {
            OperationRow::Launch(row) => self.blit.get(self.profile.launches.kernel(row as usize).0 as usize).copied().flatten(),
            _ => self.mem_of(op).map(|mem| CopyClass::from_mem_op(&mem)),
        }
    }

    fn mem_op(&self, row: usize) -> Option<DeviceOp> {
        let op = self.profile.memops.get(row)?;
        // The device does not take part in a copy between host buffers.
        if matches!(op.kind, MemOpKind::Copy { kind: CopyKind::HostToHost, .. }) {
            return None;
        }
        Some(DeviceOp {
            start: clamp_time(op.start.0),
            end: clamp_time(op.start.0.saturating_add(op.duration.0.max(0))),
            unit: self.unit_index(Some(op.place.0)),
            class: Class::Copy,
            row: OperationRow::Mem(u32::try_from(row).ok()?),
        })
    }

    fn graph_op(&self, index: u32) -> Option<DeviceOp> {
        let g = self.profile.graphs.get(index as usize)?;
        Some(DeviceOp {
            start: clamp_time(g.start.0),
            end: clamp_time(g.start.0.saturating_add(g.duration.0.max(0))),
            unit: self.unit_index(Some(g.place)),
            class: Class::Kernel,
            row: OperationRow::Graph(index),
        })
    }

    /// Iterates over all operations in order of start.
    pub fn iter(&self) -> impl Iterator<Item = DeviceOp> + '_ {
        let mut mems = (0..self.profile.memops.len()).filter_map(|row| self.mem_op(row)).peekable();
        let mut graphs = self.graphs.iter().filter_map(|&g| self.graph_op(g)).peekable();
        let mut others = std::iter::from_fn(move || match (mems.peek(), graphs.peek()) {
            (Some(m), Some(g)) if g.start < m.start => graphs.next(),
            (None, Some(_)) => graphs.next(),
            _ => mems.next(),
        });
        let launches = if self.profile.launches.has_start_times() { self.profile.launches.len() } else { 0 };
        let row = |at: usize| self.order.get(at).copied().unwrap_or(u32::try_from(at).unwrap_or(u32::MAX));
        // Launches far outnumber the other operations, so the launch path avoids the overhead of a peekable iterator.
        let (mut at, mut other) = (0, others.next());
        let all = std::iter::from_fn(move || {
            let launch = (at < launches).then(|| self.launch_op(row(at)));
            let first = match (&launch, &other) {
                (Some(l), Some(o)) => o.start < l.start,
                (launch, _) => launch.is_none(),
            };
            if first {
                return std::mem::replace(&mut other, others.next());
            }
            at += 1;
            launch
        });
        all.filter(|op| self.is_included(op))
    }

    /// Returns start and end of the call that started an operation, with its process and thread.
    pub fn find_call(&self, op: &DeviceOp) -> Option<Call> {
        let call = self.unclamped_call(op)?;
        let start = clamp_time(call.start);
        Some(Call { start, end: clamp_time(call.end).max(start), ..call })
    }

    fn unclamped_call(&self, op: &DeviceOp) -> Option<Call> {
        let profile = self.profile;
        match op.row {
            OperationRow::Launch(row) => self.launch_call(row),
            OperationRow::Mem(row) => {
                let mem = profile.memops.get(row as usize)?;
                let Some(call) = mem.call.map(|call| call as usize) else { return self.launch_call(mem.launch?) };
                let (start, duration) = (*profile.calls.start.get(call)?, *profile.calls.duration.get(call)?);
                let (pid, tid) = profile.calls.thread_of(call);
                Some(Call { start, end: start.saturating_add(duration), pid, tid })
            }
            OperationRow::Graph(index) => {
                let graph = profile.graphs.get(index as usize)?;
                let place = profile.places.get(graph.place as usize)?;
                let (start, pid) = (graph.call?, place.pid.unwrap_or_default());
                let &(tid, end) = self.graph_calls.get(&(pid, start))?;
                Some(Call { start, end, pid, tid })
            }
        }
    }

    /// Returns the process, thread and time at which to look up the ranges that enclose an operation's launch. The time
    /// is the start of the launching call or, if calls were not recorded, of the range in which the operation was
    /// launched.
    pub fn find_origin(&self, op: &DeviceOp) -> Option<(u32, u32, i64)> {
        if let Some(call) = self.find_call(op) {
            return Some((call.pid, call.tid, call.start));
        }
        let OperationRow::Launch(row) = op.row else { return None };
        let place = self.profile.places.get(self.profile.launches.place(row as usize)?.0 as usize)?;
        let time = self.profile.launches.launched_in(row as usize)?;
        Some((place.pid.unwrap_or_default(), place.thread?, clamp_time(time)))
    }

    fn launch_call(&self, row: u32) -> Option<Call> {
        let launches = &self.profile.launches;
        let (start, cost) = launches.call(row as usize)?;
        let place = self.profile.places.get(launches.place(row as usize)?.0 as usize)?;
        Some(Call { start, end: start.saturating_add(cost), pid: place.pid.unwrap_or_default(), tid: place.thread? })
    }

    /// For an operation inside a graph, returns the row of a kernel launch that belongs to the same graph launch (for a
    /// kernel, its own row); `None` for operations outside of graphs.
    pub fn in_graph(&self, op: &DeviceOp) -> Option<u32> {
        match op.row {
            OperationRow::Launch(row) => self.profile.launches.graph_node(row as usize).map(|_| row),
            OperationRow::Mem(row) => self.profile.memops.get(row as usize)?.launch,
            OperationRow::Graph(_) => None,
        }
    }

    /// Returns the copy or memset of an operation; `None` for other operations.
    /// Stream in which an operation ran. Graph launches of which only the whole was recorded have a stream like kernels.
    pub fn stream_of(&self, op: &DeviceOp) -> Stream {
        let profile = self.profile;
        let place = match op.row {
            OperationRow::Launch(row) => profile.launches.place(row as usize).map(|p| p.0),
            OperationRow::Mem(row) => profile.memops.get(row as usize).map(|m| m.place.0),
            OperationRow::Graph(row) => profile.graphs.get(row as usize).map(|g| g.place),
        };
        let place = place.and_then(|place| profile.places.get(place as usize));
        (op.unit, place.and_then(|p| p.context), place.and_then(|p| p.stream))
    }

    pub fn mem_of(&self, op: &DeviceOp) -> Option<MemOp> {
        match op.row {
            OperationRow::Mem(row) => self.profile.memops.get(row as usize),
            _ => None,
        }
    }
}

/// Call that started an operation. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub start: i64,
    pub end: i64,
    pub pid: u32,
    pub tid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_the_hip_runtime_by_their_purpose() {
        for (name, class) in [
            ("__amd_rocclr_copyBuffer", Some(CopyClass::Device)),
            ("__amd_rocclr_copyBufferRectAligned", Some(CopyClass::Device)),
            ("__amd_rocclr_fillBufferAligned", Some(CopyClass::Set)),
            ("__amd_rocclr_streamOpsWait", None),
            ("copyBuffer", None),
        ] {
            assert_eq!(blit_class(name), class, "{name}");
        }
    }
}
