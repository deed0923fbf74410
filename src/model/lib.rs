//! The profile model: launches, calls, copies, ranges, metrics, and their units.

#[path = "mod.rs"]
pub mod model;
