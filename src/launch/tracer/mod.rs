//! The built-in tracer: a shared object that the CUDA driver loads into a program, and its set-up.

mod control;
mod join;
mod libraries;
mod plan;
mod start;

pub use control::{Answer, Silent, tell};
pub use join::join;
pub use libraries::{Library, libraries};
pub use plan::{Chosen, Measure, NvtxRange, Only, questions};
pub use start::{Gate, Record, Unable, command, object};

/// The shared object; empty if there is none for this platform.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.so"));
