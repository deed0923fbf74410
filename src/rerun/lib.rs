//! Plans commands that profile selected launches again, and recipes that record a program.

#[path = "mod.rs"]
pub mod rerun;

pub use warpscope_analysis::analysis;
pub use warpscope_model::model;
