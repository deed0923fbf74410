//! `launches`: kernel launches in launch order.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::{Format, table};
use crate::analysis::invocation;
use crate::analysis::table::Column;
use crate::analysis::table::launches::{self, LaunchRow};
use crate::model::{KernelId, LaunchOrder, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Launches of some or all kernels, each with its index among the launches of the same function in its process.
pub fn numbered_launches<'a>(profile: &'a Profile, kernels: Option<&'a BTreeSet<KernelId>>) -> impl Iterator<Item = (u32, u32)> + use<'a> {
    invocation::all_launches(profile).filter(move |(row, _)| kernels.is_none_or(|k| k.contains(&profile.launches.kernel(*row as usize))))
}

/// Describes the order in which launches are numbered.
fn order_word(order: LaunchOrder) -> &'static str {
    match order {
        LaunchOrder::Host => "host",
        LaunchOrder::Partly(_) => "host, partly device",
        LaunchOrder::Device => "device",
        LaunchOrder::Chosen => "as profiled",
        LaunchOrder::Unread => "unknown",
    }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct LaunchesJson<'a> {
    /// Order in which launches are numbered.
    order: &'static str,
    /// Number of launches in the report, listed or not.
    launches: usize,
    rows: Rows<'a, LaunchRow<'a>>,
}

impl JsonDocument for LaunchesJson<'_> {
    const NAME: &'static str = "launches";
}

impl TableRow for LaunchRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        launches::columns()
    }
}

/// Writes the report as JSON.
pub fn write_json<'a>(out: &mut dyn Write, profile: &'a Profile, rows: impl Iterator<Item = LaunchRow<'a>> + 'a) -> io::Result<()> {
    let mut rows = rows.peekable();
    let next = rows.peek().map(|row| {
        let launch = row.launch.to_string();
        NextJson::on_report(
            "rerun",
            &profile.source,
            ["--launch", &launch, "--format", "json"],
            "gives the command that profiles the first of these launches again",
        )
    });
    let document = LaunchesJson { order: order_word(profile.order), launches: profile.launches.len(), rows: Rows::new(rows) };
    Envelope::of_profile(profile).then(next).write(out, &document)
}

/// Prints the report in a format other than JSON, one launch at a time, because there may be millions.
pub fn print_rows<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = LaunchRow<'a>>,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    table::print_rows(launches::columns(), rows, out, format, width)
}
