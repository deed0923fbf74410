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
    /// Memory usage by device.
    pub devices: Vec<DeviceUsage>,
}

/// Memory usage of one device.
#[derive(Clone, Debug)]
pub struct DeviceUsage {
    pub ledger: Ledger,
    pub steps: Steps,
    /// Event after which the most bytes are allocated, and the number of bytes; `None` if that is before the first
    /// event.
    pub peak: (Option<u32>, u64),
    /// Maximum number of bytes that the allocator reserved from the driver; `None` if there is no allocator.
    pub reserved_peak: Option<u64>,
    /// Bytes that the allocator had reserved from the driver at the end.
    pub reserved: Option<u64>,
    /// Free memory in the allocator's segments; `None` if the report does not record it.
    pub free: Option<Free>,
    /// Free bytes by private pool, for pools with free memory.
    pub private: Vec<((u64, u64), u64)>,
    /// Findings, most important first.
    pub findings: Vec<MemoryFinding>,
}

/// Free memory in the allocator's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Bytes in entirely free segments, which can be returned to the driver.
    pub whole: u64,
    /// Free bytes in segments that also contain blocks in use.
    pub split: u64,
    /// Largest free block, bytes.
    pub largest: u64,
    /// Number of free blocks in segments that also contain blocks in use, and size of the largest one, bytes.
    pub pieces: u64,
    pub largest_piece: u64,
    /// Number of free blocks with blocks in use on both sides, and their total bytes.
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

/// Returns the segments of a device.
pub fn device_segments(profile: &Profile, device: Option<u32>) -> impl Iterator<Item = &Segment> {
    profile.memory.state.iter().flat_map(|s| &s.segments).filter(move |s| s.device == device)
}
