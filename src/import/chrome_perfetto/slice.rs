//! Slices and flow ends, as produced by the readers.

/// A time span on a track.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Ids of the name, category and track.
    pub name: u32,
    pub category: u32,
    pub track: u32,
    /// Start time in nanoseconds.
    pub start: i64,
    pub duration: i64,
    pub details: u32,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub id: u64,
    pub track: u32,
    /// Time in nanoseconds.
    pub time: i64,
    /// True if the end binds to the slice that encloses `time`; false if it binds to the next slice.
    pub encloses: bool,
}
