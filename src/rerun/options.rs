//! What the user may choose about a re-run, with the words that ncu uses.

use super::collect::Collect;
use super::nvtx::RangeName;
use crate::model::NameForm;

/// Who measures launches of NVIDIA's GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profiler {
    #[default]
    Ncu,
    /// The built-in tracer, while the program runs.
    InPlace,
}

/// `--clock-control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockControl {
    /// Locked to the base clock: ncu's default. Comparable between runs, slower than production.
    #[default]
    Base,
    /// Left as they are.
    None,
}

/// `--cache-control`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheControl {
    /// Flushed before every pass: ncu's default.
    #[default]
    All,
    /// Left as the pass before left them.
    None,
}

/// `--replay-mode` for a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// The kernel runs again for every pass, its memory restored between them: ncu's default.
    #[default]
    Kernel,
    /// The whole program runs again for every pass.
    Application,
    /// The program runs again for every pass, and what a range encloses is measured as one: kernels in it run side by side.
    AppRange,
}

/// How the capture was opened, when the user knows better than the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedBy {
    /// With the program: nothing is missing before.
    Start,
    /// By `cudaProfilerStart`: this range of it, from 1.
    ProfilerApi(u32),
    /// By the first range of this name (`nsys profile -c nvtx`).
    Range(RangeName),
    /// By a delay, a hot key or `nsys start`: what was launched before is unknown.
    Late,
}

/// Which launches are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Within {
    /// All of the program, or as much of it as the capture's gate lets through.
    #[default]
    Everything,
    /// Those inside ranges of this name; with a number only inside that one, from 1.
    Range(RangeName, Option<u32>),
}

/// What the user chose. The default is what is right for most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command that do not depend on each other")]
pub struct Options {
    pub profiler: Profiler,
    /// Form of the name that ncu compares (`--kernel-name-base`).
    pub base: Base,
    pub collect: Collect,
    pub clock: ClockControl,
    pub cache: CacheControl,
    /// Replay; `None` for what the kernel needs.
    pub replay: Option<Replay>,
    /// Whether CUDA sources go into the report.
    pub import_source: bool,
    /// Whether the program is ended after the last result.
    pub kill: bool,
    /// Whether an existing report is overwritten.
    pub overwrite: bool,
    /// Report without its suffix; `None` for a name made from the kernel and the launch.
    pub output: Option<String>,
    /// The program and its arguments; `None` for what the report recorded.
    pub program: Option<Vec<String>>,
    /// Its working directory; `None` for what the report recorded.
    pub directory: Option<String>,
    /// How the capture was opened; `None` for what the report says.
    pub opened_by: Option<OpenedBy>,
    /// Which launches are counted.
    pub within: Within,
    /// Profile the whole CUDA graph that the launch belongs to.
    pub whole_graph: bool,
    /// Rank of the process whose launch is wanted, where several run at the same time; `None` for a guess.
    pub rank: Option<u32>,
}

impl Options {
    /// What the explorer collects unless told otherwise: the smallest set that names the cause. Of the kernels whose cause is known
    /// (`fixtures/hints`) the first hint was right for 19 of 19 and 32 of 33 with `detailed`, for 16 of 33 with `basic`; it takes twice the passes.
    #[must_use]
    pub fn first_look() -> Self {
        Self { collect: Collect::Set("detailed".to_owned()), ..Self::default() }
    }
}

/// The form of the name, [`NameForm::Function`] unless chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base(pub NameForm);

impl Default for Base {
    fn default() -> Self {
        Self(NameForm::Function)
    }
}
