//! Interface of a trace format.

use std::io;

/// A value attached to an event: the string id of its name, and the value (for strings, a string id).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    Int(u32, i64),
    Real(u32, f64),
    Text(u32, u32),
}

/// End of a link between a call and the work that it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The call.
    From(u64),
    /// The work.
    To(u64),
}

/// Parent of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Under {
    /// A thread of a process, by thread id.
    Thread(u32),
    Track(u32),
    Process,
}

/// An event on a track.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub track: u32,
    /// ns, not negative.
    pub start: i64,
    /// String id of the category.
    pub category: u32,
    /// String id of the name.
    pub name: u32,
    pub args: &'a [Arg],
    pub flow: Option<Flow>,
}

/// Writer of a trace. The writer assigns the ids of strings and tracks. The slices of a track are properly nested and
/// sorted by start.
pub trait Sink {
    fn text(&mut self, text: &str) -> u32;

    /// Adds a process with a unique id.
    fn process(&mut self, pid: u32, name: &str) -> io::Result<()>;

    /// Adds a track of slices.
    fn track(&mut self, pid: u32, under: Under, name: &str) -> io::Result<u32>;

    /// Adds a track of values; `unit` is a readable unit, `B` for bytes.
    fn counter(&mut self, pid: u32, under: Under, name: &str, unit: &str) -> io::Result<u32>;

    /// Adds a slice that ends at `end`, ns.
    fn slice(&mut self, event: &Event<'_>, end: i64) -> io::Result<()>;

    fn instant(&mut self, event: &Event<'_>) -> io::Result<()>;

    fn value(&mut self, track: u32, time: i64, value: f64) -> io::Result<()>;

    fn close(&mut self, track: u32) -> io::Result<()>;

    fn finish(&mut self) -> io::Result<()>;
}
