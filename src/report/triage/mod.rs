//! `triage`: limits of a run, as a page for people, as Markdown, or for scripts.

mod json;
mod page;
mod text;

pub use json::json;
pub use page::{csv, markdown, page};
pub use text::{Judged, flops, judged_line, measured, place, remarks, rounded as percent, value, warnings, work};
