//! Input and result of preparing a recipe, and helpers that all recipes share.

use super::pattern::Pattern;
use super::steps::RecipeStep;
use crate::rerun::command::{CommandPart, PartId};
use crate::rerun::program::PLACEHOLDER;

/// Input of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The program and its arguments; empty to use a placeholder that cannot be run.
    pub program: Vec<String>,
    /// Path of the report without extension. Taken literally: characters that are special to a profiler are escaped.
    pub output: String,
    /// NVTX range: NAME, or NAME@DOMAIN; an `@` in the name is written `\@`.
    pub range: Option<String>,
    /// Exact kernel name: the function for ncu, a prefix of the printed name for rocprofv3.
    pub kernel: Option<String>,
    /// Number of launches (TensorRT-LLM: iterations) to skip first; only launches of the kernel count if one is named.
    pub skip: Option<u64>,
    /// Number of launches (TensorRT-LLM: iterations) to profile.
    pub count: Option<u64>,
    /// Number of seconds that PyTorch traces; defaults to [`TRACE_SECONDS`](super::torch::TRACE_SECONDS).
    pub seconds: Option<u64>,
    /// Runs the profiler between the launcher and the program, with one report per rank. Implied by the recipe `rank`,
    /// and by the recipes for ncu and PyTorch.
    pub ranks: bool,
    /// Maximum overhead of a counter survey, in thousandths of the run time; defaults to the tracer's limit.
    pub survey: Option<u32>,
    /// Kernels whose counters the tracer measures while the program runs: `KERNEL`, or `KERNEL#N` for its Nth launch.
    pub measure: Vec<String>,
    /// Kernels whose stall reasons are sampled, in the syntax of `--stalls`.
    pub stalls: Vec<String>,
    /// Tracer options that restrict the launches or select the metrics, each with its value.
    pub only: Vec<[String; 2]>,
    /// Stacks that the tracer samples (`auto`, `python`, `native`, `both` or `off`), and samples per second and thread.
    pub stacks: Option<String>,
    pub stack_rate: Option<u32>,
    /// Absolute path of the command's working directory, for tools that need absolute paths.
    pub directory: Option<String>,
}

/// Option that a recipe uses. The others are rejected instead of ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepts {
    Range,
    Launches,
    Kernel,
    Seconds,
    Ranks,
}

/// A recipe prepared for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Parts of the command line.
    pub parts: Vec<CommandPart>,
    /// Environment variables to set in addition to the inherited ones.
    pub env: Vec<(String, String)>,
    /// Files to write before the command starts: the path relative to the output folder, and the contents.
    pub files: Vec<(String, String)>,
    /// Files that the command writes to the output folder.
    pub reports: Vec<Pattern>,
    /// Steps of a guided session, in order; empty if the command alone suffices.
    /// [`Role::Start`](super::steps::Role::Start) is the command itself.
    pub steps: Vec<RecipeStep>,
    /// Notes about this program under this recipe, one sentence each.
    pub notes: Vec<String>,
    /// Reason why the command cannot be started as is, e.g. because the user must fill in a part.
    pub by_hand: Option<String>,
}

impl Prepared {
    pub fn argv(&self) -> Vec<String> {
        self.parts.iter().flat_map(|p| p.words.iter().cloned()).collect()
    }
}

/// Output location of the report.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The path as given.
    pub(super) output: &'a str,
    /// Folder of the path, if any.
    pub(super) folder: Option<&'a str>,
    /// File name without the folder.
    pub(super) stem: &'a str,
}

impl<'a> Place<'a> {
    pub(super) fn from_output(output: &'a str) -> Result<Self, String> {
        let (folder, stem) = match output.rsplit_once('/') {
            Some((folder, stem)) => (Some(if folder.is_empty() { "/" } else { folder }), stem),
            None => (None, output),
        };
        if stem.is_empty() || stem == "." || stem == ".." {
            return Err(format!("{output:?} is not a report name: write a file name without suffix, after the folder if there is one"));
        }
        Ok(Self { output, folder, stem })
    }

    /// Returns the path of a file next to the report, in a form that cannot be parsed as an option.
    pub(super) fn sibling_path(&self, name: &str) -> String {
        match self.folder {
            Some("/") => format!("/{name}"),
            Some(folder) => format!("{folder}/{name}"),
            None => format!("./{name}"),
        }
    }

    /// Returns the absolute path of a file next to the report, if the directory is known.
    pub(super) fn absolute_path(&self, wanted: &Wanted, name: &str) -> String {
        let path = self.sibling_path(name);
        match &wanted.directory {
            Some(directory) if !path.starts_with('/') => {
                format!("{}/{}", directory.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(&path))
            }
            _ => path,
        }
    }
}

/// Returns the program's words, or the placeholder.
pub(super) fn program_words(program: &[String]) -> Vec<String> {
    if program.is_empty() { vec![PLACEHOLDER.to_owned()] } else { program.to_vec() }
}

pub(super) fn program_part(program: &[String]) -> CommandPart {
    CommandPart { id: PartId::Program, words: program_words(program), why: "The program and its arguments.".to_owned() }
}

pub(super) fn part(id: PartId, text: &[&str], why: impl Into<String>) -> CommandPart {
    CommandPart { id, words: text.iter().map(|w| (*w).to_owned()).collect(), why: why.into() }
}

/// Returns true if a word looks like a Hydra override: `a.b=c`, `+a=1`, `++a=1`, `~a`.
pub(super) fn is_override(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default();
    let bare = key.trim_start_matches(['+', '~']);
    let named = bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || "_./@:-".contains(c));
    named && (word.contains('=') || key.starts_with('~'))
}

/// Returns true if a command looks like a Hydra multirun: `-m` or `--multirun` of a program with overrides, but not
/// Python's own `-m`.
pub(super) fn is_multirun(argv: &[String]) -> bool {
    let overrides = argv.iter().skip(1).any(|w| is_override(w));
    let own = argv.iter().enumerate().skip(1).any(|(i, w)| {
        let before = &argv[i - 1];
        let pythons = before.rsplit('/').next().is_some_and(|n| n.starts_with("python") || n == "torchrun") || before.starts_with('-');
        w == "--multirun" || (w == "-m" && !pythons)
    });
    overrides && own
}
