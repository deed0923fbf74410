//! `ranks`: comparison of the ranks of a job, as a readable page, as Markdown, or for scripts.

pub(super) mod json;
mod page;

pub use json::{RankJson, StragglerJson, Together, first_straggler, rank_list, write_job_json};
pub use page::{finding_text, print_csv, print_page, rank_columns, write_markdown};
