//! The user's settings, keys and recipes.

#[path = "mod.rs"]
pub mod config;

pub use warpscope_analysis::analysis;
pub use warpscope_launch::launch;
