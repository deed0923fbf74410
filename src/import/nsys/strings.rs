//! `StringIds`: every name in an export, looked up by id as names are met.

use crate::import::Budget;
use crate::import::ImportError;
use crate::import::sqlite::db::{Db, text_of};
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
    allowance: Budget,
    damage: Option<ImportError>,
}

impl<'a> Strings<'a> {
    /// Strings of an export; without the table every lookup is `None`.
    pub fn open(db: &'a Db) -> Result<Self, ImportError> {
        let mut strings = Self { db, connection: None, keyed: false, known: FxHashMap::default(), allowance: db.allowance(), damage: None };
        if db.has_column("StringIds", "id") && db.has_column("StringIds", "value") {
            strings.connection = Some(db.take()?);
            strings.keyed = db.is_key("StringIds", "id");
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
        self.damage.take().map_or(Ok(()), Err)
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
            // Texts that many ids share are not counted again and again here: each id is looked up once.
            Some(Ok(Some(found))) if !self.allowance.spend(found.len() as u64) => {
                self.damage.get_or_insert(self.db.overfull("StringIds"));
                None
            }
            Some(Ok(found)) => found,
            Some(Err(e)) => {
                self.damage.get_or_insert(self.db.damaged("StringIds", &e));
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
