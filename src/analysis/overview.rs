//! Figures for the header: utilization of the GPUs, and distribution of time.

use crate::model::{MemOpKind, Profile};
use std::collections::BTreeMap;

/// Minimum length of a gap, ns: shorter ones are the GPU's own pause between dependent launches, longer ones are caused
/// by the host.
pub const GAP_NS: i64 = 10_000;

/// Figures for a whole report. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// First start and last end of any operation on a GPU.
    pub span: Option<(i64, i64)>,
    /// Share of the span in which a kernel ran, in percent: the union of kernel intervals of each device, averaged over
    /// the devices in use.
    pub busy_percent: Option<f64>,
    /// Share of the span in which a copy or memset ran, in percent, also averaged over the devices in use.
    pub copy_percent: Option<f64>,
    /// Share of the span in which a GPU was idle, in percent, averaged over the devices in use.
    pub idle_percent: Option<f64>,
    /// Gaps longer than [`GAP_NS`] between two operations of a device.
    pub gaps: u64,
    /// Total length of these gaps.
    pub gap_ns: i64,
    /// Number of devices that ran something.
    pub devices_used: usize,
    pub copied_bytes: u64,
    /// Copies from or to pageable host memory.
    pub pageable_copies: u64,
}

/// Union of intervals that are added in order of start, and the gaps between them.
#[derive(Default)]
struct Cover {
    until: Option<i64>,
    covered: i64,
    gaps: u64,
    gap_ns: i64,
}

impl Cover {
    fn add_interval(&mut self, start: i64, end: i64) {
        let until = self.until.unwrap_or(start);
        let gap = start.saturating_sub(until);
        if gap > GAP_NS {
            self.gaps += 1;
            self.gap_ns = self.gap_ns.saturating_add(gap);
        }
        self.covered = self.covered.saturating_add(end.saturating_sub(start.max(until)).max(0));
        self.until = Some(until.max(end));
    }
}

#[derive(Default)]
struct Covers {
    kernels: Cover,
    copies: Cover,
    all: Cover,
}

/// Time in a span during which recording was on, ns; activity outside of it is unknown.
pub fn recorded_time(profile: &Profile, (from, to): (i64, i64)) -> i64 {
    let all = to.saturating_sub(from);
    if profile.recorded.is_empty() {
        return all;
    }
    profile.recorded.iter().map(|&(a, b)| b.min(to).saturating_sub(a.max(from)).max(0)).sum::<i64>().min(all)
}

impl Overview {
    /// Computes the figures in one pass over all device activity, in order of start.
    pub fn from_profile(profile: &Profile) -> Self {
        Self::from_window(profile, None)
    }

    /// Computes the figures for a window, ns: operations are clipped to it.
    pub fn from_window(profile: &Profile, window: Option<(i64, i64)>) -> Self {
        let launches = &profile.launches;
        // Results either have no times or were measured one by one, with the profiler's own work in between. In both
        // cases, a span would be meaningless.
        if !launches.is_empty() && profile.metrics.is_some() {
            return Self::default();
        }
        let n = u32::try_from(launches.len()).unwrap_or(u32::MAX);
        let mut rows: Vec<u32> = Vec::new();
        if !(1..launches.len()).all(|i| launches.start(i - 1) <= launches.start(i)) {
            rows = (0..n).collect();
            rows.sort_unstable_by_key(|&r| launches.start(r as usize));
        }
        let row = |i: usize| rows.get(i).map_or(i, |&r| r as usize);
        // Whole graphs count as kernels, because kernels run inside them.
        let mut others: Vec<(i64, i64, u32, bool)> =
            profile.memops.iter().map(|m| (m.start.0, m.start.0.saturating_add(m.duration.0), m.place.0, false)).collect();
        others.extend(profile.graphs.iter().map(|g| (g.start.0, g.start.0.saturating_add(g.duration.0), g.place, true)));
        others.sort_unstable();
        let device_of: Vec<(Option<u32>, Option<u32>)> =
            profile.places.iter().map(|p| (p.device, if p.device.is_some() { None } else { p.ordinal })).collect();
        let device = |place: Option<u32>| place.and_then(|p| device_of.get(p as usize)).copied().unwrap_or_default();
        let mut covers: BTreeMap<(Option<u32>, Option<u32>), Covers> = BTreeMap::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let cut = |start: i64, end: i64| match window {
            None => Some((start, end)),
            Some((from, to)) => (start < to && end > from).then(|| (start.max(from), end.min(to))),
        };
        let mut add = |start: i64, end: i64, place: Option<u32>, kernel: bool| {
            let Some((start, end)) = cut(start, end) else { return };
            first = first.min(start);
            last = last.max(end);
            let cover = covers.entry(device(place)).or_default();
            if kernel { &mut cover.kernels } else { &mut cover.copies }.add_interval(start, end);
            cover.all.add_interval(start, end);
        };
        let mut other = others.iter().peekable();
        for i in 0..launches.len() {
            let r = row(i);
            let (start, end) = (launches.start(r), launches.end(r));
            while let Some(&&(s, e, place, kernel)) = other.peek().filter(|o| o.0 < start) {
                add(s, e, Some(place), kernel);
                other.next();
            }
            add(start, end, launches.place(r).map(|p| p.0), true);
        }
        for &(s, e, place, kernel) in other {
            add(s, e, Some(place), kernel);
        }
        let span = (first <= last).then(|| window.unwrap_or((first, last)));
        let memops = || profile.memops.iter().filter(|m| window.is_none_or(|(from, to)| (from..to).contains(&m.start.0)));
        // Operations may run when recording is already off.
        let known = |span: (i64, i64)| Some(recorded_time(profile, span)).filter(|ns| *ns > 0).unwrap_or(span.1 - span.0);
        let length = span.map_or(0, known);
        let share = |covered: fn(&Covers) -> i64| {
            (length > 0 && !covers.is_empty())
                .then(|| covers.values().map(|c| covered(c) as f64).sum::<f64>() / (length as f64 * covers.len() as f64) * 100.0)
        };
        Self {
            span,
            busy_percent: share(|c| c.kernels.covered),
            copy_percent: share(|c| c.copies.covered),
            idle_percent: share(|c| c.all.covered).map(|busy| (100.0 - busy).max(0.0)),
            gaps: covers.values().map(|c| c.all.gaps).sum(),
            gap_ns: covers.values().map(|c| c.all.gap_ns).sum(),
            devices_used: covers.len(),
            copied_bytes: memops().filter(|m| m.kind != MemOpKind::Set).filter_map(|m| m.bytes).map(|b| b.0).sum(),
            pageable_copies: memops().filter(|m| is_pageable(m.kind)).count() as u64,
        }
    }

    pub fn span_length(&self) -> Option<i64> {
        self.span.map(|(a, b)| b.saturating_sub(a))
    }
}

fn is_pageable(kind: MemOpKind) -> bool {
    use crate::model::MemoryKind::Pageable;
    matches!(kind, MemOpKind::Copy { from, to, .. } if from == Some(Pageable) || to == Some(Pageable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cover_counts_overlap_once_and_long_gaps_only() {
        let mut cover = Cover::default();
        for (a, b) in [(0, 100), (50, 200), (60, 70), (10_200, 10_300), (20_301, 20_400)] {
            cover.add_interval(a, b);
        }
        assert_eq!((cover.covered, cover.gaps, cover.gap_ns), (200 + 100 + 99, 1, 10_001));
    }
}
