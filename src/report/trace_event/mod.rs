//! Exports a report for trace viewers: Perfetto's protobuf, and the older JSON of Chrome's viewer.
//!
//! A new format needs a file with a [`Sink`] and a branch in the code that selects the format.

mod chrome;
mod perfetto;
mod trace_walk;
mod trace_writer;

pub use chrome::Chrome;
pub use perfetto::Perfetto;
pub use trace_walk::{ExportedReport, write_trace};
pub use trace_writer::{Arg, Sink};
