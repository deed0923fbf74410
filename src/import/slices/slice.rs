//! Slices and the ends of arrows, as readers give them.

/// A stretch of time on a track.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Numbers of its name and category, and of its track.
    pub name: u32,
    pub category: u32,
    pub track: u32,
    /// ns.
    pub start: i64,
    pub duration: i64,
    pub details: u32,
}

/// An end of an arrow.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub id: u64,
    pub track: u32,
    /// ns.
    pub time: i64,
    /// It is of the slice that encloses the time, else of the next that begins.
    pub encloses: bool,
}
