//! `timeline` and `events`: a window of time as text, what happens in it in order, and all about one event.

pub mod describe;
pub mod events;
mod page;
pub mod paint;
pub mod ruler;

pub use page::{LABEL, Shown, label, page, shades, unit};
