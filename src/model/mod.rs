//! What a report says about a run, free of any tool, terminal or file format.
//!
//! Importers build a [`Profile`]; everything above reads it. Nothing here does I/O. `Option` means that
//! the tool did not say: absent is never zero.

pub mod api;
pub mod argv;
pub mod cancel;
pub mod code;
pub mod config;
pub mod device;
pub mod kernel;
pub mod launches;
pub mod memop;
pub mod metrics;
pub mod note;
pub mod place;
pub mod profile;
pub mod range;
pub mod sections;
pub mod source;
pub mod text;
pub mod units;

pub use api::{ApiCalls, ApiTotal};
pub use cancel::Cancel;
pub use code::Code;
pub use config::{ConfigId, LaunchConfig};
pub use device::{Device, Maker};
pub use kernel::{Kernel, KernelId, NameForm};
pub use launches::{LaunchColumns, LaunchId, Launches};
pub use memop::{CopyKind, MemOp, MemOpKind, MemoryKind};
pub use metrics::{Extent, Metrics, ResultKind, ResultMetrics, SourceAt, Value};
pub use note::{Note, NoteKind, Severity};
pub use place::{Place, PlaceId, Process};
pub use profile::{Capture, Gate, GraphLaunch, GraphMode, KernelTotal, LaunchOrder, Profile};
pub use range::{Range, RangeKind, Ranges};
pub use sections::Details;
pub use source::Source;
pub use units::{Bytes, Nanos};
