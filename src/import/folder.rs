//! Reports in a folder and below, by the names of the files

use super::open::{is_told_by_content, may_be_report};
use std::path::PathBuf;
use std::time::SystemTime;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundReport {
    pub path: PathBuf,
    /// Size, bytes.
    pub bytes: u64,
    /// Time of the last change, milliseconds since 1970; 0 if the file system does not know it.
    pub modified_ms: i64,
}

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of levels of folders below the given ones.
    pub depth: usize,
    /// Number of directory entries that are looked at.
    pub entries: usize,
}

/// Number of directory entries as which a file counts that has to be opened: a folder may hold thousands of tables.
const OPENED: usize = 20;

/// Lists files that the explorer may be able to open, newest first. Links to folders are not followed, because they
/// may form cycles, and hidden folders are skipped, because they hold caches. The second value is true if the search
/// ended at a limit of entries.
pub fn find_reports(folders: &[PathBuf], limits: Limits) -> (Vec<FoundReport>, bool) {
    let mut found = Vec::new();
    let mut left: std::collections::VecDeque<(PathBuf, usize)> = folders.iter().map(|f| (f.clone(), limits.depth)).collect();
    let mut entries = 0_usize;
    // Folders that are closer to the given ones come first, so that a limit cuts off the deepest.
    while let Some((folder, depth)) = left.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > limits.entries {
                return (newest_first(found), true);
            }
            let path = entry.path();
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth > 0 && !entry.file_name().to_string_lossy().starts_with('.') {
                left.push_back((path, depth - 1));
            } else if meta.is_file() {
                if is_told_by_content(&path) {
                    entries += OPENED;
                }
                if !may_be_report(&path) {
                    continue;
                }
                found.push(FoundReport { path, bytes: meta.len(), modified_ms: meta.modified().map_or(0, milliseconds_of) });
            }
        }
    }
    (newest_first(found), false)
}

fn milliseconds_of(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

fn newest_first(mut found: Vec<FoundReport>) -> Vec<FoundReport> {
    found.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.path.cmp(&b.path)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_by_name_and_other_json_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, text) in [
            ("a.sqlite", ""),
            ("run/rank0.nsys-rep", ""),
            ("run/deep/b.ncu-rep.zst", ""),
            ("trace.json", "{\n  \"schemaVersion\": 1,"),
            ("events.json", "[{\"ph\": \"X\", "),
            ("package.json", "{\"name\": \"x\"}"),
            (".cache/c.sqlite", ""),
            ("notes.txt", ""),
            ("sysinfo.csv", "workload_name,command\nbmm,./bmm\n"),
            ("pmc_perf.csv", "Dispatch_ID,GPU_ID,LDS_Per_Workgroup,Arch_VGPR,SQ_WAVES\n"),
            ("one/two/three/four/d.sqlite", ""),
        ] {
            write(name, text);
        }
        let names = |limits| {
            let (found, cut) = find_reports(&[folder.path().to_owned()], limits);
            let mut names: Vec<String> = found.iter().map(|f| f.path.strip_prefix(folder.path()).unwrap().display().to_string()).collect();
            names.sort();
            (names, cut)
        };
        let all = ["a.sqlite", "events.json", "pmc_perf.csv", "run/deep/b.ncu-rep.zst", "run/rank0.nsys-rep", "trace.json"]
            .map(String::from)
            .to_vec();
        assert_eq!(names(Limits { depth: 3, entries: 1000 }), (all, false));
        assert!(names(Limits { depth: 3, entries: 2 }).1);
    }

    #[test]
    fn newest_comes_first() {
        let of = |name: &str, modified_ms| FoundReport { path: name.into(), bytes: 0, modified_ms };
        let sorted = newest_first(vec![of("b", 1), of("c", 2), of("a", 1)]);
        assert_eq!(sorted.iter().map(|f| f.path.to_str().unwrap()).collect::<Vec<_>>(), ["c", "a", "b"]);
    }
}
