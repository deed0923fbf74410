//! Allocations and frees over time, and what an allocator held at the end.

use super::host_call::NONE;
use super::memop::MemoryKind;
use std::sync::Arc;

/// Whose memory an event counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryLevel {
    /// The driver was asked: what a framework reserves, or a program allocates itself.
    #[default]
    Driver,
    /// A framework's allocator gave it out of what it holds, or got it back.
    Allocator,
    /// A block that was given back before is free to be used again: its streams have done with it.
    Reusable,
}

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
    /// The thread that asked; 0 where the report does not say.
    pub tid: u32,
    pub kind: Option<MemoryKind>,
    pub level: MemoryLevel,
}

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    pub function: Arc<str>,
    pub file: Arc<str>,
    /// From 1; 0 where it is not known.
    pub line: u32,
}

/// Stacks of those who asked for memory, each innermost first.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    /// Where each stack begins in `indices`, and one past the last.
    starts: Vec<u32>,
    indices: Vec<u32>,
}

impl Stacks {
    /// Adds a stack of indices into `frames`; its own index. [`NONE`] where there is no room left.
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

    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The functions of a stack, innermost first.
    #[must_use]
    pub fn of(&self, stack: u32) -> impl DoubleEndedIterator<Item = &Frame> + Clone {
        let at = |i: u32| self.starts.get(i as usize).map_or(0, |&s| s as usize);
        let range = if stack == NONE { 0..0 } else { at(stack)..at(stack.saturating_add(1)) };
        self.indices.get(range).unwrap_or_default().iter().filter_map(|&f| self.frames.get(f as usize))
    }
}

/// What an allocator does with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    Allocated,
    /// Given back, but a stream may still use it.
    Awaiting,
    Free,
}

/// A part of a segment, as it was at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes that were asked for; at most `size`.
    pub requested: u64,
    pub state: BlockState,
    /// Index into [`MemoryEvents::stacks`]; [`NONE`] without.
    pub stack: u32,
}

/// Memory that the allocator has from the driver in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    pub address: u64,
    /// Bytes.
    pub size: u64,
    pub stream: u64,
    /// Whether it is of the pool for small blocks.
    pub small: bool,
    /// Whether it can grow (`expandable_segments`).
    pub expandable: bool,
    /// The pool it is of; (0, 0) is the default one, others are of CUDA graphs and `MemPool`s.
    pub pool: (u64, u64),
    /// Range in [`MemoryState::blocks`].
    pub blocks: (usize, usize),
}

/// What an allocator held when the report was written.
#[derive(Clone, Debug, Default)]
pub struct MemoryState {
    pub segments: Vec<Segment>,
    /// By segment, then by address.
    pub blocks: Vec<Block>,
    /// Segments that the history names and that went back to the driver before the end: without blocks.
    pub former: Vec<Segment>,
    /// Settings of the allocator that are not its defaults.
    pub settings: Vec<(Arc<str>, Arc<str>)>,
}

/// A request that could not be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// ns.
    pub time: i64,
    /// Index into [`Profile::devices`](super::Profile::devices).
    pub device: Option<u32>,
    /// Bytes.
    pub asked: u64,
    /// Bytes that the device had free.
    pub free: Option<u64>,
    /// The stream and the pool that it was for; `None` where the report does not say.
    pub stream: Option<u64>,
    pub pool: Option<(u64, u64)>,
    /// Index into [`MemoryEvents::stacks`]; [`NONE`] without.
    pub stack: u32,
    /// Events before it.
    pub after: usize,
}

/// All of them by time, and what the allocators say beside them.
#[derive(Clone, Debug, Default)]
pub struct MemoryEvents {
    pub events: Vec<MemoryEvent>,
    /// Bytes that a framework's allocator had given out (`Total Allocated`) and held (`Total Reserved`) after the event of that index, where
    /// it says so.
    pub totals: Vec<(u32, u64, u64)>,
    /// Names of allocators or pools, where the report has them.
    pub pools: Vec<Arc<str>>,
    /// The stack of each event, an index into `stacks` or [`NONE`]; empty where the report has no stacks.
    pub stack_of: Vec<u32>,
    pub stacks: Stacks,
    pub refused: Vec<Refused>,
    /// True if the report has no times: then times are numbers of events, by device.
    pub untimed: bool,
    /// What the allocator held at the end, where the report is its snapshot.
    pub state: Option<MemoryState>,
}

impl MemoryEvents {
    /// Whether the report says anything of memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.state.is_none()
    }

    /// The stack of an event; [`NONE`] without.
    #[must_use]
    pub fn stack(&self, event: usize) -> u32 {
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
        let names = |s: u32| stacks.of(s).map(|f| &*f.function).collect::<Vec<_>>();
        assert_eq!([names(first), names(empty), names(second), names(NONE)], [vec!["f", "g"], vec![], vec!["g"], vec![]]);
        assert_eq!(stacks.len(), 3);
    }
}
