//! State of the explorer, updated by input and results

#[path = "mod.rs"]
pub mod app;

pub use warpscope_analysis::analysis;
pub use warpscope_config::config;
pub use warpscope_import::import;
pub use warpscope_launch::launch;
pub use warpscope_library::library;
pub use warpscope_model::model;
pub use warpscope_report::report;
pub use warpscope_rerun::rerun;
