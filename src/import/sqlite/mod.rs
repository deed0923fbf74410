//! What of SQLite's file format is read without SQLite: plain tables, on all processors.

pub mod db;
mod pages;
pub mod plain;
mod record;
pub mod scan;

pub use pages::{Leaves, Pages, Scratch};
pub use record::Odd;
