//! Facts that are stored with a run: the GPUs with their clocks, the commit of the code, and the profiler's version.

use super::super::doctor::smi;
use super::super::{Version, locate_tools, run_query};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time that a program has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// State of the GPUs at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// Names, such as `2 × NVIDIA H200`.
    pub names: String,
    pub driver: String,
    /// SM clock of each GPU in MHz, such as `1980, 345`.
    pub clocks: String,
}

fn query_lines(command: &mut Command) -> Option<Vec<String>> {
    let until = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    let ended = run_query(command, |l| lines.push(l.to_owned()), || Instant::now() > until).ok()?;
    (ended.status.success() && !ended.cancelled).then_some(lines)
}

/// Queries the GPUs with `nvidia-smi`.
pub fn query_gpus() -> Option<Gpus> {
    let all = smi::parse_gpus(&query_lines(Command::new(locate_tools::find_on_path("nvidia-smi")?).args(smi::GPUS))?);
    let first = all.first()?;
    let mut names: Vec<&str> = all.iter().map(|g| g.name.as_str()).collect();
    names.dedup();
    let clocks: Vec<String> = all.iter().map(|g| g.clock.map_or_else(|| "?".to_owned(), |c| c.to_string())).collect();
    Some(Gpus { names: format!("{} × {}", all.len(), names.join(", ")), driver: first.driver.clone(), clocks: clocks.join(", ") })
}

/// Commit of a folder, and a flag that is set if tracked files differ from it; `None` outside a repository or without
/// git.
pub fn git_commit(folder: &Path) -> Option<(String, bool)> {
    // Read-only: git must not rewrite its index or start the repository's file system monitor.
    let program = locate_tools::find_on_path("git")?;
    let quiet = ["--no-optional-locks", "-c", "core.fsmonitor=false"];
    let git = |args: &[&str]| query_lines(Command::new(&program).args(quiet).arg("-C").arg(folder).args(args));
    let commit = git(&["rev-parse", "HEAD"])?.into_iter().find(|l| l.len() >= 40 && l.chars().all(|c| c.is_ascii_hexdigit()))?;
    // Compares sizes and times, not contents: a content comparison would run the filters configured in the repository.
    let changes = git(&["diff-index", "--raw", "--ignore-submodules=all", "HEAD", "--"])?;
    Some((commit, !changes.is_empty()))
}

pub fn tool_version(tool: &Path) -> Option<String> {
    // The tool is not run in the current folder, so its path must be absolute.
    let whole = match tool.to_str().filter(|name| !name.contains('/')) {
        Some(name) => locate_tools::find_on_path(name)?,
        None => std::path::absolute(tool).ok()?,
    };
    locate_tools::query_version(&whole, &|| false).version.as_ref().map(Version::to_string)
}
