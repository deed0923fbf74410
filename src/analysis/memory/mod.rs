//! GPU memory usage of a program: allocated bytes over time, holders at the peak, and findings.

mod build;
pub mod category;
mod finding;
mod findings;
mod layers;
pub mod ledger;
mod refusal;
mod rows;
pub mod sites;
mod space;
pub mod steps;
mod usage;

pub use build::{analyze_usage, summarize_findings};
pub use category::{Categories, Category};
pub use finding::{MemoryFinding, MemoryVerdict};
pub use ledger::{Ledger, Life, Point};
pub use refusal::Why;
pub use rows::{HeldMemory, held_rows};
pub use sites::{Site, Sites};
pub use steps::{MemoryStep, StepBasis, Steps};
pub use usage::{DeviceUsage, Free, Usage, device_segments};
