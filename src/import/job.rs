//! What a reader is asked for, how it reports progress, and how it is stopped.

use crate::model::{Cancel, Profile};
use std::path::PathBuf;
use std::sync::Arc;

/// Which kernel names to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// All three forms: what tells kernels apart.
    All,
    /// Only the demangled form, when that is all a table needs.
    Demangled,
}

/// The parts of a report that are wanted. Reading less is faster; what was not read is absent from the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "parts of a report are independent of each other")]
pub struct Wants {
    /// Kernel names.
    pub names: Names,
    /// When launches started on the device. Details need it too, and get it.
    pub starts: bool,
    /// Launch configurations, streams, devices and graph nodes.
    pub details: bool,
    /// Host API calls, and with them the launch order. Needs `details`.
    pub calls: bool,
    /// Copies and sets.
    pub memops: bool,
    /// NVTX ranges.
    pub ranges: bool,
}

impl Wants {
    /// Everything.
    pub const ALL: Self = Self { names: Names::All, starts: true, details: true, calls: true, memops: true, ranges: true };
    /// Only what the table of kernels needs.
    pub const TABLE: Self = Self { names: Names::All, starts: false, details: false, calls: false, memops: false, ranges: false };
}

/// Rows of the kernel table so far, while the file is still being read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Function name, launches, summed duration in ns; longest first.
    pub rows: Vec<(String, u64, i64)>,
}

/// What a running job says.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A stage with how much of it is done, in units of its own.
    Stage {
        /// What is being read.
        name: &'static str,
        /// How much is done.
        done: u64,
        /// Out of how much; 0 when that is not known.
        total: u64,
    },
    /// The table so far.
    Preview(Preview),
    /// A profile that can be shown while the rest is read.
    Snapshot(Arc<Profile>),
}

/// What the reader gets beside the file.
pub struct Job<'a> {
    /// What to read.
    pub wants: Wants,
    /// Stops it.
    pub cancel: Cancel,
    /// Hears about progress; called from several threads.
    pub hear: &'a (dyn Fn(Progress) + Sync),
    /// Whether previews and snapshots are of use to the caller.
    pub staged: bool,
    /// Threads that may be used.
    pub threads: usize,
    /// The user's own choice of `nsys`.
    pub nsys: Option<PathBuf>,
    /// Folder for files made from reports.
    pub cache: PathBuf,
}

impl<'a> Job<'a> {
    /// A job that reads `wants` in one go on all processors.
    #[must_use]
    pub fn new(wants: Wants, hear: &'a (dyn Fn(Progress) + Sync)) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { wants, cancel: Cancel::default(), hear, staged: false, threads, nsys: None, cache: super::cache::folder() }
    }

    /// Reports how far a stage is.
    pub fn progress(&self, name: &'static str, done: u64, total: u64) {
        (self.hear)(Progress::Stage { name, done, total });
    }
}
