//! warpscope: a terminal explorer for GPU profiles.
//!
//! Layers point one way, and each is a crate of its own: `model` knows nothing of the others; `import` makes a profile of a file; `analysis`
//! computes from a profile; `report` prints and `app` + `ui` show what `analysis` computed; `launch` runs profilers, `library` keeps what was run;
//! `cli` ties them together.

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
