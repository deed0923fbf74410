//! The profile: launches, calls, copies, ranges, metrics, and the units they are given in.

#[path = "mod.rs"]
pub mod model;
