//! How a program uses memory.

use super::finding::MemoryFinding;
use super::ledger::Ledger;
use super::sites::Sites;
use super::steps::Steps;
use crate::model::{Profile, Segment};

/// How a program uses memory.
#[derive(Clone, Debug)]
pub struct Usage {
    pub sites: Sites,
    /// By device.
    pub devices: Vec<DeviceUsage>,
}

/// The memory of one device.
#[derive(Clone, Debug)]
pub struct DeviceUsage {
    pub ledger: Ledger,
    pub steps: Steps,
    /// What most was allocated, bytes, and when, ns; `None` for the time before the first event.
    pub peak: (Option<u32>, u64),
    /// Most bytes that the allocator had from the driver; `None` where no allocator is seen.
    pub reserved_peak: Option<u64>,
    /// The same at the end.
    pub reserved: Option<u64>,
    /// What is free in what the allocator holds; `None` where the report does not say.
    pub free: Option<Free>,
    /// Free bytes in each private pool that has some.
    pub private: Vec<((u64, u64), u64)>,
    /// What matters most first.
    pub findings: Vec<MemoryFinding>,
}

/// Free memory in what an allocator holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Bytes in segments that are free as a whole: these can go back to the driver.
    pub whole: u64,
    /// Bytes between blocks that are in use.
    pub split: u64,
    /// Largest free block, bytes.
    pub largest: u64,
    /// Free blocks in segments that are in use, and the largest of them, bytes.
    pub pieces: u64,
    pub largest_piece: u64,
    /// Free blocks with blocks in use on both sides, and their bytes.
    pub gaps: u64,
    pub between: u64,
}

impl Usage {
    /// The device with the highest peak.
    #[must_use]
    pub fn main(&self) -> Option<&DeviceUsage> {
        self.devices.iter().enumerate().max_by_key(|(at, d)| (d.peak.1, std::cmp::Reverse(*at))).map(|d| d.1)
    }
}

impl DeviceUsage {
    /// When most was allocated, ns.
    #[must_use]
    pub fn peak_time(&self) -> Option<i64> {
        self.peak.0.map(|at| self.ledger.time(at))
    }
}

/// The segments of a device.
pub fn segments(profile: &Profile, device: Option<u32>) -> impl Iterator<Item = &Segment> {
    profile.memory.state.iter().flat_map(|s| &s.segments).filter(move |s| s.device == device)
}
