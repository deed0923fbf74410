//! Allocations and frees over time, and the final state of an allocator.

use super::api_call::NONE;
use super::memop::MemoryKind;
use std::sync::Arc;

/// Level at which memory is allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryLevel {
    /// Allocation from the driver, by a framework to reserve memory, or directly by the program.
    #[default]
    Driver,
    /// Suballocation by a framework's allocator.
    Allocator,
    /// Not an allocation: the point at which a freed block becomes reusable, because its streams have finished using
    /// it.
    Reusable,
}

/// One allocation or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// Nanoseconds since the session began.
    pub time: i64,
    pub address: u64,
    /// Change in the bytes in use; negative for a free.
    pub bytes: i64,
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    pub pid: u32,
    /// Thread that made the request; 0 if not in the report.
    pub tid: u32,
    pub kind: Option<MemoryKind>,
    pub level: MemoryLevel,
}

/// A function in a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    pub function: Arc<str>,
    pub file: Arc<str>,
    /// Line number, starting at 1; 0 if unknown.
    pub line: u32,
}

/// Call stacks of allocation requests, each innermost first.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    /// Start of each stack in `indices`, followed by the end of the last stack.
    starts: Vec<u32>,
    indices: Vec<u32>,
}

impl Stacks {
    /// Adds a stack of indices into `frames` and returns its index, or [`NONE`] if the table is full.
    pub fn push(&mut self, stack: impl IntoIterator<Item = u32>) -> u32 {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let before = self.indices.len();
        self.indices.extend(stack);
        match (u32::try_from(self.indices.len()), u32::try_from(self.starts.len() - 1)) {
            (Ok(end), Ok(index)) if index != NONE => {
                self.starts.push(end);
                index
            }
            _ => {
                self.indices.truncate(before);
                NONE
            }
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: u32) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let at = |i: u32| self.starts.get(i as usize).map_or(0, |&s| s as usize);
        let range = if stack == NONE { 0..0 } else { at(stack)..at(stack.saturating_add(1)) };
        self.indices.get(range).unwrap_or_default().iter().filter_map(|&f| self.frames.get(f as usize))
    }
}

/// State of a block of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    Allocated,
    /// Freed, but still in use by a stream.
    Awaiting,
    Free,
}

/// A block within a segment, in the allocator's final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number of bytes requested; at most `size`.
    pub requested: u64,
    pub state: BlockState,
    /// Index into [`MemoryEvents::stacks`], or [`NONE`].
    pub stack: u32,
}

/// Contiguous memory that the allocator obtained from the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    pub stream: u64,
    /// True for a segment in the pool of small blocks.
    pub small: bool,
    /// True if the segment can grow (`expandable_segments`).
    pub expandable: bool,
    /// Pool id: (0, 0) is the default pool; others belong to CUDA graphs and `MemPool`s.
    pub pool: (u64, u64),
    /// Range of indices into [`MemoryState::blocks`].
    pub blocks: (usize, usize),
}

/// State of an allocator when the report was written.
#[derive(Clone, Debug, Default)]
pub struct MemoryState {
    pub segments: Vec<Segment>,
    /// Ordered by segment, then by address.
    pub blocks: Vec<Block>,
    /// Segments that had been returned to the driver before the end; their blocks are not recorded.
    pub former: Vec<Segment>,
    /// Allocator settings that differ from the defaults.
    pub settings: Vec<(Arc<str>, Arc<str>)>,
}

/// A failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Nanoseconds since the session began.
    pub time: i64,
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    pub asked: u64,
    /// Free memory on the device, bytes.
    pub free: Option<u64>,
    /// Stream and pool that the request was for; `None` if unknown.
    pub stream: Option<u64>,
    pub pool: Option<(u64, u64)>,
    /// Index into [`MemoryEvents::stacks`], or [`NONE`].
    pub stack: u32,
    /// Number of events before the failure.
    pub after: usize,
}

/// Memory events sorted by time, with additional data from the allocators.
#[derive(Clone, Debug, Default)]
pub struct MemoryEvents {
    pub events: Vec<MemoryEvent>,
    /// For some events: the event's index, and the bytes that the framework's allocator had allocated
    /// (`Total Allocated`) and reserved (`Total Reserved`) after it.
    pub totals: Vec<(u32, u64, u64)>,
    /// Names of allocators or pools, if in the report.
    pub pools: Vec<Arc<str>>,
    /// Stack of each event, an index into `stacks` or [`NONE`]; empty for a report without stacks.
    pub stack_of: Vec<u32>,
    pub stacks: Stacks,
    pub refused: Vec<Refused>,
    /// True if the report has no times; `time` is then the sequence number of the event on its device.
    pub untimed: bool,
    /// Final state of the allocator, if the report is a memory snapshot.
    pub state: Option<MemoryState>,
}

impl MemoryEvents {
    /// Returns true if the report has no memory data.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.state.is_none()
    }

    /// Stack of an event, or [`NONE`].
    pub fn event_stack(&self, event: usize) -> u32 {
        self.stack_of.get(event).copied().unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_gives_its_own_frames() {
        let frame = |name: &str| Frame { function: Arc::from(name), file: Arc::from("a.py"), line: 1 };
        let mut stacks = Stacks { frames: vec![frame("f"), frame("g")], ..Stacks::default() };
        let (first, empty, second) = (stacks.push([0, 1]), stacks.push([]), stacks.push([1]));
        let names = |s: u32| stacks.frames_of(s).map(|f| &*f.function).collect::<Vec<_>>();
        assert_eq!([names(first), names(empty), names(second), names(NONE)], [vec!["f", "g"], vec![], vec!["g"], vec![]]);
        assert_eq!(stacks.len(), 3);
    }
}
