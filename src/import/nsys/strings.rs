//! `StringIds`: every name in an export, looked up by id as names are met.

use super::db::{Db, text_of};
use crate::import::ImportError;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Looks strings up one by one, with a memory.
pub struct Strings<'a> {
    db: &'a Db,
    connection: Option<Connection>,
    /// `StringIds.id` is the table's key in every real export; a hand-made table is read whole instead.
    keyed: bool,
    known: FxHashMap<i64, Option<Arc<str>>>,
    damage: Option<rusqlite::Error>,
}

impl<'a> Strings<'a> {
    /// Strings of an export; without the table every lookup is `None`.
    pub fn open(db: &'a Db) -> Result<Self, ImportError> {
        let mut strings = Self { db, connection: None, keyed: false, known: FxHashMap::default(), damage: None };
        if db.has_column("StringIds", "id") && db.has_column("StringIds", "value") {
            let connection = db.take()?;
            let keyed = connection
                .prepare("SELECT 1 FROM pragma_table_info('StringIds') WHERE name = 'id' AND pk = 1")
                .and_then(|mut s| s.exists([]));
            strings.keyed = keyed.unwrap_or(false);
            strings.connection = Some(connection);
            if !strings.keyed {
                for row in db.rows("StringIds", &["id", "value"])? {
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

    /// Fails when a string could not be read: names would be missing without a word.
    pub fn check(&mut self) -> Result<(), ImportError> {
        self.damage.take().map_or(Ok(()), |e| Err(self.db.damaged("StringIds", &e)))
    }

    /// The string of an id; `None` when there is none or it is empty.
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
            Some(Ok(found)) => found,
            Some(Err(e)) => {
                self.damage.get_or_insert(e);
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
            self.db.give(connection);
        }
    }
}
