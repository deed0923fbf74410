//! CUDA or HIP runtime and driver calls on the host.
//!
//! Calls that launched kernels are stored with their launches ([`Launches::call`](super::Launches::call)). Cheap
//! queries such as `cuKernelGetName` are only counted, because a report may contain one per launch.

use super::Nanos;
use std::sync::Arc;

/// Kind of call by effect, for the runtime and driver APIs of CUDA and HIP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    Launch,
    GraphLaunch,
    /// Blocks the thread until device work is done.
    Sync,
    Copy,
    Set,
    Alloc,
    Free,
    /// Loads or unloads code.
    Module,
    /// Records an event, or makes a stream wait for one.
    Event,
    /// Creates or captures graphs.
    Graph,
    /// Enqueues a host function (`cudaLaunchHostFunc`).
    HostFunction,
    /// Starts or stops the capture.
    Profiler,
    /// Only queries state; a report may contain one such call per launch.
    Query,
    Other,
}

/// Maps name prefixes (without `cuda`, `cu` or `hip`) to the kind of call. The first match wins, so longer prefixes
/// come first.
const KINDS: &[(&str, CallKind)] = &[
    // Must precede `Launch`: a host function is not a kernel.
    ("LaunchHostFunc", CallKind::HostFunction),
    ("StreamAddCallback", CallKind::HostFunction),
    ("GraphLaunch", CallKind::GraphLaunch),
    ("Launch", CallKind::Launch),
    ("ModuleLaunch", CallKind::Launch),
    ("ExtLaunch", CallKind::Launch),
    ("ExtModuleLaunch", CallKind::Launch),
    ("ProfilerStart", CallKind::Profiler),
    ("ProfilerStop", CallKind::Profiler),
    ("DeviceSynchronize", CallKind::Sync),
    ("ThreadSynchronize", CallKind::Sync),
    ("CtxSynchronize", CallKind::Sync),
    ("StreamSynchronize", CallKind::Sync),
    ("EventSynchronize", CallKind::Sync),
    ("StreamIsCapturing", CallKind::Query),
    ("StreamGetCaptureInfo", CallKind::Query),
    ("Event", CallKind::Event),
    ("StreamWaitEvent", CallKind::Event),
    ("StreamBeginCapture", CallKind::Graph),
    ("StreamEndCapture", CallKind::Graph),
    ("ThreadExchangeStreamCaptureMode", CallKind::Graph),
    ("Graph", CallKind::Graph),
    ("MemcpyPeerAsync", CallKind::Copy),
    ("Memcpy", CallKind::Copy),
    ("MemPrefetch", CallKind::Copy),
    ("Memset", CallKind::Set),
    ("MemsetD", CallKind::Set),
    ("Malloc", CallKind::Alloc),
    ("MemAlloc", CallKind::Alloc),
    ("MemHostAlloc", CallKind::Alloc),
    ("HostAlloc", CallKind::Alloc),
    ("HostMalloc", CallKind::Alloc),
    ("HostRegister", CallKind::Alloc),
    ("MemHostRegister", CallKind::Alloc),
    ("MemCreate", CallKind::Alloc),
    ("MemMap", CallKind::Alloc),
    ("MemAddressReserve", CallKind::Alloc),
    ("ArrayCreate", CallKind::Alloc),
    ("FreeArray", CallKind::Free),
    ("Free", CallKind::Free),
    ("MemFree", CallKind::Free),
    ("HostFree", CallKind::Free),
    ("HostUnregister", CallKind::Free),
    ("MemHostUnregister", CallKind::Free),
    ("MemRelease", CallKind::Free),
    ("MemUnmap", CallKind::Free),
    ("MemAddressFree", CallKind::Free),
    ("ArrayDestroy", CallKind::Free),
    ("ModuleGet", CallKind::Query),
    ("ModuleLoad", CallKind::Module),
    ("ModuleUnload", CallKind::Module),
    ("LibraryGet", CallKind::Query),
    ("LibraryLoad", CallKind::Module),
    ("LibraryUnload", CallKind::Module),
    ("LinkCreate", CallKind::Module),
    ("LinkAdd", CallKind::Module),
    ("LinkComplete", CallKind::Module),
    ("KernelGet", CallKind::Query),
    ("KernelSet", CallKind::Query),
    ("FuncGet", CallKind::Query),
    ("GetProcAddress", CallKind::Query),
    ("GetFuncBySymbol", CallKind::Query),
    ("DeviceGet", CallKind::Query),
    ("Get", CallKind::Query),
];

impl CallKind {
    /// Determines the kind of a call from its name; a version suffix added by CUPTI makes no difference.
    pub fn from_name(name: &str) -> Self {
        // Runtime names begin with `cuda`, driver names with `cu` followed by a capital letter.
        let bare = ["cuda", "hip", "cu"].iter().find_map(|p| name.strip_prefix(p)).unwrap_or(name);
        KINDS.iter().find(|(begins, _)| bare.starts_with(begins)).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Returns true if calls of this kind can start a kernel, memcpy or memset. Needed because other calls, too, may
    /// share a correlation id with a GPU record.
    pub fn may_start_work(self) -> bool {
        !matches!(self, Self::Sync | Self::Event | Self::Module | Self::Profiler)
    }

    /// Returns true if calls of this kind are stored individually rather than only counted.
    pub fn is_kept(self) -> bool {
        self != Self::Query
    }
}

/// Totals of all calls with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// Name without the version suffix (`cudaMalloc`, not `cudaMalloc_v3020`).
    pub name: Arc<str>,
    pub kind: CallKind,
    pub count: u64,
    /// Total host time.
    pub total: Nanos,
}

impl CallName {
    /// Creates an entry, with the kind derived from the name.
    pub fn new(name: Arc<str>, count: u64, total: Nanos) -> Self {
        Self { kind: CallKind::from_name(&name), name, count, total }
    }
}

/// Sentinel for a value that is not in the report.
pub const NONE: u32 = u32::MAX;

/// Totals per name over all calls, plus one row (28 bytes) for each call that the timeline shows and that launched no
/// kernel. Rows are in file order.
#[derive(Clone, Debug, Default)]
pub struct HostCalls {
    /// Sorted by total time, longest first.
    pub names: Vec<CallName>,
    /// Distinct (process id, thread id) pairs.
    pub threads: Vec<(u32, u32)>,
    /// Start time in nanoseconds.
    pub start: Vec<i64>,
    /// Duration in nanoseconds.
    pub duration: Vec<i64>,
    /// Index into `names`; [`NONE`] if the report does not name the call.
    pub name: Vec<u32>,
    /// Index into `threads`.
    pub thread: Vec<u32>,
    /// Correlation id shared by a call and its GPU work, unique within the process; [`NONE`] if not in the report.
    pub correlation: Vec<u32>,
}

impl HostCalls {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    pub fn kind(&self, call: usize) -> CallKind {
        self.call_name(call).map_or(CallKind::Other, |n| n.kind)
    }

    /// Name of the call, with the totals of all calls of that name.
    pub fn call_name(&self, call: usize) -> Option<&CallName> {
        self.names.get(*self.name.get(call)? as usize)
    }

    /// Process id and thread id of a call.
    pub fn thread_of(&self, call: usize) -> (u32, u32) {
        self.thread.get(call).and_then(|&t| self.threads.get(t as usize)).copied().unwrap_or_default()
    }

    /// Memory that the columns use per call, bytes.
    pub fn bytes_per_call() -> usize {
        8 + 8 + 4 + 4 + 4
    }
}

/// Removes the version suffix that CUPTI adds (`_v3020`, `_v2`) from a call's name, as `nsys stats` does.
pub fn strip_version_suffix(name: &str) -> &str {
    match name.rfind("_v") {
        Some(at) if at + 2 < name.len() && name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_suffixes_go_and_nothing_else_does() {
        assert_eq!(strip_version_suffix("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(strip_version_suffix("cuGetProcAddress_v2"), "cuGetProcAddress");
        assert_eq!(strip_version_suffix("my_value"), "my_value");
        assert_eq!(strip_version_suffix("odd_v"), "odd_v");
    }

    #[test]
    fn calls_are_known_by_what_they_do() {
        for (name, kind) in [
            ("cudaLaunchKernel_v7000", CallKind::Launch),
            ("cudaLaunchKernelExC_v11060", CallKind::Launch),
            ("cuLaunchKernelEx", CallKind::Launch),
            ("cudaLaunchCooperativeKernel", CallKind::Launch),
            ("hipModuleLaunchKernel", CallKind::Launch),
            ("cuLaunchHostFunc", CallKind::HostFunction),
            ("cudaLaunchHostFunc_v10000", CallKind::HostFunction),
            ("cudaGraphLaunch_v10000", CallKind::GraphLaunch),
            ("cuGraphInstantiateWithFlags", CallKind::Graph),
            ("cudaStreamSynchronize_v3020", CallKind::Sync),
            ("cuEventSynchronize", CallKind::Sync),
            ("cudaEventRecord_v3020", CallKind::Event),
            ("cudaEventQuery_v3020", CallKind::Event),
            ("cudaMemcpyAsync_v3020", CallKind::Copy),
            ("cuMemcpyHtoDAsync_v2", CallKind::Copy),
            ("hipMemcpyWithStream", CallKind::Copy),
            ("cudaMemsetAsync_v3020", CallKind::Set),
            ("cudaMalloc_v3020", CallKind::Alloc),
            ("cuMemAlloc_v2", CallKind::Alloc),
            ("cudaFree_v3020", CallKind::Free),
            ("cudaFreeHost_v3020", CallKind::Free),
            ("cuModuleLoadData", CallKind::Module),
            ("cuKernelGetName", CallKind::Query),
            ("cudaGetDevice_v3020", CallKind::Query),
            ("cudaProfilerStart_v4000", CallKind::Profiler),
            ("cudaStreamCreateWithFlags_v5000", CallKind::Other),
            ("somebodysOwn", CallKind::Other),
        ] {
            assert_eq!(CallKind::from_name(name), kind, "{name}");
        }
        assert!(!CallKind::from_name("cuKernelGetName").is_kept() && CallKind::from_name("cudaStreamSynchronize").is_kept());
    }

    #[test]
    fn a_call_costs_at_most_32_bytes() {
        assert!(HostCalls::bytes_per_call() <= 32);
    }
}
