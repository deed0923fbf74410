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

pub use badge::{hint_badge, severity_glyph};
pub use both::mirror_bar;
pub use calm::normalize_blanks;
pub use delta::change_bar;
pub use gauge::gauge;
pub use gauges::gauge_lines;
pub use pairs::key_value_lines;
pub use range::range_bar;
pub use select::highlight_row;
pub use spark::share_sparkline;
