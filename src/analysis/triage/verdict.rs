//! Vocabulary of the bottlenecks of a run. An id is stable: its meaning never changes, because scripts rely on it.

use std::fmt;

macro_rules! verdicts {
    ($($name:ident $id:literal $means:literal)*) => {
        /// Bottleneck of a run. Findings that cost the same are ordered as listed here: causes before effects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verdict {
            $($name,)*
        }

        /// All verdicts with their ids and meanings.
        pub const VERDICTS: &[(Verdict, &str, &str)] = &[$((Verdict::$name, $id, $means),)*];
    };
}

verdicts! {
    ShortCapture "short-capture" "the capture is too short, cut, or lacks what a verdict needs"
    Straggler "straggler" "one rank arrives late at the collectives, and the others wait for it"
    SlowLink "slow-link" "collectives between some ranks take much longer than the same between others"
    RankImbalance "rank-imbalance" "ranks wait for each other at collectives, and it is not always the same one"
    PipelineBubble "pipeline-bubble" "a rank waits for what others send it"
    SingleDelay "single-delay" "the GPU waits once or twice: a start or a single delay, not a rate"
    NoRequests "no-requests" "the program is a server, and it had no requests to work on"
    PeriodicStall "periodic-stall" "a few steps take much longer than the others"
    GraphRecapture "graph-recapture" "CUDA graphs are captured or instantiated again and again"
    Compilation "compilation" "code is compiled or loaded while the GPU has nothing to do"
    Allocation "allocation" "device or pinned memory is allocated and freed in the steady state"
    InputWait "input-wait" "the launching thread waits for something other than the GPU: the next batch, a queue, a file"
    HostCompute "host-compute" "the launching thread computes something else in the meantime"
    HostSync "host-sync" "the program waits for the GPU again and again, and the queue runs dry after each wait"
    PageableCopies "pageable-copies" "transfers from or to pageable memory: staged, synchronous and slow"
    SmallCopies "small-copies" "many tiny transfers, each with its fixed cost"
    CopyBound "copy-bound" "transfers that nothing hides"
    UnifiedMemory "unified-memory" "page faults and migrations of managed memory"
    CommBound "comm-bound" "collectives take more of the window than computing"
    CommExposed "comm-exposed" "collectives that no computing hides"
    LaunchBound "launch-bound" "the host cannot launch as fast as the GPU works"
    SmallKernels "small-kernels" "the GPU is busy with kernels so short that starting and ending them costs a large part"
    Serialised "serialised" "independent streams of work that could run together do not"
    UnbalancedDevices "unbalanced-devices" "the devices of one run are busy very differently"
    Throttled "throttled" "the same kernels get slower over the run"
    GpuBound "gpu-bound" "kernels fill the window: the time is in the kernels themselves"
}

impl Verdict {
    /// Stable id for scripts.
    pub fn id(self) -> &'static str {
        VERDICTS.iter().find(|v| v.0 == self).map_or("", |v| v.1)
    }

    /// Meaning, in half a sentence.
    pub fn meaning(self) -> &'static str {
        VERDICTS.iter().find(|v| v.0 == self).map_or("", |v| v.2)
    }

    /// The verdict with an id.
    pub fn from_id(id: &str) -> Option<Self> {
        VERDICTS.iter().find(|v| v.1 == id).map(|v| v.0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
