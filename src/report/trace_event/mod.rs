//! A report as a trace for viewers of traces: Perfetto's protobuf, and the JSON that Chrome's viewer read first.
//!
//! A new format is a file with a [`Sink`] and a row where formats are chosen.

mod chrome;
mod perfetto;
mod sink;
mod source;

pub use chrome::Chrome;
pub use perfetto::Perfetto;
pub use sink::{Arg, Sink};
pub use source::{Part, write};
