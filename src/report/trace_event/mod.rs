//! Exports a report for trace viewers: Perfetto's protobuf, and the older JSON of Chrome's viewer.
//!
//! A new format needs a file with a [`Sink`], and a row where formats are chosen.

mod chrome;
mod perfetto;
mod sink;
mod source;

pub use chrome::Chrome;
pub use perfetto::Perfetto;
pub use sink::{Arg, Sink};
pub use source::{Part, write_trace};
