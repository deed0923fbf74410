//! Data model of a report, independent of any tool, terminal or file format.
//!
//! Importers build a [`Profile`]; analyses, reports and the UI read it. This module does no I/O. `None` means that the
//! tool did not report a value; missing values are never zero.

pub mod api_call;
pub mod argv;
pub mod call_stack;
mod cancel;
pub mod clock;
pub mod code;
pub mod collective;
pub mod config;
pub mod counter;
pub mod coverage;
pub mod device;
pub mod digest;
pub mod graph_node;
pub mod kernel;
pub mod launch_site;
pub mod launches;
pub mod live;
pub mod memop;
pub mod memory;
pub mod metrics;
pub mod note;
mod origin;
pub mod os_runtime;
pub mod profile;
pub mod range;
pub mod sections;
pub mod server_metrics;
pub mod source;
pub mod synchronization;
pub mod terms;
pub mod text;
pub mod thread;
pub mod units;
pub mod value;

pub use api_call::{CallKind, CallName, HostCalls};
pub use call_stack::{Activity, CallStack, Sample, Samples, StackFrame};
pub use cancel::{Cancel, Pace};
pub use clock::{Clock, Rank};
pub use code::Code;
pub use collective::{Collective, NcclCall, element_bytes};
pub use config::{ConfigId, LaunchConfig};
pub use counter::CounterTrack;
pub use coverage::Coverage;
pub use device::{Device, Vendor};
pub use graph_node::{GraphNodes, NodeOrigin};
pub use kernel::{Kernel, KernelId, NameForm, Shortened};
pub use launch_site::{LaunchSite, PlaceId, Process};
pub use launches::{LaunchColumns, LaunchId, Launches};
pub use memop::{CopyKind, MemOp, MemOpKind, MemOps, MemoryKind};
pub use memory::{Block, BlockState, Frame, MemoryEvent, MemoryEvents, MemoryLevel, MemoryState, Refused, Segment, Stacks};
pub use metrics::{Extent, Metrics, ResultKind, ResultMetrics, SourceAt};
pub use note::{Note, NoteKind, Severity};
pub use os_runtime::{OsCalls, Overhead, StateChange, ThreadState};
pub use profile::{Capture, CaptureRange, GraphLaunch, GraphMode, KernelTotal, LaunchOrder, Profile};
pub use range::{Payload, Range, RangeKind, RangeOrigin, Ranges};
pub use sections::Details;
pub use server_metrics::{Histogram, ServerSample, ServerSummary, summarize_samples, times_without_requests};
pub use source::Source;
pub use synchronization::{WaitKind, Waits};
pub use thread::{Thread, ThreadId, Threads};
pub use units::{Bytes, Nanos};
pub use value::Value;
