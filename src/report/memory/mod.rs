//! `memory`: memory usage of a program as a page, as rows, or as JSON.

mod json;
mod of;
mod page;

pub use json::json;
pub use of::{Memory, Wanted, When, device_name, site_name, stack};
pub use page::{print, verdict};
