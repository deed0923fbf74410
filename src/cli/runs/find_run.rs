//! Finds the run that the user named.

use super::super::failure::Failure;
use crate::library::{Library, Run};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the run with this number, or by default the newest one; with `live`, the newest one in progress.
pub fn find_run(library: &Library, number: Option<i64>, live: bool) -> Result<Run, Failure> {
    if let Some(number) = number {
        return Ok(library.run(number)?);
    }
    let newest = library.runs()?.into_iter().find(|r| !live || r.state.is_live());
    newest.ok_or_else(|| Failure::wrong("no run is in progress; `warpscope runs` lists those that have ended"))
}

/// Returns the trace prefix of this user's traced process, from its environment.
pub fn of_process(pid: &str) -> Option<PathBuf> {
    let owner = |process: &str| Some(std::fs::metadata(format!("/proc/{process}")).ok()?.uid());
    if owner(pid)? != owner("self")? {
        return None;
    }
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = environment.split(|&b| b == 0).find_map(|v| v.strip_prefix(b"WARPSCOPE_TRACE_OUT="))?;
    Some(PathBuf::from(OsStr::from_bytes(value))).filter(|p| p.is_absolute())
}

/// Returns the run that the user named in the same way as for `watch`: by number, by one of its processes while it is
/// in progress, or by a report, its folder, or the common name of several reports.
pub fn find_named_run(library: &Library, named: &Path) -> Result<Run, Failure> {
    let number = named.to_str().and_then(|n| n.parse::<i64>().ok()).filter(|_| !named.exists());
    let path = match number.map(|n| library.run(n)) {
        Some(Ok(run)) => return Ok(run),
        Some(Err(unknown)) => {
            let pid = number.and_then(|n| i32::try_from(n).ok());
            let holds = |r: &Run| r.state.is_live() && pid.is_some() && (r.profiler == pid || r.holder.map(|h| h.0) == pid);
            if let Some(run) = library.runs()?.into_iter().find(holds) {
                return Ok(run);
            }
            named.to_str().and_then(of_process).ok_or(unknown)?
        }
        None => std::path::absolute(named)?,
    };
    let stem = path.file_name().map(|n| format!("{}.", n.to_string_lossy())).unwrap_or_default();
    let holds = |report: &Path| {
        let beside = report.parent() == path.parent() && report.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&stem));
        report == path || report.parent() == Some(&path) || beside
    };
    let found = library.runs()?.into_iter().find(|r| r.reports.iter().any(|report| holds(&report.path)));
    found.ok_or_else(|| Failure::wrong(format!("{}: no run has this report; `warpscope runs` lists them", named.display())))
}
