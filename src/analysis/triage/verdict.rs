//! The bottlenecks that a run can have. Ids are stable and never change their meaning, because scripts rely on them.

use super::time_category::Cause;
use std::fmt;

/// Bottleneck of a run. Findings with the same cost are ordered as listed here: causes before effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    ShortCapture,
    Straggler,
    SlowLink,
    RankImbalance,
    PipelineBubble,
    SingleDelay,
    NoRequests,
    PeriodicStall,
    GraphRecapture,
    Compilation,
    Allocation,
    InputWait,
    HostCompute,
    HostSync,
    StreamWait,
    PageableCopies,
    SmallCopies,
    CopyBound,
    UnifiedMemory,
    CommBound,
    CommExposed,
    LaunchBound,
    SmallKernels,
    Serialised,
    UnbalancedDevices,
    Throttled,
    GpuBound,
}

use Verdict as V;

/// Properties of a bottleneck that do not depend on a run.
#[derive(Clone, Copy, Debug)]
pub struct VerdictInfo {
    pub verdict: Verdict,
    /// Stable id for scripts.
    pub id: &'static str,
    /// Meaning, as a clause.
    pub meaning: &'static str,
    /// Causes of idle time behind the bottleneck.
    pub idle_causes: &'static [Cause],
    /// Effects that this bottleneck can explain. Each comes with the fraction of the effect's gain that this bottleneck
    /// must reach to explain it.
    pub effects: &'static [(f64, &'static [Verdict])],
    /// True if the bottleneck concerns kernels, not the time between them.
    pub of_kernels: bool,
    /// Recipe that confirms the bottleneck or locates the line behind it, and the reason.
    pub recipe: Option<(&'static str, &'static str)>,
}

impl VerdictInfo {
    const fn of_idle_time(mut self, causes: &'static [Cause]) -> Self {
        self.idle_causes = causes;
        self
    }

    const fn explains(mut self, effects: &'static [(f64, &'static [Verdict])]) -> Self {
        self.effects = effects;
        self
    }

    const fn of_kernels(mut self) -> Self {
        self.of_kernels = true;
        self
    }

    const fn confirmed_by(mut self, recipe: &'static str, why: &'static str) -> Self {
        self.recipe = Some((recipe, why));
        self
    }
}

const fn row(verdict: Verdict, id: &'static str, meaning: &'static str) -> VerdictInfo {
    VerdictInfo { verdict, id, meaning, idle_causes: &[], effects: &[], of_kernels: false, recipe: None }
}

pub static VERDICTS: &[VerdictInfo] = &[
    row(V::ShortCapture, "short-capture", "the capture is too short, cut, or lacks what a verdict needs")
        .confirmed_by("exact", "records kernels, copies and the host's calls"),
    row(V::Straggler, "straggler", "one rank arrives late at the collectives, and the others wait for it")
        .confirmed_by("rank", "records every rank: who is late shows only when they are judged together"),
    row(V::SlowLink, "slow-link", "collectives between some ranks take much longer than the same between others"),
    row(V::RankImbalance, "rank-imbalance", "ranks wait for each other at collectives, and it is not always the same one"),
    row(V::PipelineBubble, "pipeline-bubble", "a rank waits for what others send it"),
    row(V::SingleDelay, "single-delay", "the GPU waits once or twice: a start or a single delay, not a rate")
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::NoRequests, "no-requests", "the program is a server, and it had no requests to work on").of_idle_time(&[Cause::NoRequests]),
    row(V::PeriodicStall, "periodic-stall", "a few steps take much longer than the others")
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::GraphRecapture, "graph-recapture", "CUDA graphs are captured or instantiated again and again")
        .of_idle_time(&[Cause::Graph])
        .explains(&[(0.7, &[V::PeriodicStall])])
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    // Compilation, allocation, recapture and page faults each explain slow steps, which are then an effect rather than
    // a separate problem.
    row(V::Compilation, "compilation", "code is compiled or loaded while the GPU has nothing to do")
        .of_idle_time(&[Cause::Compile])
        .explains(&[(0.7, &[V::PeriodicStall])])
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::Allocation, "allocation", "device or pinned memory is allocated and freed in the steady state")
        .of_idle_time(&[Cause::Alloc])
        .explains(&[(0.7, &[V::PeriodicStall])])
        .confirmed_by("memory", "records every allocation: what is allocated, how large, and for how long"),
    row(V::InputWait, "input-wait", "the launching thread waits for something other than the GPU: the next batch, a queue, a file")
        .of_idle_time(&[Cause::Wait])
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::HostCompute, "host-compute", "the launching thread computes something else in the meantime")
        .of_idle_time(&[Cause::Compute, Cause::Unknown]),
    row(V::HostSync, "host-sync", "the program waits for the GPU again and again, and the queue runs dry after each wait")
        .of_idle_time(&[Cause::Sync])
        .explains(&[(0.7, &[V::SmallKernels])])
        .confirmed_by("python", "records Python stacks: which line makes these calls"),
    row(V::StreamWait, "stream-wait", "operations that are launched wait in their streams: for an event, a host function, another device")
        .of_idle_time(&[Cause::Queued])
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::PageableCopies, "pageable-copies", "transfers from or to pageable memory: staged, synchronous and slow")
        .confirmed_by("python", "records Python stacks: which line makes these calls"),
    row(V::SmallCopies, "small-copies", "many tiny transfers, each with its fixed cost")
        .confirmed_by("python", "records Python stacks: which line makes these calls"),
    row(V::CopyBound, "copy-bound", "transfers that are not overlapped with kernels")
        .confirmed_by("python", "records Python stacks: which line makes these calls"),
    row(V::UnifiedMemory, "unified-memory", "page faults and migrations of managed memory")
        .explains(&[(0.7, &[V::PeriodicStall])])
        .confirmed_by("memory", "records every allocation: what is allocated, how large, and for how long"),
    row(V::CommBound, "comm-bound", "collectives take more of the window than computing")
        .confirmed_by("rank", "records every rank: who is late shows only when they are judged together"),
    row(V::CommExposed, "comm-exposed", "collectives that are not overlapped with compute")
        .confirmed_by("rank", "records every rank: who is late shows only when they are judged together"),
    row(V::LaunchBound, "launch-bound", "the host cannot launch as fast as the GPU works")
        .of_idle_time(&[Cause::Launch])
        .explains(&[(0.5, &[V::SmallKernels])])
        .confirmed_by("python", "records Python stacks: which line makes these calls"),
    row(V::SmallKernels, "small-kernels", "the GPU is busy with kernels so short that starting and ending them costs a large part")
        .of_kernels(),
    row(V::Serialised, "serialised", "independent streams could run concurrently, but do not")
        .of_kernels()
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    // The GPU with less work is idle no matter what its host does, so findings about the host are effects.
    row(V::UnbalancedDevices, "unbalanced-devices", "the devices of one run are busy very differently")
        .explains(&[(0.8, &[V::HostCompute, V::InputWait, V::LaunchBound, V::HostSync])])
        .confirmed_by("full", "records calls of the operating system, of libraries, and CPU samples: what the threads do then"),
    row(V::Throttled, "throttled", "the same kernels get slower over the run")
        .of_kernels()
        .confirmed_by("gpu-metrics", "samples the GPU's own counters, clocks among them"),
    row(V::GpuBound, "gpu-bound", "kernels fill the window: the time is in the kernels themselves").of_kernels(),
];

impl Verdict {
    /// Returns true if only a comparison with the job's other ranks can explain the bottleneck further.
    pub fn asks_for_ranks(self) -> bool {
        self.recipe().is_some_and(|r| r.0 == "rank")
    }

    fn info(self) -> Option<&'static VerdictInfo> {
        VERDICTS.iter().find(|v| v.verdict == self)
    }

    /// Stable id for scripts.
    pub fn id(self) -> &'static str {
        self.info().map_or("", |v| v.id)
    }

    /// Meaning, as a clause.
    pub fn meaning(self) -> &'static str {
        self.info().map_or("", |v| v.meaning)
    }

    /// Causes of idle time behind the bottleneck.
    pub fn idle_causes(self) -> &'static [Cause] {
        self.info().map_or(&[], |v| v.idle_causes)
    }

    /// Effects that this bottleneck can explain. Each comes with the minimum fraction of the effect's gain that this
    /// bottleneck must reach to explain it.
    pub fn effects(self) -> &'static [(f64, &'static [Self])] {
        self.info().map_or(&[], |v| v.effects)
    }

    /// Returns true if the bottleneck concerns kernels, not the time between them.
    pub fn is_of_kernels(self) -> bool {
        self.info().is_some_and(|v| v.of_kernels)
    }

    /// Recipe that confirms the bottleneck, and the reason.
    pub fn recipe(self) -> Option<(&'static str, &'static str)> {
        self.info().and_then(|v| v.recipe)
    }

    pub fn from_id(id: &str) -> Option<Self> {
        VERDICTS.iter().find(|v| v.id == id).map(|v| v.verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
