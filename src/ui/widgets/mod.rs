//! Reusable widgets of the screens.

pub mod badge;
pub mod blanks;
pub mod delta;
pub mod filter;
pub mod gauge;
pub mod gauges;
pub mod key_value;
pub mod mirror_bar;
pub mod range;
pub mod select;
pub mod spark;
pub mod stacked_bar;
pub mod swatch;
pub mod theme_sample;

pub use badge::{finding_glyph, hint_badge, severity_glyph};
pub use blanks::normalize_blanks;
pub use delta::change_bar;
pub use filter::filter_part;
pub use gauge::gauge;
pub use gauges::gauge_lines;
pub use key_value::key_value_lines;
pub use mirror_bar::mirror_bar;
pub use range::range_bar;
pub use select::highlight_row;
pub use spark::share_sparkline;
pub use swatch::{family_swatch, kernel_label};
