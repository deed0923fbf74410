//! `memory`: memory usage of a program as a page, as rows, or as JSON.

mod held_rows;
pub(super) mod json;
mod page;

pub use held_rows::{Memory, Wanted, When, device_name, site_name, stack_frames};
pub use page::{finding_text, held_columns, print_memory, verdict_text};
