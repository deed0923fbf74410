//! Child processes: finding the profilers' own tools and running them to their end.

pub mod child;
pub mod doctor;
pub mod find;
pub mod version;

pub use child::{Ended, run};
pub use find::{Tool, nsys};
pub use version::Version;
