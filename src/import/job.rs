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

bitflags::bitflags! {
    /// Parts of a report, each read only where it is wanted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Parts: u32 {
        /// When launches started on the device. Details need it, too, and get it.
        const STARTS = 1;
        /// Launch configurations, streams, devices and graph nodes.
        const DETAILS = 1 << 1;
        /// Host API calls, and with them the launch order. Needs `DETAILS`.
        const CALLS = 1 << 2;
        const MEMOPS = 1 << 3;
        /// NVTX ranges, or a framework's operators.
        const RANGES = 1 << 4;
        /// Colours, categories and payloads of ranges, shapes of operators. Needs `RANGES`.
        const RANGE_DETAILS = 1 << 5;
        /// What devices and streams waited for.
        const WAITS = 1 << 6;
        /// Names of threads, calls of the operating system, scheduling.
        const THREADS = 1 << 7;
        /// Stacks that were sampled.
        const SAMPLES = 1 << 8;
        /// Metrics of a GPU over time.
        const COUNTERS = 1 << 9;
        const MEMORY = 1 << 10;
        const COLLECTIVES = 1 << 11;
        /// What the profiler itself cost.
        const OVERHEAD = 1 << 12;
        /// Functions of Python with their times. Needs `RANGES`.
        const PYTHON = 1 << 13;
    }
}

/// What is wanted of a report. Reading less is faster; what was not read is absent from the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    pub names: Names,
    pub parts: Parts,
}

impl Wants {
    /// Everything that an importer can read.
    pub const ALL: Self = Self { names: Names::All, parts: Parts::all() };
    /// What the explorer shows.
    pub const EXPLORER: Self =
        Self { names: Names::All, parts: Self::TRIAGE.parts.union(Parts::COUNTERS).union(Parts::MEMORY).union(Parts::COLLECTIVES) };
    /// What a verdict on a run needs: what threads did outside of CUDA, too.
    pub const TRIAGE: Self = Self {
        names: Names::All,
        parts: Self::LAUNCHES
            .parts
            .union(Parts::MEMOPS)
            .union(Parts::RANGE_DETAILS)
            .union(Parts::PYTHON)
            .union(Parts::THREADS)
            .union(Parts::OVERHEAD),
    };
    /// Launches with their order and their ranges: what a re-run rests on.
    pub const LAUNCHES: Self =
        Self { names: Names::All, parts: Parts::STARTS.union(Parts::DETAILS).union(Parts::CALLS).union(Parts::RANGES) };
    /// Only what the table of kernels needs.
    pub const TABLE: Self = Self { names: Names::All, parts: Parts::empty() };

    /// Whether all of these parts are wanted.
    #[must_use]
    pub fn has(self, parts: Parts) -> bool {
        self.parts.contains(parts)
    }

    /// But not these parts.
    #[must_use]
    pub fn without(self, parts: Parts) -> Self {
        Self { parts: self.parts.difference(parts), ..self }
    }

    /// With these parts, too.
    #[must_use]
    pub fn with(self, parts: Parts) -> Self {
        Self { parts: self.parts.union(parts), ..self }
    }
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
#[derive(Clone)]
pub struct Job<'a> {
    pub wants: Wants,
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
    /// Whether pages of plain SQLite tables may be decoded without SQLite.
    pub pages: bool,
}

/// Variable that, set to `library`, leaves all reading of SQLite files to SQLite.
pub const SQLITE: &str = "WARPSCOPE_SQLITE";

impl<'a> Job<'a> {
    /// A job that reads `wants` in one go on all processors.
    #[must_use]
    pub fn new(wants: Wants, hear: &'a (dyn Fn(Progress) + Sync)) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let pages = std::env::var_os(SQLITE).is_none_or(|v| v != "library");
        Self { wants, cancel: Cancel::default(), hear, staged: false, threads, nsys: None, cache: super::cache::folder(), pages }
    }

    /// Reports how far a stage is.
    pub fn progress(&self, name: &'static str, done: u64, total: u64) {
        (self.hear)(Progress::Stage { name, done, total });
    }
}
