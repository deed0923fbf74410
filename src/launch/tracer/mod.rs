//! The built-in tracer: a shared object that the CUDA driver loads into a program, and the code that sets it up.

mod control;
mod join;
mod libraries;
mod obstacle;
mod plan;
mod start;

pub use control::{Answer, Silent, send_command};
pub use join::join_traces;
pub use libraries::{Library, find_libraries};
pub use obstacle::{find_obstacle, loads_address_sanitizer, try_to_write};
pub use plan::{Chosen, Measure, NvtxRange, Only, question_names};
pub use start::{Attachable, Gate, Record, Unable, traced_command, write_attachable, write_object};

/// The shared object; empty if there is none for this platform.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.so"));
