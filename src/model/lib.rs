//! The profile model: launches, calls, copies, ranges, metrics, and units.

#[path = "mod.rs"]
pub mod model;
