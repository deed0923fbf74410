//! A column: its names, value and unit, and the outputs in which it appears.

use super::sort::Sort;
use super::value::{Unit, Value};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Set of outputs that contain a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs(u8);

impl Outputs {
    pub const NONE: Self = Self(0);
    /// Text and Markdown.
    pub const TEXT: Self = Self(1);
    pub const CSV: Self = Self(2);
    pub const JSON: Self = Self(4);
    pub const PARQUET: Self = Self(8);
    /// Tables in the explorer.
    pub const SCREEN: Self = Self(16);
    /// All text formats.
    pub const PRINTED: Self = Self::TEXT.with(Self::CSV).with(Self::JSON);

    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A column of a table with rows of type `R`.
pub struct Column<R> {
    /// Field name in CSV, JSON and Parquet. Its meaning never changes.
    pub id: &'static str,
    /// Human-readable header.
    pub title: &'static str,
    pub meaning: &'static str,
    pub unit: Unit,
    pub value: for<'v> fn(&'v R) -> Value<'v>,
    pub outputs: Outputs,
    /// Width in the explorer.
    pub width: usize,
    /// Order in which columns are dropped if space is short: highest first; 0 is never dropped from text.
    pub priority: u8,
    pub sort: Option<Sort>,
    /// True if rows matter more the larger this value is, so that rows with small values are omitted first.
    pub weighs: bool,
}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Column<R> {}

impl<R> Column<R> {
    /// Creates a column for text, CSV and JSON.
    pub const fn new(
        id: &'static str,
        title: &'static str,
        unit: Unit,
        meaning: &'static str,
        value: for<'v> fn(&'v R) -> Value<'v>,
    ) -> Self {
        Self { id, title, meaning, unit, value, outputs: Outputs::PRINTED, width: 0, priority: 0, sort: None, weighs: false }
    }

    /// Replaces the outputs.
    #[must_use]
    pub const fn only(mut self, outputs: Outputs) -> Self {
        self.outputs = outputs;
        self
    }

    /// Adds the column to the Parquet table.
    #[must_use]
    pub const fn and_parquet(mut self) -> Self {
        self.outputs = self.outputs.with(Outputs::PARQUET);
        self
    }

    #[must_use]
    pub const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Adds the column to the explorer's table, with this width.
    #[must_use]
    pub const fn on_screen(mut self, width: usize) -> Self {
        self.outputs = self.outputs.with(Outputs::SCREEN);
        self.width = width;
        self
    }

    /// Allows the table to be sorted by this column.
    #[must_use]
    pub const fn sorted(mut self, sort: Sort) -> Self {
        self.sort = Some(sort);
        self
    }

    /// Makes this column the weight of its rows: rows with the smallest weight are omitted first if space is short.
    #[must_use]
    pub const fn weighing(mut self) -> Self {
        self.weighs = true;
        self
    }

    /// Human-readable text of a cell.
    pub fn shown(&self, row: &R) -> String {
        (self.value)(row).to_shown(self.unit).into_owned()
    }

    /// Text of a cell on a screen. Positions ([`Unit::Index`]) are grouped like counts there, since nobody copies them
    /// into commands.
    pub fn shown_on_screen(&self, row: &R) -> String {
        let unit = if self.unit == Unit::Index { Unit::Count } else { self.unit };
        (self.value)(row).to_shown(unit).into_owned()
    }
}

/// Columns in one output.
pub fn columns_of<R>(mut columns: Vec<Column<R>>, output: Outputs) -> Vec<Column<R>> {
    columns.retain(|c| c.outputs.has(output));
    columns
}

/// A row as a JSON object.
pub struct RowJson<'a, R>(pub &'a [Column<R>], pub &'a R);

impl<R> Serialize for RowJson<'_, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for column in self.0.iter().filter(|c| c.outputs.has(Outputs::JSON)) {
            map.serialize_entry(column.id, &(column.value)(self.1).rounded(column.unit))?;
        }
        map.end()
    }
}

impl Sort {
    /// Returns the column that declares this order.
    pub fn column<R>(self, columns: &[Column<R>]) -> Option<&Column<R>> {
        columns.iter().find(|c| c.sort == Some(self))
    }
}

/// Sort orders of a table with their meanings, in column order.
pub fn sort_orders<R>(columns: &[Column<R>]) -> Vec<(Sort, &'static str)> {
    columns.iter().filter_map(|c| Some((c.sort?, c.meaning))).collect()
}
