//! Importers for the files of all supported tools.

#[path = "mod.rs"]
pub mod import;

pub use warpscope_launch::launch;
pub use warpscope_model::model;
