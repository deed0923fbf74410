//! Read-only connections to an SQLite export. Its schema is read from the file, because it differs between versions.
//!
//! Reports may be untrusted. An authorizer allows nothing but ordinary tables (no views, virtual tables or other
//! SQL), every statement ends when the job is canceled, and rows are counted against the size of the file: a corrupt
//! b-tree whose pages share children can yield more rows than a file of its size can hold.

use super::rowid_table::{DURATION, RowidTable};
use crate::import::input::Bytes;
use crate::import::sqlite::Pages;
use crate::import::{Budget, Cancel, ImportError, Input};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Minimum size of a row in a file, bytes: two for the cell pointer, and one each for the payload length, rowid and
/// header length.
pub const LEAST_ROW: u64 = 5;
/// Number of steps of SQLite's virtual machine between two checks for cancellation.
const STEPS: i32 = 1_000;

/// SQLite heap limit for the whole process, bytes.
const MOST_HEAP: u64 = 256 << 20;
/// Maximum number of virtual machine steps for reading the schema; real exports have several hundred tables.
const OPENING_STEPS: u64 = 50_000_000;

/// Schema of a table.
#[derive(Default)]
struct Table {
    columns: BTreeSet<String>,
    /// The primary key, if it consists of a single column.
    key: Option<String>,
    /// Storage of a plain table, for use by the built-in page decoder.
    stored: Option<StoredAs>,
}

/// Storage format of the rows of a plain table.
struct StoredAs {
    root: u32,
    /// Columns in the order in which records contain them.
    order: Vec<String>,
    /// The column that is an alias of the rowid.
    alias: Option<String>,
}

/// An open export, with a pool of connections for the reader threads.
pub struct Db {
    path: PathBuf,
    bytes: Bytes,
    size: u64,
    cancel: Cancel,
    tables: Arc<BTreeMap<String, Table>>,
    pool: Mutex<Vec<Connection>>,
    /// Pages of the file, if they can be read without SQLite.
    pages: Option<Arc<Pages>>,
    memory: Budget,
}

impl Db {
    /// Opens an export and reads its schema. All later reads end when `cancel` is set.
    pub fn open(input: &Input, cancel: &Cancel) -> Result<Self, ImportError> {
        let mut db = Self {
            path: input.path.clone(),
            bytes: input.bytes.clone(),
            size: input.size,
            cancel: cancel.clone(),
            tables: Arc::default(),
            pool: Mutex::default(),
            pages: match &input.bytes {
                Bytes::File(path) => Pages::open(path, input.size),
                Bytes::BuiltIn(bytes) => Pages::in_memory(bytes),
            }
            .map(Arc::new),
            memory: Budget::from_plain_size(&input.path, input.stored_size(), input.size),
        };
        db.check_whole(&input.head)?;
        let mut connection = db.open_connection()?;
        db.tables = Arc::new(db.read_schema(&connection)?);
        db.restrict_connection(&mut connection).map_err(|e| db.damage_error("its schema", &e))?;
        db.return_connection(connection);
        Ok(db)
    }

    /// Path of the report as given by the user.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error for a damaged table, or [`ImportError::Cancelled`] if the job was canceled, which makes the
    /// statement fail too.
    pub fn damage_error(&self, table: &str, error: &rusqlite::Error) -> ImportError {
        if self.cancel.is_cancelled() { self.cancelled_error() } else { ImportError::damaged(&self.path, table, error) }
    }

    pub fn cancelled_error(&self) -> ImportError {
        ImportError::Cancelled { path: self.path.clone() }
    }

    /// The error for a table that contains more data than a file of this size can hold.
    pub fn overfull_error(&self, table: &str) -> ImportError {
        ImportError::damaged(&self.path, table, "it contains more than a file of this size can")
    }

    /// Memory budget for the rows of all tables together, because tables may share pages.
    pub fn memory_budget(&self) -> &Budget {
        &self.memory
    }

    /// Budget for one table, whose rows and strings cannot exceed the size of the file.
    pub fn table_budget(&self) -> Budget {
        Budget::of_rows(&self.path, self.size)
    }

    /// Maximum number of rows that a table in this file can have.
    pub fn most_rows(&self) -> u64 {
        self.size / LEAST_ROW
    }

    /// Takes a connection from the pool, or opens one. Return it with [`Db::return_connection`].
    pub fn take_connection(&self) -> Result<Connection, ImportError> {
        let pooled = self.pool.lock().ok().and_then(|mut pool| pool.pop());
        pooled.map_or_else(|| self.open_connection(), Ok)
    }

    pub fn return_connection(&self, connection: Connection) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.push(connection);
        }
    }

    /// Returns a decoder for columns of a table, if the built-in page decoder supports that table.
    pub fn plain_table(&self, table: &str, columns: &[&str]) -> Option<RowidTable> {
        let stored = self.tables.get(table)?.stored.as_ref()?;
        RowidTable::new(Arc::clone(self.pages.as_ref()?), stored.root, &stored.order, stored.alias.as_deref(), columns)
    }

    /// Returns true if the table exists.
    pub fn has_table(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Names of all tables, sorted.
    pub fn table_names(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Names of the columns of a table, in no particular order.
    pub fn column_names(&self, table: &str) -> impl Iterator<Item = &str> {
        self.tables.get(table).into_iter().flat_map(|t| t.columns.iter().map(String::as_str))
    }

    /// Returns true if a table has this column.
    pub fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|t| t.columns.contains(column))
    }

    /// Returns true if a column is the primary key of the table.
    pub fn is_key(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|t| t.key.as_deref() == Some(column))
    }

    /// Returns true if a table has this column in any capitalization, because SQL names are case-insensitive.
    pub fn has_column_in_any_case(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|t| t.columns.iter().any(|c| c.eq_ignore_ascii_case(column)))
    }

    /// Returns the column quoted for SQL, or `NULL` if the table does not have it.
    pub fn column_sql(&self, table: &str, column: &str) -> String {
        if column == DURATION && self.has_column(table, "start") && self.has_column(table, "end") {
            return "\"end\" - \"start\"".to_owned();
        }
        if self.has_column(table, column) { format!("\"{column}\"") } else { "NULL".to_owned() }
    }

    /// Returns a select list, with `NULL` for missing columns.
    pub fn columns_sql(&self, table: &str, columns: &[&str]) -> String {
        columns.iter().map(|c| self.column_sql(table, c)).collect::<Vec<_>>().join(", ")
    }

    /// Reads all rows of a small table as text, even integers; empty if the table is missing.
    pub fn read_rows(&self, table: &str, columns: &[&str]) -> Result<Vec<Vec<Option<String>>>, ImportError> {
        let mut out = Vec::new();
        self.each_row(table, &self.columns_sql(table, columns), "", columns.len(), |row| out.push(row))?;
        Ok(out)
    }

    /// Like [`Db::read_rows`], but only for rows in which the column `key` has one of these integers.
    pub fn read_rows_with(
        &self,
        table: &str,
        columns: &[&str],
        key: &str,
        values: impl Iterator<Item = i64>,
    ) -> Result<Vec<Vec<Option<String>>>, ImportError> {
        let mut out = Vec::new();
        let values: Vec<String> = values.map(|v| v.to_string()).collect();
        if !values.is_empty() && self.has_column(table, key) {
            let condition = format!(" WHERE \"{key}\" IN ({})", values.join(", "));
            self.each_row(table, &self.columns_sql(table, columns), &condition, columns.len(), |row| out.push(row))?;
        }
        Ok(out)
    }

    /// Like [`Db::read_rows`], but omits rows whose first column contains `word`; their second column never leaves
    /// SQLite.
    pub fn rows_without(&self, table: &str, columns: [&str; 2], word: &str) -> Result<Vec<Vec<Option<String>>>, ImportError> {
        let [name, value] = columns.map(|c| self.column_sql(table, c));
        let mut out = Vec::new();
        // Select the omitted rows too, so that they count against the budget.
        let list = format!("{name}, CASE WHEN {name} LIKE '%{word}%' THEN NULL ELSE {value} END");
        self.each_row(table, &list, "", 2, |row| {
            if !row.first().and_then(Option::as_ref).is_some_and(|n| n.to_uppercase().contains(word)) {
                out.push(row);
            }
        })?;
        Ok(out)
    }

    fn each_row(
        &self,
        table: &str,
        list: &str,
        condition: &str,
        columns: usize,
        mut each: impl FnMut(Vec<Option<String>>),
    ) -> Result<(), ImportError> {
        if !self.has_table(table) {
            return Ok(());
        }
        let connection = self.take_connection()?;
        let (allowance, memory, pace) = (self.table_budget(), self.memory_budget(), self.cancel.pace());
        let row_size = (size_of::<Vec<Option<String>>>() + columns * size_of::<Option<String>>()) as u64;
        let mut full = false;
        let mut read = || -> rusqlite::Result<bool> {
            let mut statement = connection.prepare(&format!("SELECT {list} FROM \"{table}\"{condition}"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let values = (0..columns).filter_map(|i| row.get_ref(i).ok());
                let bytes: usize = values.map(|v| if let ValueRef::Text(t) = v { t.len() } else { 0 }).sum();
                // If the job is canceled, the statement ends.
                let _ = pace.count_steps(bytes + columns);
                if !allowance.try_spend(LEAST_ROW + bytes as u64) {
                    return Ok(false);
                }
                if !memory.try_spend(row_size + bytes as u64) {
                    full = true;
                    return Ok(true);
                }
                each((0..columns).map(|i| row.get_ref(i).ok().and_then(text_of)).collect());
            }
            Ok(true)
        };
        let read = read();
        let out = match read {
            Ok(true) if full => Err(memory.exceeded_error()),
            Ok(true) => Ok(()),
            Ok(false) => Err(self.overfull_error(table)),
            Err(e) => Err(self.damage_error(table, &e)),
        };
        self.return_connection(connection);
        out
    }

    /// Returns an error if the header declares more pages than the file has, or if there is a journal next to the file.
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
                    format!("still being written (its {suffix} file is next to it)"),
                    "open it again when the export has finished, or export it again if the exporter was killed",
                ));
            }
        }
        let field = |at: usize, n: usize| head.get(at..at + n).map(|b| b.iter().fold(0_u64, |a, &b| a << 8 | u64::from(b)));
        let page = field(16, 2).map_or(0, |p| if p == 1 { 65_536 } else { p });
        // The page count is valid only if the two change counters agree (SQLite file format, 1.3.8).
        let pages = if field(24, 4) == field(92, 4) { field(28, 4).unwrap_or(0) } else { 0 };
        let promised = page.saturating_mul(pages);
        if promised > self.size {
            return Err(ImportError::Truncated {
                path: self.path.clone(),
                what: format!("only {} of {promised} bytes", self.size),
                next: "it is still being written or copied, or the copy failed: fetch it again".to_owned(),
            });
        }
        Ok(())
    }

    fn open_connection(&self) -> Result<Connection, ImportError> {
        let opening = Arc::new(AtomicU64::new(0));
        let open = || -> rusqlite::Result<Connection> {
            let mut connection = match &self.bytes {
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
            // Set the handler before the first statement, which reads the schema and the ANALYZE tables. Both may be
            // untrusted.
            let (cancel, opening) = (self.cancel.clone(), Arc::clone(&opening));
            let most = OPENING_STEPS / u64::from(STEPS.unsigned_abs());
            connection.progress_handler(
                STEPS,
                Some(move || {
                    cancel.is_cancelled() || opening.load(Ordering::Relaxed) < most && opening.fetch_add(1, Ordering::Relaxed) + 1 >= most
                }),
            )?;
            self.restrict_connection(&mut connection)?;
            // Limit SQLite's own memory: these statements need no more than its page cache and one row, but reading
            // the schema also loads ANALYZE statistics.
            connection.query_row(&format!("PRAGMA hard_heap_limit = {MOST_HEAP}"), [], |_| Ok(()))?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, 64 << 20)?;
            // A scan never returns to a page, so a small cache is as good as a large one.
            connection.execute_batch("PRAGMA query_only=1; PRAGMA cache_size=-512; PRAGMA mmap_size=0;")?;
            connection.query_row("SELECT count(*) FROM (SELECT 1 FROM sqlite_master LIMIT 1)", [], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = open().map_err(|e| self.damage_error("its schema", &e))?;
        // From now on, only cancellation ends a statement.
        opening.store(u64::MAX, Ordering::Relaxed);
        Ok(connection)
    }

    /// Restricts a connection to reading the known tables and the schema.
    fn restrict_connection(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let tables = Arc::clone(&self.tables);
        let allowed = move |context: AuthContext<'_>| {
            let allowed = match context.action {
                AuthAction::Select => true,
                AuthAction::Read { table_name, .. } => table_name == "sqlite_master" || tables.contains_key(table_name),
                AuthAction::Function { function_name } => FUNCTIONS.contains(&function_name),
                AuthAction::Pragma { pragma_name, .. } => PRAGMAS.contains(&pragma_name),
                _ => false,
            };
            // Reads that go through a view have the view as their accessor.
            if allowed && context.accessor.is_none() { Authorization::Allow } else { Authorization::Deny }
        };
        connection.authorizer(Some(allowed))
    }

    /// Reads the ordinary tables and their columns. Views and virtual tables are skipped, because profilers do not
    /// write them and they could run arbitrary SQL. Generated columns are not listed.
    fn read_schema(&self, connection: &Connection) -> Result<BTreeMap<String, Table>, ImportError> {
        let fail = |e: rusqlite::Error| self.damage_error("its schema", &e);
        let mut out = BTreeMap::new();
        let allowance = self.table_budget();
        let mut statement = connection
            .prepare("SELECT name, rootpage, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite_%'")
            .map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut names = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            // Skip names that are not valid UTF-8, which profilers do not write.
            let name = row.get_ref(0).map_err(fail)?.as_str().ok().filter(|n| !n.contains('"')).map(str::to_owned);
            let sql = row.get_ref(2).map_err(fail)?.as_str().ok().map(str::to_owned);
            let length = |t: &Option<String>| t.as_ref().map_or(0, String::len) as u64;
            if !allowance.try_spend(LEAST_ROW + length(&name) + length(&sql)) {
                return Err(self.overfull_error("its schema"));
            }
            let root = row.get::<_, i64>(1).ok().and_then(|r| u32::try_from(r).ok());
            names.extend(name.map(|n| (n, root.zip(sql.filter(|s| is_plain_table(s))))));
        }
        for (name, stored) in names {
            let mut info = connection.prepare(&format!("PRAGMA table_info(\"{name}\")")).map_err(fail)?;
            let mut rows = info.query([]).map_err(fail)?;
            let mut table = Table::default();
            let mut keys = 0;
            let (mut order, mut alias) = (Vec::new(), None);
            while let Some(row) = rows.next().map_err(fail)? {
                let key = row.get::<_, i64>(5).map_err(fail)? > 0;
                keys += u32::from(key);
                // For a column whose name is not valid UTF-8, keep an empty name, so that the positions of other
                // columns are correct.
                let column = row.get_ref(1).map_err(fail)?.as_str().unwrap_or_default().to_owned();
                let integer = row.get_ref(2).map_err(fail)?.as_str().is_ok_and(|t| t.eq_ignore_ascii_case("INTEGER"));
                if key && integer {
                    alias = Some(column.clone());
                }
                order.push(column);
                if let Ok(column) = row.get_ref(1).map_err(fail)?.as_str() {
                    table.key = if key { Some(column.to_owned()) } else { table.key };
                    table.columns.insert(column.to_owned());
                }
            }
            table.key = table.key.filter(|_| keys == 1);
            table.stored = stored.map(|(root, _)| StoredAs { root, order, alias: alias.filter(|_| keys == 1) });
            out.insert(name, table);
        }
        Ok(out)
    }
}

/// Returns true if a table's records contain its columns in order, which requires rowids and no generated columns. If
/// one of the words is found elsewhere in the SQL, the table is read by SQLite instead.
fn is_plain_table(sql: &str) -> bool {
    // Exports put a comment after each column.
    let code: String = sql.lines().map(|l| l.split("--").next().unwrap_or_default().to_ascii_lowercase() + " ").collect();
    let mut words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    !code.contains("/*") && !words.any(|w| matches!(w, "generated" | "without" | "desc" | "as" | "virtual"))
}

/// Pragmas allowed by the authorizer.
const PRAGMAS: [&str; 5] = ["hard_heap_limit", "table_info", "query_only", "cache_size", "mmap_size"];
/// SQL name of the aggregate function that appends the values of columns to a buffer.
pub const GATHER: &str = "warpscope_gather";
/// SQL functions allowed by the authorizer.
const FUNCTIONS: [&str; 5] = ["min", "max", "count", "like", GATHER];

/// Returns a `file:` URI in which special characters are escaped. With `immutable=1`, SQLite takes no locks and
/// creates no files next to the report.
fn immutable_uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
    let escaped: String =
        absolute.as_os_str().as_bytes().iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    format!("file:{escaped}?mode=ro&immutable=1")
}

pub fn text_of(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null | ValueRef::Blob(_) => None,
        ValueRef::Integer(i) => Some(i.to_string()),
        ValueRef::Real(r) => Some(r.to_string()),
        ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
    }
}
