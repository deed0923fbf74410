//! Compares the ranks of one job: finds ranks that make the others wait, and explains why. Everything is based on
//! [digests](crate::model::digest), so that two reports are analyzed in the same way as hundreds of digests.

mod aligned_collectives;
pub mod clocks;
mod complete_finding;
mod exposed_communication;
mod findings;
mod job;
mod job_result;
mod marks;
pub mod matching;
pub mod nccl;
pub mod rank_identity;
mod recurring;
mod shift;
mod summary;
pub mod waits;

pub use aligned_collectives::{Aligned, Bar, Moment};
pub use complete_finding::{complete_finding, complete_reports};
pub use findings::OF_JOBS;
pub use job::build_job;
pub use job_result::{Job, Late, Link, Member, StepCell, Straggler};
pub use matching::{Arrival, Together};
pub use rank_identity::{Told, format_ranges, in_name, without_doubles};
pub use summary::{build_digests, find_longest_idle, merge_kernel};
