//! Cleanup: removes old runs and compresses reports. It touches only files that warpscope wrote, or that a profiler
//! wrote into the run's own folder; all other files stay.

use super::record::{Report, Run};
use super::{Library, LibraryError, export};
use crate::launch::open;
use crate::launch::runs::log;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Folder for the profiler's temporary files, inside a run's own folder.
pub const TEMPORARY: &str = "tmp";
/// Tag for runs that are never removed.
pub const KEEP: &str = "keep";

#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Number of newest runs to keep.
    pub runs: Option<usize>,
    /// Maximum total size of the reports to keep, in bytes, newest runs first.
    pub bytes: Option<u64>,
    /// Age in days after which reports are compressed.
    pub pack_days: Option<u32>,
}

/// Runs to remove and reports to compress.
#[derive(Debug, Default)]
pub struct Plan {
    pub remove: Vec<Run>,
    /// Reports to compress, each with the id of its run.
    pub pack: Vec<(i64, Report)>,
}

/// Plans the cleanup, starting from the newest run. Live runs and runs tagged `keep` stay and do not count toward the
/// limits.
pub fn plan_cleanup(runs: &[Run], wish: Wish, now_ms: i64) -> Plan {
    let mut plan = Plan::default();
    let (mut kept, mut bytes) = (0_usize, 0_u64);
    let mut full = false;
    for run in runs {
        if run.state.is_live() || run.tags.iter().any(|t| t == KEEP) {
            continue;
        }
        let own: u64 = run.reports.iter().filter(|r| r.owned).map(|r| r.bytes).sum();
        full |= wish.runs.is_some_and(|n| kept >= n) || wish.bytes.is_some_and(|b| bytes.saturating_add(own) > b);
        if full {
            plan.remove.push(run.clone());
            continue;
        }
        kept += 1;
        bytes += own;
        let old = wish.pack_days.is_some_and(|d| now_ms.saturating_sub(run.started_ms) > i64::from(d) * 86_400_000);
        if old {
            let packed = |r: &&Report| r.path.extension().is_some_and(|e| e == "zst" || e == "gz");
            plan.pack.extend(run.reports.iter().filter(|r| r.owned && !packed(r)).map(|r| (run.id, r.clone())));
        }
    }
    plan
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> LibraryError + '_ {
    |source| LibraryError::File { path: path.display().to_string(), source }
}

/// Prefix of temporary files for compression; an existing one was left behind by a killed process.
const PACKING: &str = ".warpscope-packing-";

/// Returns true if a file is really inside a run's own folder, without `..` and with symbolic links resolved.
fn is_inside(folder: &Path, file: &Path) -> bool {
    let real = |p: &Path| std::fs::canonicalize(p).ok();
    let plain = file.starts_with(folder) && !file.components().any(|c| c == std::path::Component::ParentDir);
    plain && file.parent().and_then(real).zip(real(folder)).is_some_and(|(parent, folder)| parent.starts_with(folder))
}

/// Returns true if it is safe to open a report: owned reports must be regular files in the run's folder. Reports
/// outside are the user's responsibility.
pub fn is_sound(folder: &Path, report: &Report) -> bool {
    !report.owned || (is_inside(folder, &report.path) && report.path.symlink_metadata().is_ok_and(|m| m.is_file()))
}

/// Removes a run: its files, its row, and its folder if that is then empty. Returns the number of freed bytes and the
/// remaining files.
pub fn remove_run(library: &Library, run: &Run) -> Result<(u64, Vec<PathBuf>), LibraryError> {
    if run.state.is_live() {
        return Err(LibraryError::Refused(format!("run {} is still running: stop it first (`warpscope attach {}`)", run.id, run.id)));
    }
    let folder = library.run_folder(run.id);
    // If the folder was replaced with a symlink, the files behind it do not belong to the library.
    let ours = folder.symlink_metadata().is_ok_and(|m| m.is_dir());
    let mut free = 0;
    let mut left = Vec::new();
    if ours {
        let reports = run.reports.iter().filter(|r| r.owned).map(|r| r.path.clone());
        let files: Vec<PathBuf> = reports.chain(run.support.iter().cloned()).chain(log::piece_paths(&folder)).collect();
        for file in files.iter().filter(|p| is_inside(&folder, p)) {
            let bytes = file.symlink_metadata().map_or(0, |m| m.len());
            match std::fs::remove_file(file) {
                Ok(()) => free += bytes,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(file_error(file)(e)),
            }
        }
        // Left over if the supervisor was killed.
        let temporary = folder.join(TEMPORARY);
        if temporary.symlink_metadata().is_ok_and(|m| m.is_dir()) {
            std::fs::remove_dir_all(&temporary).map_err(file_error(&temporary))?;
        }
        remove_empty(&folder, &mut left);
    }
    library.delete_run(run.id)?;
    Ok((free, left))
}

/// Removes empty folders, innermost first; collects the remaining files.
fn remove_empty(folder: &Path, left: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_empty(&entry.path(), left);
        } else if entry.file_name().to_string_lossy().starts_with(PACKING) {
            // Left behind by an interrupted compression.
            let _ = std::fs::remove_file(entry.path());
        } else {
            left.push(entry.path());
        }
    }
    // Fails on purpose if the folder is not empty.
    let _ = std::fs::remove_dir(folder);
}

/// Compresses a report with zstd; the explorer can still open it. Returns the number of freed bytes. The compressed
/// file is read back and compared before the original is removed.
pub fn pack_report(library: &Library, id: i64, report: &Report) -> Result<u64, LibraryError> {
    let folder = library.run_folder(id);
    if !report.owned || !is_inside(&folder, &report.path) || !report.path.symlink_metadata().is_ok_and(|m| m.is_file()) {
        return Err(LibraryError::Refused(format!("{} is not a file of the library", report.path.display())));
    }
    let mut name = report.path.clone().into_os_string();
    name.push(".zst");
    let target = PathBuf::from(name);
    if target.symlink_metadata().is_ok() {
        return Err(LibraryError::Refused(format!("{} already exists", target.display())));
    }
    let parent = report.path.parent().unwrap_or(&folder);
    let mut made = tempfile::Builder::new().prefix(PACKING).tempfile_in(parent).map_err(file_error(parent))?;
    let from = open::open_regular(&report.path).map_err(file_error(&report.path))?;
    zstd::stream::copy_encode(BufReader::new(&from), made.as_file_mut(), 9).map_err(file_error(&report.path))?;
    made.as_file().sync_all().map_err(file_error(&target))?;
    let packed = File::open(made.path()).map_err(file_error(&target))?;
    let again = zstd::stream::read::Decoder::new(packed).map_err(file_error(&target))?;
    let original = open::open_regular(&report.path).map_err(file_error(&report.path))?;
    if !has_same_content(BufReader::new(again), BufReader::new(original)).map_err(file_error(&target))? {
        return Err(LibraryError::Refused(format!("{} could not be compressed without loss; left unchanged", report.path.display())));
    }
    let bytes = made.as_file().metadata().map_or(0, |m| m.len());
    made.persist_noclobber(&target).map_err(|e| file_error(&target)(e.error))?;
    let mut reports = library.run(id)?.reports;
    reports.retain(|r| r.path != report.path);
    reports.push(export::describe_report(target, &folder));
    // Update the database first: if this process dies in between, a file without a row is better than a row without a
    // file.
    library.set_reports(id, &reports)?;
    std::fs::remove_file(&report.path).map_err(file_error(&report.path))?;
    Ok(report.bytes.saturating_sub(bytes))
}

fn has_same_content(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut first, mut second) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let n = fill_buffer(&mut one, &mut first)?;
        let m = fill_buffer(&mut other, &mut second)?;
        if first[..n] != second[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

fn fill_buffer(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < buffer.len() {
        match from.read(&mut buffer[at..]) {
            Ok(0) => break,
            Ok(n) => at += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(at)
}
