//! Places of launches: process, thread, device, context and stream, interned together.

/// Index into [`Profile::places`](super::Profile::places).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// One combination of process, launching thread, device, context and stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchSite {
    pub pid: Option<u32>,
    /// Index into [`Profile::devices`](super::Profile::devices), if the report identifies the GPU.
    pub device: Option<u32>,
    /// Device ordinal as the process saw it (`CUDA_VISIBLE_DEVICES` applies).
    pub ordinal: Option<u32>,
    pub context: Option<u32>,
    pub stream: Option<u32>,
    /// Operating-system id of the thread that called the launch API.
    pub thread: Option<u32>,
}

/// A process in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Executable, as the report names it.
    pub name: Option<String>,
    /// Its rank, if the report contains several ranks of a job.
    pub rank: Option<u32>,
}
