//! Finds the profilers' executables on PATH and in their vendors' install folders.

use super::Version;
use super::profiler::find_profiler;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// An executable and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub path: PathBuf,
    /// Version printed by the tool.
    pub version: Option<Version>,
}

/// Install folders: the parent, the prefix of a versioned folder's name, and the paths of the executable inside it.
const INSTALLS: [(&str, &str, &[&str]); 6] = [
    ("/opt/nvidia", "nsight-systems", &["bin/nsys", "target-linux-x64/nsys", "target-linux-sbsa-armv8/nsys"]),
    ("/opt/nvidia/nsight-systems", "", &["bin/nsys", "target-linux-x64/nsys", "target-linux-sbsa-armv8/nsys"]),
    ("/opt/nvidia/nsight-systems-cli", "", &["bin/nsys", "target-linux-x64/nsys", "target-linux-sbsa-armv8/nsys"]),
    ("/usr/local", "cuda", &["bin/nsys"]),
    // Nsight Compute includes its own nsys.
    ("/opt/nvidia/nsight-compute", "", &["host/target-linux-x64/nsys", "host/target-linux-sbsa-armv8/nsys"]),
    ("/usr/local", "cuda", &["nsight-compute/host/target-linux-x64/nsys"]),
];

/// Returns every `nsys` on this machine, or only the one that the user configured. Versions are not read yet.
pub fn find_nsys(chosen: Option<&Path>) -> Vec<PathBuf> {
    if let Some(chosen) = chosen {
        // Tools are not run in the current folder, so the path must be absolute.
        let named = chosen.to_str().filter(|name| !name.contains('/')).and_then(find_on_path);
        return vec![named.unwrap_or_else(|| std::path::absolute(chosen).unwrap_or_else(|_| chosen.to_owned()))];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|p| p.is_absolute()).map(|p| p.join("nsys")).filter(|p| p.is_file()).collect();
    for (base, prefix, inside) in INSTALLS {
        let mut versions: Vec<PathBuf> = std::fs::read_dir(base)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with(prefix))
            .map(|e| e.path())
            .collect();
        // The folders are named after versions, so the newest is last.
        versions.sort();
        found.extend(versions.iter().rev().flat_map(|v| inside.iter().map(|i| v.join(i))).filter(|p| p.is_file()));
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|p| seen.insert(std::fs::canonicalize(p).unwrap_or_else(|_| p.clone())));
    found
}

/// Finds a program on PATH.
pub fn find_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|p| p.is_absolute()).map(|p| p.join(name)).find(|p| p.is_file())
}

/// Finds the newest version of a profiler in its vendor's install folder.
pub fn find_installed(name: &str) -> Option<PathBuf> {
    let install = find_profiler(name)?.install?;
    let folders = std::fs::read_dir(install.base).into_iter().flatten().flatten();
    let of_tool = folders.filter(|e| e.file_name().to_string_lossy().starts_with(install.prefix));
    let mut found: Vec<(Option<Version>, PathBuf)> =
        of_tool.map(|e| (Version::find_in(&e.file_name().to_string_lossy()), e.path().join(install.inside))).collect();
    found.sort();
    let newest = found.into_iter().rev().map(|(_, path)| path);
    let unversioned = PathBuf::from(install.unversioned);
    if install.unversioned_first {
        [unversioned].into_iter().chain(newest).find(|p| p.is_file())
    } else {
        newest.chain([unversioned]).find(|p| p.is_file())
    }
}

/// Finds a profiler on PATH, otherwise in its install folder.
pub fn find_tool(name: &str) -> Option<PathBuf> {
    find_on_path(name).or_else(|| find_installed(name))
}

/// Time that a tool has to print its version: some are started from a slow network disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Queries a tool's version; gives up if the caller cancels or the time limit is reached.
pub fn query_version(path: &Path, cancelled: &dyn Fn() -> bool) -> Tool {
    let until = Instant::now() + PATIENCE;
    let mut version = None;
    let ended = super::run_query(
        Command::new(path).arg("--version"),
        |line| version = version.take().or_else(|| Version::find_in(line)),
        || cancelled() || Instant::now() > until,
    );
    Tool { path: path.to_owned(), version: version.filter(|_| ended.is_ok_and(|e| !e.cancelled)) }
}
