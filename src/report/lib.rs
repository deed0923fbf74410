//! Prints analysis results as tables, CSV, JSON, Markdown, HTML, and Parquet.

#[path = "mod.rs"]
pub mod report;

pub use warpscope_analysis::analysis;
pub use warpscope_library::library;
pub use warpscope_model::model;
pub use warpscope_rerun::rerun;
