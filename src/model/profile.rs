//! Contents of a report.

use super::digest::Digest;
use super::{
    Clock, Collective, CounterTrack, Coverage, Device, GraphNodes, HostCalls, Kernel, KernelId, LaunchConfig, LaunchSite, Launches, MemOps,
    MemoryEvents, Metrics, Nanos, Note, NoteKind, OsCalls, Overhead, Process, Ranges, Rank, RunSample, Samples, ServerSample, Severity,
    Shortened, Source, StateChange, Thread, Waits,
};
use std::sync::Arc;

/// Order in which [`LaunchId`](super::LaunchId)s are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchOrder {
    /// By start of the launching API call, then by device start; a re-run counts launches in this order.
    Host,
    /// Like `Host`, except that this many launches have no API call and are sorted by device start.
    Partly(u64),
    /// By device start only, because the report has no API calls.
    Device,
    /// In report order. The tool was told to skip launches, so there may be unrecorded launches before, between and
    /// after these.
    Chosen,
    /// Unknown, because only the kernel table has been read.
    Unread,
}

/// Granularity of CUDA graph tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMode {
    /// One record per graph launch; the kernels inside are not listed.
    Graph,
    /// One record per node.
    Node,
}

/// Condition that started and stopped the capture; launches outside it are not in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureRange {
    /// `cudaProfilerStart` / `cudaProfilerStop`.
    ProfilerApi,
    /// The first time an NVTX range was entered.
    Nvtx,
    /// A delay after the start of the program.
    Delay(Nanos),
    /// The capture began after the program started. The report does not record the reason, such as a delay, a hotkey
    /// or `nsys start`.
    Late,
}

/// Capture settings, to the extent that they are in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working directory of the program.
    pub directory: Option<String>,
    pub graphs: Option<GraphMode>,
    /// Condition that started the capture; `None` if the capture started with the program.
    pub gate: Option<CaptureRange>,
}

/// One launch of a CUDA graph, traced as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLaunch {
    /// Start on the device.
    pub start: Nanos,
    /// Duration on the device.
    pub duration: Nanos,
    pub graph: u64,
    /// Index into [`Profile::places`].
    pub place: u32,
    /// Start of the launching call, in nanoseconds.
    pub call: Option<i64>,
}

/// Totals for one kernel, from a report that does not list individual launches.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTotal {
    pub kernel: KernelId,
    pub count: u64,
    pub total: Nanos,
    /// Duration of the shortest launch.
    pub min: Nanos,
    /// Duration of the longest launch.
    pub max: Nanos,
    /// Median duration, ns.
    pub median_ns: Option<f64>,
    /// Sample standard deviation, ns.
    pub stddev_ns: Option<f64>,
}

/// Contents of a report; immutable once read.
#[derive(Clone, Debug)]
pub struct Profile {
    pub source: Source,
    pub capture: Capture,
    pub devices: Vec<Device>,
    /// Processes that used a GPU.
    pub processes: Vec<Process>,
    /// Kernels, in order of first appearance in the file.
    pub kernels: Vec<Kernel>,
    /// Distinct launch configurations.
    pub configs: Vec<LaunchConfig>,
    /// Distinct combinations of process, thread, device, context and stream.
    pub places: Vec<LaunchSite>,
    /// Kernel launches, in launch order.
    pub launches: Launches,
    /// Totals per kernel, for a report that does not list individual launches.
    pub totals: Vec<KernelTotal>,
    pub order: LaunchOrder,
    pub memops: MemOps,
    /// Host calls that did not launch a kernel.
    pub calls: HostCalls,
    pub waits: Waits,
    /// Threads that have a name, or activity outside of CUDA.
    pub threads: Vec<Thread>,
    pub os_calls: OsCalls,
    /// Sorted by time.
    pub states: Vec<StateChange>,
    pub samples: Samples,
    pub counters: Vec<CounterTrack>,
    /// Metrics of the program if it is an inference server, sorted by time.
    pub server: Vec<ServerSample>,
    pub memory: MemoryEvents,
    /// Sorted by start.
    pub collectives: Vec<Collective>,
    /// Time spent by the profiler itself.
    pub overhead: Vec<Overhead>,
    /// Recorded periods, ns, sorted by time, if a capture gate excluded the rest; empty if the whole run was recorded.
    pub recorded: Vec<(i64, i64)>,
    /// Processes of which only short periods were recorded, as a sample from which the totals of the run are estimated.
    pub run_samples: Vec<RunSample>,
    pub clock: Clock,
    pub rank: Rank,
    /// Set if the file is a digest of a report.
    pub digest: Option<Arc<Digest>>,
    pub ranges: Ranges,
    /// Origins of graph nodes.
    pub graph_nodes: GraphNodes,
    /// Launches of CUDA graphs traced as a whole, in the order of their launching calls.
    pub graphs: Vec<GraphLaunch>,
    /// Metrics of profiled launches, if any. Launch `i` then corresponds to result `i`.
    pub metrics: Option<Arc<Metrics>>,
    /// Counters of some launches measured during the same run, as a separate report.
    pub measured: Option<Arc<Profile>>,
    /// Kernels whose names are truncated.
    pub shortened: Vec<Shortened>,
    /// Counts of missing and damaged records.
    pub coverage: Coverage,
    /// Warnings and remarks to display.
    pub notes: Vec<Note>,
    /// False if only the first table has been read so far.
    pub complete: bool,
}

impl Profile {
    /// Process of a launch; 0 if it is not known.
    pub fn launch_pid(&self, row: usize) -> u32 {
        self.launches.place(row).and_then(|p| self.places.get(p.0 as usize)).and_then(|p| p.pid).unwrap_or_default()
    }

    /// Creates an empty profile.
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
            run_samples: Vec::new(),
            clock: Clock::default(),
            rank: Rank::default(),
            digest: None,
            ranges: Ranges::default(),
            graph_nodes: GraphNodes::default(),
            graphs: Vec::new(),
            metrics: None,
            measured: None,
            shortened: Vec::new(),
            coverage: Coverage::default(),
            notes: Vec::new(),
            complete: true,
        }
    }

    /// Returns true if call stacks of host threads were sampled, or calls of Python functions recorded.
    pub fn has_host_stacks(&self) -> bool {
        !self.samples.samples.is_empty() || self.ranges.iter().any(|r| r.origin == super::RangeOrigin::Python)
    }

    /// Returns true if a launch has valid times, so that its duration can be counted.
    pub fn has_time(&self, launch: usize) -> bool {
        self.coverage.untimed == 0 || self.launches.has_duration(launch)
    }

    /// Returns true if at least one of the GPUs is from AMD.
    pub fn is_amd(&self) -> bool {
        self.devices.iter().any(|d| d.maker == super::Vendor::Amd)
    }

    /// Name of the file without its directory.
    pub fn file_name(&self) -> String {
        self.source.file.file_name().map_or_else(|| self.source.file.display().to_string(), |n| n.to_string_lossy().into_owned())
    }

    /// Vendor of the first GPU.
    pub fn maker(&self) -> super::Vendor {
        self.devices.first().map_or(super::Vendor::Unknown, |d| d.maker)
    }

    /// Advice on how to have the work whose records are missing.
    pub fn advise_on_losses(&self) -> String {
        if self.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.severity == Severity::Error) {
            return "copy the file again: it is damaged or cut off, and what is missing may be in the original".to_owned();
        }
        self.coverage.recording_advice(&self.source.tool, self.maker())
    }

    /// GPU of a launch site, if known.
    pub fn device_of(&self, place: &LaunchSite) -> Option<&Device> {
        self.devices.get(place.device? as usize)
    }
}
