//! `doctor`: obstacles to profiling on a machine.

use super::document::{Block, CheckText, Document};
use super::envelope::{Envelope, JsonDocument};
use super::{Format, table};
use crate::analysis::table::{Column, Unit, Value};
use crate::model::units::format_count;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize, JsonSchema)]
struct CheckJson<'a> {
    id: &'a str,
    what: &'a str,
    state: &'a str,
    found: &'a str,
    means: &'a str,
    fix: Option<&'a str>,
}

impl<'a> From<&'a CheckText> for CheckJson<'a> {
    fn from(c: &'a CheckText) -> Self {
        Self { id: c.id, what: c.what, state: c.state, found: &c.found, means: &c.means, fix: c.fix.as_deref() }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DoctorJson<'a> {
    checks: Vec<CheckJson<'a>>,
    blocks: usize,
    warnings: usize,
}

impl JsonDocument for DoctorJson<'_> {
    const NAME: &'static str = "doctor";
}

/// The columns, in order.
pub(super) fn columns() -> Vec<Column<CheckText>> {
    vec![
        Column::new("id", "check", Unit::Text, "identifier of the check", |c: &CheckText| Value::text(c.id)),
        Column::new("state", "state", Unit::Text, "ok, warning, blocks or unknown", |c| Value::text(c.state)),
        Column::new("what", "what", Unit::Text, "subject of the check", |c| Value::text(c.what)),
        Column::new("found", "found", Unit::Text, "state of the machine", |c| Value::text(&c.found)),
        Column::new("means", "means", Unit::Text, "consequence of a problem", |c| Value::text(&c.means)),
        Column::new("fix", "fix", Unit::Text, "command or step that solves it", |c| c.fix.as_deref().map_or(Value::Absent, Value::text)),
    ]
}

/// Number of checks in a state.
fn count(checks: &[CheckText], state: &str) -> usize {
    checks.iter().filter(|c| c.state == state).count()
}

/// Writes the checks as JSON.
pub fn write_json(out: &mut dyn Write, checks: &[CheckText]) -> io::Result<()> {
    let (blocks, warnings) = (count(checks, "blocks"), count(checks, "warning"));
    Envelope::default().write(out, &DoctorJson { checks: checks.iter().map(CheckJson::from).collect(), blocks, warnings })
}

/// Prints one CSV row per check.
pub fn print_csv(out: &mut dyn Write, checks: &[CheckText]) -> io::Result<()> {
    table::print_rows(columns(), checks.iter(), out, Format::Csv, None)
}

/// The checks for people, with a summary.
pub fn document(checks: Vec<CheckText>) -> Document<'static> {
    let (blocks, warnings) = (count(&checks, "blocks"), count(&checks, "warning"));
    let warned = format_count(warnings, "warning");
    let summary = match (blocks, warnings) {
        (0, 0) => "no problems found".to_owned(),
        (0, _) => format!("no blockers; {warned}"),
        (1, _) => format!("1 thing that blocks, {warned}"),
        (n, _) => format!("{n} things that block, {warned}"),
    };
    Document { blocks: vec![Block::Checks(checks), Block::Text(summary)] }
}
