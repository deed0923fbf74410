//! Looks up strings by id in the table `StringIds`, which contains all names in an export.

use crate::import::Budget;
use crate::import::ImportError;
use crate::import::sqlite::db::{Db, text_of};
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Cached string lookup.
pub struct Strings<'a> {
    db: &'a Db,
    connection: Option<Connection>,
    /// True if `StringIds.id` is the primary key, as it is in every real export; otherwise, the whole table is read.
    keyed: bool,
    known: FxHashMap<i64, Option<Arc<str>>>,
    allowance: Budget,
    damage: Option<ImportError>,
}

impl<'a> Strings<'a> {
    /// Opens the strings of an export. If the table is missing, every lookup returns `None`.
    pub fn open(db: &'a Db) -> Result<Self, ImportError> {
        let mut strings =
            Self { db, connection: None, keyed: false, known: FxHashMap::default(), allowance: db.table_budget(), damage: None };
        if db.has_column("StringIds", "id") && db.has_column("StringIds", "value") {
            strings.connection = Some(db.take_connection()?);
            strings.keyed = db.is_key("StringIds", "id");
            if !strings.keyed {
                for row in db.read_rows("StringIds", &["id", "value"])? {
                    if let [Some(id), value] = &row[..]
                        && let Ok(id) = id.parse()
                    {
                        strings.known.insert(id, value.as_deref().filter(|v| !v.is_empty()).map(Arc::from));
                    }
                }
            }
        }
        Ok(strings)
    }

    /// Returns an error if a string could not be read, since names would otherwise be missing silently.
    pub fn check_damage(&mut self) -> Result<(), ImportError> {
        self.damage.take().map_or(Ok(()), Err)
    }

    /// Returns the string with this id; `None` if it is missing or empty.
    pub fn get(&mut self, id: i64) -> Option<Arc<str>> {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        if !self.keyed {
            return None;
        }
        let lookup = |c: &Connection| -> rusqlite::Result<Option<String>> {
            let mut statement = c.prepare_cached("SELECT value FROM StringIds WHERE id = ?1")?;
            Ok(statement.query_row([id], |r| r.get_ref(0).map(text_of)).optional()?.flatten())
        };
        let found = match self.connection.as_ref().map(lookup) {
            // Each id is read, and charged to the budget, only once.
            Some(Ok(Some(found))) if !self.allowance.try_spend(found.len() as u64) => {
                self.damage.get_or_insert(self.db.overfull_error("StringIds"));
                None
            }
            Some(Ok(found)) => found,
            Some(Err(e)) => {
                self.damage.get_or_insert(self.db.damage_error("StringIds", &e));
                None
            }
            None => None,
        };
        let found: Option<Arc<str>> = found.filter(|v| !v.is_empty()).map(Arc::from);
        self.known.insert(id, found.clone());
        found
    }
}

impl Drop for Strings<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.db.return_connection(connection);
        }
    }
}
