//! Viewport of a timeline: window, cursor, and listed rows

pub mod rows;
pub mod viewport;

pub use rows::{Arrangement, LineKey, RowRef};
pub use viewport::Viewport;

/// View of a closed timeline, for restoring it.
#[derive(Clone, Debug, Default)]
pub struct SavedView {
    pub place: Viewport,
    pub arrangement: Arrangement,
    pub mark: Option<i64>,
}
