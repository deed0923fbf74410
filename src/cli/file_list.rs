//! Search for reports that the explorer can open

use crate::app::found_files::FileList;
use crate::import::folder::{Limits, find_reports};
use crate::import::open::open_input;
use crate::import::{Job, Wants};
use crate::library::store::now_ms;
use std::path::{Path, PathBuf};

/// Levels of folders below the given ones: a run's folder, and in it one per rank or process.
const DEPTH: usize = 3;
/// Number of directory entries that are looked at, so that a home folder on a network file system takes no minute.
const ENTRIES: usize = 20_000;

/// Lists the reports in folders and below; those below the current folder are named relative to it. Returns an error if
/// a path does not exist.
pub fn list_files(named: &[PathBuf], shown: bool) -> Result<FileList, String> {
    let mut folders: Vec<PathBuf> = named.iter().map(|path| expand_home(path)).collect();
    if let [path] = &folders[..] {
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                let named = folders.pop();
                return Ok(FileList { folders, shown, named, ..FileList::default() });
            }
            Err(e) => return Err(format!("{}: {e}", path.display())),
        }
    }
    let here = std::env::current_dir().ok().and_then(|f| f.canonicalize().ok());
    let mut real: Vec<PathBuf> = Vec::new();
    for folder in folders.iter().filter_map(|f| f.canonicalize().ok()) {
        if !real.iter().any(|known| folder.starts_with(known)) {
            real.push(folder);
        }
    }
    let (mut reports, cut) = find_reports(&real, Limits { depth: DEPTH, entries: ENTRIES });
    if let Some(here) = &here {
        let relative = |path: &Path| path.strip_prefix(here).map(Path::to_owned).ok();
        for report in &mut reports {
            report.path = relative(&report.path).unwrap_or_else(|| std::mem::take(&mut report.path));
        }
    }
    Ok(FileList { folders: real, reports, cut, now_ms: now_ms(), shown, named: None })
}

/// Returns true for a folder that is no report itself, but has several in it.
pub fn has_choice(folder: &Path) -> bool {
    let is_report = || open_input(folder, &Job::new(Wants::TABLE, &|_| {})).is_ok();
    folder.is_dir() && !is_report() && find_reports(&[folder.to_owned()], Limits { depth: DEPTH, entries: ENTRIES }).0.len() > 1
}

/// Replaces a leading `~/` by the home folder, as shells do.
fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}
