//! The launches of one group: which, in which order, how their durations are distributed, and what can be picked among them.

use super::group_detail::{Counted, counted};
use super::nth::Nth;
use super::{Grouping, Paths, Stats, series};
use crate::model::{Cancel, Place, Profile};
use std::collections::BTreeMap;

/// Columns of the duration-over-time plot; the screen joins neighbours to fit.
pub const PLOT_COLUMNS: usize = 480;
/// Bins of the duration histogram; the screen joins neighbours to fit.
pub const PLOT_BINS: usize = 120;

/// What launches are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchSort {
    /// Launch order: what a re-run counts.
    Launch,
    Start,
    Duration,
    /// Blocks in the grid.
    Grid,
    Stream,
}

impl LaunchSort {
    /// All orders.
    pub const ALL: [Self; 5] = [Self::Launch, Self::Start, Self::Duration, Self::Grid, Self::Stream];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Start => "start",
            Self::Duration => "duration",
            Self::Grid => "grid",
            Self::Stream => "stream",
        }
    }

    /// Whether the smallest comes first unless reversed.
    #[must_use]
    pub fn ascends(self) -> bool {
        matches!(self, Self::Launch | Self::Start | Self::Stream)
    }

    /// Orders launches; equal ones by launch order.
    pub fn order(self, profile: &Profile, rows: &mut [(u32, u32)], ascending: bool) {
        let launches = &profile.launches;
        let key = |row: u32| -> i64 {
            let row = row as usize;
            match self {
                Self::Launch => i64::try_from(row).unwrap_or(i64::MAX),
                Self::Start => launches.start(row),
                Self::Duration => launches.duration(row),
                Self::Grid => {
                    let config = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize));
                    config.and_then(crate::model::LaunchConfig::blocks).map_or(-1, |b| i64::try_from(b).unwrap_or(i64::MAX))
                }
                Self::Stream => {
                    launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| p.stream).map_or(-1, i64::from)
                }
            }
        };
        if self == Self::Launch && ascending {
            return;
        }
        if ascending {
            rows.sort_unstable_by_key(|&(r, _)| (key(r), r));
        } else {
            rows.sort_unstable_by_key(|&(r, _)| (std::cmp::Reverse(key(r)), r));
        }
    }
}

/// Only launches with these values; `None` in the outer option is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    pub stream: Option<Option<u32>>,
    /// Device index.
    pub device: Option<Option<u32>>,
    pub pid: Option<Option<u32>>,
    /// NVTX path; with one path also those below it are left out: it is the innermost range that counts.
    pub path: Option<Option<u32>>,
}

impl Facets {
    /// Whether a launch passes.
    #[must_use]
    pub fn pass(&self, place: &Place, path: Option<u32>) -> bool {
        let ok = |want: Option<Option<u32>>, have: Option<u32>| want.is_none_or(|w| w == have);
        ok(self.stream, place.stream) && ok(self.device, place.device) && ok(self.pid, place.pid) && ok(self.path, path)
    }

    /// Whether any condition is set.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// What a list of launches is: which screen asked for it, and with what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListKey {
    /// Number of the screen: no two have the same.
    pub serial: u64,
    pub facets: Facets,
    /// Order; `None` before the first list.
    pub sort: Option<LaunchSort>,
    /// Smallest first.
    pub ascending: bool,
}

/// Where to go in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpTo {
    /// Longest duration.
    Slowest,
    /// Duration nearest to the median.
    Median,
    /// Shortest duration.
    Fastest,
    /// First in launch order.
    First,
    /// The nth launch of its function in its process, from 0.
    Nth(u32),
    /// The next one that ncu has profiled.
    Profiled,
}

/// Launches of a group as the launches screen shows them.
#[derive(Clone, Debug, Default)]
pub struct LaunchList {
    /// (launch, how many launches of the same function in the same process came before).
    pub rows: Vec<(u32, u32)>,
    /// Statistics of their durations.
    pub stats: Option<Stats>,
    /// Histogram of durations in bins of equal ratio, with least and greatest.
    pub histogram: (Vec<u64>, i64, i64),
    /// Least and greatest duration in each slice of time.
    pub over_time: Vec<Option<(i64, i64)>>,
    /// Start of the first and of the last launch.
    pub time: Option<(i64, i64)>,
    /// Values that can be picked, from all launches of the group.
    pub choices: Choices,
    /// The launch with the longest duration.
    pub slowest: Option<u32>,
    /// The launch with the shortest.
    pub fastest: Option<u32>,
    /// The launch nearest to the median.
    pub median: Option<u32>,
    /// The first in launch order.
    pub first: Option<u32>,
    /// The conditions that it was made with.
    pub facets: Facets,
    /// Whether NVTX paths were known when it was made.
    pub with_paths: bool,
}

/// Values that launches of a group have, most frequent first.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    pub streams: Counted<Option<u32>>,
    /// Devices by index.
    pub devices: Counted<Option<u32>>,
    pub pids: Counted<Option<u32>>,
    pub paths: Counted<Option<u32>>,
}

/// Values of a facet that can be picked: the most frequent ones.
const MOST_CHOICES: usize = 2_000;

fn most<T>(mut values: Counted<T>) -> Counted<T> {
    values.truncate(MOST_CHOICES);
    values
}

/// Launches between two looks at whether the list is still wanted.
const LOOK: usize = 1 << 16;

impl LaunchList {
    /// The launches of a group that pass, ordered. `before` is the list that is shown now: when only the order changes, the rest of it is still
    /// right. `None` when it is wanted no more.
    #[must_use]
    pub fn of(
        profile: &Profile,
        paths: Option<&Paths>,
        (grouping, row): (&Grouping, usize),
        key: &ListKey,
        before: Option<&Self>,
        cancel: &Cancel,
    ) -> Option<Self> {
        let mut out = match before.filter(|b| b.facets == key.facets && b.with_paths == paths.is_some()) {
            Some(before) => before.clone(),
            None => list(profile, paths, (grouping, row), &key.facets, cancel)?,
        };
        let sort = key.sort.unwrap_or(LaunchSort::Launch);
        if sort == LaunchSort::Launch && key.ascending {
            out.rows.sort_unstable();
        }
        sort.order(profile, &mut out.rows, key.ascending);
        (!cancel.is_cancelled()).then_some(out)
    }

    /// Where a launch is in the list.
    #[must_use]
    pub fn position(&self, launch: u32) -> Option<usize> {
        self.rows.iter().position(|r| r.0 == launch)
    }

    /// Where the launch is that is meant. `profiled` says which have results; it is asked from below `from` on, then from the beginning.
    #[must_use]
    pub fn find(&self, to: JumpTo, from: usize, profiled: impl Fn(u32) -> bool) -> Option<usize> {
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
        self.position(launch?)
    }
}

fn list(
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
    let nothing = Place::default();
    for launch in 0..launches.len() {
        if launch % LOOK == 0 && cancel.is_cancelled() {
            return None;
        }
        let place = launches.place(launch).and_then(|p| profile.places.get(p.0 as usize)).unwrap_or(&nothing);
        let before = nth.next(launch);
        if grouping.row_of(profile, paths, launch) != Some(row) {
            continue;
        }
        let path = paths.and_then(|p| p.path(launch));
        *streams.entry(place.stream).or_default() += 1;
        *devices.entry(place.device).or_default() += 1;
        *pids.entry(place.pid).or_default() += 1;
        *path_counts.entry(path).or_default() += 1;
        if facets.pass(place, path) {
            rows.push((u32::try_from(launch).unwrap_or(u32::MAX), before));
        }
    }
    let durations = rows.iter().map(|&(r, _)| launches.duration(r as usize));
    let stats = Stats::of(&mut durations.clone().collect::<Vec<_>>());
    let points = rows.iter().map(|&(r, _)| (launches.start(r as usize), launches.duration(r as usize)));
    let time = points.clone().fold(None, |t: Option<(i64, i64)>, (s, _)| Some(t.map_or((s, s), |(a, b)| (a.min(s), b.max(s)))));
    let mut out = LaunchList {
        stats,
        histogram: series::log_bins(durations, PLOT_BINS),
        over_time: series::envelope(points, PLOT_COLUMNS),
        time,
        choices: Choices {
            streams: most(counted(streams)),
            devices: most(counted(devices)),
            pids: most(counted(pids)),
            paths: most(counted(path_counts)),
        },
        rows: Vec::new(),
        slowest: None,
        fastest: None,
        median: None,
        first: rows.first().map(|r| r.0),
        facets: facets.clone(),
        with_paths: paths.is_some(),
    };
    let duration = |r: &(u32, u32)| launches.duration(r.0 as usize);
    // Of equal ones the first.
    out.slowest = rows.iter().rev().max_by_key(|r| duration(r)).map(|r| r.0);
    out.fastest = rows.iter().min_by_key(|r| duration(r)).map(|r| r.0);
    let middle = out.stats.as_ref().and_then(|s| s.median).unwrap_or_default();
    let off = |r: &(u32, u32)| (duration(r) as f64 - middle).abs();
    out.median = rows.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map(|r| r.0);
    out.rows = rows;
    Some(out)
}
