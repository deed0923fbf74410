//! Recipes: commands that record a program, for every profiler. A recipe is one row in [`RECIPES`], or a table in the user's configuration.
//!
//! A recipe is prepared for a program, and the result says all that a runner must know: the words with what they do, variables, files to
//! write first, reports to expect, steps of a guided session. Nothing here starts or writes anything.

mod amd;
mod ncu;
mod nsys;
mod pattern;
mod ranks;
mod rows;
mod servers;
mod size;
mod steps;
mod torch;
pub mod user;

pub use pattern::Pattern;
pub use rows::RECIPES;
pub use size::expected_bytes;
pub use steps::{Role, Step};
pub use torch::{NO_TORCH, TRACE_SECONDS};
pub use user::User;

use super::program::PLACEHOLDER;
use super::{Part, PartId};

/// Tools that recipes start, as [`Recipe::tool`] has them.
pub const TOOLS: [&str; 4] = ["nsys", "ncu", "torch", "rocprofv3"];

/// A way to record a program.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// Its word.
    pub id: &'a str,
    /// The profiler, one of [`TOOLS`].
    pub tool: &'a str,
    /// What it records, in a few words.
    pub about: &'a str,
    /// When it is the right one.
    pub when: &'a str,
    /// What it costs.
    pub cost: &'a str,
    /// Whether it needs the name of an NVTX range.
    pub needs_range: bool,
    how: How<'a>,
}

/// How a recipe's command is made.
#[derive(Clone, Copy, Debug)]
enum How<'a> {
    Nsys(nsys::Timeline),
    Ncu(ncu::Counters),
    Torch,
    Rocprof(amd::Job),
    Server(servers::Server),
    User(&'a User),
}

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
    /// Seconds that PyTorch traces; [`TRACE_SECONDS`] without a wish.
    pub seconds: Option<u64>,
    /// Under a launcher: the profiler between it and the program, with a report for each rank. Recipe `rank`, and those of ncu and PyTorch,
    /// do so in any case.
    pub ranks: bool,
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
    /// Steps of a guided session, in order; empty where the command alone does it. [`Role::Start`] is the command itself.
    pub steps: Vec<Step>,
    /// What to know about this program under this recipe, a sentence each.
    pub notes: Vec<String>,
    /// Why the command must not be started as it stands: what a person still has to put in. `None` when it can be.
    pub by_hand: Option<String>,
}

impl Prepared {
    /// The command.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        self.parts.iter().flat_map(|p| p.words.iter().cloned()).collect()
    }
}

/// A built-in recipe by its word.
#[must_use]
pub fn recipe(id: &str) -> Option<&'static Recipe<'static>> {
    RECIPES.iter().find(|r| r.id == id)
}

impl Recipe<'_> {
    /// The command and what belongs to it. Errors are one sentence: what the recipe needs, or cannot do for this program.
    pub fn prepare(&self, wanted: &Wanted) -> Result<Prepared, String> {
        let place = Place::of(&wanted.output)?;
        self.check(wanted)?;
        let mut prepared = match self.how {
            How::Nsys(timeline) => nsys::prepare(self, &timeline, wanted, &place)?,
            How::Ncu(counters) => ncu::prepare(&counters, wanted, &place)?,
            How::Torch => torch::prepare(wanted, &place)?,
            How::Rocprof(job) => amd::prepare(job, wanted, &place)?,
            How::Server(server) => servers::prepare(server, wanted, &place)?,
            How::User(user) => user.prepare(wanted, &place),
        };
        if wanted.program.is_empty() {
            prepared.by_hand = Some("no program given: put it and its arguments at the end".to_owned());
        }
        if multirun(&wanted.program) {
            prepared.notes.push(
                "This looks like a Hydra multirun (-m): all its jobs would go into one report. Start one profiler for each job instead, with its overrides and without -m."
                    .to_owned(),
            );
        }
        Ok(prepared)
    }

    /// The command in pieces.
    pub fn parts(&self, wanted: &Wanted) -> Result<Vec<Part>, String> {
        Ok(self.prepare(wanted)?.parts)
    }

    /// The command.
    pub fn argv(&self, wanted: &Wanted) -> Result<Vec<String>, String> {
        Ok(self.prepare(wanted)?.argv())
    }

    /// Refuses wishes that the recipe would have to ignore.
    fn check(&self, wanted: &Wanted) -> Result<(), String> {
        let id = self.id;
        if self.needs_range && wanted.range.is_none() {
            return Err(format!("recipe {id} needs the name of an NVTX range"));
        }
        let by_user = matches!(self.how, How::User(_));
        let (range, launches, kernel, seconds, ranks) = match self.how {
            How::Nsys(_) => (self.needs_range, false, false, false, true),
            How::Ncu(_) => (true, true, true, false, true),
            How::Torch => (false, false, false, true, true),
            How::Rocprof(job) => (false, job.filters(), job.filters(), false, false),
            How::Server(server) => (false, server.iterations(), false, false, false),
            How::User(_) => (self.needs_range, false, false, false, false),
        };
        let refuse = |given: bool, takes: bool, what: &str| {
            if given && !takes { Err(format!("recipe {id} takes no {what}")) } else { Ok(()) }
        };
        refuse(wanted.range.is_some(), range, if by_user { "range: its argv has no {RANGE}" } else { "NVTX range" })?;
        refuse(wanted.kernel.is_some(), kernel, "kernel: it does not choose among them")?;
        refuse(wanted.skip.is_some() || wanted.count.is_some(), launches, "number of launches: it does not choose among them")?;
        refuse(wanted.seconds.is_some(), seconds, "seconds: it records from beginning to end")?;
        refuse(wanted.ranks, ranks, "separate launcher: put the profiler between launcher and program by hand")?;
        if wanted.count == Some(0) {
            return Err("0 launches would profile nothing: give at least 1".to_owned());
        }
        Ok(())
    }
}

/// Where the report goes.
#[derive(Debug)]
struct Place<'a> {
    /// As it was given.
    output: &'a str,
    /// Its folder, when it has one.
    folder: Option<&'a str>,
    /// The name without folder.
    stem: &'a str,
}

impl<'a> Place<'a> {
    fn of(output: &'a str) -> Result<Self, String> {
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
    fn beside(&self, name: &str) -> String {
        match self.folder {
            Some("/") => format!("/{name}"),
            Some(folder) => format!("{folder}/{name}"),
            None => format!("./{name}"),
        }
    }

    /// A file beside the report with an absolute path, as far as the directory is known.
    fn absolute(&self, wanted: &Wanted, name: &str) -> String {
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
fn words(program: &[String]) -> Vec<String> {
    if program.is_empty() { vec![PLACEHOLDER.to_owned()] } else { program.to_vec() }
}

fn program(program: &[String]) -> Part {
    Part { id: PartId::Program, words: words(program), why: "The program and its arguments.".to_owned() }
}

fn part(id: PartId, text: &[&str], why: impl Into<String>) -> Part {
    Part { id, words: text.iter().map(|w| (*w).to_owned()).collect(), why: why.into() }
}

/// Whether a word reads as an override of Hydra: `a.b=c`, `+a=1`, `++a=1`, `~a`.
fn is_override(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default();
    let bare = key.trim_start_matches(['+', '~']);
    let named = bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || "_./@:-".contains(c));
    named && (word.contains('=') || key.starts_with('~'))
}

/// Whether a command reads as a multirun of Hydra: `-m` or `--multirun` of a program with overrides. Python's own `-m` names a module.
fn multirun(argv: &[String]) -> bool {
    let overrides = argv.iter().skip(1).any(|w| is_override(w));
    let own = argv.iter().enumerate().skip(1).any(|(i, w)| {
        let before = &argv[i - 1];
        let pythons = before.rsplit('/').next().is_some_and(|n| n.starts_with("python") || n == "torchrun") || before.starts_with('-');
        w == "--multirun" || (w == "-m" && !pythons)
    });
    overrides && own
}

#[cfg(test)]
mod tests;
