//! What of SQLite's file format is read without SQLite: plain tables, on all processors.

mod pages;
mod record;

pub use pages::{Leaves, Pages, Scratch};
pub use record::Odd;
