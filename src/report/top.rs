//! `top`: groups of launches, ranked.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::rows::{Rows, TableRow};
use super::{Format, table};
use crate::analysis::hints::Diagnosis;
use crate::analysis::run_estimate::RunEstimate;
use crate::analysis::table::Column;
use crate::analysis::table::kernels::{self, KernelRow};
use crate::analysis::what_if_curves::Worths;
use crate::analysis::{GroupBy, Grouping};
use crate::model::{Device, Kernel, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

#[derive(Serialize, JsonSchema)]
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

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct TopJson<'a> {
    device: Vec<DeviceJson<'a>>,
    /// Launches are grouped by this.
    by: &'static str,
    total_kernel_ns: i64,
    launches: u64,
    rows: Rows<'a, KernelRow<'a>>,
}

impl JsonDocument for TopJson<'_> {
    const NAME: &'static str = "top";
    const VERSION: &'static str = "1.1";
}

impl TableRow for KernelRow<'_> {
    fn columns() -> Vec<Column<Self>> {
        kernels::columns(GroupBy::Kernel)
    }
}

/// Results that go beyond the launches themselves.
#[derive(Default)]
pub struct Beyond {
    /// Effects of the groups on the run, by name.
    pub worths: Option<Worths>,
    /// Totals of the whole run.
    pub estimate: Option<RunEstimate>,
    /// First hints of measured kernels, by row of the grouping.
    pub diagnoses: HashMap<u32, Diagnosis>,
}

/// Rows of the table; `rows` are indices into the grouping's rows, in listed order.
fn kernel_rows<'a>(
    profile: &'a Profile,
    grouping: &'a Grouping,
    rows: &'a [u32],
    beyond: &'a Beyond,
) -> impl Iterator<Item = KernelRow<'a>> {
    rows.iter().zip(1..).filter_map(move |(&at, rank)| {
        let group = grouping.rows.get(at as usize)?;
        let demangled = group.kernel.and_then(|k| profile.kernels.get(k.0 as usize)).map(Kernel::demangled);
        Some(KernelRow {
            rank,
            group,
            by: grouping.by,
            demangled,
            curve: beyond.worths.as_ref().and_then(|w| w.get(&group.name)),
            estimate: beyond.estimate.as_ref().and_then(|e| e.rows.get(at as usize)),
            diagnosis: beyond.diagnoses.get(&at).copied(),
        })
    })
}

/// Commands for a kernel. If a report contains only totals, it has no launches.
pub fn kernel_steps(profile: &Profile, kernel: &str) -> Vec<NextJson> {
    if profile.launches.is_empty() {
        return Vec::new();
    }
    let of = |command, why| NextJson::on_report(command, &profile.source, ["--kernel", kernel, "--format", "json"], why);
    vec![
        of("hints", "says what limits the kernel, as far as it was measured"),
        of("rerun", "gives the command that profiles a launch of it again"),
    ]
}

/// Writes the report as JSON.
pub fn write_json(out: &mut dyn Write, profile: &Profile, grouping: &Grouping, rows: &[u32], beyond: &Beyond) -> io::Result<()> {
    let document = TopJson {
        device: profile.devices.iter().map(Into::into).collect(),
        by: grouping.by.cli_name(),
        total_kernel_ns: grouping.total_ns,
        launches: grouping.launches,
        rows: Rows::new(kernel_rows(profile, grouping, rows, beyond)),
    };
    let first = rows.first().and_then(|&at| grouping.rows.get(at as usize)).filter(|g| g.kernel.is_some() && grouping.by.is_kernel());
    Envelope::of_profile(profile).then(first.into_iter().flat_map(|g| kernel_steps(profile, &g.name))).write(out, &document)
}

/// Prints groups in a format other than JSON.
pub fn print_rows(
    out: &mut dyn Write,
    profile: &Profile,
    grouping: &Grouping,
    rows: &[u32],
    format: Format,
    width: Option<usize>,
    beyond: &Beyond,
) -> io::Result<()> {
    let mut columns = kernels::columns(grouping.by);
    if !beyond.diagnoses.is_empty() {
        columns.push(kernels::diagnosis_column());
    }
    table::print_rows(columns, kernel_rows(profile, grouping, rows, beyond), out, format, width)
}
