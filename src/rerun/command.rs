//! A command that profiles launches again: its pieces and what they do, what it selects, what it costs, and what may go wrong.

use super::collect::Cost;
use super::options::Options;
use super::warning::Warning;
use super::{program, shell};
use crate::model::{LaunchId, NameForm, Nanos};

/// What a piece of a command does, which is also the choice that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartId {
    /// The profiler, and options that only keep the command self-contained.
    Tool,
    /// Which processes are followed.
    Processes,
    /// What must be open for a launch to count.
    Gate,
    /// How CUDA graphs count.
    Graphs,
    /// The name and its form.
    Name,
    /// Which launches of that name.
    Which,
    Collect,
    Clocks,
    Caches,
    Replay,
    Source,
    /// What happens after the last result.
    End,
    Output,
    Program,
}

/// A piece of a command: words that belong together, and what they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub id: PartId,
    pub words: Vec<String>,
    /// What it does here, in one or two sentences.
    pub why: String,
}

/// A launch that a command selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selects {
    /// Function name; `graph` for a whole graph, `range` for a range.
    pub kernel: String,
    /// Full name, when the report has it.
    pub demangled: Option<String>,
    /// Linker symbol, when the report has it.
    pub mangled: Option<String>,
    /// The launch; of a graph its first node, when the report has nodes.
    pub launch: Option<LaunchId>,
    /// How many launches of this function its process made before, in the report.
    pub nth: u64,
    /// Grid that the profiler must report, in blocks.
    pub grid: Option<[u32; 3]>,
    /// Block that the profiler must report, in threads.
    pub block: Option<[u32; 3]>,
    /// Duration in this report.
    pub duration: Nanos,
    /// Other launches of this function with the same grid and block, in this report.
    pub alike: u64,
}

/// Another command that a user may prefer.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// When it is the better one.
    pub why: String,
    pub argv: Vec<String>,
    /// The options that make it, to go on from there.
    pub options: Options,
    /// Whether it is better than the command itself, as far as the report tells.
    pub better: bool,
}

/// A command that profiles launches again.
#[derive(Clone, Debug, PartialEq)]
pub struct Rerun {
    pub tool: &'static str,
    /// The command in pieces.
    pub parts: Vec<Part>,
    /// Directory to run it in, when known.
    pub directory: Option<String>,
    /// What it selects, in the order in which the results come.
    pub selects: Vec<Selects>,
    /// Form of the name that is compared: the one asked for, unless the report or the selection made another necessary.
    pub base: NameForm,
    /// What may make it select something else, or fail.
    pub warnings: Vec<Warning>,
    pub alternatives: Vec<Alternative>,
    pub cost: Cost,
    /// The report that it writes, without its ending: [`report`](Self::report) has it.
    pub output: String,
    /// A script for one process among many, where no single command is right: the launcher starts it in place of the program.
    pub wrapper: Option<String>,
}

impl Rerun {
    /// The file that it writes.
    #[must_use]
    pub fn report(&self) -> String {
        let end = match self.tool {
            "rocprofv3" => "_counter_collection.csv",
            "trace" => ".PID.wstrace",
            _ => ".ncu-rep",
        };
        format!("{}{end}", self.output)
    }

    /// The command; empty where only the [`wrapper`](Self::wrapper) is right.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        if self.wrapper.is_some() {
            return Vec::new();
        }
        self.parts.iter().flat_map(|p| p.words.iter().cloned()).collect()
    }

    /// The command for a POSIX shell, on one line; empty where only the wrapper is right.
    #[must_use]
    pub fn shell(&self) -> String {
        shell::line(&self.argv())
    }

    /// The command for a POSIX shell, one group of words on each line.
    #[must_use]
    pub fn shell_lines(&self) -> String {
        if self.wrapper.is_some() {
            return String::new();
        }
        shell::lines(&self.parts.iter().map(|p| p.words.clone()).collect::<Vec<_>>())
    }

    /// Whether it selects exactly the wanted launches if the program does again what it did, and nothing in the report says otherwise.
    #[must_use]
    pub fn exact(&self) -> bool {
        // A range is no launch.
        !self.selects.is_empty() && !self.warnings.iter().any(|w| w.inexact)
    }

    /// Whether it overwrites a report that is there.
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.parts.iter().any(|p| p.id == PartId::Output && p.words.iter().any(|w| w == "--force-overwrite"))
    }

    /// Whether it can be run as it stands: the program is known.
    #[must_use]
    pub fn runnable(&self) -> bool {
        self.wrapper.is_none() && !self.parts.iter().any(|p| p.words.iter().any(|w| w == program::PLACEHOLDER))
    }
}
