//! Starts programs and profilers, and holds the tracer that is loaded into a program.

#[path = "mod.rs"]
pub mod launch;
