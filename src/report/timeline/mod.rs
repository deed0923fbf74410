//! `timeline` and `events`: a time window as text, its events in order, and details of one event.

pub mod describe;
pub mod events;
mod page;
pub mod paint;
pub mod ruler;

pub use page::{LABEL, Shown, idle_shades, lane_label, metric_unit, print_page};
