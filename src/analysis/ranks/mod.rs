//! Comparison of the ranks of one job: which rank makes the others wait, and why. Works on
//! [digests](crate::model::digest), so that two reports and hundreds of digests are judged alike.

mod aligned;
pub mod clocks;
mod exposed;
mod findings;
pub mod identify;
mod job;
mod marks;
pub mod matching;
pub mod nccl;
mod outcome;
mod recurring;
mod shift;
mod summary;
pub mod waits;

pub use aligned::{Aligned, Bar, Moment};
pub use findings::OF_JOBS;
pub use identify::{Told, format_ranges, in_name, without_doubles};
pub use job::build_job;
pub use matching::{Arrival, Together};
pub use outcome::{Job, Late, Link, Member, StepCell, Straggler};
pub use summary::{build_digests, merge_kernel};
