//! Analyses that take longer than a frame on a large report: what is asked, what comes back, and the pure function between.

use super::hints::{self, Verdict};
use super::launches::{Facets, LaunchSort, ListKey};
pub use super::planning::Picked;
use super::rerun::Request;
use crate::analysis::{GroupBy, Grouping, Occupancy, Overview, Paths, Stats, next, series};
use crate::model::{LaunchId, Metrics, Profile};
use crate::rerun::Plan;
use crate::rerun::join::{self, Join};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Columns of the duration-over-time plot; the screen joins neighbours to fit.
pub const PLOT_COLUMNS: usize = 480;
/// Bins of the duration histogram; the screen joins neighbours to fit.
pub const PLOT_BINS: usize = 120;

/// A piece of analysis.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Header figures and the next step.
    Overview,
    /// NVTX paths of all launches.
    Paths,
    /// Groups.
    Group(GroupBy),
    /// Details of one group.
    Detail {
        /// Its grouping.
        grouping: Arc<Grouping>,
        /// Its row.
        row: usize,
        /// Number of the question: only the answer to the newest is wanted.
        serial: u64,
    },
    /// Launches of one group, picked and ordered.
    Launches {
        /// The group's grouping.
        grouping: Arc<Grouping>,
        /// The group's row.
        row: usize,
        /// Which of its launches, in which order, and for which screen.
        key: ListKey,
        /// The list that is shown now: when only the order changes, the rest of it is still right.
        before: Option<Arc<LaunchList>>,
    },
    /// First hints of the results.
    Verdicts,
    /// Which launches the results of another report are of.
    Join {
        /// The other report.
        other: usize,
        /// Its results.
        metrics: Arc<Metrics>,
    },
    /// What changed from another report to this one.
    Diff {
        /// The report before.
        before: Arc<Profile>,
        /// What launches are grouped by.
        by: GroupBy,
        /// Indices of both reports.
        pair: (usize, usize),
    },
    /// Commands of the re-run screen.
    Rerun {
        /// The groups' grouping.
        grouping: Arc<Grouping>,
        /// The groups' rows.
        rows: Vec<usize>,
        /// What is wanted.
        request: Request,
        /// Number of the screen.
        serial: u64,
    },
}

/// A piece of analysis with what it works on.
#[derive(Clone, Debug)]
pub struct Work {
    /// Index of the report in the session.
    pub report: usize,
    /// Which state of the report this is about; results for an older one are dropped.
    pub generation: u64,
    /// The profile.
    pub profile: Arc<Profile>,
    /// NVTX paths, once they are known.
    pub paths: Option<Arc<Paths>>,
    /// What is asked.
    pub ask: Ask,
}

/// What came out.
#[derive(Clone, Debug)]
pub enum Done {
    /// Header figures and the next step.
    Overview(Arc<Overview>, String),
    /// NVTX paths.
    Paths(Arc<Paths>),
    /// Groups.
    Group(Arc<Grouping>),
    /// First hints of the report's own results.
    Verdicts(Arc<HashMap<usize, Verdict>>),
    /// Pairs with another report's results, with ncu's durations and the first hints of these results.
    Joined(usize, Arc<Join>, Arc<Vec<(usize, crate::model::Nanos)>>, Arc<HashMap<usize, Verdict>>),
    /// What changed between two reports.
    Diff((usize, usize), Arc<crate::analysis::diff::Diff>),
    /// Details of a group: the question's number, the grouping, the row.
    Detail(u64, GroupBy, usize, Arc<Detail>),
    /// Launches.
    Launches(ListKey, Arc<LaunchList>),
    /// Commands: the screen's number, what was wanted, what was picked, and what came out.
    Rerun(u64, Box<Request>, Arc<Picked>, Result<Arc<Plan>, String>),
}

/// A value with how often it occurs among a group's launches.
pub type Counted<T> = Vec<(T, u64)>;

/// What the detail pane shows of a group.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Configurations, most frequent first: index, launches, occupancy on the device where most of them ran.
    pub configs: Vec<(u32, u64, Option<Occupancy>)>,
    /// Streams, most frequent first, as (stream, context).
    pub streams: Counted<(Option<u32>, Option<u32>)>,
    /// Devices by index.
    pub devices: Counted<Option<u32>>,
    /// Process ids.
    pub pids: Counted<Option<u32>>,
    /// NVTX paths; `None` is outside every range. Empty when paths are not known.
    pub paths: Counted<Option<u32>>,
    /// First launch.
    pub first: Option<LaunchId>,
    /// Slowest launch.
    pub slowest: Option<LaunchId>,
    /// Launches that came from a CUDA graph.
    pub from_graphs: u64,
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
    /// Streams.
    pub streams: Counted<Option<u32>>,
    /// Devices by index.
    pub devices: Counted<Option<u32>>,
    /// Process ids.
    pub pids: Counted<Option<u32>>,
    /// NVTX paths.
    pub paths: Counted<Option<u32>>,
}

/// Does a piece of analysis.
#[must_use]
pub fn perform(work: &Work) -> Done {
    let profile = &*work.profile;
    let paths = work.paths.as_deref();
    match &work.ask {
        Ask::Overview => {
            let overview = Overview::of(profile);
            let sentence = next::sentence(profile, &overview, &Grouping::of(profile, GroupBy::Name, None));
            Done::Overview(Arc::new(overview), sentence)
        }
        Ask::Verdicts => {
            let metrics = profile.metrics.as_deref();
            Done::Verdicts(Arc::new(metrics.map(|m| hints::verdicts(m, 0..m.results.len())).unwrap_or_default()))
        }
        Ask::Join { other, metrics } => {
            let join = join::join(profile, metrics);
            let duration = |p: &join::Pair| Some((p.result, metrics.duration(metrics.results.get(p.result)?)?));
            let durations = join.pairs.iter().filter_map(duration).collect();
            let verdicts = hints::verdicts(metrics, join.pairs.iter().map(|p| p.result));
            Done::Joined(*other, Arc::new(join), Arc::new(durations), Arc::new(verdicts))
        }
        Ask::Diff { before, by, pair } => Done::Diff(*pair, Arc::new(crate::analysis::diff::diff(before, profile, *by))),
        Ask::Paths => Done::Paths(Arc::new(Paths::of(profile))),
        Ask::Group(by) => Done::Group(Arc::new(Grouping::of(profile, *by, paths))),
        Ask::Rerun { grouping, rows, request, serial } => {
            let (picked, plan) = super::planning::perform(profile, paths, grouping, rows, request);
            Done::Rerun(*serial, Box::new(request.clone()), Arc::new(picked), plan)
        }
        Ask::Detail { grouping, row, serial } => Done::Detail(*serial, grouping.by, *row, Arc::new(detail(profile, paths, grouping, *row))),
        Ask::Launches { grouping, row, key, before } => {
            let with_paths = paths.is_some();
            let mut out = match before.as_deref().filter(|b| b.facets == key.facets && b.with_paths == with_paths) {
                Some(before) => before.clone(),
                None => list(profile, paths, grouping, *row, &key.facets),
            };
            let sort = key.sort.unwrap_or(LaunchSort::Launch);
            if sort == LaunchSort::Launch && key.ascending {
                out.rows.sort_unstable();
            }
            sort.order(profile, &mut out.rows, key.ascending);
            Done::Launches(key.clone(), Arc::new(out))
        }
    }
}

fn counted<T: Ord>(counts: BTreeMap<T, u64>) -> Counted<T> {
    let mut out: Vec<(T, u64)> = counts.into_iter().collect();
    out.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    out
}

/// Values of a facet that can be picked: the most frequent ones.
const MOST_CHOICES: usize = 2_000;

fn most<T>(mut values: Counted<T>) -> Counted<T> {
    values.truncate(MOST_CHOICES);
    values
}

fn detail(profile: &Profile, paths: Option<&Paths>, grouping: &Grouping, row: usize) -> Detail {
    let launches = &profile.launches;
    let mut configs: HashMap<u32, u64> = HashMap::new();
    let mut places: HashMap<u32, u64> = HashMap::new();
    let mut path_counts: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    let mut out = Detail::default();
    let mut slowest = (i64::MIN, None);
    let with_paths = paths.is_some_and(|p| !p.of_launch.is_empty());
    for launch in 0..launches.len() {
        if grouping.row_of(profile, paths, launch) != Some(row) {
            continue;
        }
        let id = LaunchId(u32::try_from(launch).unwrap_or(u32::MAX));
        out.first = out.first.or(Some(id));
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
            *path_counts.entry(paths.and_then(|p| p.path(launch))).or_default() += 1;
        }
        out.from_graphs += u64::from(launches.graph_node(launch).is_some());
    }
    out.slowest = slowest.1;
    let (mut streams, mut devices, mut pids) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (place, n) in places {
        if let Some(p) = profile.places.get(place as usize) {
            *streams.entry((p.stream, p.context)).or_default() += n;
            *devices.entry(p.device).or_default() += n;
            *pids.entry(p.pid).or_default() += n;
        }
    }
    (out.streams, out.devices, out.pids, out.paths) = (counted(streams), counted(devices), counted(pids), counted(path_counts));
    let device = out.devices.first().and_then(|d| profile.devices.get(d.0? as usize));
    let configs: BTreeMap<u32, u64> = configs.into_iter().collect();
    out.configs = counted(configs)
        .into_iter()
        .map(|(c, n)| (c, n, device.zip(profile.configs.get(c as usize)).and_then(|(d, c)| Occupancy::of(c, d))))
        .collect();
    out
}

fn list(profile: &Profile, paths: Option<&Paths>, grouping: &Grouping, row: usize, facets: &Facets) -> LaunchList {
    let launches = &profile.launches;
    let functions = function_ids(profile);
    let mut nth: HashMap<(Option<u32>, u32), u32> = HashMap::new();
    let (mut streams, mut devices, mut pids, mut path_counts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut rows: Vec<(u32, u32)> = Vec::new();
    let nothing = crate::model::Place::default();
    for launch in 0..launches.len() {
        let place = launches.place(launch).and_then(|p| profile.places.get(p.0 as usize)).unwrap_or(&nothing);
        let count = nth.entry((place.pid, functions[launches.kernel(launch).0 as usize])).or_default();
        let before = *count;
        *count += 1;
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
    out
}

/// A number for each kernel that kernels of the same function name share.
fn function_ids(profile: &Profile) -> Vec<u32> {
    let mut ids: HashMap<&str, u32> = HashMap::new();
    profile
        .kernels
        .iter()
        .map(|k| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            *ids.entry(k.function()).or_insert(next)
        })
        .collect()
}
