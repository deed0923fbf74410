//! Exports from the library: a run's files, and copies of timelines without the processes' environment variables, which
//! nsys records.

use super::LibraryError;
use super::record::Report;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Expands a pattern: a path with at most one `*`, which matches any string without `/`. Outside the run's folder, only
/// files written since the start of the run match, with a tolerance of two seconds for coarse file system timestamps.
fn expand_pattern(pattern: &str, own: &Path, since_ms: i64) -> Vec<PathBuf> {
    let since = UNIX_EPOCH + Duration::from_millis(u64::try_from(since_ms - 2000).unwrap_or(0));
    let fresh = |p: &PathBuf| p.metadata().is_ok_and(|m| m.is_file() && (p.starts_with(own) || m.modified().is_ok_and(|t| t >= since)));
    let Some((head, tail)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)].into_iter().filter(fresh).collect() };
    let (folder, head) = head.rsplit_once('/').map_or((".", head), |(f, h)| (if f.is_empty() { "/" } else { f }, h));
    // The `*` may also be in a folder's name.
    let (tail, below) = tail.split_once('/').map_or((tail, None), |(t, b)| (t, Some(b)));
    let named = |name: &str| name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut out: Vec<PathBuf> = entries
        .filter(|e| named(&e.file_name().to_string_lossy()))
        .map(|e| below.map_or_else(|| e.path(), |b| e.path().join(b)))
        .filter(fresh)
        .collect();
    out.sort();
    out
}

/// Returns the files that match the patterns of the reports expected from a run.
pub fn find_reports(patterns: &[String], folder: &Path, since_ms: i64) -> Vec<Report> {
    let mut seen = BTreeSet::new();
    let files = patterns.iter().flat_map(|p| expand_pattern(p, folder, since_ms)).filter(|p| seen.insert(p.clone()));
    files.map(|p| describe_report(p, folder)).collect()
}

/// Describes the current state of a file; the library owns the files in the run's folder.
pub fn describe_report(path: PathBuf, folder: &Path) -> Report {
    let bytes = path.metadata().map_or(0, |m| m.len());
    let owned = path.starts_with(folder);
    Report { path, bytes, owned }
}

/// Environment variables that were removed from a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Number of variables whose values were removed.
    pub variables: usize,
    /// Names of variables whose values still occur in other data, such as the working directory or program arguments.
    pub elsewhere: Vec<String>,
}

/// Parses `NAME=value` pairs that are separated by a character; values may be quoted (`NAME="value"`).
fn parse_pairs(text: &str, separator: char) -> impl Iterator<Item = (String, String)> + '_ {
    text.split(separator).filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.%()".contains(c));
        word.then(|| (name.to_owned(), value.trim_matches('"').to_owned()))
    })
}

/// Minimum length for a value to be searched for; shorter values occur by chance.
pub const TELLING: usize = 8;

/// Copies an SQLite export of nsys without the environment of its processes. Verifies, in every cell and byte by byte,
/// that the copy contains no `NAME=value` pair; pairs shorter than [`TELLING`] are not searched for. The copy must not
/// exist yet. Intermediate files are written to `scratch`.
///
/// nsys writes the environment to three places: rows of `META_DATA_CAPTURE`, rows of `TARGET_INFO_SYSTEM_ENV`, and
/// strings in `StringIds` with NUL-separated variables (or a single variable).
pub fn clean_export(export: &Path, copy: &Path, scratch: &Path) -> Result<Cleaned, LibraryError> {
    let wrong = |source| LibraryError::Database { path: export.display().to_string(), source };
    let file = |path: &Path, source| LibraryError::File { path: path.display().to_string(), source };
    if copy.symlink_metadata().is_ok() {
        return Err(LibraryError::Refused(format!("{} already exists; choose another file", copy.display())));
    }
    let making = tempfile::Builder::new().prefix("clean-").tempdir_in(scratch).map_err(|e| file(scratch, e))?;
    let (first, second) = (making.path().join("first.sqlite"), making.path().join("second.sqlite"));
    std::fs::copy(export, &first).map_err(|e| file(export, e))?;
    let variables = {
        let db = open_untrusted(&first, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(wrong)?;
        let encoding: String = db.query_row("PRAGMA encoding", [], |r| r.get(0)).map_err(wrong)?;
        if encoding != "UTF-8" {
            let what = format!("{}: its text encoding is {encoding}, which cannot be searched; nsys writes UTF-8", export.display());
            return Err(LibraryError::Refused(what));
        }
        let variables = take_out(&db).map_err(wrong)?;
        // Deleted data remains in free pages, so write a new file.
        db.execute("VACUUM INTO ?1", [second.to_string_lossy()]).map_err(wrong)?;
        variables
    };
    let mut left = search_file(&second, &variables).map_err(|e| file(&second, e))?;
    // Also search cells: SQLite may split a long string, which the byte search then misses.
    search_cells(&open_untrusted(&second, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(wrong)?, &variables, &mut left).map_err(wrong)?;
    if let Some(name) = left.pairs.first() {
        return Err(LibraryError::Refused(format!(
            "{}: the variable {name} is still in the copy after cleaning, so no copy is made; share a table instead: `warpscope top FILE`",
            export.display()
        )));
    }
    std::fs::copy(&second, copy).map_err(|e| file(copy, e))?;
    let elsewhere = left.values.into_iter().collect();
    Ok(Cleaned { variables: variables.iter().map(|v| &v.0).collect::<BTreeSet<_>>().len(), elsewhere })
}

/// Opens an untrusted database in such a way that its triggers and views are not executed.
fn open_untrusted(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, flags)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.execute_batch("PRAGMA trusted_schema = OFF")?;
    Ok(db)
}

/// Removes the environment from a database; returns the removed variables and their values.
fn take_out(db: &Connection) -> rusqlite::Result<BTreeSet<(String, String)>> {
    let has = |table: &str, column: &str| -> rusqlite::Result<bool> {
        db.query_row("SELECT COUNT(*) FROM pragma_table_info(?1) WHERE name = ?2", [table, column], |r| r.get::<_, i64>(0)).map(|n| n > 0)
    };
    let mut found = BTreeSet::new();
    let texts = |sql: &str| -> rusqlite::Result<Vec<Vec<u8>>> {
        let mut statement = db.prepare(sql)?;
        statement.query_map([], |r| Ok(r.get_ref(0)?.as_bytes_or_null().ok().flatten().map(<[u8]>::to_vec).unwrap_or_default()))?.collect()
    };
    let mut take = |sql: &str, separator: char| -> rusqlite::Result<()> {
        for text in texts(sql)? {
            found.extend(parse_pairs(&String::from_utf8_lossy(&text), separator));
        }
        Ok(())
    };
    if has("META_DATA_CAPTURE", "value")? {
        // One pair per row.
        take("SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'", '\0')?;
        db.execute("DELETE FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'", [])?;
    }
    if has("TARGET_INFO_SYSTEM_ENV", "value")? {
        take("SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name LIKE '%Environment%'", ';')?;
        db.execute("DELETE FROM TARGET_INFO_SYSTEM_ENV WHERE name LIKE '%Environment%'", [])?;
    }
    if has("StringIds", "value")? {
        let blocks = "instr(CAST(value AS BLOB), X'00') > 0 AND instr(CAST(value AS BLOB), X'3D') > 0";
        take(&format!("SELECT CAST(value AS BLOB) FROM StringIds WHERE {blocks}"), '\0')?;
        // Keep the row, because other rows refer to its id.
        db.execute(&format!("UPDATE StringIds SET value = '' WHERE {blocks}"), [])?;
        // If a process has a single variable, its block contains no NUL.
        for (name, value) in &found {
            for text in [format!("{name}={value}"), format!("{name}=\"{value}\"")] {
                db.execute("UPDATE StringIds SET value = '' WHERE value = ?1", [text])?;
            }
        }
        if has("StringIds", "id")? {
            take_out_single(db, &mut found)?;
        }
    }
    Ok(found)
}

/// Columns that contain string ids (nsys 2022 to 2025). Other integer columns (correlationId, deviceId …) may contain
/// the same numbers by chance.
const REFERENCES: [&str; 12] = [
    "nameId",
    "textId",
    "jsonTextId",
    "demangledName",
    "shortName",
    "mangledName",
    "symbol",
    "module",
    "callchainNameId",
    "categoryId",
    "name",
    "value",
];
/// Substrings that identify secret variables by name; their values are removed even if a row refers to them.
const SECRETS: [&str; 8] = ["TOKEN", "SECRET", "PASS", "CREDENTIAL", "KEY", "PRIVATE", "AUTH", "_PAT"];

/// Removes unreferenced strings of the form `NAME=value`: if a process has a single variable, its environment contains
/// no NUL. Referenced strings stay, because a range may be named `step=5`.
fn take_out_single(db: &Connection, found: &mut BTreeSet<(String, String)>) -> rusqlite::Result<()> {
    let mut statement = db.prepare("SELECT id, value FROM StringIds WHERE value GLOB '[A-Za-z_]*=?*'")?;
    let rows = statement.query_map([], |r| Ok((r.get::<_, i64>(0)?, r.get_ref(1)?.as_bytes_or_null()?.unwrap_or_default().to_vec())))?;
    let mut single: Vec<(i64, (String, String))> = Vec::new();
    for row in rows {
        let (id, value) = row?;
        let text = String::from_utf8_lossy(&value);
        let mut pair = parse_pairs(&text, '\0');
        single.extend(pair.next().filter(|p| p.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).map(|p| (id, p)));
    }
    if single.is_empty() {
        return Ok(());
    }
    db.execute_batch("CREATE TEMP TABLE single (id INTEGER PRIMARY KEY); CREATE TEMP TABLE named (id INTEGER PRIMARY KEY)")?;
    for (id, _) in &single {
        db.execute("INSERT OR IGNORE INTO temp.single VALUES (?1)", [id])?;
    }
    let tables: Vec<String> = db
        .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'StringIds'")?
        .query_map([], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for table in tables {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> =
            db.prepare("SELECT name FROM pragma_table_info(?1)")?.query_map([&table], |r| r.get(0))?.collect::<Result<_, _>>()?;
        for column in columns.iter().filter(|c| REFERENCES.contains(&c.as_str())) {
            let (t, c) = (quoted(&table), quoted(column));
            db.execute(
                &format!("INSERT OR IGNORE INTO temp.named SELECT DISTINCT {c} FROM main.{t} WHERE {c} IN (SELECT id FROM temp.single)"),
                [],
            )?;
        }
    }
    for (id, pair) in single {
        let named = db.query_row("SELECT EXISTS (SELECT 1 FROM temp.named WHERE id = ?1)", [id], |r| r.get::<_, bool>(0))?;
        let secret = SECRETS.iter().any(|s| pair.0.to_uppercase().contains(s));
        if !named || secret {
            db.execute("UPDATE StringIds SET value = '' WHERE id = ?1", [id])?;
            found.insert(pair);
        }
    }
    Ok(())
}

/// Environment variables that were still found in a copy.
#[derive(Debug, Default)]
struct Left {
    /// Names of variables for which a `NAME=value` pair remains.
    pairs: BTreeSet<String>,
    /// Names of variables whose value remains.
    values: BTreeSet<String>,
}

impl Left {
    /// Searches bytes for the variables, both for whole pairs and for values alone.
    fn search_bytes(&mut self, bytes: &[u8], variables: &BTreeSet<(String, String)>) {
        let holds = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
        for (name, value) in variables {
            // Short pairs (`A=1`) may occur by chance.
            let telling = name.len() + value.len() >= TELLING && !value.is_empty() && !self.pairs.contains(name);
            if telling && (holds(&format!("{name}={value}")) || holds(&format!("{name}=\"{value}\""))) {
                self.pairs.insert(name.clone());
            } else if value.len() >= TELLING && !self.values.contains(name) && holds(value) {
                self.values.insert(name.clone());
            }
        }
    }
}

/// Number of bytes to search at a time.
const WINDOW: usize = 8 << 20;

/// Searches a file for the variables, [`WINDOW`] bytes at a time, since exports can be large.
fn search_file(path: &Path, variables: &BTreeSet<(String, String)>) -> std::io::Result<Left> {
    let longest = variables.iter().map(|(n, v)| n.len() + v.len() + 3).max().unwrap_or(0);
    let mut file = crate::launch::open::open_regular(path)?;
    let (mut window, mut left) = (Vec::new(), Left::default());
    loop {
        let got = (&mut file).take(WINDOW as u64).read_to_end(&mut window)?;
        left.search_bytes(&window, variables);
        if got == 0 {
            return Ok(left);
        }
        // Keep the tail, so that a match that spans two windows is found.
        window.drain(..window.len().saturating_sub(longest));
    }
}

/// Searches every string and blob in the database.
fn search_cells(db: &Connection, variables: &BTreeSet<(String, String)>, left: &mut Left) -> rusqlite::Result<()> {
    let tables: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?
        .query_map([], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for table in tables {
        let mut rows = db.prepare(&format!("SELECT * FROM \"{}\"", table.replace('"', "\"\"")))?;
        let columns = rows.column_count();
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column)?
                    && bytes.len() >= TELLING
                {
                    left.search_bytes(bytes, variables);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(path: &Path) {
        let db = Connection::open(path).unwrap();
        db.execute_batch(
            "CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
             CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
             CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'TOKEN=\"hunter2xyzzy\"'), ('PROCESS_0:WORKING_DIR', '/home/ann/work');
             INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'PWD=\"/home/ann/work\"');
             INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('DeviceEnvironment', 'TOKEN=hunter2xyzzy;LANG=C'), ('CpuCores', '8');
             INSERT INTO StringIds VALUES (1, 'kernel'), (2, CAST(X'544F4B454E3D68756E7465723278797A7A79004C414E473D43' AS TEXT)), (3, 'TOKEN=hunter2xyzzy');",
        )
        .unwrap();
    }

    #[test]
    fn the_environment_is_gone_and_the_rest_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.sqlite"), folder.path().join("b.sqlite"));
        export(&from);
        let before = std::fs::read(&from).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let cleaned = clean_export(&from, &to, scratch.path()).unwrap();
        assert_eq!(cleaned, Cleaned { variables: 3, elsewhere: vec!["PWD".to_owned()] });
        let bytes = std::fs::read(&to).unwrap();
        assert!(memchr::memmem::find(&bytes, b"hunter2").is_none());
        assert_eq!(std::fs::read(&from).unwrap(), before);
        let db = Connection::open(&to).unwrap();
        let names: i64 = db.query_row("SELECT COUNT(*) FROM StringIds", [], |r| r.get(0)).unwrap();
        let kept: i64 = db.query_row("SELECT COUNT(*) FROM META_DATA_CAPTURE", [], |r| r.get(0)).unwrap();
        assert_eq!((names, kept), (3, 1));
        assert!(clean_export(&from, &to, scratch.path()).unwrap_err().to_string().contains("already exists"));
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_variable_in_a_place_that_is_not_known_is_no_copy() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a.sqlite"), folder.path().join("b.sqlite"));
        export(&from);
        let pristine = std::fs::read(&from).unwrap();
        // A short string, and strings long enough to be split: with each length, a different part of the pair is at a
        // page boundary.
        for padding in [1, 4_000, 4_010, 4_020, 4_030, 4_040, 4_050, 4_060, 8_120, 8_130, 8_140] {
            std::fs::write(&from, &pristine).unwrap();
            let sql = "CREATE TABLE NEWS (t TEXT); CREATE TRIGGER tr AFTER DELETE ON META_DATA_CAPTURE BEGIN INSERT INTO NEWS VALUES (old.value); END";
            let db = Connection::open(&from).unwrap();
            db.execute_batch(sql).unwrap();
            db.execute("INSERT INTO NEWS VALUES (?1)", [format!("{} TOKEN=hunter2xyzzy {}", "x".repeat(padding), "y".repeat(9_000))])
                .unwrap();
            drop(db);
            assert!(clean_export(&from, &to, folder.path()).unwrap_err().to_string().contains("TOKEN"), "{padding}");
            assert!(!to.exists());
        }
    }

    #[test]
    fn patterns_mean_fresh_files_only() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["r.0.nsys-rep", "r.1.nsys-rep", "r.sqlite", "other"] {
            std::fs::write(folder.path().join(name), "1234").unwrap();
        }
        let pattern = |p: &str| vec![folder.path().join(p).display().to_string()];
        let reports = find_reports(&pattern("r.*.nsys-rep"), folder.path(), 0);
        assert_eq!(reports.iter().map(|r| (r.bytes, r.owned)).collect::<Vec<_>>(), [(4, true), (4, true)]);
        let later = crate::library::store::now_ms() + 60_000;
        assert!(find_reports(&pattern("r.*.nsys-rep"), Path::new("/elsewhere"), later).is_empty());
        assert_eq!(find_reports(&pattern("r.*.nsys-rep"), folder.path(), later).len(), 2, "its own files are always the run's");
        // The clock was set back by a minute while the run was in progress.
        let began = std::time::Instant::now();
        assert_eq!(
            find_reports(&pattern("r.*.nsys-rep"), Path::new("/elsewhere"), crate::library::store::adjusted_start(later, began)).len(),
            2
        );
        assert!(!find_reports(&pattern("r.sqlite"), Path::new("/elsewhere"), 0)[0].owned);
        assert!(find_reports(&pattern("none"), folder.path(), 0).is_empty());
        std::fs::create_dir(folder.path().join("pass_1")).unwrap();
        std::fs::write(folder.path().join("pass_1/out.csv"), "1").unwrap();
        assert_eq!(find_reports(&pattern("pass_*/out.csv"), folder.path(), 0).len(), 1);
    }
}
