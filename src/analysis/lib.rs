//! Analysis of profiles: groups, verdicts, hints, timelines.

#[path = "mod.rs"]
pub mod analysis;

pub use warpscope_model::model;
