//! Tables decoded from their pages give the same rows as SQLite: every export of the
//! fixtures, and of a corpus if there is one.

use super::support::{root, scratch};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use warpscope::import::{self, Job, Wants};
use warpscope::model::Profile;

/// Hashes its input, because a profile as text may be gigabytes in size.
#[derive(Default)]
struct Sum(DefaultHasher);

impl fmt::Write for Sum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn sum(profile: &Profile) -> u64 {
    let mut sum = Sum::default();
    write!(sum, "{profile:?}").unwrap();
    sum.0.finish()
}

fn exports(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            exports(&path, out);
        } else if name.ends_with(".sqlite") || name.ends_with(".sqlite.zst") {
            out.push(path);
        }
    }
}

#[test]
fn every_export_is_read_alike_with_and_without_sqlite() {
    let mut all = Vec::new();
    exports(&root().join("fixtures"), &mut all);
    let own = all.len();
    match std::env::var_os("WARPSCOPE_CORPUS") {
        Some(corpus) => ["captures", "samples"].iter().for_each(|part| exports(&Path::new(&corpus).join(part), &mut all)),
        None => println!("only the fixtures: WARPSCOPE_CORPUS names no folder"),
    }
    let mut alike = 0;
    for path in &all {
        let read = |pages: bool| {
            let job = Job { cache: scratch().join("cache"), pages, ..Job::new(Wants::ALL, &|_| {}) };
            import::open_profile(path, &job).map(|p| sum(&p)).map_err(|e| e.to_string())
        };
        assert_eq!(read(true), read(false), "{}", path.display());
        alike += 1;
    }
    println!("{alike} exports, {own} of them fixtures");
    assert!(own >= 30, "{own}");
}
