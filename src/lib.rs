//! warpscope: a terminal explorer for GPU profiles.
//!
//! Dependencies point one way, and each layer is a crate of its own: `model` depends on none of the others; `import`
//! reads a file into a profile; `analysis` computes from a profile; `report` prints its results, `app` + `ui` show
//! them; `launch` runs profilers, `library` stores the runs; `cli` ties them together.

pub mod cli;

pub use warpscope_analysis::analysis;
pub use warpscope_app::app;
pub use warpscope_config::config;
pub use warpscope_import::import;
pub use warpscope_launch::launch;
pub use warpscope_library::library;
pub use warpscope_model::model;
pub use warpscope_report::report;
pub use warpscope_rerun::rerun;
pub use warpscope_ui::ui;
