//! A command that profiles launches again: its parts, the launches that it selects, its cost and its warnings.

use super::collect::Cost;
use super::options::Options;
use super::warning::Warning;
use super::{program, shell};
use crate::model::{LaunchId, NameForm, Nanos};

/// Role of a part of the command, used to find the option that produced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartId {
    /// The profiler, and options that only make the command self-contained.
    Tool,
    /// Processes to follow.
    Processes,
    /// The capture range or NVTX range that must be open for a launch to count.
    Gate,
    /// Options that control the counting of CUDA graphs.
    Graphs,
    /// The kernel name and its form.
    Name,
    /// Options that select among the launches with that name.
    Which,
    Collect,
    Clocks,
    Caches,
    Replay,
    Source,
    /// Action to take after the last result.
    End,
    Output,
    Program,
}

/// A part of a command: words that belong together, and an explanation of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPart {
    pub id: PartId,
    pub words: Vec<String>,
    /// Explanation of these words, in one or two sentences.
    pub why: String,
}

/// A launch that a command selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selects {
    /// Function name; `graph` for a whole graph, `range` for a range.
    pub kernel: String,
    /// Full name, if the report has it.
    pub demangled: Option<String>,
    /// Linker symbol, if the report has it.
    pub mangled: Option<String>,
    /// The launch; for a graph, its first node if the report has nodes.
    pub launch: Option<LaunchId>,
    /// Number of earlier launches of this function in the same process, according to the report.
    pub nth: u64,
    /// Number of launches that the report's own command skipped before the first of the report.
    pub skipped: u64,
    /// Grid expected in the result, in blocks.
    pub grid: Option<[u32; 3]>,
    /// Block expected in the result, in threads.
    pub block: Option<[u32; 3]>,
    /// Duration in the report.
    pub duration: Nanos,
    /// Number of other launches of this function with the same grid and block in the report.
    pub alike: u64,
}

/// A command that the user may prefer.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Condition under which this command is preferable.
    pub why: String,
    pub argv: Vec<String>,
    /// Options that produce this command, as a starting point for further changes.
    pub options: Options,
    /// This command is preferable for the report.
    pub better: bool,
}

/// A command that profiles launches again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rerun {
    pub tool: &'static str,
    /// Parts of the command line.
    pub parts: Vec<CommandPart>,
    /// Working directory of the command, if known.
    pub directory: Option<String>,
    /// Selected launches, in the order of the results.
    pub selects: Vec<Selects>,
    /// Name form that is compared: the requested one, unless the report or the selection requires another.
    pub base: NameForm,
    /// Reasons why the command may select other launches, or fail.
    pub warnings: Vec<Warning>,
    pub alternatives: Vec<Alternative>,
    pub cost: Cost,
    /// Path of the report without its extension; see [`report_path`](Self::report_path).
    pub output: String,
    /// A script that selects one of many processes, used when a single command cannot: the launcher starts the script
    /// instead of the program.
    pub wrapper: Option<String>,
}

impl Rerun {
    /// Returns the output path with the suffix that the tool appends.
    pub fn report_path(&self) -> String {
        let end = match self.tool {
            "rocprofv3" => "_counter_collection.csv",
            "trace" => ".PID.wstrace",
            _ => ".ncu-rep",
        };
        format!("{}{end}", self.output)
    }

    /// Returns the command line; empty if only the [`wrapper`](Self::wrapper) is usable.
    pub fn argv(&self) -> Vec<String> {
        if self.wrapper.is_some() {
            return Vec::new();
        }
        self.parts.iter().flat_map(|p| p.words.iter().cloned()).collect()
    }

    /// Returns the command for a POSIX shell, on one line; empty if only the wrapper is usable.
    pub fn shell_line(&self) -> String {
        shell::command_line(&self.argv())
    }

    /// Returns the command for a POSIX shell, one group of words per line.
    pub fn shell_lines(&self) -> String {
        if self.wrapper.is_some() {
            return String::new();
        }
        shell::command_lines(&self.parts.iter().map(|p| p.words.clone()).collect::<Vec<_>>())
    }

    /// Returns true if the command selects exactly the requested launches, provided that the program repeats its
    /// launches and there are no warnings.
    pub fn is_exact(&self) -> bool {
        // A range does not select a launch.
        !self.selects.is_empty() && !self.warnings.iter().any(|w| w.inexact)
    }

    /// Returns true if the command overwrites an existing report.
    pub fn overwrites_report(&self) -> bool {
        self.parts.iter().any(|p| p.id == PartId::Output && p.words.iter().any(|w| w == "--force-overwrite"))
    }

    /// Returns true if the command can be run as is, because the program is known.
    pub fn is_runnable(&self) -> bool {
        self.wrapper.is_none() && !self.parts.iter().any(|p| p.words.iter().any(|w| w == program::PLACEHOLDER))
    }
}
