//! What a recipe is prepared for, what comes of it, and what all recipes make it of.

use super::pattern::Pattern;
use super::steps::Step;
use crate::rerun::command::{Part, PartId};
use crate::rerun::program::PLACEHOLDER;

/// What a recipe is prepared for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The program and its arguments; empty for a placeholder that cannot be run.
    pub program: Vec<String>,
    /// The report without its suffix; may hold a folder. Taken literally: what means something to a profiler is escaped.
    pub output: String,
    /// NVTX range: NAME, or NAME@DOMAIN; an `@` of the name itself is written `\@`.
    pub range: Option<String>,
    /// Exact name of the kernel: the function for ncu, the beginning of the name that it prints for rocprofv3.
    pub kernel: Option<String>,
    /// Launches (for TensorRT-LLM: iterations) that are let pass first, of that kernel where one is named.
    pub skip: Option<u64>,
    /// Launches (for TensorRT-LLM: iterations) that are profiled.
    pub count: Option<u64>,
    /// Seconds that PyTorch traces; [`TRACE_SECONDS`](super::torch::TRACE_SECONDS) without a wish.
    pub seconds: Option<u64>,
    /// Under a launcher: the profiler between it and the program, with a report for each rank. Recipe `rank`, and those of ncu and PyTorch,
    /// do so in any case.
    pub ranks: bool,
    /// Share of the run's time that a survey of counters may add, in thousandths; the tracer's default without a wish.
    pub survey: Option<u32>,
    /// Kernels whose counters the tracer measures while the program runs: `KERNEL`, or `KERNEL#N` of its N-th launch.
    pub measure: Vec<String>,
    /// Kernels whose stall reasons are sampled, as `--stalls` has them.
    pub stalls: Vec<String>,
    /// Options of the tracer that say which launches these are chosen from and what is measured, each with its value.
    pub only: Vec<[String; 2]>,
    /// Absolute path of the directory that the command runs in, for tools that want absolute paths.
    pub directory: Option<String>,
}

/// A recipe for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The command in pieces.
    pub parts: Vec<Part>,
    /// Variables set for the command, beside those that it inherits.
    pub env: Vec<(String, String)>,
    /// Files to write before it starts: path from the output's folder, text.
    pub files: Vec<(String, String)>,
    /// What it leaves in the output's folder.
    pub reports: Vec<Pattern>,
    /// Steps of a guided session, in order; empty where the command alone does it. [`Role::Start`](super::steps::Role::Start) is the command itself.
    pub steps: Vec<Step>,
    /// What to know about this program under this recipe, a sentence each.
    pub notes: Vec<String>,
    /// Why the command must not be started as it stands: what a person still has to put in. `None` when it can be.
    pub by_hand: Option<String>,
}

impl Prepared {
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        self.parts.iter().flat_map(|p| p.words.iter().cloned()).collect()
    }
}

/// Where the report goes.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// As it was given.
    pub(super) output: &'a str,
    /// Its folder, when it has one.
    pub(super) folder: Option<&'a str>,
    /// The name without folder.
    pub(super) stem: &'a str,
}

impl<'a> Place<'a> {
    pub(super) fn of(output: &'a str) -> Result<Self, String> {
        let (folder, stem) = match output.rsplit_once('/') {
            Some((folder, stem)) => (Some(if folder.is_empty() { "/" } else { folder }), stem),
            None => (None, output),
        };
        if stem.is_empty() || stem == "." || stem == ".." {
            return Err(format!("{output:?} is not a report name: write a file name without suffix, after the folder if there is one"));
        }
        Ok(Self { output, folder, stem })
    }

    /// A file beside the report, as a word of the command that cannot be taken for an option.
    pub(super) fn beside(&self, name: &str) -> String {
        match self.folder {
            Some("/") => format!("/{name}"),
            Some(folder) => format!("{folder}/{name}"),
            None => format!("./{name}"),
        }
    }

    /// A file beside the report with an absolute path, as far as the directory is known.
    pub(super) fn absolute(&self, wanted: &Wanted, name: &str) -> String {
        let path = self.beside(name);
        match &wanted.directory {
            Some(directory) if !path.starts_with('/') => {
                format!("{}/{}", directory.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(&path))
            }
            _ => path,
        }
    }
}

/// The program's words, or the placeholder.
pub(super) fn words(program: &[String]) -> Vec<String> {
    if program.is_empty() { vec![PLACEHOLDER.to_owned()] } else { program.to_vec() }
}

pub(super) fn program(program: &[String]) -> Part {
    Part { id: PartId::Program, words: words(program), why: "The program and its arguments.".to_owned() }
}

pub(super) fn part(id: PartId, text: &[&str], why: impl Into<String>) -> Part {
    Part { id, words: text.iter().map(|w| (*w).to_owned()).collect(), why: why.into() }
}

/// Whether a word reads as an override of Hydra: `a.b=c`, `+a=1`, `++a=1`, `~a`.
pub(super) fn is_override(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default();
    let bare = key.trim_start_matches(['+', '~']);
    let named = bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || "_./@:-".contains(c));
    named && (word.contains('=') || key.starts_with('~'))
}

/// Whether a command reads as a multirun of Hydra: `-m` or `--multirun` of a program with overrides. Python's own `-m` names a module.
pub(super) fn multirun(argv: &[String]) -> bool {
    let overrides = argv.iter().skip(1).any(|w| is_override(w));
    let own = argv.iter().enumerate().skip(1).any(|(i, w)| {
        let before = &argv[i - 1];
        let pythons = before.rsplit('/').next().is_some_and(|n| n.starts_with("python") || n == "torchrun") || before.starts_with('-');
        w == "--multirun" || (w == "-m" && !pythons)
    });
    overrides && own
}
