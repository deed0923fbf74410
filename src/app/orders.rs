//! What the state and whatever runs profilers say to each other.

use crate::library::Run;
use crate::rerun::Selects;
use std::path::PathBuf;

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The profiler with its options, the program and its arguments.
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    pub tool: String,
    /// The recipe's word, or what stands for one.
    pub recipe: Option<String>,
    /// Working directory; of a re-run the one that was recorded.
    pub directory: Option<PathBuf>,
    /// Whether the report is to go into the run's own folder.
    pub own: bool,
    /// Variables that are set for it.
    pub env: Vec<(String, String)>,
    /// The report's name as the command has it, without suffix.
    pub named: String,
    /// The report whose launches are profiled again.
    pub from: Option<PathBuf>,
    /// The launches, as `rerun` gives them.
    pub selects: Vec<Selects>,
}

/// What is new of a run.
#[derive(Clone, Debug)]
pub struct News {
    /// What it printed; `None` where lines were left out.
    pub lines: Vec<Option<String>>,
    /// The line that is not whole yet.
    pub open: String,
    pub run: Box<Run>,
    /// Whether nothing more will come.
    pub ended: bool,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

/// What a re-run's result belongs to.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Index of the report whose launches are profiled again.
    pub report: usize,
    pub selects: Vec<Selects>,
}

/// What is new of a step that is being done.
#[derive(Clone, Debug)]
pub enum StepNews {
    /// It printed a line.
    Line(String),
    /// It ended; the error is a sentence.
    Ended(Result<(), String>),
}
