//! Reusable widgets of the screens.

pub mod badge;
pub mod both;
pub mod calm;
pub mod delta;
pub mod gauge;
pub mod gauges;
pub mod pairs;
pub mod range;
pub mod sample;
pub mod select;
pub mod spark;
pub mod stack;

pub use badge::{badge, glyph};
pub use both::both;
pub use calm::calm;
pub use delta::delta;
pub use gauge::gauge;
pub use gauges::gauges;
pub use pairs::pairs;
pub use range::range;
pub use select::select;
pub use spark::spark;
