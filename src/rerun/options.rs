//! User-settable options of a re-run, in ncu's terms.

use super::collect::Collect;
use super::nvtx::RangeName;
use crate::model::{NameForm, Profile};

/// Profiler for launches on NVIDIA GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profiler {
    #[default]
    Ncu,
    /// The built-in tracer, which measures while the program runs.
    InPlace,
}

/// `--clock-control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockControl {
    /// Locked to the base clock, ncu's default. Comparable between runs, but slower than production.
    #[default]
    Base,
    /// Not locked.
    None,
}

/// `--cache-control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheControl {
    /// Flushed before every pass, ncu's default.
    #[default]
    All,
    /// Not flushed between passes.
    None,
}

/// `--replay-mode` for a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// The kernel runs again for every pass, and its memory is restored in between; ncu's default.
    #[default]
    Kernel,
    /// The whole program runs again for every pass.
    Application,
    /// The program runs again for every pass, and a range is measured as a unit, in which kernels can run concurrently.
    AppRange,
}

/// Start of the capture, if the user overrides the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedBy {
    /// At program start: the capture is complete.
    Start,
    /// By `cudaProfilerStart`: the window with this number, 1-based.
    ProfilerApi(u32),
    /// By the first range with this name (`nsys profile -c nvtx`).
    Range(RangeName),
    /// By a delay, a hotkey or `nsys start`, so that earlier launches are unknown.
    Late,
}

/// Scope of the launch count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Within {
    /// The whole program, or the part inside the capture range.
    #[default]
    Everything,
    /// Launches inside ranges with this name; if there is a number, only inside that instance, 1-based.
    Range(RangeName, Option<u32>),
}

/// User options. The default suits most re-runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command that do not depend on each other")]
pub struct Options {
    pub profiler: Profiler,
    /// Name form that ncu compares (`--kernel-name-base`).
    pub base: Base,
    pub collect: Collect,
    /// Clock control; `None` is that of the report if ncu wrote it, otherwise ncu's default.
    pub clock: Option<ClockControl>,
    pub cache: CacheControl,
    /// Replay mode; `None` selects one depending on the kernel.
    pub replay: Option<Replay>,
    /// Imports the CUDA sources into the report.
    pub import_source: bool,
    /// Terminates the program after the last result.
    pub kill: bool,
    /// Overwrites an existing report.
    pub overwrite: bool,
    /// Report path without extension; `None` derives one from the kernel and the launch.
    pub output: Option<String>,
    /// The program and its arguments; `None` uses those in the report.
    pub program: Option<Vec<String>>,
    /// Working directory; `None` uses the one in the report.
    pub directory: Option<String>,
    /// Start of the capture; `None` uses the one in the report.
    pub opened_by: Option<OpenedBy>,
    /// Scope of the launch count.
    pub within: Within,
    /// Profiles the whole CUDA graph of the launch.
    pub whole_graph: bool,
    /// Rank of the process to profile if several run concurrently; `None` makes a guess.
    pub rank: Option<u32>,
}

impl Options {
    /// Returns the clock control of a command for this report. Results are comparable with those of the report only if
    /// the clocks are controlled in the same way.
    pub fn clock_control(&self, profile: &Profile) -> ClockControl {
        let results = profile.metrics.as_ref().filter(|_| !profile.launches.has_start_times()).map_or(&[][..], |m| &m.results);
        let free = !results.is_empty() && results.iter().all(|r| r.clocks_locked == Some(false));
        self.clock.unwrap_or(if free { ClockControl::None } else { ClockControl::Base })
    }
}

/// Name form, [`NameForm::Function`] by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(pub NameForm);

impl Default for Base {
    fn default() -> Self {
        Self(NameForm::Function)
    }
}
