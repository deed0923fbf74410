//! `ranks`: the ranks of a job beside each other, as a page for people, as Markdown, and for scripts.

mod json;
mod page;

pub use json::{RankJson, StragglerJson, Together, json, rank_list, straggler};
pub use page::{csv, markdown, page, table};
