//! SQLite reader: a built-in decoder of plain tables, run on all processors, and SQLite for everything else.

pub mod db;
mod pages;
mod record;
pub mod rowid_table;
pub mod scan;

pub use pages::{Leaves, Pages, Scratch};
pub use record::Odd;
