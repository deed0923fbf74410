//! Slices and flow ends, as produced by the readers.

/// A time span on a track.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Numbers of name, category and track.
    pub name: u32,
    pub category: u32,
    pub track: u32,
    /// ns.
    pub start: i64,
    pub duration: i64,
    pub details: u32,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub id: u64,
    pub track: u32,
    /// ns.
    pub time: i64,
    /// True if it binds to the slice that encloses the time, false for the next slice to begin.
    pub encloses: bool,
}
