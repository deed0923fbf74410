//! Plans the command that profiles chosen launches again, and the recipes that record a program.

#[path = "mod.rs"]
pub mod rerun;

pub use warpscope_analysis::analysis;
pub use warpscope_model::model;
