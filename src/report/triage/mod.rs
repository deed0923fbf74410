//! `triage`: limits of a run, as a readable page, as Markdown, or for scripts.

pub(super) mod json;
mod page;
mod text;

pub use json::write_triage_json;
pub use page::{finding_columns, print_csv, print_page, write_markdown};
pub use text::{
    Judged, evidence_text, finding_text, format_flops, format_place, format_value, judged_line, remarks, round_percent, warnings,
    work_sentence,
};
