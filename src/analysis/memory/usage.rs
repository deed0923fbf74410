//! Result of the memory analysis.

use super::finding::MemoryFinding;
use super::ledger::Ledger;
use super::sites::Sites;
use super::steps::Steps;
use crate::model::{Profile, Segment};

/// Memory usage of a program.
#[derive(Clone, Debug)]
pub struct Usage {
    pub sites: Sites,
    /// Usage of each device.
    pub devices: Vec<DeviceUsage>,
}

/// Memory usage of one device.
#[derive(Clone, Debug)]
pub struct DeviceUsage {
    pub ledger: Ledger,
    pub steps: Steps,
    /// Event with the most bytes allocated after it, and the bytes; `None` for the time before the first event.
    pub peak: (Option<u32>, u64),
    /// Maximum of the bytes that the allocator held from the driver; `None` without an allocator.
    pub reserved_peak: Option<u64>,
    /// Bytes that the allocator held from the driver at the end.
    pub reserved: Option<u64>,
    /// Free memory in the allocator's segments; `None` if the report lacks it.
    pub free: Option<Free>,
    /// Free bytes by private pool, for pools with free memory.
    pub private: Vec<((u64, u64), u64)>,
    /// Findings, most important first.
    pub findings: Vec<MemoryFinding>,
}

/// Free memory in the allocator's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Bytes in entirely free segments: these can go back to the driver.
    pub whole: u64,
    /// Bytes between blocks in use.
    pub split: u64,
    /// Largest free block, bytes.
    pub largest: u64,
    /// Number of free blocks in segments in use, and bytes of the largest.
    pub pieces: u64,
    pub largest_piece: u64,
    /// Number of free blocks with blocks in use on both sides, and their bytes.
    pub gaps: u64,
    pub between: u64,
}

impl Usage {
    /// The device with the highest peak.
    pub fn main(&self) -> Option<&DeviceUsage> {
        self.devices.iter().enumerate().max_by_key(|(at, d)| (d.peak.1, std::cmp::Reverse(*at))).map(|d| d.1)
    }
}

impl DeviceUsage {
    /// Time of the peak, ns.
    pub fn peak_time(&self) -> Option<i64> {
        self.peak.0.map(|at| self.ledger.event_time(at))
    }
}

/// The segments of a device.
pub fn device_segments(profile: &Profile, device: Option<u32>) -> impl Iterator<Item = &Segment> {
    profile.memory.state.iter().flat_map(|s| &s.segments).filter(move |s| s.device == device)
}
