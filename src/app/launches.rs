//! State of the launches screen: which launches, in which order, and where the selection is.

use super::work::LaunchList;
use crate::analysis::{GroupBy, Grouping};
use crate::model::{Place, Profile};
use std::sync::Arc;

/// What launches are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaunchSort {
    /// Launch order: what a re-run counts.
    Launch,
    /// Device start.
    Start,
    /// Duration.
    Duration,
    /// Blocks in the grid.
    Grid,
    /// Stream.
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

    /// Whether the smallest comes first unless turned round.
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
    /// Stream id.
    pub stream: Option<Option<u32>>,
    /// Device index.
    pub device: Option<Option<u32>>,
    /// Process id.
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
    /// Conditions.
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

/// The launches screen.
#[derive(Clone, Debug)]
pub struct LaunchesScreen {
    /// The grouping that the group is from.
    pub grouping: Arc<Grouping>,
    /// The group's row in it.
    pub row: usize,
    /// Conditions.
    pub facets: Facets,
    /// Order.
    pub sort: LaunchSort,
    /// Smallest first.
    pub ascending: bool,
    /// The launches, once they are there.
    pub list: Option<Arc<LaunchList>>,
    /// Index of the selected launch in the list.
    pub selected: usize,
    /// Number of this screen.
    serial: u64,
    /// What `list` was made with.
    list_key: ListKey,
    /// Another order was chosen: its first launch is what the user wants to see.
    pub to_first: bool,
    /// A launch to select as soon as the list is there.
    pub wanted: Option<u32>,
}

impl LaunchesScreen {
    /// A screen for one group, in launch order.
    #[must_use]
    pub fn new(grouping: Arc<Grouping>, row: usize, serial: u64) -> Self {
        Self {
            grouping,
            row,
            facets: Facets::default(),
            sort: LaunchSort::Launch,
            ascending: true,
            list: None,
            selected: 0,
            serial,
            list_key: ListKey::default(),
            to_first: false,
            wanted: None,
        }
    }

    /// Number of launches listed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.as_ref().map_or(0, |l| l.rows.len())
    }

    /// True when none are listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The selected launch.
    #[must_use]
    pub fn launch(&self) -> Option<u32> {
        self.list.as_ref()?.rows.get(self.selected).map(|r| r.0)
    }

    /// What the list should be.
    #[must_use]
    pub fn key(&self) -> ListKey {
        ListKey { serial: self.serial, facets: self.facets.clone(), sort: Some(self.sort), ascending: self.ascending }
    }

    /// Whether the list is not yet what it should be.
    #[must_use]
    pub fn pending(&self) -> bool {
        self.list_key != self.key()
    }

    /// Takes a list if it is the one that was asked for last, and keeps the selected launch selected.
    pub fn take(&mut self, key: ListKey, list: Arc<LaunchList>) {
        if key != self.key() {
            return;
        }
        self.list_key = key;
        let now = if std::mem::take(&mut self.to_first) { None } else { self.launch() };
        let want = self.wanted.take().or(now);
        self.selected = want.and_then(|w| list.rows.iter().position(|r| r.0 == w)).unwrap_or(0);
        self.list = Some(list);
    }

    /// Selects a launch by what it is; false when there is none.
    pub fn jump(&mut self, to: JumpTo) -> bool {
        let Some(list) = &self.list else { return false };
        let wanted = match to {
            JumpTo::Slowest => list.slowest,
            JumpTo::Fastest => list.fastest,
            JumpTo::Median => list.median,
            JumpTo::First => list.first,
            // Which they are the report knows.
            JumpTo::Profiled => None,
            JumpTo::Nth(n) => list.rows.iter().find(|r| r.1 == n).map(|r| r.0),
        };
        match wanted.and_then(|w| list.rows.iter().position(|r| r.0 == w)) {
            Some(at) => {
                self.selected = at;
                true
            }
            None => false,
        }
    }

    /// Selects the next launch of which something holds, from the beginning when there is none below; false when there is none at all.
    pub fn jump_where(&mut self, holds: impl Fn(u32) -> bool) -> bool {
        let Some(list) = &self.list else { return false };
        let n = list.rows.len();
        let found = (1..=n).map(|i| (self.selected + i) % n).find(|&i| list.rows.get(i).is_some_and(|r| holds(r.0)));
        self.selected = found.unwrap_or(self.selected);
        found.is_some()
    }

    /// What the screen is about.
    #[must_use]
    pub fn group_name(&self) -> &str {
        self.grouping.rows.get(self.row).map_or("", |r| &r.name)
    }

    /// The grouping's kind.
    #[must_use]
    pub fn by(&self) -> GroupBy {
        self.grouping.by
    }
}
