//! Scans a whole table in parallel.
//!
//! The table is split into chunks of consecutive rowids, which the threads claim one by one. Integer columns are
//! decoded from the pages of the table ([`RowidTable`]). If the pages are not plain, SQLite reads the rows and passes
//! them to an aggregate function, which was 25% faster than stepping through the statement (0.46 s instead of 0.62 s
//! for three columns of 10 million rows on two cores).

use super::db::{Db, GATHER};
pub use super::rowid_table::NULL;
use super::rowid_table::{RowidTable, number_of, real_to_integer};
use crate::import::{ImportError, Job};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of rows per chunk: small enough for a chunk of wide rows to stay in cache and for cancellation to take
/// effect immediately.
pub const CHUNK: usize = 1 << 15;

/// Division of a table into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Lowest rowid, and name of the rowid column, if chunks are ranges of rowids; `None` if they use LIMIT and OFFSET.
    base: Option<(i64, &'static str)>,
    /// Upper bound for the number of rows.
    pub rows: usize,
}

impl Layout {
    pub fn chunk_count(self) -> usize {
        self.rows.div_ceil(CHUNK)
    }
}

/// Determines the best way to divide a table.
pub fn find_layout(db: &Db, table: &str) -> Result<Layout, ImportError> {
    let connection = db.take_connection()?;
    // Ordinary columns of a table may have these names, which then hide the rowid.
    let column = ["rowid", "_rowid_", "oid"].into_iter().find(|c| !db.has_column_in_any_case(table, c));
    let end = |which: &str| -> Option<Option<i64>> {
        connection.query_row(&format!("SELECT {which}({}) FROM \"{table}\"", column?), [], |r| r.get(0)).ok()
    };
    // Use two queries: SQLite scans the whole table if a single query asks for both.
    let bounds = end("min").zip(end("max"));
    // If the range of rowids exceeds the maximum number of rows in the file, it has gaps.
    let dense = match bounds {
        Some((Some(low), Some(high))) => {
            u64::try_from(i128::from(high) - i128::from(low) + 1).ok().filter(|&n| n <= db.most_rows()).map(|n| (low, n))
        }
        Some(_) => Some((0, 0)),
        None => None,
    };
    let most = i64::try_from(db.most_rows()).unwrap_or(i64::MAX);
    let layout = match dense.zip(column) {
        Some(((low, n), column)) => Ok(Layout { base: Some((low, column)), rows: usize::try_from(n).unwrap_or(usize::MAX) }),
        // A plain count(*) cannot be interrupted, and never ends if pages are shared.
        None => connection
            .query_row(&format!("SELECT count(*) FROM (SELECT 1 FROM \"{table}\" LIMIT ?1)"), [most.saturating_add(1)], |r| {
                r.get::<_, i64>(0)
            })
            .map_err(|e| db.damage_error(table, &e))
            .and_then(|n| match usize::try_from(n) {
                Ok(rows) if n <= most => Ok(Layout { base: None, rows }),
                _ => Err(db.overfull_error(table)),
            }),
    };
    db.return_connection(connection);
    layout
}

impl Layout {
    fn sql_condition(self) -> String {
        match self.base {
            Some((_, column)) => format!("WHERE {column} BETWEEN ?1 AND ?2"),
            None => "LIMIT ?2 OFFSET ?1".to_owned(),
        }
    }

    fn chunk_bounds(self, chunk: usize) -> [i64; 2] {
        let at = i64::try_from(chunk.saturating_mul(CHUNK)).unwrap_or(i64::MAX);
        let size = i64::try_from(CHUNK).unwrap_or(i64::MAX);
        match self.base {
            Some((base, _)) => [base.saturating_add(at), base.saturating_add(at).saturating_add(size - 1)],
            None => [at, size],
        }
    }
}

type Buffer = Arc<Mutex<Vec<i64>>>;

/// Aggregate function that appends its arguments to a buffer as integers, for up to one chunk of rows.
struct Gather(Buffer);

#[derive(Debug, thiserror::Error)]
#[error("more rows than row numbers")]
struct Overfull;

impl Aggregate<Vec<i64>, i64> for Gather {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Vec<i64>> {
        Ok(std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn step(&self, context: &mut Context<'_>, rows: &mut Vec<i64>) -> rusqlite::Result<()> {
        if rows.len() >= CHUNK * context.len() {
            return Err(rusqlite::Error::UserFunctionError(Box::new(Overfull)));
        }
        for i in 0..context.len() {
            rows.push(match context.get_raw(i) {
                ValueRef::Integer(v) => v,
                // Exports rewritten by other programs contain real and text values in integer columns.
                ValueRef::Real(v) => real_to_integer(v),
                ValueRef::Text(t) => number_of(t),
                _ => NULL,
            });
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, rows: Option<Vec<i64>>) -> rusqlite::Result<i64> {
        if let Some(rows) = rows {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rows;
        }
        Ok(0)
    }
}

/// A scan, which its threads share.
struct Walk<'a> {
    db: &'a Db,
    table: &'a str,
    stage: &'static str,
    layout: Layout,
    job: &'a Job<'a>,
    next: AtomicUsize,
    done: AtomicU64,
}

impl Walk<'_> {
    /// Runs `work` in every thread; the first error wins.
    fn run_threads<S: Send>(&self, work: impl Fn() -> Result<S, ImportError> + Sync) -> Result<Vec<S>, ImportError> {
        let threads = self.job.threads.clamp(1, self.layout.chunk_count().max(1));
        let worker = || {
            let out = work();
            if out.is_err() {
                // This stops the other threads.
                self.next.store(usize::MAX / 2, Ordering::Relaxed);
            }
            out
        };
        if threads == 1 {
            return Ok(vec![worker()?]);
        }
        let outcomes = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            handles.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        outcomes
            .into_iter()
            .map(|o| o.unwrap_or_else(|_| Err(ImportError::damaged(self.db.path(), self.table, "the reader failed"))))
            .collect()
    }

    /// Claims the next chunk; `None` if there are no more, or an error if the job was canceled.
    fn claim_chunk(&self) -> Result<Option<usize>, ImportError> {
        if self.job.cancel.is_cancelled() {
            return Err(self.db.cancelled_error());
        }
        let chunk = self.next.fetch_add(1, Ordering::Relaxed);
        Ok((chunk < self.layout.chunk_count()).then_some(chunk))
    }

    fn report_finished(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.job.report_progress(self.stage, done, self.layout.chunk_count() as u64);
    }
}

/// Reads chunks with SQLite if the page decoder does not support them.
struct BySql<'a> {
    db: &'a Db,
    table: &'a str,
    sql: &'a str,
    layout: Layout,
    /// Opened on first use.
    connection: Option<Connection>,
    buffer: Buffer,
}

impl BySql<'_> {
    /// Reads the rows of a chunk into `rows`, row by row.
    fn read_chunk(&mut self, chunk: usize, rows: &mut Vec<i64>) -> Result<(), ImportError> {
        let fail = |e: rusqlite::Error| self.db.damage_error(self.table, &e);
        if self.connection.is_none() {
            let connection = self.db.take_connection()?;
            let gather = Gather(Arc::clone(&self.buffer));
            connection.create_aggregate_function(GATHER, -1, FunctionFlags::SQLITE_DIRECTONLY, gather).map_err(fail)?;
            self.connection = Some(connection);
        }
        let Some(connection) = &self.connection else { return Ok(()) };
        rows.clear();
        std::mem::swap(rows, &mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        let mut statement = connection.prepare_cached(self.sql).map_err(fail)?;
        statement.query_row(self.layout.chunk_bounds(chunk), |_| Ok(())).map_err(fail)?;
        std::mem::swap(rows, &mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

impl Drop for BySql<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.db.return_connection(connection);
        }
    }
}

/// Scans `table` and returns each thread's state, which is created by `init` and updated by `each` (given the state,
/// the chunk number and the rows). A row consists of the integers in `columns`, with [`NULL`] for missing columns and
/// values that are not integers.
pub fn scan_integers<const N: usize, S: Send>(
    db: &Db,
    table: &str,
    columns: [&str; N],
    (stage, layout): (&'static str, Layout),
    job: &Job<'_>,
    init: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, usize, &[[i64; N]]) -> Result<(), ImportError> + Sync,
) -> Result<Vec<S>, ImportError> {
    let walk = Walk { db, table, stage, layout, job, next: AtomicUsize::new(0), done: AtomicU64::new(0) };
    let sql = if layout.base.is_some() {
        format!("SELECT {GATHER}({}) FROM \"{table}\" {}", db.columns_sql(table, &columns), layout.sql_condition())
    } else {
        // The subquery is needed because LIMIT must apply to the rows before aggregation.
        let picked: Vec<String> = columns.iter().zip(0..).map(|(c, i)| format!("{} AS c{i}", db.column_sql(table, c))).collect();
        let names: Vec<String> = (0..N).map(|i| format!("c{i}")).collect();
        format!("SELECT {GATHER}({}) FROM (SELECT {} FROM \"{table}\" {})", names.join(", "), picked.join(", "), layout.sql_condition())
    };
    let plain = if layout.base.is_some() && job.pages { db.plain_table(table, &columns) } else { None };
    walk.run_threads(|| {
        let mut by_sql = BySql { db, table, sql: &sql, layout, connection: None, buffer: Buffer::default() };
        let (mut rows, mut scratch) = (Vec::new(), plain.as_ref().map(RowidTable::make_scratch));
        let mut state = init();
        let pace = job.cancel.pace();
        while let Some(chunk) = walk.claim_chunk()? {
            let decoded = plain
                .as_ref()
                .zip(scratch.as_mut())
                .and_then(|(p, scratch)| p.read_rows(layout.chunk_bounds(chunk), CHUNK, scratch, &mut rows));
            if decoded.is_none() {
                by_sql.read_chunk(chunk, &mut rows)?;
            }
            let (rows, _) = rows.as_chunks::<N>();
            // Cancellation is checked by `claim_chunk`.
            let _ = pace.count_steps(rows.len());
            each(&mut state, chunk, &rows[..rows.len().min(CHUNK)])?;
            walk.report_finished();
        }
        Ok(state)
    })
}

/// Like [`scan_integers`], but for text columns; calls `each` for one row at a time.
pub fn scan_rows<S: Send>(
    db: &Db,
    table: &str,
    columns: &[&str],
    (stage, layout): (&'static str, Layout),
    job: &Job<'_>,
    init: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, usize, &Row<'_>) -> rusqlite::Result<()> + Sync,
) -> Result<Vec<S>, ImportError> {
    let walk = Walk { db, table, stage, layout, job, next: AtomicUsize::new(0), done: AtomicU64::new(0) };
    let sql = format!("SELECT {} FROM \"{table}\" {}", db.columns_sql(table, columns), layout.sql_condition());
    walk.run_threads(|| {
        let connection = db.take_connection()?;
        let out = by_row(&walk, &connection, &sql, &init, &each);
        db.return_connection(connection);
        out
    })
}

fn by_row<S>(
    walk: &Walk<'_>,
    connection: &Connection,
    sql: &str,
    init: &(impl Fn() -> S + Sync),
    each: &(impl Fn(&mut S, usize, &Row<'_>) -> rusqlite::Result<()> + Sync),
) -> Result<S, ImportError> {
    let (db, job) = (walk.db, walk.job);
    let fail = |e: rusqlite::Error| db.damage_error(walk.table, &e);
    let mut statement = connection.prepare(sql).map_err(fail)?;
    let mut state = init();
    while let Some(chunk) = walk.claim_chunk()? {
        let mut rows = statement.query(walk.layout.chunk_bounds(chunk)).map_err(fail)?;
        let mut room = CHUNK;
        while let Some(row) = rows.next().map_err(fail)? {
            let Some(left) = room.checked_sub(1).filter(|_| !job.cancel.is_cancelled()) else {
                return Err(if job.cancel.is_cancelled() { db.cancelled_error() } else { db.overfull_error(walk.table) });
            };
            room = left;
            each(&mut state, chunk, row).map_err(fail)?;
        }
        walk.report_finished();
    }
    Ok(state)
}

/// Returns all rows of a table in file order, with [`NULL`] for missing columns.
pub fn gather_rows<const N: usize>(
    db: &Db,
    job: &Job<'_>,
    table: &str,
    columns: [&str; N],
    stage: &'static str,
) -> Result<Vec<[i64; N]>, ImportError> {
    Ok(gather_pieces(db, job, table, columns, stage)?.concat())
}

/// Like [`gather_rows`], but returns pieces that can be freed one by one after use.
pub fn gather_pieces<const N: usize>(
    db: &Db,
    job: &Job<'_>,
    table: &str,
    columns: [&str; N],
    stage: &'static str,
) -> Result<Vec<Vec<[i64; N]>>, ImportError> {
    if !db.has_table(table) {
        return Ok(Vec::new());
    }
    let layout = find_layout(db, table)?;
    let memory = db.memory_budget();
    let parts = scan_integers(db, table, columns, (stage, layout), job, Vec::new, |out, chunk, rows| {
        memory.charge_bytes(size_of_val(rows) as u64)?;
        out.push((chunk, rows.to_vec()));
        Ok(())
    })?;
    let mut pieces: Vec<(usize, Vec<[i64; N]>)> = parts.into_iter().flatten().collect();
    pieces.sort_by_key(|&(chunk, _)| chunk);
    Ok(pieces.into_iter().map(|(_, rows)| rows).collect())
}
