//! Determines the size of allocator blocks. The history only has the requested sizes, but a block may be larger.

use super::parts::RawEvent;
use crate::model::{BlockState, MemoryLevel, MemoryState};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Granularity of block sizes (`kMinBlockSize` in `c10/cuda/CUDACachingAllocator.cpp`).
const MULTIPLE: u64 = 512;
/// Maximum block size in the small pool (`kSmallSize`). In the large pool, the remainder of a free block is split off
/// only if it exceeds this size (`should_split`).
const SMALL: u64 = 1 << 20;
/// Segment size in the small pool (`kSmallBuffer`).
pub const SMALL_SEGMENT: u64 = 2 << 20;

/// Action recorded in a history entry.
#[derive(Clone, Copy)]
pub enum What {
    /// A change at some level; true for an increase.
    Change(MemoryLevel, bool),
    Refused,
}

/// An entry in a device's history.
pub struct HistoryEntry {
    /// Time in nanoseconds.
    pub time: i64,
    /// Index into the snapshot's events.
    pub event: u32,
    pub device: u32,
    pub what: What,
}

/// Address space of a device while its history is replayed.
#[derive(Default)]
struct Space {
    /// Size of each segment by address.
    segments: BTreeMap<u64, u64>,
    /// Size of each block in use by address.
    used: BTreeMap<u64, u64>,
    expandable: bool,
}

impl Space {
    /// Returns the size of the block for a request. Free memory at this address extends to the next block in use, or
    /// to the end of the segment.
    fn block_size(&self, address: u64, asked: u64) -> u64 {
        let size = asked.div_ceil(MULTIPLE).saturating_mul(MULTIPLE);
        if size <= SMALL || self.expandable {
            return size;
        }
        let Some(end) = self.segments.range(..=address).next_back().map(|(start, size)| start.saturating_add(*size)) else { return size };
        let next = self.used.range(address.saturating_add(1)..).next().map_or(end, |next| end.min(*next.0));
        match next.checked_sub(address) {
            Some(free) if free >= size && free - size <= SMALL => free,
            _ => size,
        }
    }
}

/// Returns the size of each row, bytes.
pub fn block_sizes(rows: &[HistoryEntry], events: &[RawEvent], state: &MemoryState) -> Vec<u64> {
    let mut spaces: FxHashMap<u32, Space> = FxHashMap::default();
    // Blocks in use at the end: the size of the final block is exactly the size of the last allocation at its address.
    let mut exact: FxHashMap<(u32, u64), u64> = FxHashMap::default();
    for segment in &state.segments {
        let device = segment.device.unwrap_or_default();
        let space = spaces.entry(device).or_default();
        space.segments.insert(segment.address, segment.size);
        space.expandable |= segment.expandable;
        let blocks = state.blocks.get(segment.blocks.0..segment.blocks.1).unwrap_or_default();
        exact.extend(blocks.iter().filter(|b| b.state == BlockState::Allocated).map(|b| ((device, b.address), b.size)));
    }
    let of = |row: &HistoryEntry| events.get(row.event as usize).map_or((0, 0), |e| (e.address, e.size));
    // Reconstruct the state before the history, by undoing the history starting from the final state.
    for row in rows.iter().rev() {
        let (address, size) = of(row);
        if let What::Change(MemoryLevel::Driver, more) = row.what {
            let segments = &mut spaces.entry(row.device).or_default().segments;
            if more {
                segments.remove(&address)
            } else {
                segments.insert(address, size)
            };
        }
    }
    let mut known: FxHashMap<usize, u64> = FxHashMap::default();
    let mut left = exact.clone();
    for (at, row) in rows.iter().enumerate().rev() {
        if left.is_empty() {
            break;
        }
        if let What::Change(MemoryLevel::Allocator, more) = row.what {
            let size = left.remove(&(row.device, of(row).0));
            known.extend(size.filter(|_| more).map(|size| (at, size)));
        }
    }
    // A block that the history only frees, or does not mention, existed before. Small blocks are in separate segments.
    let mut seen: FxHashSet<(u32, u64)> = FxHashSet::default();
    for row in rows {
        if let What::Change(MemoryLevel::Allocator, more) = row.what {
            let (address, size) = of(row);
            if size > SMALL - MULTIPLE && seen.insert((row.device, address)) && !more {
                spaces.entry(row.device).or_default().used.insert(address, size);
            }
        }
    }
    for ((device, address), size) in exact {
        if size > SMALL && !seen.contains(&(device, address)) {
            spaces.entry(device).or_default().used.insert(address, size);
        }
    }
    drop(seen);
    for space in spaces.values_mut() {
        let addresses: Vec<(u64, u64)> = space.used.iter().map(|(a, s)| (*a, *s)).collect();
        for (address, asked) in addresses {
            let size = space.block_size(address, asked);
            space.used.insert(address, size);
        }
    }
    let mut out = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let space = spaces.entry(row.device).or_default();
        let (address, asked) = of(row);
        out.push(match row.what {
            What::Change(MemoryLevel::Driver, more) => {
                if more {
                    space.segments.insert(address, asked)
                } else {
                    space.segments.remove(&address)
                };
                asked
            }
            What::Change(MemoryLevel::Allocator, true) => {
                let size = known.get(&at).copied().unwrap_or_else(|| space.block_size(address, asked));
                // Skip small blocks: they are the most frequent, but never adjacent to large blocks.
                if size > SMALL {
                    space.used.insert(address, size);
                }
                size
            }
            What::Change(MemoryLevel::Allocator, false) if asked > SMALL - MULTIPLE => {
                space.used.remove(&address).unwrap_or_else(|| space.block_size(address, asked))
            }
            // Another free event for this block is already in the history, usually the previous event.
            What::Change(..) => space.block_size(address, asked),
            What::Refused => asked,
        });
    }
    out
}
