//! Child processes: finds the profilers' executables, runs tools to completion, and supervises profiled runs.

pub mod attach;
pub mod child;
pub mod doctor;
pub mod http;
pub mod locate_tools;
pub mod open;
pub mod private_files;
pub mod profiler;
pub mod runs;
pub mod terminal;
pub mod tracer;
pub mod version;

pub use child::{Ended, end_tools_with_us, run_child, run_query};
pub use locate_tools::{Tool, find_nsys};
pub use version::Version;
