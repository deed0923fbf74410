//! `memory`: memory usage of a program as a page, as rows, or as JSON.

mod json;
mod of;
mod page;

pub use json::write_memory_json;
pub use of::{Memory, Wanted, When, device_name, site_name, stack_frames};
pub use page::{print_memory, verdict_text};
