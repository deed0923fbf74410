//! Device-side records of synchronizing calls, and of streams waiting for events.

use super::PlaceId;

/// Kind of synchronization (CUPTI's `CUpti_ActivitySynchronizationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A thread waits for an event.
    Event,
    /// A stream waits for an event in another stream.
    StreamForEvent,
    /// A thread waits for a stream.
    Stream,
    /// A thread waits for a whole context.
    Context,
    Other,
}

/// Waits, stored in columns; 29 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Start time in nanoseconds.
    pub start: Vec<i64>,
    /// Duration in nanoseconds.
    pub duration: Vec<i64>,
    pub kind: Vec<WaitKind>,
    /// The stream that waits, or for which a thread waits.
    pub place: Vec<PlaceId>,
    /// Correlation id shared with the call; [`NONE`](super::api_call::NONE) if not in the report.
    pub correlation: Vec<u32>,
    /// Id of the event being waited for; [`NONE`](super::api_call::NONE) if there is none.
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
