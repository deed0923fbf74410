//! warpscope: a terminal explorer for GPU profiles.
//!
//! Layers point one way: `model` knows nothing of the others; `import` makes a profile of a file; `analysis` computes from a profile;
//! `report` prints and `app` + `ui` show what `analysis` computed; `launch` runs profilers, `library` keeps what was run; `cli` ties them together.

pub mod analysis;
pub mod app;
pub mod cli;
pub mod config;
pub mod import;
pub mod launch;
pub mod library;
pub mod model;
pub mod report;
pub mod rerun;
pub mod ui;
