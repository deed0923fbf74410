//! What a format of traces must be able to write.

use std::io;

/// A value beside an event: the numbers of its name and, of a text, of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    Int(u32, i64),
    Real(u32, f64),
    Text(u32, u32),
}

/// What ties a call to the work that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The call.
    From(u64),
    /// The work.
    To(u64),
}

/// Where a track stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// A thread of a process, by its number.
    Thread(u32),
    /// Another track.
    Track(u32),
    Process,
}

/// Something that happened, on a track.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub track: u32,
    /// ns, not negative.
    pub start: i64,
    /// Number of the category's text.
    pub category: u32,
    /// Number of the name's text.
    pub name: u32,
    pub args: &'a [Arg],
    pub flow: Option<Flow>,
}

/// Writes a trace. Texts, processes and tracks have numbers that it gives. The slices of a track come by start, and nest.
pub trait Sink {
    fn text(&mut self, text: &str) -> u32;

    /// A process by a number that no other has.
    fn process(&mut self, pid: u32, name: &str) -> io::Result<()>;

    /// A track of slices.
    fn track(&mut self, pid: u32, under: Under, name: &str) -> io::Result<u32>;

    /// A track of values; `unit` as people write it, `B` for bytes.
    fn counter(&mut self, pid: u32, under: Under, name: &str, unit: &str) -> io::Result<u32>;

    /// A slice that ends at `end`, ns.
    fn slice(&mut self, event: &Event<'_>, end: i64) -> io::Result<()>;

    fn instant(&mut self, event: &Event<'_>) -> io::Result<()>;

    fn value(&mut self, track: u32, time: i64, value: f64) -> io::Result<()>;

    /// No more comes on a track.
    fn close(&mut self, track: u32) -> io::Result<()>;

    /// No more comes at all.
    fn finish(&mut self) -> io::Result<()>;
}
