//! Memory over time, its holders at the peak, and findings.

use super::block::{Block, Picture, Table};
use super::svg::{Svg, WIDTH};
use crate::analysis::memory::{Category, DeviceUsage, Site, Usage, held_rows};
use crate::model::{Bytes, Profile, units};
use crate::report::memory::{device_name, finding_text, verdict_text};

const ROWS: usize = 12;
/// Number of columns of the curve.
const COLUMNS: usize = 500;

pub fn blocks(profile: &Profile, usage: &Usage) -> Vec<Block<'static>> {
    let mut out = vec![Block::Heading(3, "Memory".to_owned())];
    for device in &usage.devices {
        let peak = device.peak_time().map_or_else(String::new, |t| format!(" at {}", device.ledger.format_time(t)));
        let held = device.reserved_peak.map_or_else(String::new, |r| format!(", held by the allocator at most {}", Bytes(r)));
        let name = device_name(profile, device.ledger.device);
        out.push(Block::Text(format!(
            "{name}: peak {}{peak}, {} at the end{held}.",
            Bytes(device.peak.1),
            Bytes(device.ledger.bytes_at_end())
        )));
        out.extend(curve_picture(device).map(Block::Picture));
        if device.findings.is_empty() {
            out.push(Block::Text(format!("{}.", verdict_text(device))));
        }
        out.extend(device.findings.iter().map(|f| Block::Finding(finding_text(usage, f))));
        let total = device.peak.1.max(1) as f64;
        let list = held_rows(device, &usage.sites, device.peak.0).into_iter().take(ROWS).map(|r| {
            let unknown = if r.category == Category::Earlier { "(before the report begins)" } else { "(no stack)" };
            let site = usage.sites.get(r.site).map_or_else(|| unknown.to_owned(), Site::summary_line);
            vec![
                site,
                r.category.display_name().to_owned(),
                Bytes(r.bytes).to_string(),
                units::format_percent(r.bytes as f64 / total * 100.0),
            ]
        });
        let head = vec![("allocated by", false), ("for (a guess)", false), ("at the peak", true), ("share", true)];
        out.push(Block::Table(Table { head, rows: list.collect() }));
    }
    out
}

fn curve_picture(device: &DeviceUsage) -> Option<Picture> {
    let ledger = &device.ledger;
    let (begin, end) = ledger.span().filter(|(b, e)| e > b)?;
    let most = device.peak.1.max(device.reserved_peak.unwrap_or(0)).max(1) as f64;
    let (height, base) = (150.0, 130.0);
    let mut high = vec![0_u64; COLUMNS];
    let mut last = (0, ledger.before);
    for (&time, &bytes) in ledger.times.iter().zip(&ledger.bytes) {
        let at = (i128::from(time - begin) * (COLUMNS as i128 - 1) / i128::from(end - begin)) as usize;
        for column in &mut high[last.0..=at] {
            *column = (*column).max(last.1);
        }
        high[at] = high[at].max(bytes);
        last = (at, bytes);
    }
    let mut svg = Svg::new(height);
    let x = |at: usize| at as f64 / (COLUMNS - 1) as f64 * WIDTH;
    let y = |bytes: u64| base - bytes as f64 / most * (base - 18.0);
    let mut points = vec![(0.0, base)];
    points.extend(high.iter().enumerate().map(|(at, &b)| (x(at), y(b))));
    points.push((WIDTH, base));
    svg.add_polygon(&points, "p-kernels");
    if let Some(reserved) = device.reserved_peak {
        svg.add_line((0.0, y(reserved)), (WIDTH, y(reserved)), "roof");
        svg.add_text((WIDTH, y(reserved) - 4.0), "end", "dim", &format!("most held by the allocator {}", Bytes(reserved)));
    }
    svg.add_text((0.0, height - 4.0), "start", "dim", &ledger.format_time(begin));
    svg.add_text((WIDTH, height - 4.0), "end", "dim", &ledger.format_time(end));
    Some(svg.into_picture(format!("Memory over time, peak {}", Bytes(device.peak.1))))
}
