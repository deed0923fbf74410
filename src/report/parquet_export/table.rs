//! A table of the export, whose columns are declared like those of all other tables.

use super::write::{Facts, write_rows};
use crate::analysis::table::{Column, Outputs, columns_of};
use crate::analysis::triage::Triage;
use crate::model::Profile;
use crate::model::digest::Digest;
use std::io::{self, Write};

/// Source data of the tables.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub profile: &'a Profile,
    /// Triage of the run, if anything ran.
    pub triage: Option<&'a Triage>,
    /// Digests of the run's ranks, if anything ran.
    pub digests: &'a [Digest],
}

/// Writes a table with these facts as metadata.
type WriteTable<'a> = dyn Fn(&mut (dyn Write + Send), &Facts<'_>) -> io::Result<()> + 'a;

/// A table that can be written.
pub struct Table<'a> {
    pub rows: usize,
    write: Box<WriteTable<'a>>,
}

impl<'a> Table<'a> {
    /// Creates a table of `rows` rows; `row` returns one of them.
    pub fn new<R: 'a>(columns: Vec<Column<R>>, rows: usize, row: impl Fn(usize) -> Option<R> + 'a) -> Self {
        let columns = columns_of(columns, Outputs::PARQUET);
        Self { rows, write: Box::new(move |out, facts| write_rows(out, &columns, rows, &row, facts)) }
    }

    /// Writes the table as one Parquet file.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub fn write(&self, out: &mut (dyn Write + Send), facts: &Facts<'_>) -> io::Result<()> {
        (self.write)(out, facts)
    }
}
