//! Pure functions of a [`Profile`](crate::model::Profile): rows, sums, guesses and the sentence that says what to look at next.

pub mod catalog;
pub mod checklist;
pub mod code;
pub mod compare;
pub mod diff;
pub mod family;
pub mod fuzzy;
pub mod gains;
pub mod group;
pub mod group_detail;
pub mod hints;
pub mod labels;
pub mod launch_list;
pub mod memory_chart;
pub mod metric;
pub mod next;
pub mod nth;
pub mod nvtx;
pub mod occupancy;
pub mod overview;
pub mod page;
pub mod path;
mod placed;
pub mod roofline;
pub mod rows;
pub mod select;
pub mod series;
pub mod stats;
mod tensor;

pub use family::Family;
pub use group::{GroupBy, GroupRow, Grouping, SortBy};
pub use nvtx::Paths;
pub use occupancy::{Limiter, Occupancy};
pub use overview::Overview;
pub use stats::Stats;
