//! `launches`: kernel launches in launch order.

use super::coverage::CoverageJson;
use super::top::{NoteJson, SourceJson};
use super::{Format, table};
use crate::analysis::invocation;
use crate::analysis::table::launches::{self, LaunchRow};
use crate::model::{KernelId, LaunchOrder, Profile};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Launches of some kernels, or of all, each with its index among the launches of its function in its process.
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

/// Writes the report as JSON, launch by launch: there may be millions.
pub fn write_json<'a>(out: &mut dyn Write, profile: &Profile, rows: impl Iterator<Item = LaunchRow<'a>>) -> io::Result<()> {
    let source = super::json_text(&SourceJson::from(&profile.source))?;
    let notes: Vec<NoteJson<'_>> = profile.notes.iter().map(Into::into).collect();
    let notes = super::json_text(&notes)?;
    write!(out, "{{\"source\":{source},\"order\":\"{}\",\"launches\":{},\"rows\":", order_word(profile.order), profile.launches.len())?;
    table::write_json_rows(&launches::columns(), rows, out)?;
    let coverage = super::json_text(&CoverageJson::from(profile))?;
    writeln!(out, ",\"coverage\":{coverage},\"notes\":{notes}}}")
}

/// Prints the report in a format other than JSON, launch by launch: there may be millions.
pub fn print_rows<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = LaunchRow<'a>>,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    table::print_rows(launches::columns(), rows, out, format, width)
}
