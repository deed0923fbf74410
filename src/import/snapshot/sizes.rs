//! How large the allocator's blocks are. A history has only what was asked for, and a block may be larger.

use super::parts::RawEvent;
use crate::model::{BlockState, MemoryLevel, MemoryState};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Blocks are multiples of this (`kMinBlockSize` of `c10/cuda/CUDACachingAllocator.cpp`).
const MULTIPLE: u64 = 512;
/// Up to this size blocks are of the pool for small ones (`kSmallSize`). Of the other pool the rest of a free block is split off only where it
/// is larger than that, too (`should_split`).
const SMALL: u64 = 1 << 20;
/// Segments of that pool (`kSmallBuffer`).
pub const SMALL_SEGMENT: u64 = 2 << 20;

/// What an entry of the history is.
#[derive(Clone, Copy)]
pub enum What {
    /// Whether it is more or less from now on.
    Change(MemoryLevel, bool),
    Refused,
}

/// An entry of the history, on a device.
pub struct Row {
    /// ns.
    pub time: i64,
    /// Index of what the snapshot says.
    pub event: u32,
    pub device: u32,
    pub what: What,
}

/// What is known of the addresses of a device while its history passes.
#[derive(Default)]
struct Space {
    /// Segments: address and size.
    segments: BTreeMap<u64, u64>,
    /// Blocks in use: address and size.
    used: BTreeMap<u64, u64>,
    expandable: bool,
}

impl Space {
    /// The size of the block that a request gets: the free memory that begins there ends at the next block in use, or with the segment.
    fn size(&self, address: u64, asked: u64) -> u64 {
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

/// The bytes that each row is about.
pub fn sizes(rows: &[Row], events: &[RawEvent], state: &MemoryState) -> Vec<u64> {
    let mut spaces: FxHashMap<u32, Space> = FxHashMap::default();
    // Blocks that are in use at the end: what is allocated there last has their size.
    let mut exact: FxHashMap<(u32, u64), u64> = FxHashMap::default();
    for segment in &state.segments {
        let device = segment.device.unwrap_or_default();
        let space = spaces.entry(device).or_default();
        space.segments.insert(segment.address, segment.size);
        space.expandable |= segment.expandable;
        let blocks = state.blocks.get(segment.blocks.0..segment.blocks.1).unwrap_or_default();
        exact.extend(blocks.iter().filter(|b| b.state == BlockState::Allocated).map(|b| ((device, b.address), b.size)));
    }
    let of = |row: &Row| events.get(row.event as usize).map_or((0, 0), |e| (e.address, e.size));
    // What was there when the history begins: what is in use or held at the end, and what the history undoes.
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
    // A block that is first seen when it is given back, or never, was there before. Small ones are in segments of their own.
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
            let size = space.size(address, asked);
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
                let size = known.get(&at).copied().unwrap_or_else(|| space.size(address, asked));
                // Small blocks are nobody's neighbours here, and there are the most of them.
                if size > SMALL {
                    space.used.insert(address, size);
                }
                size
            }
            What::Change(MemoryLevel::Allocator, false) if asked > SMALL - MULTIPLE => {
                space.used.remove(&address).unwrap_or_else(|| space.size(address, asked))
            }
            // By then the free of it was seen, as a rule just before.
            What::Change(..) => space.size(address, asked),
            What::Refused => asked,
        });
    }
    out
}
