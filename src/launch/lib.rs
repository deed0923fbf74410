//! Starts programs and profilers, and contains the tracer, which is loaded into programs.

#[path = "mod.rs"]
pub mod launch;
