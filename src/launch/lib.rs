//! Starts programs and profilers, and contains the tracer that is loaded into programs.

#[path = "mod.rs"]
pub mod launch;
