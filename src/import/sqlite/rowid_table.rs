//! Decoder for the integer columns of a plain table; returns the same values as SQLite does.

use crate::import::sqlite::{Leaves, Odd, Pages, Scratch};
use std::sync::Arc;

/// Pseudo column for `end` - `start`, so that one column is gathered instead of two.
pub const DURATION: &str = "end - start";
/// Sentinel in a gathered row for NULL, and for values that cannot be converted to an integer.
pub const NULL: i64 = i64::MIN;
/// Maximum length of a string that is parsed as a number.
const LONGEST_NUMBER: usize = 64;

/// Converts a real value in an integer column, which exports rewritten by other programs may contain.
pub fn real_to_integer(value: f64) -> i64 {
    if value.is_finite() && value.abs() < 9e18 { value as i64 } else { NULL }
}

/// Converts a text value in an integer column.
pub fn number_of(text: &[u8]) -> i64 {
    if text.len() > LONGEST_NUMBER {
        return NULL;
    }
    std::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(NULL)
}

/// Source of a wanted column, given by indices into the decoded columns.
#[derive(Clone, Copy, Debug)]
enum From {
    Column(usize),
    Row,
    /// The first column minus the second.
    Difference(usize, usize),
    /// The table does not have the column.
    Nothing,
}

/// Decoder for the wanted columns of one table.
pub struct RowidTable {
    pages: Arc<Pages>,
    leaves: Leaves,
    /// Indices of the decoded columns, in ascending order.
    decoded: Vec<usize>,
    from: Vec<From>,
}

impl RowidTable {
    /// Returns a decoder for the table with this root page. `order` lists the columns of the table in record order;
    /// `alias` is the column that aliases the rowid.
    pub fn new(pages: Arc<Pages>, root: u32, order: &[String], alias: Option<&str>, wanted: &[&str]) -> Option<Self> {
        let at = |name: &str| order.iter().position(|c| c == name);
        let both = |name: &str| if name == DURATION { Some((at("start")?, at("end")?)) } else { None };
        let mut decoded: Vec<usize> = wanted
            .iter()
            .filter(|&&name| Some(name) != alias)
            .flat_map(|name| match both(name) {
                Some((start, end)) => vec![start, end],
                None => at(name).into_iter().collect(),
            })
            .collect();
        decoded.sort_unstable();
        decoded.dedup();
        let slot = |column: usize| decoded.binary_search(&column).ok();
        let from = wanted
            .iter()
            .map(|&name| {
                if Some(name) == alias {
                    return Some(From::Row);
                }
                Some(match (both(name), at(name)) {
                    (Some((start, end)), _) => From::Difference(slot(end)?, slot(start)?),
                    (None, Some(column)) => From::Column(slot(column)?),
                    (None, None) => From::Nothing,
                })
            })
            .collect::<Option<Vec<From>>>()?;
        let leaves = pages.find_leaves(root)?;
        Some(Self { pages, leaves, decoded, from })
    }

    /// Returns buffers for [`RowidTable::read_rows`].
    pub fn make_scratch(&self) -> Scratch {
        Scratch::new(self.decoded.clone())
    }

    /// Decodes at most `most` rows between two rowids into `out`, row by row; `None` if SQLite must read them instead.
    pub fn read_rows(&self, [low, high]: [i64; 2], most: usize, scratch: &mut Scratch, out: &mut Vec<i64>) -> Option<()> {
        out.clear();
        let room = most.checked_mul(self.from.len())?;
        out.reserve(room);
        // If the wanted columns are exactly those that are decoded, copy whole rows.
        let straight =
            self.from.len() == self.decoded.len() && self.from.iter().enumerate().all(|(i, f)| matches!(f, From::Column(at) if *at == i));
        self.pages.for_each_row(&self.leaves, (low, high), scratch, &Integers, |row, values, plain| {
            if out.len() >= room {
                return None;
            }
            if straight {
                out.extend_from_slice(values);
                return Some(());
            }
            for from in &self.from {
                out.push(match *from {
                    From::Column(at) => values[at],
                    From::Row => row,
                    From::Nothing => NULL,
                    From::Difference(end, start) => match (values[end], values[start]) {
                        // SQLite computes differences between other types.
                        _ if !plain => return None,
                        (NULL, _) | (_, NULL) => NULL,
                        (end, start) => end.checked_sub(start)?,
                    },
                });
            }
            Some(())
        })
    }
}

/// Converts real and text values to integers in the same way as a scan by SQLite.
struct Integers;

impl Odd for Integers {
    fn real(&self, value: f64) -> i64 {
        real_to_integer(value)
    }

    fn text(&self, text: &[u8]) -> i64 {
        number_of(text)
    }

    fn null(&self) -> i64 {
        NULL
    }
}

#[cfg(test)]
mod tests {
    use super::super::db::Db;
    use super::super::scan;
    use super::*;
    use crate::import::{Cancel, Job, Wants, open};
    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::types::Value;

    /// Returns all rows of a table in an export; `pages` enables the page decoder.
    fn rows(path: &std::path::Path, table: &str, pages: bool) -> Result<Vec<[i64; 5]>, String> {
        let job = Job { pages, threads: 2, ..Job::new(Wants::ALL, &|_| {}) };
        let input = open::open_input(path, &job).map_err(|e| e.to_string())?;
        let db = Db::open(&input, &Cancel::default()).map_err(|e| e.to_string())?;
        let layout = scan::find_layout(&db, table).map_err(|e| e.to_string())?;
        let columns = ["id", "a", DURATION, "missing", "b"];
        let parts = scan::scan_integers(&db, table, columns, ("rows", layout), &job, Vec::new, |out, chunk, rows| {
            out.extend(rows.iter().map(|r| (chunk, *r)));
            Ok(())
        });
        let mut all: Vec<(usize, [i64; 5])> = parts.map_err(|e| e.to_string())?.into_iter().flatten().collect();
        all.sort_by_key(|r| r.0);
        Ok(all.into_iter().map(|r| r.1).collect())
    }

    /// Returns true if the page decoder supports a table.
    fn decoded(path: &std::path::Path, table: &str) -> bool {
        let job = Job::new(Wants::ALL, &|_| {});
        let db = Db::open(&open::open_input(path, &job).unwrap(), &Cancel::default()).unwrap();
        db.plain_table(table, &["a"]).is_some()
    }

    fn table(sql: &str) -> (tempfile::TempPath, Connection) {
        let path = tempfile::Builder::new().suffix(".sqlite").tempfile().unwrap().into_temp_path();
        let db = Connection::open(&path).unwrap();
        db.execute_batch(sql).unwrap();
        (path, db)
    }

    const PLAIN: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, start INTEGER, -- begin, as is\n a REAL, end INTEGER, pad TEXT, b);";

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => any::<i64>().prop_map(Value::Integer),
            4 => (-1000_i64..1000).prop_map(Value::Integer),
            2 => Just(Value::Null),
            1 => any::<f64>().prop_map(Value::Real),
            1 => (-50.0..50.0_f64).prop_map(Value::Real),
            1 => "[0-9]{0,4}".prop_map(Value::Text),
            1 => "[a-z ]{0,9}".prop_map(Value::Text),
            1 => prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Blob),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The page decoder and SQLite return the same rows for arbitrary contents.
        #[test]
        fn tables_of_any_content_are_what_sqlite_says(
            content in prop::collection::vec((prop::option::of(-40_i64..400), value(), value(), value(), 0_usize..3_000, value()), 0..120),
            page in prop::sample::select(vec![512, 1024, 4096, 65_536]),
            deleted in 0_i64..60,
        ) {
            let (path, db) = table(&format!("PRAGMA page_size = {page}; {PLAIN} BEGIN;"));
            for (id, start, a, end, pad, b) in content {
                let pad = "x".repeat(pad);
                let _ = db.execute("INSERT OR REPLACE INTO t VALUES (?1, ?2, ?3, ?4, ?5, ?6)", rusqlite::params![id, start, a, end, pad, b]);
            }
            db.execute("DELETE FROM t WHERE id BETWEEN 10 AND ?1", [deleted]).unwrap();
            db.execute_batch("COMMIT").unwrap();
            drop(db);
            prop_assert!(decoded(&path, "t"));
            prop_assert_eq!(rows(&path, "t", true), rows(&path, "t", false));
        }

        /// Randomly changed bytes cause an error at worst, and never more rows than the file can hold.
        #[test]
        fn damage_is_survived(seed in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..40), head in any::<bool>()) {
            let (path, db) = table(&format!("PRAGMA page_size = 512; {PLAIN} BEGIN;"));
            for n in 0..300_i64 {
                db.execute("INSERT INTO t VALUES (?1, ?2, ?2, ?2, 'some text', ?2)", [n, n * 1_000]).unwrap();
            }
            db.execute_batch("COMMIT").unwrap();
            drop(db);
            let mut bytes = std::fs::read(&path).unwrap();
            let from = if head { 0 } else { 512 };
            for (place, byte) in seed {
                let at = from + ((bytes.len() - from) as f64 * place) as usize;
                bytes[at] = byte;
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(rows) = rows(&path, "t", true) {
                prop_assert!(rows.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_sqlite() {
        let odd = [
            "CREATE TABLE t (id INTEGER PRIMARY KEY, start INTEGER, a INTEGER GENERATED ALWAYS AS (start + 1) STORED, end INTEGER, b)",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, start, end, b) WITHOUT ROWID",
            "CREATE TABLE t (id INTEGER PRIMARY KEY DESC, a INTEGER, start, end, b)",
        ];
        for sql in odd {
            let (path, db) = table(sql);
            for n in 0..50 {
                db.execute("INSERT INTO t (id, start, end, b) VALUES (?1, ?1 + 1, ?1 + 3, ?1 * 2)", [n]).unwrap();
            }
            drop(db);
            assert!(!decoded(&path, "t"), "{sql}");
            assert_eq!(rows(&path, "t", true), rows(&path, "t", false), "{sql}");
        }
        // Records of rows that were inserted before a column was added do not contain that column.
        let (path, db) = table(PLAIN);
        db.execute_batch("INSERT INTO t VALUES (1, 2, 3, 4, 'x', 5); ALTER TABLE t ADD COLUMN missing INTEGER DEFAULT 77; INSERT INTO t VALUES (2, 2, 3, 4, 'x', 5, 6);")
            .unwrap();
        drop(db);
        assert!(decoded(&path, "t"));
        let found = rows(&path, "t", true).unwrap();
        assert_eq!((found[0][3], found[1][3]), (77, 6));
        assert_eq!(Ok(found), rows(&path, "t", false));
        // UTF-16 text.
        let (path, db) = table(&format!("PRAGMA encoding = 'UTF-16le'; {PLAIN} INSERT INTO t VALUES (1, '12', '34', 4, 'x', '56');"));
        drop(db);
        assert!(!decoded(&path, "t"));
        assert_eq!(rows(&path, "t", true), rows(&path, "t", false));
    }
}
