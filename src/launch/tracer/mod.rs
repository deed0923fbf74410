//! The built-in tracer: a shared object that the CUDA driver loads into a program, and what it needs to be found there.

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

/// The shared object; empty where there is none for this kind of machine.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.so"));
