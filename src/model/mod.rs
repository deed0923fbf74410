//! Data model of a report, independent of any tool, terminal or file format.
//!
//! Importers build a [`Profile`]; everything above reads it. Nothing here does I/O. `None` means that the tool did not
//! report a value: absent is never zero.

pub mod argv;
pub mod cancel;
pub mod clock;
pub mod code;
pub mod collective;
pub mod config;
pub mod counter;
pub mod coverage;
pub mod device;
pub mod digest;
pub mod host_call;
pub mod kernel;
pub mod launches;
pub mod live;
pub mod memop;
pub mod memory;
pub mod metrics;
pub mod note;
mod origin;
pub mod os;
pub mod place;
pub mod profile;
pub mod range;
pub mod sections;
pub mod source;
pub mod text;
pub mod thread;
pub mod units;
pub mod value;
pub mod wait;

pub use cancel::{Cancel, Pace};
pub use clock::{Clock, Rank};
pub use code::Code;
pub use collective::{Collective, NcclCall, element_bytes};
pub use config::{ConfigId, LaunchConfig};
pub use counter::CounterTrack;
pub use coverage::Coverage;
pub use device::{Device, Maker};
pub use host_call::{CallKind, CallName, HostCalls};
pub use kernel::{Kernel, KernelId, NameForm, Shortened};
pub use launches::{LaunchColumns, LaunchId, Launches};
pub use memop::{CopyKind, MemOp, MemOpKind, MemOps, MemoryKind};
pub use memory::{Block, BlockState, Frame, MemoryEvent, MemoryEvents, MemoryLevel, MemoryState, Refused, Segment, Stacks};
pub use metrics::{Extent, Metrics, ResultKind, ResultMetrics, SourceAt};
pub use note::{Note, NoteKind, Severity};
pub use os::{OsCalls, Overhead, Sample, Samples, StateChange, ThreadState};
pub use place::{Place, PlaceId, Process};
pub use profile::{Capture, Gate, GraphLaunch, GraphMode, KernelTotal, LaunchOrder, Profile};
pub use range::{Payload, Range, RangeKind, RangeOrigin, Ranges};
pub use sections::Details;
pub use source::Source;
pub use thread::{Thread, ThreadId, Threads};
pub use units::{Bytes, Nanos};
pub use value::Value;
pub use wait::{WaitKind, Waits};
