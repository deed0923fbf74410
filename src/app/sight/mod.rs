//! Viewport of a timeline: window, cursor, and listed rows

pub mod lines;
pub mod place;

pub use lines::{Arrangement, Line, LineKey};
pub use place::Place;

/// View that is kept when a timeline is closed.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub place: Place,
    pub arrangement: Arrangement,
    pub mark: Option<i64>,
}
