//! Launches of one group: filter, order, distribution of durations, and values to filter by.

use super::invocation::Nth;
use super::kernel_group_detail::{Counted, sort_counts};
use super::median_launch::median_launch;
use super::table::Sort;
use super::table::launches::{LAUNCH, sort_launches};
use super::{Grouping, Paths, Stats, series};
use crate::model::{Cancel, LaunchSite, Profile};
use std::collections::BTreeMap;

/// Columns of the duration-over-time plot; the screen merges neighbors to fit.
pub const PLOT_COLUMNS: usize = 480;
/// Bins of the duration histogram; the screen merges neighbors to fit.
pub const PLOT_BINS: usize = 120;

/// Filter on launch properties; an outer `None` accepts everything, an inner `None` only launches without the property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    pub stream: Option<Option<u32>>,
    pub device: Option<Option<u32>>,
    pub pid: Option<Option<u32>>,
    /// Path of the innermost NVTX range; launches in nested paths are excluded.
    pub path: Option<Option<u32>>,
}

impl Facets {
    /// Returns true if a launch passes the filter.
    pub fn accepts_launch(&self, place: &LaunchSite, path: Option<u32>) -> bool {
        let ok = |want: Option<Option<u32>>, have: Option<u32>| want.is_none_or(|w| w == have);
        ok(self.stream, place.stream) && ok(self.device, place.device) && ok(self.pid, place.pid) && ok(self.path, path)
    }

    /// Returns true if any condition is set.
    pub fn has_conditions(&self) -> bool {
        *self != Self::default()
    }
}

/// Identity of a launch list: the screen that requested it, and its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListKey {
    /// Unique number of the screen.
    pub serial: u64,
    pub facets: Facets,
    /// Sort order; `None` before the first list.
    pub sort: Option<Sort>,
    /// Smallest first.
    pub ascending: bool,
}

/// Target of a jump in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpTo {
    /// Longest duration.
    Slowest,
    /// Duration closest to the median.
    Median,
    /// Shortest duration.
    Fastest,
    First,
    /// The nth launch of its function in its process, from 0.
    Nth(u32),
    /// Next launch with an ncu result.
    Profiled,
}

/// Launches of a group, as shown on the launches screen.
#[derive(Clone, Debug, Default)]
pub struct LaunchList {
    /// (launch, number of earlier launches of the same function in the same process).
    pub rows: Vec<(u32, u32)>,
    /// Statistics of the launches' durations.
    pub stats: Option<Stats>,
    /// Histogram of durations in bins of equal ratio, minimum, and maximum.
    pub histogram: (Vec<u64>, i64, i64),
    /// Minimum and maximum duration in each slice of time.
    pub over_time: Vec<Option<(i64, i64)>>,
    /// Start of the first and of the last launch.
    pub time: Option<(i64, i64)>,
    /// Values to filter by, from all launches in the group.
    pub choices: Choices,
    /// Launch with the longest duration.
    pub slowest: Option<u32>,
    /// Launch with the shortest duration.
    pub fastest: Option<u32>,
    /// Launch with the duration closest to the median.
    pub median: Option<u32>,
    /// First launch in launch order.
    pub first: Option<u32>,
    /// Filter that produced this list.
    pub facets: Facets,
    /// True if NVTX paths were known when the list was built.
    pub with_paths: bool,
}

/// Values that occur among a group's launches, most frequent first.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    pub streams: Counted<Option<u32>>,
    /// Devices by index.
    pub devices: Counted<Option<u32>>,
    pub pids: Counted<Option<u32>>,
    pub paths: Counted<Option<u32>>,
}

/// Maximum number of values offered per facet; the most frequent ones are kept.
const MOST_CHOICES: usize = 2_000;

fn most_frequent<T>(mut values: Counted<T>) -> Counted<T> {
    values.truncate(MOST_CHOICES);
    values
}

/// Number of launches to process between two checks of the cancellation flag.
const LOOK: usize = 1 << 16;

impl LaunchList {
    /// Lists the launches of a group that pass the filter, sorted. `before` is the current list: if only the sort order
    /// has changed, everything else in it is reused. `None` if cancelled.
    pub fn from_group(
        profile: &Profile,
        paths: Option<&Paths>,
        (grouping, row): (&Grouping, usize),
        key: &ListKey,
        before: Option<&Self>,
        cancel: &Cancel,
    ) -> Option<Self> {
        let mut out = match before.filter(|b| b.facets == key.facets && b.with_paths == paths.is_some()) {
            Some(before) => before.clone(),
            None => build_list(profile, paths, (grouping, row), &key.facets, cancel)?,
        };
        let sort = key.sort.unwrap_or(LAUNCH);
        if sort == LAUNCH && key.ascending {
            out.rows.sort_unstable();
        }
        sort_launches(profile, sort, &mut out.rows, key.ascending);
        (!cancel.is_cancelled()).then_some(out)
    }

    pub fn row_of_launch(&self, launch: u32) -> Option<usize> {
        self.rows.iter().position(|r| r.0 == launch)
    }

    /// Returns the row of a jump target. `profiled` returns true for launches with results; the search for one starts
    /// below row `from` and wraps around.
    pub fn find_jump_target(&self, to: JumpTo, from: usize, profiled: impl Fn(u32) -> bool) -> Option<usize> {
        let launch = match to {
            JumpTo::Slowest => self.slowest,
            JumpTo::Fastest => self.fastest,
            JumpTo::Median => self.median,
            JumpTo::First => self.first,
            JumpTo::Nth(n) => return self.rows.iter().position(|r| r.1 == n),
            JumpTo::Profiled => {
                let n = self.rows.len();
                return (1..=n).map(|i| (from + i) % n).find(|&i| self.rows.get(i).is_some_and(|r| profiled(r.0)));
            }
        };
        self.row_of_launch(launch?)
    }
}

fn build_list(
    profile: &Profile,
    paths: Option<&Paths>,
    (grouping, row): (&Grouping, usize),
    facets: &Facets,
    cancel: &Cancel,
) -> Option<LaunchList> {
    let launches = &profile.launches;
    let mut nth = Nth::new(profile);
    let (mut streams, mut devices, mut pids, mut path_counts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let nothing = LaunchSite::default();
    for launch in 0..launches.len() {
        if launch % LOOK == 0 && cancel.is_cancelled() {
            return None;
        }
        let place = launches.place(launch).and_then(|p| profile.places.get(p.0 as usize)).unwrap_or(&nothing);
        let before = nth.next(launch);
        if grouping.row_of(profile, paths, launch) != Some(row) {
            continue;
        }
        let path = paths.and_then(|p| p.launch_path(launch));
        *streams.entry(place.stream).or_default() += 1;
        *devices.entry(place.device).or_default() += 1;
        *pids.entry(place.pid).or_default() += 1;
        *path_counts.entry(path).or_default() += 1;
        if facets.accepts_launch(place, path) {
            rows.push((u32::try_from(launch).unwrap_or(u32::MAX), before));
        }
    }
    // Launches without valid times are listed, but have no duration that could be counted.
    let timed: Vec<u32> = rows.iter().map(|r| r.0).filter(|&r| profile.has_time(r as usize)).collect();
    let durations = timed.iter().map(|&r| launches.duration(r as usize));
    let stats = Stats::from_values(&mut durations.clone().collect::<Vec<_>>());
    let points = timed.iter().map(|&r| (launches.start(r as usize), launches.duration(r as usize)));
    let time = points.clone().fold(None, |t: Option<(i64, i64)>, (s, _)| Some(t.map_or((s, s), |(a, b)| (a.min(s), b.max(s)))));
    let mut out = LaunchList {
        stats,
        histogram: series::log_bins(durations, PLOT_BINS),
        over_time: series::time_envelope(points, PLOT_COLUMNS),
        time,
        choices: Choices {
            streams: most_frequent(sort_counts(streams)),
            devices: most_frequent(sort_counts(devices)),
            pids: most_frequent(sort_counts(pids)),
            paths: most_frequent(sort_counts(path_counts)),
        },
        rows: Vec::new(),
        slowest: None,
        fastest: None,
        median: None,
        first: rows.first().map(|r| r.0),
        facets: facets.clone(),
        with_paths: paths.is_some(),
    };
    let duration = |r: &u32| launches.duration(*r as usize);
    // Among launches of equal duration, take the first.
    out.slowest = timed.iter().rev().max_by_key(|r| duration(r)).copied();
    out.fastest = timed.iter().min_by_key(|r| duration(r)).copied();
    out.median = median_launch(profile, &timed);
    out.rows = rows;
    Some(out)
}
