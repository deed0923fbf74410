//! Cache of files made from reports (decompressed or exported copies). It lives in the user's cache directory, never
//! next to the report.
//!
//! An entry is keyed by the report's path, size and modification time, and is renamed into place once complete.

use super::error::ImportError;
use crate::launch::private_files;
use crate::model::Cancel;
use etcetera::BaseStrategy;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// `$XDG_CACHE_HOME/warpscope`; if there is no home directory, a per-user directory in the temporary directory.
pub fn default_folder() -> PathBuf {
    match etcetera::choose_base_strategy() {
        Ok(base) => base.cache_dir().join("warpscope"),
        Err(_) => private_files::homeless_folder(),
    }
}

fn entry_name(path: &Path, meta: &Metadata, what: &str) -> String {
    let mut hasher = DefaultHasher::new();
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).hash(&mut hasher);
    meta.len().hash(&mut hasher);
    meta.modified().ok().hash(&mut hasher);
    what.hash(&mut hasher);
    let stem: String = path
        .file_name()
        .map(|n| n.to_string_lossy().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(48).collect())
        .unwrap_or_default();
    format!("{stem}-{:016x}.{what}", hasher.finish())
}

/// Returns the cached file made from `path`. On a miss, calls `make` with a path that does not exist yet.
pub fn get_or_make(
    folder: &Path,
    cancel: &Cancel,
    path: &Path,
    meta: &Metadata,
    what: &str,
    make: impl FnOnce(&Path) -> Result<(), ImportError>,
) -> Result<PathBuf, ImportError> {
    let target = folder.join(entry_name(path, meta, what));
    let unwritable = |e: std::io::Error| ImportError::Tool {
        path: path.to_owned(),
        what: format!("the cache folder {} cannot be written ({e})", folder.display()),
        next: "set XDG_CACHE_HOME to a writable folder with enough space".to_owned(),
    };
    // Check the owner and mode of the directory before trusting its contents.
    private_files::create_folder(folder).map_err(unwritable)?;
    if std::fs::metadata(&target).is_ok_and(|m| m.len() > 0) {
        return Ok(target);
    }
    remove_leftovers(folder);
    let _unfinished = cancel.mark_unfinished();
    let scratch = tempfile::Builder::new().prefix(MAKING).tempdir_in(folder).map_err(unwritable)?;
    let made = scratch.path().join("file.sqlite");
    make(&made)?;
    std::fs::rename(&made, &target).map_err(|e| ImportError::io(&target, e))?;
    make_room(folder, &target, MOST_BYTES);
    Ok(target)
}

/// Maximum total size of all entries, bytes. Beyond that, the oldest entries are removed; they can be made again.
const MOST_BYTES: u64 = 16 << 30;

/// Returns true for file names in the format that [`entry_name`] produces.
fn is_entry(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or("", |(s, _)| s);
    stem.rsplit_once('-').is_some_and(|(_, hash)| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Removes the oldest entries, except `newest`, until the total size is at most `most`.
fn make_room(folder: &Path, newest: &Path, most: u64) {
    let mut entries: Vec<(std::time::SystemTime, u64, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| is_entry(&e.file_name().to_string_lossy()))
        .filter_map(|e| e.metadata().ok().filter(Metadata::is_file).and_then(|m| Some((m.modified().ok()?, m.len(), e.path()))))
        .collect();
    entries.sort();
    let mut total: u64 = entries.iter().map(|e| e.1).sum();
    for (_, bytes, path) in entries.iter().filter(|e| e.2 != newest) {
        if total <= most {
            break;
        }
        // Processes that are reading the file keep it open. Another process may already have removed it.
        if std::fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}

/// Prefix of temporary directories in which entries are created.
const MAKING: &str = ".making-";
/// Age at which a temporary directory must belong to a process that was killed.
const LEFT_BEHIND: std::time::Duration = std::time::Duration::from_hours(24);

/// Removes temporary directories left behind by killed processes.
fn remove_leftovers(folder: &Path) {
    let old = |e: &std::fs::DirEntry| e.metadata().and_then(|m| m.modified()).is_ok_and(|t| t.elapsed().is_ok_and(|age| age > LEFT_BEHIND));
    for entry in
        std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|e| e.file_name().to_string_lossy().starts_with(MAKING) && old(e))
    {
        // Another process may already have removed it.
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

/// Copies a reader to a new file unless canceled; returns the number of bytes.
pub fn copy_until_cancelled(reader: &mut dyn Read, to: &Path, cancel: &Cancel) -> std::io::Result<u64> {
    let mut out = File::create_new(to)?;
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Interrupted, "cancelled"));
        }
        match reader.read(&mut buffer) {
            Ok(0) => return out.flush().map(|()| bytes),
            Ok(n) => {
                out.write_all(&buffer[..n])?;
                bytes += n as u64;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_make_room_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let path = folder.path().join(name);
            std::fs::write(&path, [0; 100]).unwrap();
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let old = file("a.json.gz-0123456789abcdef.unpacked", 30);
        let middle = file("b-0123456789abcdee.sqlite", 20);
        let newest = file("c-0123456789abcded.sqlite", 40);
        let other = file("notes.sqlite", 50);
        make_room(folder.path(), &newest, 250);
        assert_eq!([&old, &middle, &newest, &other].map(|p| p.exists()), [false, true, true, true]);
    }
}
