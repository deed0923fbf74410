//! Free pieces of memory held by an allocator, at the end or when a request was refused.

use crate::model::{Block, BlockState, MemoryLevel, Profile, Segment};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A contiguous piece of free memory that the allocator holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Size in bytes.
    pub size: u64,
    /// True for a whole segment, which can be returned to the driver.
    pub whole: bool,
    /// True if there are blocks in use on both sides of the piece.
    pub between: bool,
    pub stream: u64,
    pub pool: (u64, u64),
    /// True if the piece is in the pool for small blocks.
    pub small: bool,
}

/// State of a device's allocator: segments, and the blocks in use with their sizes, by address.
#[derive(Default)]
struct Space {
    segments: BTreeMap<u64, (u64, Owner)>,
    used: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Default)]
struct Owner {
    stream: u64,
    pool: (u64, u64),
    small: bool,
}

impl Owner {
    fn from_segment(segment: &Segment) -> Self {
        Self { stream: segment.stream, pool: segment.pool, small: segment.small }
    }
}

/// Lists the free pieces on a device before the event `after` (an index into all events of the report), or at the end
/// if `after` is `None`. Returns `None` if the report does not record the allocator's state.
pub fn free_pieces(profile: &Profile, device: Option<u32>, after: Option<usize>) -> Option<Vec<Piece>> {
    let state = profile.memory.state.as_ref()?;
    let mut space = Space::default();
    for segment in state.segments.iter().filter(|s| s.device == device) {
        space.segments.insert(segment.address, (segment.size, Owner::from_segment(segment)));
        let blocks: &[Block] = state.blocks.get(segment.blocks.0..segment.blocks.1).unwrap_or_default();
        space.used.extend(blocks.iter().filter(|b| b.state != BlockState::Free).map(|b| (b.address, b.size)));
    }
    let later = profile.memory.events.get(after.unwrap_or(usize::MAX)..).unwrap_or_default();
    let former: FxHashMap<u64, Owner> =
        state.former.iter().filter(|s| s.device == device && !later.is_empty()).map(|s| (s.address, Owner::from_segment(s))).collect();
    for event in later.iter().rev().filter(|e| e.device == device) {
        space.revert_event(event.level, event.address, event.bytes, &former);
    }
    Some(space.free_pieces())
}

impl Space {
    /// Undoes an event, to reconstruct an earlier state.
    fn revert_event(&mut self, level: MemoryLevel, address: u64, bytes: i64, former: &FxHashMap<u64, Owner>) {
        let size = bytes.unsigned_abs();
        match (level, bytes > 0) {
            (MemoryLevel::Driver, true) => self.unmap_range(address, size),
            (MemoryLevel::Driver, false) => {
                let owner = former.get(&address).copied();
                let beside = || self.segments.range(..address).next_back().map(|(_, s)| s.1);
                let owner = owner.or_else(beside).unwrap_or_default();
                self.segments.insert(address, (size, owner));
            }
            (MemoryLevel::Allocator, true) => {
                self.used.remove(&address);
            }
            // A freed block cannot be used until its streams have finished with it.
            (MemoryLevel::Allocator | MemoryLevel::Reusable, false) => {
                self.used.insert(address, size);
            }
            (MemoryLevel::Reusable, true) => {}
        }
    }

    /// Removes a range from its segment: expandable segments are mapped piece by piece.
    fn unmap_range(&mut self, address: u64, size: u64) {
        let Some((&start, &(whole, owner))) = self.segments.range(..=address).next_back() else { return };
        let (end, to) = (start.saturating_add(whole), address.saturating_add(size));
        if address >= end {
            return;
        }
        self.segments.remove(&start);
        if address > start {
            self.segments.insert(start, (address - start, owner));
        }
        if to < end {
            self.segments.insert(to, (end - to, owner));
        }
    }

    fn free_pieces(&self) -> Vec<Piece> {
        let mut out = Vec::new();
        for (&start, &(size, owner)) in &self.segments {
            let end = start.saturating_add(size);
            let mut at = start;
            let mut add = |from: u64, to: u64| {
                let (whole, between) = (from == start && to == end, from > start && to < end);
                let Owner { stream, pool, small } = owner;
                out.push(Piece { size: to - from, whole, between, stream, pool, small });
            };
            for (&from, &bytes) in self.used.range(start..end) {
                if from > at {
                    add(at, from);
                }
                at = at.max(from.saturating_add(bytes).min(end));
            }
            if at < end {
                add(at, end);
            }
        }
        out
    }
}
