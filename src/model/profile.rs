//! Data of a whole report.

use super::digest::Digest;
use super::{
    Clock, Collective, CounterTrack, Coverage, Device, HostCalls, Kernel, KernelId, LaunchConfig, LaunchSite, Launches, MemOps,
    MemoryEvents, Metrics, Nanos, Note, OsCalls, Overhead, Process, Ranges, Rank, Samples, ServerSample, Shortened, Source, StateChange,
    Thread, Waits,
};
use std::sync::Arc;

/// Meaning of the order of [`LaunchId`](super::LaunchId)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOrder {
    /// By the start of the launching API call, then by device start: the order in which a re-run counts.
    Host,
    /// As `Host`, but this many launches have no API call and are placed by their device start.
    Partly(u64),
    /// By device start alone: the report has no API calls.
    Device,
    /// Order of the report, whose tool was told to leave launches out: others may precede, separate and follow them.
    Chosen,
    /// Unknown: only the part of the report that a table needs was read.
    Unread,
}

/// Granularity of the tracing of CUDA graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMode {
    /// One record per graph launch; the kernels inside are not listed.
    Graph,
    /// One record per node.
    Node,
}

/// A condition that opened and closed the capture; launches outside it are not in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureRange {
    /// `cudaProfilerStart` / `cudaProfilerStop`.
    ProfilerApi,
    /// An NVTX range: the first one entered.
    Nvtx,
    /// A delay from the start of the program.
    Delay(Nanos),
    /// The capture began after the program, for a reason that the report does not give: a delay, a hot key, `nsys
    /// start`.
    Late,
}

/// Settings of the capture, as far as the report contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working directory of the program.
    pub directory: Option<String>,
    pub graphs: Option<GraphMode>,
    /// Condition that opened the capture, other than the start of the program.
    pub gate: Option<CaptureRange>,
}

/// One launch of a CUDA graph traced as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLaunch {
    /// Start on the device.
    pub start: Nanos,
    /// Duration on the device.
    pub duration: Nanos,
    pub graph: u64,
    /// Index into [`Profile::places`].
    pub place: u32,
    /// Start of the call that launched it, ns.
    pub call: Option<i64>,
}

/// Sums over all launches of a kernel, from a report without single launches.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTotal {
    pub kernel: KernelId,
    pub count: u64,
    /// Summed duration.
    pub total: Nanos,
    /// Shortest launch.
    pub min: Nanos,
    /// Longest launch.
    pub max: Nanos,
    /// Median duration, ns.
    pub median_ns: Option<f64>,
    /// Sample standard deviation, ns.
    pub stddev_ns: Option<f64>,
}

/// A report that was read; immutable.
#[derive(Clone, Debug)]
pub struct Profile {
    pub source: Source,
    pub capture: Capture,
    pub devices: Vec<Device>,
    /// Processes that used a GPU.
    pub processes: Vec<Process>,
    /// Kernels, in the order of their first launch in the file.
    pub kernels: Vec<Kernel>,
    /// Distinct launch configurations.
    pub configs: Vec<LaunchConfig>,
    /// Distinct combinations of process, thread, device, context and stream.
    pub places: Vec<LaunchSite>,
    /// Kernel launches, in launch order.
    pub launches: Launches,
    /// Sums per kernel, for a report that has only these.
    pub totals: Vec<KernelTotal>,
    pub order: LaunchOrder,
    pub memops: MemOps,
    /// Host calls that launched no kernel.
    pub calls: HostCalls,
    pub waits: Waits,
    /// Threads with a name, or with activity outside of CUDA.
    pub threads: Vec<Thread>,
    pub os_calls: OsCalls,
    /// By time.
    pub states: Vec<StateChange>,
    pub samples: Samples,
    pub counters: Vec<CounterTrack>,
    /// Metrics of the inference server that the program is, in order of time.
    pub server: Vec<ServerSample>,
    pub memory: MemoryEvents,
    /// By start.
    pub collectives: Vec<Collective>,
    /// Time taken by the profiler.
    pub overhead: Vec<Overhead>,
    /// Recorded periods, ns, in order, if a gate excluded others; empty if the whole run was recorded.
    pub recorded: Vec<(i64, i64)>,
    pub clock: Clock,
    pub rank: Rank,
    /// Present if the file is a digest of a report.
    pub digest: Option<Arc<Digest>>,
    pub ranges: Ranges,
    /// CUDA graphs that were traced as a whole, in the order of the calls that launched them.
    pub graphs: Vec<GraphLaunch>,
    /// Metrics of results, in which case launch `i` is result `i`.
    pub metrics: Option<Arc<Metrics>>,
    /// Counters of some launches, measured in the same run, as a report of their own.
    pub measured: Option<Arc<Profile>>,
    /// Kernels whose names are truncated.
    pub shortened: Vec<Shortened>,
    /// Account of the recorded, missing and damaged work.
    pub coverage: Coverage,
    /// Notes for the reader.
    pub notes: Vec<Note>,
    /// False while only the stages for the first table have been read.
    pub complete: bool,
}

impl Profile {
    /// Creates an empty profile of a file.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            capture: Capture::default(),
            devices: Vec::new(),
            processes: Vec::new(),
            kernels: Vec::new(),
            configs: Vec::new(),
            places: Vec::new(),
            launches: Launches::default(),
            totals: Vec::new(),
            order: LaunchOrder::Unread,
            memops: MemOps::default(),
            calls: HostCalls::default(),
            waits: Waits::default(),
            threads: Vec::new(),
            os_calls: OsCalls::default(),
            states: Vec::new(),
            samples: Samples::default(),
            counters: Vec::new(),
            server: Vec::new(),
            memory: MemoryEvents::default(),
            collectives: Vec::new(),
            overhead: Vec::new(),
            recorded: Vec::new(),
            clock: Clock::default(),
            rank: Rank::default(),
            digest: None,
            ranges: Ranges::default(),
            graphs: Vec::new(),
            metrics: None,
            measured: None,
            shortened: Vec::new(),
            coverage: Coverage::default(),
            notes: Vec::new(),
            complete: true,
        }
    }

    /// Returns true if any of its GPUs is made by AMD.
    pub fn is_amd(&self) -> bool {
        self.devices.iter().any(|d| d.maker == super::Vendor::Amd)
    }

    /// Name of the file without its folders.
    pub fn file_name(&self) -> String {
        self.source.file.file_name().map_or_else(|| self.source.file.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    /// Vendor of its GPUs: that of the first one.
    pub fn maker(&self) -> super::Vendor {
        self.devices.first().map_or(super::Vendor::Unknown, |d| d.maker)
    }

    /// Device of a place.
    pub fn device_of(&self, place: &LaunchSite) -> Option<&Device> {
        self.devices.get(place.device? as usize)
    }
}
