//! `top`: groups of launches, ranked.

use super::coverage::CoverageJson;
use super::{Format, table};
use crate::analysis::Grouping;
use crate::analysis::table::kernels::{self, KernelRow};
use crate::analysis::table::{Column, RowJson};
use crate::analysis::what_if_curves::Worths;
use crate::model::{Device, Kernel, Note, Profile, Source};
use serde::Serialize;
use std::io::{self, Write};
use std::rc::Rc;

/// Source of the numbers: tool and file.
#[derive(Serialize)]
pub struct SourceJson<'a> {
    tool: &'a str,
    tool_version: Option<&'a str>,
    file: String,
}

impl<'a> From<&'a Source> for SourceJson<'a> {
    fn from(source: &'a Source) -> Self {
        Self { tool: &source.tool, tool_version: source.version.as_deref(), file: source.file.display().to_string() }
    }
}

#[derive(Serialize)]
struct DeviceJson<'a> {
    id: u32,
    name: Option<&'a str>,
    chip: Option<&'a str>,
    compute_capability: Option<String>,
    sm_count: Option<u32>,
    clock_hz: Option<u64>,
    memory_bandwidth_bytes_per_second: Option<u64>,
    memory_bytes: Option<u64>,
    l2_bytes: Option<u64>,
}

impl<'a> From<&'a Device> for DeviceJson<'a> {
    fn from(d: &'a Device) -> Self {
        Self {
            id: d.id,
            name: d.name.as_deref(),
            chip: d.chip.as_deref(),
            compute_capability: d.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
            sm_count: d.sm_count,
            clock_hz: d.clock_hz,
            memory_bandwidth_bytes_per_second: d.memory_bandwidth,
            memory_bytes: d.memory.map(|b| b.0),
            l2_bytes: d.l2.map(|b| b.0),
        }
    }
}

/// JSON form of a note.
#[derive(Serialize)]
pub struct NoteJson<'a> {
    severity: &'static str,
    kind: &'static str,
    text: &'a str,
    fix: Option<&'a str>,
}

impl<'a> From<&'a Note> for NoteJson<'a> {
    fn from(n: &'a Note) -> Self {
        Self { severity: n.severity.as_str(), kind: n.kind.as_str(), text: &n.text, fix: n.fix.as_deref() }
    }
}

#[derive(Serialize)]
pub struct TopJson<'a> {
    source: SourceJson<'a>,
    device: Vec<DeviceJson<'a>>,
    by: &'static str,
    total_kernel_ns: i64,
    launches: u64,
    rows: Vec<JsonRow<'a>>,
    coverage: CoverageJson<'a>,
    notes: Vec<NoteJson<'a>>,
}

/// A row that owns its columns' list, which all rows share.
struct JsonRow<'a>(Rc<[Column<KernelRow<'a>>]>, KernelRow<'a>);

impl Serialize for JsonRow<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        RowJson(&self.0, &self.1).serialize(to)
    }
}

/// Rows of the table: `rows` are indices into the grouping's rows, in listed order; `worths` are their effects on the
/// run, by name.
fn kernel_rows<'a>(
    profile: &'a Profile,
    grouping: &'a Grouping,
    rows: &'a [u32],
    worths: Option<&'a Worths>,
) -> impl Iterator<Item = KernelRow<'a>> {
    rows.iter().zip(1..).filter_map(move |(&at, rank)| {
        let group = grouping.rows.get(at as usize)?;
        let demangled = group.kernel.and_then(|k| profile.kernels.get(k.0 as usize)).map(Kernel::demangled);
        Some(KernelRow { rank, group, by: grouping.by, demangled, curve: worths.and_then(|w| w.get(&group.name)) })
    })
}

/// The report as JSON.
pub fn to_json<'a>(profile: &'a Profile, grouping: &'a Grouping, rows: &'a [u32], worths: Option<&'a Worths>) -> TopJson<'a> {
    let columns: Rc<[_]> = kernels::columns(grouping.by).into();
    TopJson {
        source: SourceJson::from(&profile.source),
        device: profile.devices.iter().map(Into::into).collect(),
        by: grouping.by.cli_name(),
        total_kernel_ns: grouping.total_ns,
        launches: grouping.launches,
        rows: kernel_rows(profile, grouping, rows, worths).map(|row| JsonRow(Rc::clone(&columns), row)).collect(),
        coverage: profile.into(),
        notes: profile.notes.iter().map(Into::into).collect(),
    }
}

/// Prints groups in a format other than JSON.
pub fn print_rows(
    out: &mut dyn Write,
    profile: &Profile,
    grouping: &Grouping,
    rows: &[u32],
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    table::print_rows(kernels::columns(grouping.by), kernel_rows(profile, grouping, rows, None), out, format, width)
}
