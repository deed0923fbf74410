//! Copies and sets of device memory.

use super::{Bytes, Nanos, PlaceId};

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyKind {
    /// Host to device.
    HostToDevice,
    /// Device to host.
    DeviceToHost,
    /// Within one device.
    DeviceToDevice,
    /// Host to host.
    HostToHost,
    /// Between two devices.
    PeerToPeer,
    /// Moved by unified memory.
    Unified,
    /// To or from a CUDA array.
    Array,
    /// The tool gave a kind that this program does not know.
    Other,
}

impl CopyKind {
    /// The usual abbreviation.
    #[must_use]
    pub fn word(self) -> &'static str {
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
    /// Ordinary host memory: an asynchronous copy of it is staged, and in effect synchronous.
    Pageable,
    /// Page-locked host memory.
    Pinned,
    /// Device memory.
    Device,
    /// CUDA array.
    Array,
    /// Managed (unified) memory.
    Managed,
}

/// What a memory operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemOpKind {
    /// A copy, with the kind of memory at either end when it is known.
    Copy {
        /// Direction.
        kind: CopyKind,
        /// Source memory.
        from: Option<MemoryKind>,
        /// Destination memory.
        to: Option<MemoryKind>,
    },
    /// A set.
    Set,
}

/// One copy or set on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemOp {
    /// Start on the session's clock.
    pub start: Nanos,
    /// Duration.
    pub duration: Nanos,
    /// What it did.
    pub kind: MemOpKind,
    /// Bytes moved or set.
    pub bytes: Option<Bytes>,
    /// Where it ran.
    pub place: PlaceId,
}
