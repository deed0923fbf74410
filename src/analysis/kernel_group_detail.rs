//! Details of one group of launches: its configurations, streams, devices, processes and ranges.

use super::median_launch::median_launch;
use super::{Grouping, Occupancy, Paths};
use crate::model::{Cancel, KernelId, LaunchId, Profile};
use std::collections::{BTreeMap, HashMap};

/// Values, each with its number of occurrences among a group's launches.
pub type Counted<T> = Vec<(T, u64)>;

/// Contents of the detail pane of a group.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Launch configurations, most frequent first: index, number of launches, and occupancy on the device that ran most
    /// of them.
    pub configs: Vec<(u32, u64, Option<Occupancy>)>,
    /// Streams, most frequent first, as (stream, context).
    pub streams: Counted<(Option<u32>, Option<u32>)>,
    /// Devices by index.
    pub devices: Counted<Option<u32>>,
    pub pids: Counted<Option<u32>>,
    /// NVTX paths; `None` stands for launches outside of all ranges. Empty if paths are unknown.
    pub paths: Counted<Option<u32>>,
    /// First launch of the group.
    pub first: Option<LaunchId>,
    pub slowest: Option<LaunchId>,
    /// The launch that stands for the group (see [`median_launch`]).
    pub median: Option<LaunchId>,
    /// Kernels with their time in ns, longest first; empty if there is only one.
    pub kernels: Vec<(KernelId, i64)>,
    /// Number of launches that came from a CUDA graph.
    pub from_graphs: u64,
    /// Shortest and longest duration in each of [`SLICES`] slices of the run, ns; the run extends from the first
    /// launch's start to the last one's. Empty if launches have no times.
    pub over_time: Vec<Option<(i64, i64)>>,
}

/// Number of time slices in [`Detail::over_time`].
pub const SLICES: usize = 128;

/// Sorts by count, most frequent first.
pub(super) fn sort_counts<T: Ord>(counts: BTreeMap<T, u64>) -> Counted<T> {
    let mut out: Vec<(T, u64)> = counts.into_iter().collect();
    out.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    out
}

/// Number of launches to process between two checks of the cancellation flag.
const LOOK: usize = 1 << 16;

impl Detail {
    /// Collects the details of a row; `None` if cancelled.
    pub fn for_row(profile: &Profile, paths: Option<&Paths>, grouping: &Grouping, row: usize, cancel: &Cancel) -> Option<Self> {
        collect_detail(profile, paths, grouping, row, cancel)
    }
}

fn collect_detail(profile: &Profile, paths: Option<&Paths>, grouping: &Grouping, row: usize, cancel: &Cancel) -> Option<Detail> {
    let launches = &profile.launches;
    let mut configs: HashMap<u32, u64> = HashMap::new();
    let mut places: HashMap<u32, u64> = HashMap::new();
    let mut path_counts: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    let mut kernels = vec![None::<i64>; profile.kernels.len()];
    let mut out = Detail::default();
    let mut slowest = (i64::MIN, None);
    let mut rows: Vec<u32> = Vec::new();
    let with_paths = paths.is_some_and(|p| !p.of_launch.is_empty());
    // Launches are in call order: on several streams, the first one called may be the last one to start.
    let starts = || (0..launches.len()).map(|row| launches.start(row));
    let ends = launches.has_start_times().then(|| starts().min().zip(starts().max())).flatten();
    out.over_time = vec![None; if ends.is_some_and(|(a, b)| a < b) { SLICES } else { 0 }];
    let slice = |start: i64| {
        let (from, to) = ends?;
        let at = (start.clamp(from, to) - from) as f64 / (to - from).max(1) as f64 * SLICES as f64;
        Some((at as usize).min(SLICES - 1))
    };
    for launch in 0..launches.len() {
        if launch % LOOK == 0 && cancel.is_cancelled() {
            return None;
        }
        if grouping.row_of(profile, paths, launch) != Some(row) {
            continue;
        }
        let id = LaunchId(u32::try_from(launch).unwrap_or(u32::MAX));
        out.first = out.first.or(Some(id));
        rows.push(id.0);
        let duration = launches.duration(launch);
        if let Some(time) = kernels.get_mut(launches.kernel(launch).0 as usize) {
            *time = Some(time.unwrap_or_default().saturating_add(duration));
        }
        if let Some(extent) = slice(launches.start(launch)).and_then(|at| out.over_time.get_mut(at)) {
            *extent = Some(extent.map_or((duration, duration), |(a, b)| (a.min(duration), b.max(duration))));
        }
        if launches.duration(launch) > slowest.0 {
            slowest = (launches.duration(launch), Some(id));
        }
        if let Some(c) = launches.config(launch) {
            *configs.entry(c.0).or_default() += 1;
        }
        if let Some(p) = launches.place(launch) {
            *places.entry(p.0).or_default() += 1;
        }
        if with_paths {
            *path_counts.entry(paths.and_then(|p| p.launch_path(launch))).or_default() += 1;
        }
        out.from_graphs += u64::from(launches.graph_node(launch).is_some());
    }
    out.slowest = slowest.1;
    out.median = median_launch(profile, &rows).map(LaunchId);
    out.kernels = (0..).map(KernelId).zip(kernels).filter_map(|(kernel, ns)| Some((kernel, ns?))).collect();
    if out.kernels.len() < 2 {
        out.kernels.clear();
    }
    out.kernels.sort_by_key(|(kernel, ns)| (std::cmp::Reverse(*ns), *kernel));
    let (mut streams, mut devices, mut pids) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (place, n) in places {
        if let Some(p) = profile.places.get(place as usize) {
            *streams.entry((p.stream, p.context)).or_default() += n;
            *devices.entry(p.device).or_default() += n;
            *pids.entry(p.pid).or_default() += n;
        }
    }
    (out.streams, out.devices, out.pids, out.paths) =
        (sort_counts(streams), sort_counts(devices), sort_counts(pids), sort_counts(path_counts));
    let device = out.devices.first().and_then(|d| profile.devices.get(d.0? as usize));
    let configs: BTreeMap<u32, u64> = configs.into_iter().collect();
    out.configs = sort_counts(configs)
        .into_iter()
        .map(|(c, n)| (c, n, device.zip(profile.configs.get(c as usize)).and_then(|(d, c)| Occupancy::from_config(c, d))))
        .collect();
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::GroupBy;
    use crate::model::{Kernel, LaunchColumns, Launches, Source};

    /// On two streams, the first launch may start after the last one.
    #[test]
    fn launches_are_not_in_the_order_of_their_starts() {
        let mut columns = LaunchColumns::default();
        for start in [9_000, 4_000, 1_000] {
            columns.start.push(start);
            columns.duration.push(Some(500));
            columns.kernel.push(0);
        }
        let kernels = vec![Kernel { demangled: Some("k(int)".into()), ..Kernel::default() }];
        let profile = Profile { launches: Launches::new(columns), kernels, ..Profile::new(Source::default()) };
        let grouping = Grouping::from_profile(&profile, GroupBy::Kernel, None);
        let detail = Detail::for_row(&profile, None, &grouping, 0, &Cancel::default()).unwrap();
        assert!(detail.over_time.first().unwrap().is_some() && detail.over_time.last().unwrap().is_some());
        assert_eq!(detail.over_time.iter().flatten().count(), 3);
    }
}
