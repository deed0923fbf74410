//! What of a timeline is in sight: the window, the cursor, and the rows that are listed.

pub mod lines;
pub mod place;

pub use lines::{Arrangement, Line, LineKey};
pub use place::Place;

/// What stays when a timeline is left.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    pub place: Place,
    pub arrangement: Arrangement,
    pub mark: Option<i64>,
}
