//! `triage`: limits of a run, as a document, or for scripts.

pub(super) mod json;
mod page;
mod text;

pub use json::write_triage_json;
pub use page::{document, finding_columns, print_csv};
pub use text::{
    Judged, evidence_text, finding_text, format_flops, format_place, format_value, judged_line, remarks, round_percent, step_noun,
    verdict_text, warnings, work_sentence,
};
