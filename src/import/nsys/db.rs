//! Read-only connections to an export, and what tables and columns it has. The schema is looked up, never assumed.

use crate::import::input::Bytes;
use crate::import::{ImportError, Input};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Stands for the difference of `end` and `start`, which SQLite then computes: one column instead of two.
pub const DURATION: &str = "end - start";

/// An export that is open, with a pool of connections for the reading threads.
pub struct Db {
    path: PathBuf,
    bytes: Bytes,
    size: u64,
    tables: BTreeMap<String, BTreeSet<String>>,
    pool: Mutex<Vec<Connection>>,
}

impl Db {
    /// Opens an export and looks up its tables.
    pub fn open(input: &Input) -> Result<Self, ImportError> {
        let mut db = Self {
            path: input.path.clone(),
            bytes: input.bytes.clone(),
            size: input.size,
            tables: BTreeMap::new(),
            pool: Mutex::default(),
        };
        db.check_whole(&input.head)?;
        let connection = db.connect()?;
        db.tables = tables(&connection).map_err(|e| db.damaged("its schema", &e))?;
        db.give(connection);
        Ok(db)
    }

    /// The report as the user named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the database in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// An error about one table.
    #[must_use]
    pub fn damaged(&self, table: &str, error: &rusqlite::Error) -> ImportError {
        ImportError::damaged(&self.path, table, error)
    }

    /// A connection of its own for the calling thread; hand it back with [`Db::give`].
    pub fn take(&self) -> Result<Connection, ImportError> {
        let pooled = self.pool.lock().ok().and_then(|mut pool| pool.pop());
        pooled.map_or_else(|| self.connect(), Ok)
    }

    /// Hands a connection back.
    pub fn give(&self, connection: Connection) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.push(connection);
        }
    }

    /// Whether there is a table of this name.
    #[must_use]
    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Number of tables.
    #[must_use]
    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Whether a table has a column.
    #[must_use]
    pub fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|columns| columns.contains(column))
    }

    /// Whether a table has a column of this name however it is written: SQL does not tell cases apart.
    #[must_use]
    pub fn has_column_in_any_case(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|columns| columns.iter().any(|c| c.eq_ignore_ascii_case(column)))
    }

    /// The column quoted for SQL, or `NULL` when the table lacks it.
    #[must_use]
    pub fn column(&self, table: &str, column: &str) -> String {
        if column == DURATION && self.has_column(table, "start") && self.has_column(table, "end") {
            return "\"end\" - \"start\"".to_owned();
        }
        if self.has_column(table, column) { format!("\"{column}\"") } else { "NULL".to_owned() }
    }

    /// A select list with `NULL` for what the table lacks.
    #[must_use]
    pub fn columns(&self, table: &str, columns: &[&str]) -> String {
        columns.iter().map(|c| self.column(table, c)).collect::<Vec<_>>().join(", ")
    }

    /// All rows of a small table, each as text, integers included; empty when the table is missing.
    pub fn rows(&self, table: &str, columns: &[&str]) -> Result<Vec<Vec<Option<String>>>, ImportError> {
        self.rows_where(table, columns, "1")
    }

    /// As [`Db::rows`], only those that meet a condition in SQL.
    pub fn rows_where(&self, table: &str, columns: &[&str], condition: &str) -> Result<Vec<Vec<Option<String>>>, ImportError> {
        if !self.has(table) {
            return Ok(Vec::new());
        }
        let connection = self.take()?;
        let read = || -> rusqlite::Result<Vec<Vec<Option<String>>>> {
            let mut statement =
                connection.prepare(&format!("SELECT {} FROM \"{table}\" WHERE {condition}", self.columns(table, columns)))?;
            let mut rows = statement.query([])?;
            let mut out = Vec::new();
            while let Some(row) = rows.next()? {
                out.push((0..columns.len()).map(|i| row.get_ref(i).ok().and_then(text_of)).collect());
            }
            Ok(out)
        };
        let out = read().map_err(|e| self.damaged(table, &e));
        self.give(connection);
        out
    }

    /// Fails when the header promises more pages than the file has, or a journal lies beside it.
    fn check_whole(&self, head: &[u8]) -> Result<(), ImportError> {
        let Bytes::File(file) = &self.bytes else {
            return Ok(());
        };
        for suffix in ["-journal", "-wal"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            if std::fs::metadata(&name).is_ok_and(|m| m.len() > 0) {
                return Err(ImportError::refused(
                    &self.path,
                    format!("still being written (its {suffix} file lies beside it)"),
                    "open it again when the export has finished, or export it again if the exporter was killed",
                ));
            }
        }
        let field = |at: usize, n: usize| head.get(at..at + n).map(|b| b.iter().fold(0_u64, |a, &b| a << 8 | u64::from(b)));
        let page = field(16, 2).map_or(0, |p| if p == 1 { 65_536 } else { p });
        // The page count is only valid when the two change counters agree (SQLite file format, 1.3.8).
        let pages = if field(24, 4) == field(92, 4) { field(28, 4).unwrap_or(0) } else { 0 };
        let promised = page.saturating_mul(pages);
        if promised > self.size {
            return Err(ImportError::refused(
                &self.path,
                format!("cut short: {} of {promised} bytes are there", self.size),
                "it is still being written or copied, or the copy failed: fetch it again",
            ));
        }
        Ok(())
    }

    fn connect(&self) -> Result<Connection, ImportError> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = match &self.bytes {
                Bytes::File(path) => Connection::open_with_flags(
                    immutable_uri(path),
                    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
                )?,
                Bytes::BuiltIn(bytes) => {
                    let mut memory = Connection::open_in_memory()?;
                    memory.deserialize_bytes("main", bytes)?;
                    memory
                }
            };
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 64 << 20)?;
            // A scan never comes back to a page, so a small cache serves as well as a large one.
            connection.execute_batch("PRAGMA query_only=1; PRAGMA cache_size=-512; PRAGMA mmap_size=0;")?;
            Ok(connection)
        };
        open().map_err(|e| self.damaged("its first pages", &e))
    }
}

/// `file:` URI with everything escaped that has a meaning in one. Immutable: no locks are taken and nothing is written beside the file.
fn immutable_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    let escaped: String =
        absolute.as_os_str().as_bytes().iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    format!("file:{escaped}?mode=ro&immutable=1")
}

/// Ordinary tables with their columns. Views and virtual tables are not NVIDIA's, and could run anything.
fn tables(connection: &Connection) -> rusqlite::Result<BTreeMap<String, BTreeSet<String>>> {
    let mut out = BTreeMap::new();
    let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")?;
    // A name that is no UTF-8 is not NVIDIA's.
    let names: Vec<Option<String>> =
        names.query_map([], |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_owned)))?.collect::<Result<_, _>>()?;
    for name in names.into_iter().flatten() {
        if name.contains('"') {
            continue;
        }
        let mut info = connection.prepare(&format!("PRAGMA table_info(\"{name}\")"))?;
        let columns: Vec<Option<String>> =
            info.query_map([], |row| Ok(row.get_ref(1)?.as_str().ok().map(str::to_owned)))?.collect::<Result<_, _>>()?;
        let columns: BTreeSet<String> = columns.into_iter().flatten().collect();
        out.insert(name, columns);
    }
    Ok(out)
}

pub(super) fn text_of(value: rusqlite::types::ValueRef<'_>) -> Option<String> {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null | ValueRef::Blob(_) => None,
        ValueRef::Integer(i) => Some(i.to_string()),
        ValueRef::Real(r) => Some(r.to_string()),
        ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
    }
}
