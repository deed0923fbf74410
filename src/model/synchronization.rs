//! Synchronization: synchronizing calls as seen by the device, and streams that wait for events.

use super::PlaceId;

/// Kind of synchronization (CUPTI's `CUpti_ActivitySynchronizationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A thread waits for an event.
    Event,
    /// A stream waits for an event of another.
    StreamForEvent,
    /// A thread waits for a stream.
    Stream,
    /// A thread waits for a whole context.
    Context,
    Other,
}

/// Waits in columns: 29 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// ns.
    pub start: Vec<i64>,
    /// ns.
    pub duration: Vec<i64>,
    pub kind: Vec<WaitKind>,
    /// Stream that waits or is waited for.
    pub place: Vec<PlaceId>,
    /// Correlation id shared with its call; [`NONE`](super::api_call::NONE) if the report has none.
    pub correlation: Vec<u32>,
    /// Event that is waited for; [`NONE`](super::api_call::NONE) without one.
    pub event: Vec<u32>,
}

impl Waits {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }
}
