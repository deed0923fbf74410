//! A table as its columns, of which each says how a value is got.

use crate::analysis::triage::Triage;
use crate::model::Profile;
use crate::model::digest::Digest;
use parquet::data_type::ByteArray;

/// What tables are made of.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub profile: &'a Profile,
    /// What limits the run, where anything ran.
    pub triage: Option<&'a Triage>,
    /// Its ranks, where anything ran.
    pub digests: &'a [Digest],
}

/// How a column's values are got, by row.
pub enum Get<'a> {
    Int(Box<dyn Fn(usize) -> Option<i64> + 'a>),
    Real(Box<dyn Fn(usize) -> Option<f64> + 'a>),
    Text(Box<dyn Fn(usize) -> Option<ByteArray> + 'a>),
}

/// A column: every value may be absent.
pub struct Column<'a> {
    pub name: &'static str,
    /// `ns`, `byte`; empty for counts, numbers and texts.
    pub unit: &'static str,
    pub about: &'static str,
    pub get: Get<'a>,
}

/// A table of a report.
pub struct Table<'a> {
    pub rows: usize,
    pub columns: Vec<Column<'a>>,
}
