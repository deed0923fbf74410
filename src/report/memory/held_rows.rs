//! Memory of a report and its listed rows.

use crate::analysis::memory::{Category, DeviceUsage, HeldMemory, Site, Usage, held_rows};
use crate::model::{Frame, Profile};

/// Time at which the holders of memory are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Time of the highest allocation.
    #[default]
    Peak,
    End,
    /// This time, ns.
    At(i64),
}

/// A report with its memory analysis.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub profile: &'a Profile,
    pub usage: &'a Usage,
}

/// Options that select the listed rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub when: When,
    /// Maximum number of rows; `None` for all.
    pub top: Option<usize>,
}

impl When {
    /// Returns the last event up to this time, and the time itself, ns.
    pub fn resolve_event(self, device: &DeviceUsage) -> (Option<u32>, Option<i64>) {
        let ledger = &device.ledger;
        let at = match self {
            Self::Peak => device.peak.0,
            Self::End => ledger.times.len().checked_sub(1).and_then(|i| u32::try_from(i).ok()),
            Self::At(time) => ledger.event_at(time),
        };
        (at, if let Self::At(time) = self { Some(time) } else { at.map(|at| ledger.event_time(at)) })
    }
}

/// A row of held memory, with the bytes that the same code held in another report.
pub struct Compared {
    pub row: HeldMemory,
    /// Bytes in the earlier report; `None` if there is none.
    pub before: Option<u64>,
}

/// Rows of a device at a given time, matched by name with the rows of a device in another report.
pub fn compared_rows(of: &Memory<'_>, device: &DeviceUsage, when: When, before: Option<&Memory<'_>>) -> Vec<Compared> {
    let list = held_rows(device, &of.usage.sites, when.resolve_event(device).0);
    let Some(before) = before else { return list.into_iter().map(|row| Compared { row, before: None }).collect() };
    let mut there: std::collections::HashMap<(String, &str), u64> = std::collections::HashMap::new();
    if let Some(device) = before.usage.main() {
        for row in held_rows(device, &before.usage.sites, when.resolve_event(device).0) {
            *there.entry((site_name(before, &row), row.category.display_name())).or_default() += row.bytes;
        }
    }
    let mut out: Vec<Compared> = list
        .into_iter()
        .map(|row| {
            let bytes = there.remove(&(site_name(of, &row), row.category.display_name())).unwrap_or(0);
            Compared { row, before: Some(bytes) }
        })
        .collect();
    out.sort_by_key(|c| std::cmp::Reverse(c.row.bytes.abs_diff(c.before.unwrap_or(0))));
    out
}

/// Name of an allocation site, on a single line.
pub fn site_name(of: &Memory<'_>, row: &HeldMemory) -> String {
    let unknown = if row.category == Category::Earlier { "(before the report begins)" } else { "(no stack)" };
    of.usage.sites.get(row.site).map_or_else(|| unknown.to_owned(), Site::summary_line)
}

/// Frames of a stack, innermost first.
pub fn stack_frames<'a>(of: &Memory<'a>, stack: u32) -> impl Iterator<Item = &'a Frame> {
    of.usage.sites.stacks.frames_of(stack)
}

/// Display name of a device: `GPU 0, NAME`, `GPU 0` without a name, or `GPU` if the device is unknown.
pub fn device_name(profile: &Profile, device: Option<u32>) -> String {
    match device.and_then(|d| profile.devices.get(d as usize)) {
        Some(d) => d.name.as_ref().map_or_else(|| format!("GPU {}", d.id), |name| format!("GPU {}, {name}", d.id)),
        None => "GPU".to_owned(),
    }
}
