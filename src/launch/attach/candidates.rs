//! Processes that use a GPU.

use super::memory_map::read_map;
use super::target::{Target, seconds_since};
use crate::launch::runs::process::read_process;
use std::os::unix::fs::MetadataExt;

/// A process that has loaded the CUDA driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProcess {
    pub pid: i32,
    pub user: u32,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Time since the process started, seconds.
    pub seconds: Option<u64>,
    /// warpscope is already tracing the process.
    pub traced: bool,
}

/// Lists this user's processes, or those of all users for root, that have loaded the CUDA driver, newest first.
pub fn list_processes() -> Vec<GpuProcess> {
    let own = nix::unistd::geteuid();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<(u64, GpuProcess)> = pids
        .filter_map(|pid| {
            let user = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
            let map = read_map(pid).ok().filter(|_| own.is_root() || own.as_raw() == user)?;
            map.iter().any(|m| m.name().starts_with("libcuda.so")).then_some(())?;
            let process = read_process(pid)?;
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let command = words.split(|&b| b == 0).filter(|w| !w.is_empty()).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            let traced = Target::find(pid).ok().and_then(|t| t.trace_prefix()).is_some();
            Some((process.started, GpuProcess { pid, user, command, seconds: seconds_since(process.started), traced }))
        })
        .collect();
    found.sort_by_key(|(started, p)| (std::cmp::Reverse(*started), p.pid));
    found.into_iter().map(|(_, p)| p).collect()
}
