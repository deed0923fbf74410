//! JSON form of memory usage.

use super::held_rows::{Compared, Memory, Wanted, compared_rows, site_name, stack_frames};
use crate::analysis::memory::{DeviceUsage, MemoryFinding, MemoryStep, StepBasis, sites};
use crate::model::{Frame, MemoryLevel};
use crate::report::envelope::{Envelope, JsonDocument};
use crate::report::finding::{EvidenceJson, evidence_json};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize, JsonSchema)]
struct FrameJson<'a> {
    function: &'a str,
    file: &'a str,
    line: u32,
}

#[derive(Serialize, JsonSchema)]
struct SiteJson<'a> {
    site: String,
    bytes: u64,
    stack: Vec<FrameJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct FindingJson<'a> {
    id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    headline: &'a str,
    evidence: Vec<EvidenceJson<'a>>,
    at_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_event: Option<i64>,
    sites: Vec<SiteJson<'a>>,
    actions: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct RowJson<'a> {
    site: String,
    function: &'a str,
    file: &'a str,
    line: Option<u32>,
    category: &'static str,
    bytes: u64,
    blocks: u64,
    kept_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_bytes: Option<u64>,
    stack: Vec<FrameJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct StepJson {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_event: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_event: Option<i64>,
    peak_bytes: u64,
    least_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct FreeJson {
    /// Free bytes in segments that are entirely free.
    whole_bytes: u64,
    /// Free bytes between blocks in use.
    between_bytes: u64,
    largest_block: u64,
}

#[derive(Serialize, JsonSchema)]
struct DeviceJson<'a> {
    device: Option<u32>,
    device_name: Option<&'a str>,
    counts: &'static str,
    peak_bytes: u64,
    peak_ns: Option<i64>,
    /// Number of the event, if the report has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_event: Option<i64>,
    end_bytes: u64,
    reserved_bytes: Option<u64>,
    reserved_peak_bytes: Option<u64>,
    free: Option<FreeJson>,
    steps_by: Option<String>,
    steps: Vec<StepJson>,
    findings: Vec<FindingJson<'a>>,
    at_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_event: Option<i64>,
    rows: Vec<RowJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct BeforeJson {
    file: String,
    peak_bytes: u64,
    end_bytes: u64,
    reserved_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct MemoryJson<'a> {
    #[serde(flatten)]
    main: DeviceJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<BeforeJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<DeviceJson<'a>>,
}

impl JsonDocument for MemoryJson<'_> {
    const NAME: &'static str = "memory";
}

/// Default number of listed rows, and maximum number of frames per stack.
const ROWS: usize = 100;
const FRAMES: usize = 64;

fn frame_json(f: &Frame) -> FrameJson<'_> {
    FrameJson { function: &f.function, file: &f.file, line: f.line }
}

fn memory_finding_json<'a>(of: &Memory<'a>, f: &'a MemoryFinding, timed: bool) -> FindingJson<'a> {
    let sites = f.details.sites.iter().take(ROWS).map(|&(site, bytes)| {
        let known = of.usage.sites.get(site);
        SiteJson {
            site: known.map_or_else(|| "(no stack)".to_owned(), sites::Site::summary_line),
            bytes,
            stack: known.map(|s| stack_frames(of, s.stack).take(FRAMES).map(frame_json).collect()).unwrap_or_default(),
        }
    });
    FindingJson {
        id: f.id.id(),
        kind: f.details.kind,
        headline: &f.headline,
        evidence: f.evidence.iter().map(evidence_json).collect(),
        at_ns: f.details.time.filter(|_| timed),
        at_event: f.details.time.filter(|_| !timed),
        sites: sites.collect(),
        actions: &f.actions,
    }
}

fn row_json<'a>(of: &Memory<'a>, c: &Compared) -> RowJson<'a> {
    let own = stack_frames(of, c.row.stack).find(|f| f.line > 0 && !sites::is_library(f)).or_else(|| stack_frames(of, c.row.stack).next());
    RowJson {
        site: site_name(of, &c.row),
        function: own.map_or("", |f| &f.function),
        file: own.map_or("", |f| &f.file),
        line: own.map(|f| f.line).filter(|&l| l > 0),
        category: c.row.category.display_name(),
        bytes: c.row.bytes,
        blocks: c.row.blocks,
        kept_bytes: c.row.kept,
        before_bytes: c.before,
        stack: stack_frames(of, c.row.stack).take(FRAMES).map(frame_json).collect(),
    }
}

fn step_json(s: &MemoryStep, timed: bool) -> StepJson {
    let (ns, event) = (|t: i64| Some(t).filter(|_| timed), |t: i64| Some(t).filter(|_| !timed));
    StepJson {
        start_ns: ns(s.start),
        end_ns: ns(s.end),
        start_event: event(s.start),
        end_event: event(s.end),
        peak_bytes: s.peak,
        least_bytes: s.valley,
    }
}

fn device_json<'a>(of: &Memory<'a>, d: &'a DeviceUsage, wanted: Wanted, before: Option<&Memory<'_>>) -> DeviceJson<'a> {
    let known = d.ledger.device.and_then(|i| of.profile.devices.get(i as usize));
    let (rows, timed) = (compared_rows(of, d, wanted.when, before), d.ledger.timed);
    DeviceJson {
        device: known.map(|k| k.id),
        device_name: known.and_then(|k| k.name.as_deref()),
        counts: if d.ledger.level == MemoryLevel::Allocator { "framework" } else { "driver" },
        peak_bytes: d.peak.1,
        peak_ns: d.peak_time().filter(|_| timed),
        peak_event: d.peak_time().filter(|_| !timed),
        end_bytes: d.ledger.bytes_at_end(),
        reserved_bytes: d.reserved,
        reserved_peak_bytes: d.reserved_peak,
        free: d.free.map(|f| FreeJson { whole_bytes: f.whole, between_bytes: f.split, largest_block: f.largest }),
        steps_by: d.steps.found.as_ref().map(|f| match f {
            StepBasis::Ranges(name) => format!("ranges \"{name}\""),
            StepBasis::Code(stack) => {
                format!(
                    "allocations by {}",
                    of.usage.sites.get(of.usage.sites.site_of_stack(*stack)).map_or_else(String::new, sites::Site::summary_line)
                )
            }
            StepBasis::Cycles => "memory rises and falls".to_owned(),
        }),
        steps: d.steps.list.iter().map(|s| step_json(s, timed)).collect(),
        findings: d.findings.iter().map(|f| memory_finding_json(of, f, timed)).collect(),
        at_ns: wanted.when.resolve_event(d).1.filter(|_| timed),
        at_event: wanted.when.resolve_event(d).1.filter(|_| !timed),
        rows: rows.iter().take(wanted.top.unwrap_or(ROWS)).map(|c| row_json(of, c)).collect(),
    }
}

/// Writes one object for the device with the highest peak, plus `devices` with every device if there are several.
pub fn write_memory_json(out: &mut dyn Write, of: &Memory<'_>, wanted: Wanted, before: Option<&Memory<'_>>) -> io::Result<()> {
    let Some(main) = of.usage.main() else { return Ok(()) };
    let several = of.usage.devices.len() > 1;
    let all = MemoryJson {
        main: device_json(of, main, wanted, before),
        before: before.and_then(|b| {
            let d = b.usage.main()?;
            Some(BeforeJson {
                file: b.profile.file_name(),
                peak_bytes: d.peak.1,
                end_bytes: d.ledger.bytes_at_end(),
                reserved_bytes: d.reserved,
            })
        }),
        devices: if several { of.usage.devices.iter().map(|d| device_json(of, d, wanted, None)).collect() } else { Vec::new() },
    };
    Envelope::of_profiles(before.map(|b| b.profile).into_iter().chain([of.profile])).write(out, &all)
}
