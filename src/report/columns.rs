//! Declared columns of all printed tables, for documentation.

use crate::analysis::GroupBy;
use crate::analysis::table::{Column, Outputs, Unit, changes, kernels, launches, lines, ranges};

/// A column without its values.
#[derive(Clone, Copy, Debug)]
pub struct ColumnInfo {
    pub id: &'static str,
    pub title: &'static str,
    pub meaning: &'static str,
    pub unit: Unit,
    pub outputs: Outputs,
}

impl<R> From<Column<R>> for ColumnInfo {
    fn from(c: Column<R>) -> Self {
        Self { id: c.id, title: c.title, meaning: c.meaning, unit: c.unit, outputs: c.outputs }
    }
}

fn infos<R>(columns: Vec<Column<R>>) -> Vec<ColumnInfo> {
    columns.into_iter().map(ColumnInfo::from).collect()
}

/// A command that prints a table.
pub struct PrintedTable {
    pub command: &'static str,
    /// True if JSON rows have these fields, too; otherwise, the JSON is a separate kind of document.
    pub json_rows: bool,
    pub columns: Vec<ColumnInfo>,
}

/// All commands that print a table.
pub fn printed_tables() -> Vec<PrintedTable> {
    let rows = |command, columns| PrintedTable { command, json_rows: true, columns };
    let other = |command, columns| PrintedTable { command, json_rows: false, columns };
    vec![
        rows("top", infos(kernels::columns(GroupBy::Kernel))),
        rows("launches", infos(launches::columns())),
        rows("ranges", infos(ranges::columns(true))),
        rows("lines", infos(lines::columns())),
        rows("lines --before", infos(lines::change_columns())),
        rows("events", infos(super::timeline::events::columns(true))),
        other("triage", infos(super::triage::finding_columns())),
        other("hints", infos(super::hints::columns())),
        other("metrics", infos(super::metrics::columns(true))),
        rows("metrics --sections", infos(super::sections::section_columns())),
        rows("metrics --rules", infos(super::sections::rule_columns())),
        rows("metrics --source, --sass", infos(super::code::columns())),
        rows("diff", infos(changes::columns())),
        other("ranks", infos(super::ranks::rank_columns())),
        other("memory", infos(super::memory::held_columns(false))),
        other("memory --before", infos(super::memory::held_columns(true))),
        other("runs list", infos(super::runs::columns())),
        other("runs show", infos(super::runs::fact_columns())),
        other("recipes check", infos(super::jobs::columns())),
    ]
}
