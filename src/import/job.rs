//! Import jobs: which parts to read, progress, and cancellation.

use crate::model::{Cancel, Profile};
use std::path::PathBuf;
use std::sync::Arc;

/// The forms of kernel names to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// All three forms, which are needed to tell kernels apart.
    All,
    /// Only the demangled form, which suffices for a table.
    Demangled,
}

bitflags::bitflags! {
    /// Parts of a report; only those requested are read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Parts: u32 {
        /// Times at which launches start on the device. Implied by `DETAILS`.
        const STARTS = 1;
        /// Launch configurations, streams, devices and graph nodes.
        const DETAILS = 1 << 1;
        /// Host API calls, which determine the launch order. Requires `DETAILS`.
        const CALLS = 1 << 2;
        const MEMOPS = 1 << 3;
        /// NVTX ranges, or the operators of a framework.
        const RANGES = 1 << 4;
        /// Colors, categories and payloads of ranges, and shapes of operators. Requires `RANGES`.
        const RANGE_DETAILS = 1 << 5;
        /// Synchronization of devices and streams.
        const WAITS = 1 << 6;
        /// Thread names, OS runtime calls and scheduling.
        const THREADS = 1 << 7;
        /// Sampled call stacks.
        const SAMPLES = 1 << 8;
        /// GPU metrics over time.
        const COUNTERS = 1 << 9;
        const MEMORY = 1 << 10;
        const COLLECTIVES = 1 << 11;
        /// Overhead of the profiler itself.
        const OVERHEAD = 1 << 12;
        /// Python functions and their times. Requires `RANGES`.
        const PYTHON = 1 << 13;
    }
}

/// Parts of a report to read. Fewer parts are faster to read; parts that are not read are absent from the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    pub names: Names,
    pub parts: Parts,
}

impl Wants {
    pub const ALL: Self = Self { names: Names::All, parts: Parts::all() };
    /// Parts that the explorer uses.
    pub const EXPLORER: Self =
        Self { names: Names::All, parts: Self::TRIAGE.parts.union(Parts::COUNTERS).union(Parts::MEMORY).union(Parts::COLLECTIVES) };
    /// Parts that triage needs, including thread activity outside of CUDA.
    pub const TRIAGE: Self = Self {
        names: Names::All,
        parts: Self::LAUNCHES
            .parts
            .union(Parts::MEMOPS)
            .union(Parts::RANGE_DETAILS)
            .union(Parts::PYTHON)
            .union(Parts::THREADS)
            .union(Parts::SAMPLES)
            .union(Parts::OVERHEAD),
    };
    /// Launches with their order and ranges, as needed for a re-run.
    pub const LAUNCHES: Self =
        Self { names: Names::All, parts: Parts::STARTS.union(Parts::DETAILS).union(Parts::CALLS).union(Parts::RANGES) };
    /// Only what the kernel table needs.
    pub const TABLE: Self = Self { names: Names::All, parts: Parts::empty() };

    /// Returns true if all of the given parts are requested.
    pub fn has_parts(self, parts: Parts) -> bool {
        self.parts.contains(parts)
    }

    /// Returns a copy without the given parts.
    pub fn without(self, parts: Parts) -> Self {
        Self { parts: self.parts.difference(parts), ..self }
    }

    /// Returns a copy with the given parts added.
    pub fn with(self, parts: Parts) -> Self {
        Self { parts: self.parts.union(parts), ..self }
    }
}

/// Rows of the kernel table read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Function name, number of launches, and total duration in ns, longest first.
    pub rows: Vec<(String, u64, i64)>,
}

/// Progress of a running job.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Progress within a stage, in units that depend on the stage.
    Stage {
        /// Name of the part being read.
        name: &'static str,
        /// Number of units completed.
        done: u64,
        /// Total number of units; 0 if unknown.
        total: u64,
    },
    /// The kernel table so far.
    Preview(Preview),
    /// A partial profile to display while the rest is being read.
    Snapshot(Arc<Profile>),
}

/// Parameters for reading a file.
#[derive(Clone)]
pub struct Job<'a> {
    pub wants: Wants,
    pub cancel: Cancel,
    /// Progress callback, which may be called from several threads.
    pub hear: &'a (dyn Fn(Progress) + Sync),
    /// True if the caller wants previews and snapshots.
    pub staged: bool,
    /// Maximum number of threads.
    pub threads: usize,
    /// Path of `nsys`, if chosen by the user.
    pub nsys: Option<PathBuf>,
    /// Directory for cached files made from reports.
    pub cache: PathBuf,
    /// True if plain SQLite tables may be read by the built-in page decoder instead of SQLite.
    pub pages: bool,
}

/// Environment variable that disables the built-in decoder for SQLite pages when set to `library`.
pub const SQLITE: &str = "WARPSCOPE_SQLITE";

impl<'a> Job<'a> {
    /// Returns a job that reads `wants` in one pass, using all processors.
    pub fn new(wants: Wants, hear: &'a (dyn Fn(Progress) + Sync)) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let pages = std::env::var_os(SQLITE).is_none_or(|v| v != "library");
        Self { wants, cancel: Cancel::default(), hear, staged: false, threads, nsys: None, cache: super::cache::default_folder(), pages }
    }

    /// Reports progress within a stage.
    pub fn report_progress(&self, name: &'static str, done: u64, total: u64) {
        (self.hear)(Progress::Stage { name, done, total });
    }
}
