//! `ranks`: comparison of the ranks of a job, as a document, or for scripts.

pub(super) mod json;
mod page;

pub use json::{RankJson, StragglerJson, Together, first_straggler, rank_list, write_job_json};
pub use page::{document, finding_text, print_csv, rank_columns};
