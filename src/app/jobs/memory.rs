//! Memory use of a report's program, prepared for display

use crate::analysis::memory::sites::Sites;
use crate::analysis::memory::{DeviceUsage, HeldMemory, MemoryVerdict, Usage, analyze_usage as memory_usage, held_rows};
use crate::model::api_call::NONE;
use crate::model::{Cancel, Profile};
use crate::report::memory::{Memory, When, site_name};
use std::collections::HashMap;

/// Number of intervals in a stored curve: more than the columns of any terminal.
const COLUMNS: usize = 1024;

/// Memory use of a program, with curves over time.
#[derive(Clone, Debug)]
pub struct MemoryView {
    pub usage: Usage,
    /// One curve per device.
    pub curves: Vec<Curve>,
}

/// Bytes by allocation site (as a single line) and category.
pub type Held = HashMap<(String, &'static str), u64>;

/// Memory held by another report's program.
#[derive(Clone, Debug)]
pub struct Beside {
    pub name: String,
    /// Memory at the peak, and the total.
    pub peak: (Held, u64),
    pub end: (Held, u64),
}

impl Beside {
    /// Memory of the device with the highest peak; `None` if the report has no memory data.
    pub fn from_profile(profile: &Profile, name: String, cancel: &Cancel) -> Option<Self> {
        let usage = memory_usage(profile, cancel)?;
        let of = Memory { profile, usage: &usage };
        let device = usage.main()?;
        let held = |when: When| {
            let mut out = Held::new();
            let at = when.resolve_event(device).0;
            for row in held_rows(device, &usage.sites, at) {
                *out.entry((site_name(&of, &row), row.category.display_name())).or_default() += row.bytes;
            }
            (out, at.map_or(device.ledger.before, |at| device.ledger.bytes.get(at as usize).copied().unwrap_or_default()))
        };
        Some(Self { name, peak: held(When::Peak), end: held(When::End) })
    }
}

/// Memory over time, in equal intervals of the span.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Times of the first and last event, ns.
    pub span: (i64, i64),
    /// Maximum allocated bytes in each interval.
    pub allocated: Vec<u64>,
    /// Maximum bytes reserved by the allocator in each interval; empty if unknown.
    pub reserved: Vec<u64>,
    /// Maximum bytes in each interval that are never freed by the code of the finding "growth"; empty without it.
    pub growth: Vec<u64>,
}

impl MemoryView {
    /// Returns `None` if the report has no memory data.
    pub fn from_profile(profile: &Profile, cancel: &Cancel) -> Option<Self> {
        let usage = memory_usage(profile, cancel)?;
        let curves = usage.devices.iter().map(|d| Curve::from_device(d, &usage.sites)).collect();
        Some(Self { usage, curves })
    }

    /// Owners of a device's memory after a ledger event; `None` means before the first event.
    pub fn owners_at(&self, device: usize, at: Option<u32>) -> Vec<HeldMemory> {
        self.usage.devices.get(device).map(|d| held_rows(d, &self.usage.sites, at)).unwrap_or_default()
    }

    /// Index of the device with the highest peak.
    pub fn main(&self) -> usize {
        let devices = self.usage.devices.iter().enumerate();
        devices.max_by_key(|(at, d)| (d.peak.1, std::cmp::Reverse(*at))).map_or(0, |d| d.0)
    }
}

impl Curve {
    fn from_device(device: &DeviceUsage, sites: &Sites) -> Self {
        let ledger = &device.ledger;
        let Some((begin, end)) = ledger.span() else { return Self::default() };
        let points = ledger.times.iter().copied().zip(ledger.bytes.iter().copied());
        let allocated = max_per_part(points, ledger.before, (begin, end));
        let first = ledger.reserved.first().map(|r| r.1);
        let reserved = first.map(|first| max_per_part(ledger.reserved.iter().copied(), first, (begin, end))).unwrap_or_default();
        Self { span: (begin, end), allocated, reserved, growth: growth_per_part(device, sites, (begin, end)) }
    }

    /// Creates the curve of a time window, ns.
    pub fn from_window(device: &DeviceUsage, sites: &Sites, (begin, end): (i64, i64)) -> Self {
        let ledger = &device.ledger;
        let (from, to) = (ledger.times.partition_point(|&t| t < begin), ledger.times.partition_point(|&t| t <= end));
        let points = ledger.times[from..to].iter().copied().zip(ledger.bytes[from..to].iter().copied());
        let allocated = max_per_part(points, ledger.bytes_before(from), (begin, end));
        let (first, last) = (ledger.reserved.partition_point(|r| r.0 < begin), ledger.reserved.partition_point(|r| r.0 <= end));
        let held = ledger.reserved.get(first.saturating_sub(1)).map(|r| r.1);
        let reserved = held.map(|held| max_per_part(ledger.reserved[first..last].iter().copied(), held, (begin, end))).unwrap_or_default();
        Self { span: (begin, end), allocated, reserved, growth: growth_per_part(device, sites, (begin, end)) }
    }

    /// Column that shows a time if the curve is reduced to `columns` columns.
    pub fn column_of(&self, time: i64, columns: usize) -> usize {
        let part = interval_of(time, self.span);
        ((part + 1) * columns).saturating_sub(1) / COLUMNS
    }

    /// Reduces values to a number of columns, keeping the maximum of each.
    pub fn fit_to_columns(values: &[u64], columns: usize) -> Vec<u64> {
        let n = values.len();
        (0..columns)
            .map(|c| {
                let (from, to) = (c * n / columns, ((c + 1) * n / columns).max(c * n / columns + 1));
                values.get(from..to.min(n)).and_then(|v| v.iter().max()).copied().unwrap_or(0)
            })
            .collect()
    }
}

/// Interval of a span that contains a time.
fn interval_of(time: i64, (begin, end): (i64, i64)) -> usize {
    let length = (i128::from(end) - i128::from(begin)).max(1);
    let at = ((i128::from(time) - i128::from(begin)) * (COLUMNS as i128) / length).clamp(0, COLUMNS as i128 - 1);
    usize::try_from(at).unwrap_or(0)
}

/// Bytes that the code of the finding "growth" has allocated and never frees, in each interval of a span.
fn growth_per_part(device: &DeviceUsage, sites: &Sites, (begin, end): (i64, i64)) -> Vec<u64> {
    let ledger = &device.ledger;
    let Some(found) = device.findings.iter().find(|f| f.id == MemoryVerdict::Growth) else { return Vec::new() };
    let is_named = |site: u32| site != NONE && found.details.sites.iter().any(|s| s.0 == site);
    let kept = ledger.lives.iter().filter(|l| l.is_kept() && !l.is_older() && is_named(sites.site_of_stack(l.stack)));
    let mut sum = 0_u64;
    let mut points: Vec<(i64, u64)> = Vec::new();
    for life in kept {
        sum = sum.saturating_add(life.bytes);
        points.push((ledger.event_time(life.start), sum));
    }
    let (from, to) = (points.partition_point(|p| p.0 < begin), points.partition_point(|p| p.0 <= end));
    let before = from.checked_sub(1).map_or(0, |at| points[at].1);
    if sum == 0 { Vec::new() } else { max_per_part(points[from..to].iter().copied(), before, (begin, end)) }
}

/// Maximum in each interval of a span; each value holds until the next point.
fn max_per_part(points: impl Iterator<Item = (i64, u64)>, before: u64, (begin, end): (i64, i64)) -> Vec<u64> {
    let mut out = vec![None; COLUMNS];
    let mut last = (0, before);
    for (time, bytes) in points {
        let at = interval_of(time, (begin, end));
        for part in &mut out[last.0..=at.max(last.0)] {
            // The previous value holds until this point, so it also counts toward this interval.
            *part = (*part).max(Some(last.1));
        }
        out[at] = out[at].max(Some(bytes));
        last = (at, bytes);
    }
    for part in &mut out[last.0..] {
        *part = (*part).max(Some(last.1));
    }
    out.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_a_time_shows_its_value() {
        let ns = |columns: usize| i64::try_from(columns).unwrap() * 1_000;
        let curve = |at: usize| {
            let mut allocated = vec![0; COLUMNS];
            allocated[at] = 7;
            Curve { span: (0, ns(COLUMNS)), allocated, ..Curve::default() }
        };
        for at in [0, 1, 500, 501, 1022, 1023] {
            for columns in [20, 66, 105, 187, 1024] {
                let curve = curve(at);
                let shown = Curve::fit_to_columns(&curve.allocated, columns);
                assert_eq!(shown[curve.column_of(ns(at) + 500, columns)], 7, "{at} of {columns}");
            }
        }
    }
}
