//! Folders from which the server reads.

use crate::analysis::labels::cut_middle;
use crate::import::folder::{Limits, find_reports};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Maximum length of a path in an error message: a client may send anything.
const LONGEST_SHOWN: usize = 200;
/// Maximum depth of listed folders below a given one.
const DEEPEST: usize = 4;

/// Folders given at startup; nothing outside them is read.
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Resolves the folders; the default is the current one.
    pub fn new(named: &[PathBuf]) -> Result<Self, String> {
        let named = if named.is_empty() { vec![PathBuf::from(".")] } else { named.to_vec() };
        let resolve = |path: &PathBuf| match path.canonicalize() {
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => Err(format!("{}: not a folder", path.display())),
            Err(e) => Err(format!("{}: {e}", path.display())),
        };
        named.iter().map(resolve).collect::<Result<_, _>>().map(Self)
    }

    /// Resolves a path and all its links, relative to the first folder that contains it. Paths outside the folders are
    /// refused with the same message as missing ones, so as not to reveal what exists elsewhere.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        let inside = |real: &PathBuf| self.0.iter().any(|f| real.starts_with(f));
        let real = self.0.iter().filter_map(|f| f.join(path).canonicalize().ok()).find(inside);
        real.ok_or_else(|| format!("{}: no such report in {}", cut_middle(path, LONGEST_SHOWN), self.names()))
    }

    fn names(&self) -> String {
        self.0.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Lists reports in a folder (or all folders) and below: newest first, as many as fit into `budget` bytes.
    pub fn list_reports(&self, folder: Option<&Path>, budget: usize) -> Value {
        let folders = folder.map_or_else(|| self.0.clone(), |f| vec![f.to_owned()]);
        let (mut found, _) = find_reports(&folders, Limits { depth: DEEPEST, entries: usize::MAX });
        // A name that is not valid UTF-8 cannot be given in JSON.
        found.retain(|f| f.path.to_str().is_some());
        let all = found.len();
        let mut room = budget;
        let reports = found.into_iter().map(|f| json!({ "path": f.path.display().to_string(), "bytes": f.bytes }));
        let fitting = reports.take_while(|report| {
            let size = report.to_string().len() + 1;
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        let folders: Vec<String> = self.0.iter().map(|f| f.display().to_string()).collect();
        json!({ "folders": folders, "reports": fitting.collect::<Vec<_>>(), "found": all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_folders_is_resolved() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(inside.path().join("a.sqlite"), "").unwrap();
        std::fs::write(outside.path().join("b.sqlite"), "").unwrap();
        std::os::unix::fs::symlink(outside.path().join("b.sqlite"), inside.path().join("link.sqlite")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("folder")).unwrap();
        let folders = Folders::new(&[inside.path().to_owned()]).unwrap();
        assert!(folders.resolve("a.sqlite").unwrap().ends_with("a.sqlite"));
        assert!(folders.resolve(inside.path().join("a.sqlite").to_str().unwrap()).is_ok());
        let beside = format!("../{}/b.sqlite", outside.path().file_name().unwrap().to_str().unwrap());
        for path in
            ["link.sqlite", "folder/b.sqlite", &beside, outside.path().join("b.sqlite").to_str().unwrap(), "/etc/passwd", "missing", ""]
        {
            let refused = folders.resolve(path).is_err();
            // The empty path is the folder itself.
            assert_eq!(refused, !path.is_empty(), "{path}");
        }
        let listed = folders.list_reports(None, 1000);
        assert_eq!((listed["reports"].as_array().unwrap().len(), listed["found"].as_u64()), (1, Some(1)), "{listed}");
    }
}
