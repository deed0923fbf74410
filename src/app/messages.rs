//! Messages between the explorer's state and the thread that runs profilers

use crate::library::Run;
use crate::rerun::Selects;
use std::path::PathBuf;

/// Run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The profiler with its options, the program and its arguments.
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    pub tool: String,
    /// Recipe name, or a stand-in such as `re-run`.
    pub recipe: Option<String>,
    /// Working directory; a re-run uses the recorded one.
    pub directory: Option<PathBuf>,
    /// True if the report is written to the run's own folder.
    pub own: bool,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
    /// Report name as given in the command, without suffix.
    pub named: String,
    /// Report whose launches are profiled again.
    pub from: Option<PathBuf>,
    /// Selected launches, from the `rerun` module.
    pub selects: Vec<Selects>,
}

/// Update about a run.
#[derive(Clone, Debug)]
pub struct News {
    /// New output; `None` marks omitted lines.
    pub lines: Vec<Option<String>>,
    /// Incomplete last line.
    pub open: String,
    pub run: Box<Run>,
    /// True if this is the last update.
    pub ended: bool,
    /// Current time, milliseconds since 1970.
    pub now_ms: i64,
}

/// Launches of a re-run, to which its result belongs.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Index of the report whose launches are profiled again.
    pub report: usize,
    pub selects: Vec<Selects>,
}

/// Progress of the current step.
#[derive(Clone, Debug)]
pub enum StepNews {
    /// The step printed a line.
    Line(String),
    /// The step ended; the error is a sentence for the user.
    Ended(Result<(), String>),
}
