//! Drawing parts that screens are put together from, each by itself.

pub mod badge;
pub mod calm;
pub mod gauge;
pub mod select;
pub mod stack;

pub use badge::{badge, glyph};
pub use calm::calm;
pub use gauge::gauge;
pub use select::select;
