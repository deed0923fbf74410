//! Keeps the runs that were recorded.

#[path = "mod.rs"]
pub mod library;

pub use warpscope_launch::launch;
