//! Allocations and frees over time.

use super::memop::MemoryKind;
use std::sync::Arc;

/// One allocation or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// ns.
    pub time: i64,
    pub address: u64,
    /// Bytes that are in use from now on; negative for a free.
    pub bytes: i64,
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    pub pid: u32,
    pub kind: Option<MemoryKind>,
    /// Whether a framework's allocator gave it out of what it holds, and no driver was asked.
    pub cached: bool,
}

/// All of them by time, and what the allocators say beside them.
#[derive(Clone, Debug, Default)]
pub struct MemoryEvents {
    pub events: Vec<MemoryEvent>,
    /// Bytes that a framework's allocator held (`Total Reserved`) after the event of that index, where it says so.
    pub reserved: Vec<(u32, u64)>,
    /// Names of allocators or pools, where the report has them.
    pub pools: Vec<Arc<str>>,
}
