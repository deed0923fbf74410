//! Column-oriented table with a getter per column.

use crate::analysis::triage::Triage;
use crate::model::Profile;
use crate::model::digest::Digest;
use parquet::data_type::ByteArray;

/// Source data of the tables.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub profile: &'a Profile,
    /// Triage of the run, if anything ran.
    pub triage: Option<&'a Triage>,
    /// Digests of the run's ranks, if anything ran.
    pub digests: &'a [Digest],
}

/// Getter of a column's values, by row.
pub enum Get<'a> {
    Int(Box<dyn Fn(usize) -> Option<i64> + 'a>),
    Real(Box<dyn Fn(usize) -> Option<f64> + 'a>),
    Text(Box<dyn Fn(usize) -> Option<ByteArray> + 'a>),
}

/// A column; every value is optional.
pub struct Column<'a> {
    pub name: &'static str,
    /// `ns`, `byte`; empty for counts, numbers and texts.
    pub unit: &'static str,
    pub about: &'static str,
    pub get: Get<'a>,
}

pub struct Table<'a> {
    pub rows: usize,
    pub columns: Vec<Column<'a>>,
}
