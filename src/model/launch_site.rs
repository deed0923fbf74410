//! Launch sites: distinct combinations of process, thread, device, context and stream, which launches refer to by
//! index.

/// Index into [`Profile::places`](super::Profile::places).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// Process, launching thread, device, context and stream that one or more launches have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchSite {
    pub pid: Option<u32>,
    /// Index into [`Profile::devices`](super::Profile::devices), if the report identifies the GPU.
    pub device: Option<u32>,
    /// Device ordinal within the process, after `CUDA_VISIBLE_DEVICES` is applied.
    pub ordinal: Option<u32>,
    pub context: Option<u32>,
    pub stream: Option<u32>,
    /// OS id of the launching thread.
    pub thread: Option<u32>,
}

/// A process in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Name of the executable, as in the report.
    pub name: Option<String>,
    /// Rank of the process, if the report contains several ranks of a job.
    pub rank: Option<u32>,
}
