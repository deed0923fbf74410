//! Timeline of a run: rows of events by device and thread. The cost of drawing a window depends on the number of
//! columns, not of events.

mod build;
mod event;
mod find;
mod gaps;
mod group;
mod host_calls;
mod lane;
pub mod link;
mod plot;
mod track;
mod union;
mod window;

pub use build::build_part;
pub use event::{Category, Event, EventId, Events, Known};
pub use find::{Matches, Pattern};
pub use gaps::{Gap, Gaps};
pub use group::{Built, Content, Group, GroupKey, RowKey, RowKind, Spot, Timeline, TimelinePart, TimelineRow};
pub use host_calls::{HostCalls, sum_calls};
pub use lane::Lane;
pub use plot::{Level, Plot};
pub use track::{Before, Track};
pub use window::{Block, Cell, Window, compute_cells, visible_blocks};
