//! Memory usage as a page for people, as Markdown, and as rows.

use super::held_rows::{Compared, Memory, Wanted, When, compared_rows, device_name, site_name};
use crate::analysis::memory::{DeviceUsage, Found, MemoryFinding, Site};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, MemoryLevel, units};
use crate::report::Format;
use crate::report::table::{self, Cell, Column, write_wrapped};
use crate::report::triage::{format_evidence, format_value};
use std::io::{self, Write};

/// Default number of rows of a page.
const ROWS: usize = 12;
/// Maximum number of sites listed per finding.
const SITES: usize = 3;

fn table_columns(compared: bool) -> Vec<Column> {
    let column = |field, title, right, rank| Column { field, title, right, machine_only: false, rank };
    let mut out = vec![
        column("bytes", "bytes", true, 0),
        column("share_percent", "share", true, 4),
        column("blocks", "blocks", true, 3),
        column("kept_bytes", "held to the end", true, 2),
        column("category", "for", false, 1),
        column("site", "asked for by", false, 0),
    ];
    if compared {
        out[2] = column("before_bytes", "before", true, 0);
        out[3] = column("change_bytes", "change", true, 0);
    }
    out
}

fn format_signed(bytes: i64) -> String {
    let text = Bytes(bytes.unsigned_abs()).to_string();
    match bytes.signum() {
        -1 => format!("−{text}"),
        1 => format!("+{text}"),
        _ => text,
    }
}

fn row_cells(of: &Memory<'_>, c: &Compared, total: u64) -> Vec<Cell> {
    let row = &c.row;
    let share = row.bytes as f64 / total.max(1) as f64 * 100.0;
    let change = |before: u64| i64::try_from(row.bytes).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX);
    let (third, fourth) = match c.before {
        Some(before) => (Cell::with_raw(before, Bytes(before).to_string()), Cell::with_raw(change(before), format_signed(change(before)))),
        None => (
            Cell::with_raw(row.blocks, units::format_grouped(i64::try_from(row.blocks).unwrap_or(i64::MAX))),
            Cell::with_raw(row.kept, Bytes(row.kept).to_string()),
        ),
    };
    vec![
        Cell::with_raw(row.bytes, Bytes(row.bytes).to_string()),
        Cell::with_raw(format!("{share:.4}"), units::format_percent(share)),
        third,
        fourth,
        Cell::text(row.category.display_name()),
        Cell::text(escape_unsafe(&site_name(of, row)).into_owned()),
    ]
}

/// The first finding in one line, or a statement that none was found.
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
            let step = d.steps.step_at(t).map_or_else(String::new, |s| format!(", in step {} of {}", s + 1, d.steps.list.len()));
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
            Found::Ranges(name) => format!("ranges \"{}\"", escape_unsafe(name)),
            Found::Code(stack) => {
                let site = of.usage.sites.get(of.usage.sites.site_of_stack(*stack));
                format!("allocations by {}", escape_unsafe(&site.map_or_else(String::new, Site::summary_line)))
            }
            Found::Cycles => "memory that rises and falls".to_owned(),
        };
        out.push(("steps", format!("{} by {by}", d.steps.list.len())));
    }
    out
}

fn counted_note(d: &DeviceUsage) -> &'static str {
    if d.ledger.level == MemoryLevel::Allocator { "memory of the framework's allocator" } else { "memory that the driver was asked for" }
}

/// Writes a finding as a Markdown list, with its texts escaped.
fn in_markdown(out: &mut dyn Write, of: &Memory<'_>, f: &MemoryFinding) -> io::Result<()> {
    writeln!(out, "**{}**: {}\n", f.id.id(), table::escape_markdown(&escape_unsafe(&f.headline)))?;
    for e in &f.evidence {
        writeln!(out, "- {}: {}", table::escape_markdown(&escape_unsafe(&e.name)), format_evidence(e))?;
    }
    for &(site, bytes) in f.sites.iter().take(SITES) {
        let name = of.usage.sites.get(site).map_or_else(|| "(no stack)".to_owned(), Site::summary_line);
        writeln!(out, "- {} by {}", Bytes(bytes), table::escape_markdown(&escape_unsafe(&name)))?;
    }
    f.actions.iter().try_for_each(|a| writeln!(out, "- do: {a}"))?;
    writeln!(out)
}

/// Prints memory usage in a format other than JSON.
pub fn print_memory(
    out: &mut dyn Write,
    of: &Memory<'_>,
    wanted: Wanted,
    before: Option<&Memory<'_>>,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let columns = table_columns(before.is_some());
    let held = |d: &DeviceUsage| When::resolve_event(wanted.when, d).0.map_or(d.ledger.before, |at| d.ledger.bytes[at as usize]);
    if format == Format::Csv {
        let mut columns = columns;
        let device = |d: &DeviceUsage| {
            d.ledger.device.and_then(|i| of.profile.devices.get(i as usize)).map_or_else(String::new, |d| d.id.to_string())
        };
        columns.insert(0, Column { field: "device", title: "device", right: true, machine_only: true, rank: 0 });
        let mut rows = Vec::new();
        for d in &of.usage.devices {
            let list = compared_rows(of, d, wanted.when, before.filter(|_| of.usage.devices.len() == 1));
            rows.extend(list.iter().take(wanted.top.unwrap_or(usize::MAX)).map(|c| {
                let mut row = row_cells(of, c, held(d));
                row.insert(0, Cell::text(device(d)));
                row
            }));
        }
        return table::print_rows(&columns, rows.into_iter(), out, format, width);
    }
    for (at, d) in of.usage.devices.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let before = before.filter(|_| of.usage.devices.len() == 1);
        print_device(out, (of, d), wanted, before, format, width.unwrap_or(110).clamp(60, 160))?;
    }
    Ok(())
}

fn print_device(
    out: &mut dyn Write,
    (of, d): (&Memory<'_>, &DeviceUsage),
    wanted: Wanted,
    before: Option<&Memory<'_>>,
    format: Format,
    width: usize,
) -> io::Result<()> {
    let markdown = format == Format::Md;
    let (heading, item) = if markdown { ("## ", "- ") } else { ("", "  ") };
    let profile = of.profile;
    writeln!(out, "{heading}{} · {} · {}", escape_unsafe(&profile.file_name()), device_name(profile, d.ledger.device), counted_note(d))?;
    if markdown {
        writeln!(out)?;
    }
    for (name, text) in device_facts(of, d) {
        if markdown {
            writeln!(out, "{item}{name}: {text}")?;
        } else {
            write_wrapped(out, &format!("{item}{name:<21} "), "                        ", &text, width)?;
        }
    }
    if let Some(b) = before.and_then(|b| Some((b, b.usage.main()?))) {
        let (now, then) = (d.peak.1, b.1.peak.1);
        let change = i64::try_from(now).unwrap_or(i64::MAX) - i64::try_from(then).unwrap_or(i64::MAX);
        let how = match change.signum() {
            0 => "the peak is the same".to_owned(),
            sign => format!("the peak is now {} {}", Bytes(change.unsigned_abs()), if sign > 0 { "higher" } else { "lower" }),
        };
        let text = format!("peak {}, at the end {}; {how}", Bytes(then), Bytes(b.1.ledger.bytes_at_end()));
        writeln!(out, "{item}{:<21} {}: {text}", "before", escape_unsafe(&b.0.profile.file_name()))?;
    }
    writeln!(out)?;
    if d.findings.is_empty() {
        writeln!(out, "{}", verdict_text(d))?;
    }
    for (rank, f) in d.findings.iter().enumerate() {
        if markdown {
            in_markdown(out, of, f)?;
            continue;
        }
        write_wrapped(out, &format!("{}. ", rank + 1), "   ", &format!("{}: {}", f.id.id(), f.headline), width)?;
        for e in &f.evidence {
            let than = e.threshold.map_or_else(String::new, |(op, v)| format!("  [{op} {}]", format_value(v, e.unit)));
            writeln!(out, "     · {}: {}{than}", escape_unsafe(&e.name), format_value(e.value, e.unit))?;
        }
        for &(site, bytes) in f.sites.iter().take(SITES) {
            let name = of.usage.sites.get(site).map_or_else(|| "(no stack)".to_owned(), Site::summary_line);
            write_wrapped(out, "     by: ", "         ", &format!("{} · {}", Bytes(bytes), escape_unsafe(&name)), width)?;
        }
        for action in &f.actions {
            write_wrapped(out, "     do: ", "         ", action, width)?;
        }
    }
    writeln!(out)?;
    let (at, time) = wanted.when.resolve_event(d);
    let total = at.map_or(d.ledger.before, |at| d.ledger.bytes[at as usize]);
    let when = match wanted.when {
        When::Peak => "at the peak".to_owned(),
        When::End => "at the end".to_owned(),
        When::At(_) => format!("at {}", d.ledger.format_time(time.unwrap_or_default())),
    };
    writeln!(out, "{}Held {when} ({}; what it is for is a guess by stack and lifetime)", if markdown { "### " } else { "" }, Bytes(total))?;
    if markdown {
        writeln!(out)?;
    }
    let rows = compared_rows(of, d, wanted.when, before);
    let most = wanted.top.unwrap_or(ROWS);
    let shown = rows.iter().take(most).map(|c| row_cells(of, c, total));
    table::print_rows(&table_columns(before.is_some()), shown, out, format, Some(width))?;
    if rows.len() > most {
        writeln!(out, "{}{} more; --top {} shows all", if markdown { "\n" } else { "  … " }, rows.len() - most, rows.len())?;
    }
    Ok(())
}
