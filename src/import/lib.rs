//! Makes a profile of the file of any tool.

#[path = "mod.rs"]
pub mod import;

pub use warpscope_launch::launch;
pub use warpscope_model::model;
