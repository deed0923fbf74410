//! Child processes: finding the profilers' tools, running them to their end, and supervising profiled runs.

pub mod child;
pub mod doctor;
pub mod find;
pub mod open;
pub mod private;
pub mod runs;
pub mod terminal;
pub mod tracer;
pub mod version;

pub use child::{Ended, ask, end_tools_with_us, run};
pub use find::{Tool, nsys};
pub use version::Version;
