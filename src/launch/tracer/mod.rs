//! The built-in tracer: a shared object that the CUDA driver loads into a program, and what it needs to be found there.

/// The shared object; empty where there is none for this kind of machine.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.so"));
