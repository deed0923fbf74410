//! Library of recorded runs.

#[path = "mod.rs"]
pub mod library;

pub use warpscope_launch::launch;
