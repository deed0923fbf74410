//! SQLite reader: a parallel built-in decoder for plain tables, and the SQLite library for everything else.

pub mod db;
mod pages;
mod record;
pub mod rowid_table;
pub mod scan;

pub use pages::{Leaves, Pages, Scratch};
pub use record::Odd;
