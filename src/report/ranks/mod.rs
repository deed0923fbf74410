//! `ranks`: comparison of the ranks of a job, as a page for people, as Markdown, or for scripts.

mod json;
mod page;

pub use json::{RankJson, StragglerJson, Together, json, rank_list, straggler};
pub use page::{csv, markdown, page, table};
