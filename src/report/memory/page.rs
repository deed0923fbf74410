//! Memory usage as a document, and as rows.

use super::held_rows::{Compared, Memory, Wanted, When, compared_rows, device_name, site_name};
use super::json::write_memory_json;
use crate::analysis::memory::{DeviceUsage, MemoryFinding, Site, StepBasis, Usage};
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, MemoryLevel, units};
use crate::report::document::{Block, Document, KeyValue, Rows};
use crate::report::finding_text::FindingText;
use crate::report::triage::evidence_text;
use crate::report::{Format, PageFormat, table};
use std::io::{self, Write};

/// Default number of rows on a page.
const ROWS: usize = 12;
/// Maximum number of sites listed per finding.
const SITES: usize = 3;

/// A row of held memory with the data of its cells.
#[derive(Clone, Copy)]
pub struct HeldRow<'a> {
    of: &'a Memory<'a>,
    device: &'a DeviceUsage,
    held: &'a Compared,
    /// Bytes of all rows.
    total: u64,
}

type HeldColumn<'a> = Column<HeldRow<'a>>;

/// The columns, in order; a comparison has different columns than a single report.
pub fn held_columns<'a>(compared: bool) -> Vec<HeldColumn<'a>> {
    const TEXTS: Outputs = Outputs::TEXT.with(Outputs::CSV);
    let (single, both) = if compared { (Outputs::NONE, TEXTS) } else { (TEXTS, Outputs::NONE) };
    vec![
        HeldColumn::new("device", "device", Unit::Id, "number of the GPU", |r| {
            let device = r.device.ledger.device.and_then(|i| r.of.profile.devices.get(i as usize));
            Value::maybe_int(device.map(|d| d.id))
        })
        .only(Outputs::CSV),
        HeldColumn::new("bytes", "bytes", Unit::Bytes, "held bytes", |r| Value::int(r.held.row.bytes)),
        HeldColumn::new("share_percent", "share", Unit::Percent, "of all held bytes", |r| {
            let share = r.held.row.bytes as f64 / r.total.max(1) as f64 * 100.0;
            Value::Labelled(format!("{share:.4}").into(), units::format_percent(share).into())
        })
        .priority(4),
        HeldColumn::new("blocks", "blocks", Unit::Count, "allocations", |r| Value::int(r.held.row.blocks)).only(single).priority(3),
        HeldColumn::new("kept_bytes", "held to the end", Unit::Bytes, "bytes of them that are still held at the end", |r| {
            Value::int(r.held.row.kept)
        })
        .only(single)
        .priority(2),
        HeldColumn::new("before_bytes", "before", Unit::Bytes, "bytes in the earlier report", |r| Value::maybe_int(r.held.before))
            .only(both),
        HeldColumn::new("change_bytes", "change", Unit::BytesChange, "change since the earlier report", |r| {
            let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            Value::maybe_int(r.held.before.map(|before| number(r.held.row.bytes) - number(before)))
        })
        .only(both),
        HeldColumn::new("category", "for", Unit::Text, "use, guessed from stack and lifetime", |r| {
            Value::text(r.held.row.category.display_name())
        })
        .priority(1),
        HeldColumn::new("site", "allocated by", Unit::Text, "code that allocated it", |r| {
            Value::Text(escape_unsafe(&site_name(r.of, &r.held.row)).into_owned().into())
        }),
    ]
}

/// The first finding in one line, or a statement that there are no findings.
pub fn verdict_text(d: &DeviceUsage) -> String {
    match d.findings.first() {
        Some(f) => format!("{}: {}", f.id.id(), f.headline),
        None if d.ledger.times.is_empty() => "nothing is known of how it came to be".to_owned(),
        None if d.ledger.level == MemoryLevel::Driver => {
            "nothing stands out in what the driver was asked for; what a framework gives out of its own pool is not seen".to_owned()
        }
        None => "nothing stands out".to_owned(),
    }
}

fn device_facts(of: &Memory<'_>, d: &DeviceUsage) -> Vec<(&'static str, String)> {
    let when = d.peak_time().map_or_else(
        || " before the report begins".to_owned(),
        |t| {
            let step = d.steps.step_text(t).map_or_else(String::new, |step| format!(", {step}"));
            format!(" at {}{step}", d.ledger.format_time(t))
        },
    );
    let mut out = vec![("peak", format!("{}{when}", Bytes(d.peak.1))), ("at the end", Bytes(d.ledger.bytes_at_end()).to_string())];
    if let (Some(end), Some(peak)) = (d.reserved, d.reserved_peak) {
        let free = d.free.map_or_else(String::new, |f| {
            format!(
                "; free in it {}, {} of that between blocks, largest piece {}",
                Bytes(f.whole + f.split),
                Bytes(f.split),
                Bytes(f.largest)
            )
        });
        let most = if peak > end { format!(", at most {}", Bytes(peak)) } else { String::new() };
        out.push(("held by the allocator", format!("{}{most}{free}", Bytes(end))));
    }
    if let Some(found) = &d.steps.found {
        let by = match found {
            StepBasis::Ranges(name) => format!("ranges \"{}\"", escape_unsafe(name)),
            StepBasis::Code(stack) => {
                let site = of.usage.sites.get(of.usage.sites.site_of_stack(*stack));
                format!("allocations by {}", escape_unsafe(&site.map_or_else(String::new, Site::summary_line)))
            }
            StepBasis::Cycles => "memory that rises and falls".to_owned(),
        };
        // Rises and falls may be anything that allocates and frees repeatedly.
        let word = if matches!(found, StepBasis::Cycles) { "cycles" } else { "steps" };
        out.push((word, format!("{} by {by}", d.steps.list.len())));
    }
    out
}

fn counted_note(d: &DeviceUsage) -> &'static str {
    if d.ledger.level == MemoryLevel::Allocator { "memory of the framework's allocator" } else { "memory that the driver was asked for" }
}

/// Puts a finding into words.
pub fn finding_text(usage: &Usage, f: &MemoryFinding) -> FindingText {
    let site = |&(site, bytes): &(u32, u64)| {
        let name = usage.sites.get(site).map_or_else(|| "code without a stack".to_owned(), Site::summary_line);
        format!("{name}: {}", Bytes(bytes))
    };
    FindingText {
        id: f.id.id(),
        headline: f.headline.clone(),
        is_problem: true,
        evidence: f.evidence.iter().map(evidence_text).collect(),
        places: f.details.sites.iter().take(SITES).map(site).collect(),
        actions: f.actions.clone(),
        ..FindingText::default()
    }
}

/// Bytes held at a given time.
fn held_bytes(d: &DeviceUsage, when: When) -> u64 {
    when.resolve_event(d).0.map_or(d.ledger.before, |at| d.ledger.bytes[at as usize])
}

/// Prints memory usage.
pub fn print_memory(
    out: &mut dyn Write,
    of: &Memory<'_>,
    wanted: Wanted,
    before: Option<&Memory<'_>>,
    format: PageFormat,
    width: Option<usize>,
) -> io::Result<()> {
    if format == PageFormat::Json {
        return write_memory_json(out, of, wanted, before);
    }
    let before = before.filter(|_| of.usage.devices.len() == 1);
    let lists: Vec<_> = of.usage.devices.iter().map(|d| (d, compared_rows(of, d, wanted.when, before))).collect();
    let PageFormat::Page(renderer) = format else {
        let rows = lists.iter().flat_map(|(device, list)| held_rows(of, device, list, wanted, wanted.top.unwrap_or(usize::MAX)));
        return table::print_rows(held_columns(before.is_some()), rows, out, Format::Csv, width);
    };
    let mut page = Document::default();
    for (device, list) in &lists {
        append_device(&mut page.blocks, (of, device), list, wanted, before);
    }
    page.write(out, renderer, Some(width.unwrap_or(110).clamp(60, 160)))
}

/// The first rows of a device, with the data of their cells.
fn held_rows<'a>(
    of: &'a Memory<'a>,
    device: &'a DeviceUsage,
    list: &'a [Compared],
    wanted: Wanted,
    most: usize,
) -> impl Iterator<Item = HeldRow<'a>> {
    let total = held_bytes(device, wanted.when);
    list.iter().take(most).map(move |held| HeldRow { of, device, held, total })
}

/// Adds the memory usage of a device: facts, findings, and the code that holds the most.
fn append_device<'a>(
    blocks: &mut Vec<Block<'a>>,
    (of, d): (&'a Memory<'a>, &'a DeviceUsage),
    list: &'a [Compared],
    wanted: Wanted,
    before: Option<&Memory<'_>>,
) {
    let profile = of.profile;
    let title = format!("{} · {} · {}", profile.file_name(), device_name(profile, d.ledger.device), counted_note(d));
    blocks.push(Block::Heading(2, title));
    let mut facts: Vec<KeyValue> = device_facts(of, d).into_iter().map(|(name, text)| KeyValue::new(name, text)).collect();
    facts.extend(before.and_then(|b| Some(KeyValue::new("before", peak_change(d, b, b.usage.main()?)))));
    blocks.push(Block::Facts(facts));
    if d.findings.is_empty() {
        blocks.push(Block::Text(verdict_text(d)));
    }
    blocks.extend(d.findings.iter().map(|f| Block::Finding(finding_text(of.usage, f))));
    let when = match wanted.when {
        When::Peak => "at the peak".to_owned(),
        When::End => "at the end".to_owned(),
        When::At(_) => format!("at {}", d.ledger.format_time(wanted.when.resolve_event(d).1.unwrap_or_default())),
    };
    let total = Bytes(held_bytes(d, wanted.when));
    blocks.push(Block::Heading(3, format!("Held {when} ({total}; what it is for is a guess by stack and lifetime)")));
    let most = wanted.top.unwrap_or(ROWS);
    let rows: Vec<HeldRow<'a>> = held_rows(of, d, list, wanted, most).collect();
    blocks.push(Block::Rows(Box::new(Rows { columns: held_columns(before.is_some()), rows })));
    if list.len() > most {
        blocks.push(Block::Text(format!("{} more; --top {} shows all", list.len() - most, list.len())));
    }
}

/// Compares the peak of a device with that of another report.
fn peak_change(d: &DeviceUsage, other: &Memory<'_>, then: &DeviceUsage) -> String {
    let change = i64::try_from(d.peak.1).unwrap_or(i64::MAX) - i64::try_from(then.peak.1).unwrap_or(i64::MAX);
    let how = match change.signum() {
        0 => "the peak is the same".to_owned(),
        sign => format!("the peak is now {} {}", Bytes(change.unsigned_abs()), if sign > 0 { "higher" } else { "lower" }),
    };
    let (peak, end) = (Bytes(then.peak.1), Bytes(then.ledger.bytes_at_end()));
    format!("{}: peak {peak}, at the end {end}; {how}", other.profile.file_name())
}
