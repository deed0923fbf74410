//! Settings, keys and recipes of the user.

#[path = "mod.rs"]
pub mod config;

pub use warpscope_analysis::analysis;
pub use warpscope_launch::launch;
