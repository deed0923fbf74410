//! Memcpys and memsets on a device.

use super::api_call::NONE;
use super::{Bytes, Nanos, PlaceId};

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyKind {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    HostToHost,
    PeerToPeer,
    /// Migration of unified memory.
    Unified,
    /// To or from a CUDA array.
    Array,
    /// A direction that warpscope does not know.
    Other,
}

impl CopyKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostToDevice => "HtoD",
            Self::DeviceToHost => "DtoH",
            Self::DeviceToDevice => "DtoD",
            Self::HostToHost => "HtoH",
            Self::PeerToPeer => "PtoP",
            Self::Unified => "unified",
            Self::Array => "array",
            Self::Other => "other",
        }
    }
}

/// Kind of memory at one end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryKind {
    /// Ordinary host memory; asynchronous copies from or to it are staged and effectively synchronous.
    Pageable,
    /// Page-locked host memory.
    Pinned,
    Device,
    Array,
    Managed,
}

/// Kind of memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemOpKind {
    /// A copy, with the kind of memory at each end if known.
    Copy {
        kind: CopyKind,
        from: Option<MemoryKind>,
        to: Option<MemoryKind>,
    },
    Set,
}

/// A memcpy or memset on a device, as a row of [`MemOps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOp {
    /// Start on the session clock.
    pub start: Nanos,
    pub duration: Nanos,
    pub kind: MemOpKind,
    /// Number of bytes copied or set.
    pub bytes: Option<Bytes>,
    pub place: PlaceId,
    /// Index into [`HostCalls`](super::HostCalls) of the launching call.
    pub call: Option<u32>,
    /// Row of a kernel launched by the same call, if both are nodes of one graph launch. The call is then stored with
    /// the kernel launches rather than in `call`.
    pub launch: Option<u32>,
    /// Id of the CUDA graph node that this operation executed.
    pub graph_node: Option<u64>,
}

/// Sentinel for an unknown number of bytes.
const NO_BYTES: u64 = u64::MAX;

/// Memcpys and memsets in columns, sorted by start; at most 43 bytes each.
#[derive(Clone, Debug, Default)]
pub struct MemOps {
    start: Vec<i64>,
    duration: Vec<i64>,
    kind: Vec<MemOpKind>,
    bytes: Vec<u64>,
    place: Vec<PlaceId>,
    call: Vec<u32>,
    /// Row of a launch made by the same call; empty if no operation shares a call with a launch.
    launch: Vec<u32>,
    /// Index into `nodes`; empty if no operation belongs to a graph.
    node: Vec<u32>,
    nodes: Vec<u64>,
}

impl MemOps {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Adds an operation; call [`sort_by_start`](Self::sort_by_start) after the last one.
    pub fn push(&mut self, op: MemOp) {
        if let Some(node) = op.graph_node {
            self.node.resize(self.len(), NONE);
            self.node.push(u32::try_from(self.nodes.len()).unwrap_or(NONE));
            self.nodes.push(node);
        } else if !self.node.is_empty() {
            self.node.push(NONE);
        }
        if op.launch.is_some() || !self.launch.is_empty() {
            self.launch.resize(self.len(), NONE);
            self.launch.push(op.launch.unwrap_or(NONE));
        }
        self.start.push(op.start.0);
        self.duration.push(op.duration.0);
        self.kind.push(op.kind);
        self.bytes.push(op.bytes.map_or(NO_BYTES, |b| b.0));
        self.place.push(op.place);
        self.call.push(op.call.unwrap_or(NONE));
    }

    /// Number of operations that start before a time; the operations must be sorted.
    pub fn count_before(&self, time: i64) -> usize {
        self.start.partition_point(|&start| start < time)
    }

    pub fn get(&self, row: usize) -> Option<MemOp> {
        let some = |v: u32| (v != NONE).then_some(v);
        let bytes = *self.bytes.get(row)?;
        Some(MemOp {
            start: Nanos(*self.start.get(row)?),
            duration: Nanos(*self.duration.get(row)?),
            kind: *self.kind.get(row)?,
            bytes: (bytes != NO_BYTES).then_some(Bytes(bytes)),
            place: *self.place.get(row)?,
            call: self.call.get(row).copied().and_then(some),
            launch: self.launch.get(row).copied().and_then(some),
            graph_node: self.node.get(row).copied().and_then(some).and_then(|n| self.nodes.get(n as usize).copied()),
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = MemOp> + '_ {
        (0..self.len()).filter_map(|row| self.get(row))
    }

    /// Subtracts `origin` from all starts.
    pub fn move_origin(&mut self, origin: i64) {
        for start in &mut self.start {
            *start = start.saturating_sub(origin);
        }
    }

    /// Sorts by start (stable).
    pub fn sort_by_start(&mut self) {
        if self.start.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&row| self.start[row]);
        let mut out = Self::default();
        for op in order.into_iter().filter_map(|row| self.get(row)) {
            out.push(op);
        }
        *self = out;
    }

    /// Memory that the columns use per operation, bytes.
    pub fn bytes_per_op() -> usize {
        8 + 8 + size_of::<MemOpKind>() + 8 + 4 + 4 + 4 + 4
    }
}

impl FromIterator<MemOp> for MemOps {
    fn from_iter<I: IntoIterator<Item = MemOp>>(ops: I) -> Self {
        let mut out = Self::default();
        for op in ops {
            out.push(op);
        }
        out.sort_by_start();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_back_what_they_took_by_start() {
        let op = |start, bytes, node: Option<u64>| MemOp {
            start: Nanos(start),
            duration: Nanos(5),
            kind: MemOpKind::Copy { kind: CopyKind::HostToDevice, from: None, to: Some(MemoryKind::Device) },
            bytes,
            place: PlaceId(2),
            call: node.is_none().then_some(7),
            launch: node.map(|_| 3),
            graph_node: node,
        };
        let all = [op(30, None, None), op(10, Some(Bytes(0)), Some(99)), op(20, Some(Bytes(8)), None)];
        let ops: MemOps = all.into_iter().collect();
        assert_eq!(ops.iter().collect::<Vec<_>>(), [all[1], all[2], all[0]]);
        assert!(MemOps::bytes_per_op() <= 48, "{}", MemOps::bytes_per_op());
    }
}
