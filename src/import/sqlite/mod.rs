//! SQLite reader: a parallel built-in decoder for plain tables, and SQLite itself for everything else.

pub mod db;
mod pages;
mod record;
pub mod rowid_table;
pub mod scan;

pub use pages::{Leaves, Pages, Scratch};
pub use record::Odd;
