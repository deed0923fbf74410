//! Kernel launches, stored in columns to save memory (36 bytes each), because a report may contain tens of millions.
//!
//! Columns are wrapped in `Arc`, so that a later reading stage can add columns without copying those already displayed.

use super::{ConfigId, KernelId, LaunchSite, PlaceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Position of a launch in launch order, starting at 0, across the whole profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchId(pub u32);

/// Sentinel for a value that does not fit into its 32-bit column and is stored in a side table.
const WIDE: u32 = u32::MAX;
/// Sentinel for a missing value, such as the call of a launch whose API call is not in the report.
const NO_CALL: u32 = u32::MAX - 1;

/// A column of non-negative times, ns. Nearly all of them fit into 32 bits (4.29 s); the rest are in a side table.
#[derive(Clone, Debug, Default)]
struct ShortTimes {
    short: Arc<Vec<u32>>,
    wide: Arc<BTreeMap<u32, i64>>,
}

impl ShortTimes {
    fn get(&self, row: usize) -> Option<i64> {
        match *self.short.get(row)? {
            NO_CALL => None,
            WIDE => self.wide.get(&u32::try_from(row).ok()?).copied(),
            short => Some(i64::from(short)),
        }
    }

    fn set(&mut self, row: u32, value: Option<i64>) {
        let (short, wide) = TimesBuilder::squeeze_value(value);
        let Some(place) = Arc::make_mut(&mut self.short).get_mut(row as usize) else { return };
        *place = short;
        let others = Arc::make_mut(&mut self.wide);
        match wide {
            Some(wide) => others.insert(row, wide),
            None => others.remove(&row),
        };
    }

    fn with_order(&self, order: &[u32]) -> Self {
        let short = permute_column(&self.short, order);
        if self.wide.is_empty() {
            return Self { short: Arc::new(short), wide: Arc::default() };
        }
        let wide = order.iter().enumerate().filter_map(|(new, old)| Some((u32::try_from(new).ok()?, *self.wide.get(old)?)));
        Self { wide: Arc::new(wide.collect()), short: Arc::new(short) }
    }
}

/// Builds a `ShortTimes` column row by row.
#[derive(Debug, Default)]
pub struct TimesBuilder {
    short: Vec<u32>,
    wide: BTreeMap<u32, i64>,
}

impl TimesBuilder {
    /// Creates a builder with capacity for `rows` rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self { short: Vec::with_capacity(rows), wide: BTreeMap::new() }
    }

    /// Creates a builder from 32-bit values and a side table of the values that did not fit.
    pub fn from_parts(short: Vec<u32>, wide: BTreeMap<u32, i64>) -> Self {
        Self { short, wide }
    }

    /// Returns the 32-bit form of a value, plus the value itself if it must be stored in the side table.
    pub fn squeeze_value(value: Option<i64>) -> (u32, Option<i64>) {
        match value {
            None => (NO_CALL, None),
            Some(v) => match u32::try_from(v) {
                Ok(short) if short < NO_CALL => (short, None),
                _ => (WIDE, Some(v)),
            },
        }
    }

    pub fn push(&mut self, value: Option<i64>) {
        let (short, wide) = Self::squeeze_value(value);
        if let (Some(wide), Ok(row)) = (wide, u32::try_from(self.short.len())) {
            self.wide.insert(row, wide);
        }
        self.short.push(short);
    }

    /// Appends the rows of another builder.
    pub fn append(&mut self, other: Self) {
        if self.short.is_empty() {
            *self = other;
            return;
        }
        let before = u32::try_from(self.short.len()).unwrap_or(u32::MAX);
        self.wide.extend(other.wide.into_iter().map(|(row, value)| (row.saturating_add(before), value)));
        self.short.extend(other.short);
    }

    fn build(self) -> ShortTimes {
        ShortTimes { short: Arc::new(self.short), wide: Arc::new(self.wide) }
    }
}

/// Columns supplied by an importer. All non-empty columns have one entry per launch.
#[derive(Debug, Default)]
pub struct LaunchColumns {
    /// Device start, ns; empty if not read.
    pub start: Vec<i64>,
    /// Device duration, ns.
    pub duration: TimesBuilder,
    pub kernel: Vec<u32>,
}

/// All launches of a profile. With every column present, a launch takes 36 bytes: 8 for the start, and 4 each for
/// duration, kernel, configuration, place, time since the call, duration of the call, and graph node.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    start: Arc<Vec<i64>>,
    duration: ShortTimes,
    kernel: Arc<Vec<u32>>,
    config: Arc<Vec<u32>>,
    place: Arc<Vec<u32>>,
    since_call: ShortTimes,
    call_cost: ShortTimes,
    graph_node: Arc<Vec<u32>>,
    graph_nodes: Arc<Vec<u64>>,
    graphs_unidentified: bool,
    /// True if `since_call` counts from the start of the enclosing range, because calls were not recorded.
    since_range: bool,
}

/// Sentinel for a launch outside any graph.
pub const NO_NODE: u32 = u32::MAX;

impl Launches {
    /// Creates launches from the kernel table, which is read first; other columns are added later.
    pub fn new(columns: LaunchColumns) -> Self {
        Self { start: Arc::new(columns.start), duration: columns.duration.build(), kernel: Arc::new(columns.kernel), ..Self::default() }
    }

    /// Adds configurations, places and graph nodes; `graph_node` contains indices into `nodes`, or [`NO_NODE`].
    pub fn set_details(&mut self, config: Vec<u32>, place: Vec<u32>, graph_node: Vec<u32>, nodes: Vec<u64>) {
        self.config = Arc::new(config);
        self.place = Arc::new(place);
        self.graph_node = Arc::new(graph_node);
        self.graph_nodes = Arc::new(nodes);
    }

    /// Replaces the places, once the launching threads are known.
    pub fn set_places(&mut self, place: Vec<u32>) {
        self.place = Arc::new(place);
    }

    /// Adds the launching calls as device start minus call start, and call duration.
    pub fn set_calls(&mut self, since_call: TimesBuilder, cost: TimesBuilder) {
        self.since_call = since_call.build();
        self.call_cost = cost.build();
    }

    /// Adds the ranges in which kernels were launched, for reports without calls, as device start minus range start.
    pub fn set_ranges(&mut self, since_range: TimesBuilder) {
        self.since_call = since_range.build();
        self.since_range = true;
    }

    /// Replaces the start, and optionally the duration, of some rows. The times of their calls remain unchanged.
    pub fn set_times(&mut self, rows: &[(u32, i64, Option<i64>)]) {
        let calls: Vec<Option<i64>> = rows.iter().map(|r| self.launched_in(r.0 as usize)).collect();
        let start = Arc::make_mut(&mut self.start);
        for (&(row, time, duration), call) in rows.iter().zip(calls) {
            let Some(start) = start.get_mut(row as usize) else { continue };
            *start = time;
            self.duration.set(row, duration);
            self.since_call.set(row, call.map(|call| time.saturating_sub(call)));
        }
    }

    /// Subtracts `origin` from all starts. This also shifts the calls, which are stored relative to the starts.
    pub fn move_origin(&mut self, origin: i64) {
        for start in Arc::make_mut(&mut self.start) {
            *start = start.saturating_sub(origin);
        }
    }

    /// Returns true if the duration of a launch is known.
    pub fn has_duration(&self, row: usize) -> bool {
        self.duration.get(row).is_some()
    }

    pub fn len(&self) -> usize {
        self.kernel.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kernel.is_empty()
    }

    /// Returns true if start times are known.
    pub fn has_start_times(&self) -> bool {
        !self.start.is_empty()
    }

    /// Start on the device, ns on the session clock.
    pub fn start(&self, row: usize) -> i64 {
        self.start.get(row).copied().unwrap_or_default()
    }

    /// Duration on the device, ns.
    pub fn duration(&self, row: usize) -> i64 {
        self.duration.get(row).unwrap_or_default()
    }

    /// All durations in ns, if all are known and fit into 32 bits.
    pub fn short_durations(&self) -> Option<&[u32]> {
        let short = &self.duration.short;
        (self.duration.wide.is_empty() && short.len() == self.len() && !short.contains(&NO_CALL)).then_some(short)
    }

    /// End on the device, ns on the session clock.
    pub fn end(&self, row: usize) -> i64 {
        self.start(row).saturating_add(self.duration(row))
    }

    pub fn kernel(&self, row: usize) -> KernelId {
        KernelId(self.kernel.get(row).copied().unwrap_or_default())
    }

    /// Launch configuration; `None` until it has been read.
    pub fn config(&self, row: usize) -> Option<ConfigId> {
        self.config.get(row).copied().map(ConfigId)
    }

    /// Process, thread, device and stream of the launch; `None` until they have been read.
    pub fn place(&self, row: usize) -> Option<PlaceId> {
        self.place.get(row).copied().map(PlaceId)
    }

    /// Start and duration of the launching API call, ns.
    pub fn call(&self, row: usize) -> Option<(i64, i64)> {
        let start = self.launched_in(row).filter(|_| !self.since_range)?;
        Some((start, self.call_cost.get(row).unwrap_or_default()))
    }

    /// A time, ns, at which the ranges around the launch were open: the start of the launching call or, if calls were
    /// not recorded, of the range in which the kernel was launched.
    pub fn launched_in(&self, row: usize) -> Option<i64> {
        Some(self.start(row).saturating_sub(self.since_call.get(row)?))
    }

    /// Maps each call that made a wanted launch, by process and start, to the first launch of that call. Used to
    /// associate the memory copies of a CUDA graph, which are started by the same call as its kernels.
    pub fn by_call(&self, places: &[LaunchSite], wanted: impl Fn(usize) -> bool) -> FxHashMap<(u32, i64), u32> {
        let mut out = FxHashMap::default();
        for (row, at) in (0..).zip(0..self.len()).filter(|&(_, at)| wanted(at)) {
            let Some((call, _)) = self.call(at) else { continue };
            let pid = self.place(at).and_then(|p| places.get(p.0 as usize)).and_then(|p| p.pid).unwrap_or_default();
            out.entry((pid, call)).or_insert(row);
        }
        out
    }

    /// Id of the CUDA graph node executed by this launch.
    pub fn graph_node(&self, row: usize) -> Option<u64> {
        let node = *self.graph_node.get(row)?;
        if node == NO_NODE { None } else { self.graph_nodes.get(node as usize).copied() }
    }

    /// Row of the first launch of the same graph node.
    pub fn first_of_node(&self, row: usize) -> Option<usize> {
        let node = self.graph_node.get(row).filter(|&&n| n != NO_NODE)?;
        self.graph_node.iter().position(|n| n == node)
    }

    /// Marks the node ids as positions within their launch, because the report does not say which graph was launched.
    pub fn set_graphs_unidentified(&mut self) {
        self.graphs_unidentified = true;
    }

    /// Returns true if the node ids do not tell one graph from another.
    pub fn graphs_unidentified(&self) -> bool {
        self.graphs_unidentified
    }

    /// Returns true if any launch executed a node of a CUDA graph.
    pub fn has_graph_nodes(&self) -> bool {
        !self.graph_nodes.is_empty()
    }

    /// Columns used for grouping: kernel, configuration and place. Configuration and place are empty until they have
    /// been read.
    pub fn group_keys(&self) -> (&[u32], &[u32], &[u32]) {
        (&self.kernel, &self.config, &self.place)
    }

    /// Returns true if the rows are sorted by [`Self::order_key`].
    pub fn is_in_launch_order(&self) -> bool {
        let mut last = (i64::MIN, i64::MIN);
        (0..self.len()).all(|row| {
            let key = self.order_key(row);
            let ok = key >= last;
            last = key;
            ok
        })
    }

    /// Sort key for launch order: start of the launching call (device start if there is no call), then device start.
    pub fn order_key(&self, row: usize) -> (i64, i64) {
        let start = self.start(row);
        (self.call(row).map_or(start, |(call, _)| call), start)
    }

    /// Returns the launches in a new order: row `order[i]` moves to index `i`.
    pub fn with_order(&self, order: &[u32]) -> Self {
        Self {
            start: Arc::new(permute_column(&self.start, order)),
            duration: self.duration.with_order(order),
            kernel: Arc::new(permute_column(&self.kernel, order)),
            config: Arc::new(permute_column(&self.config, order)),
            place: Arc::new(permute_column(&self.place, order)),
            since_call: self.since_call.with_order(order),
            call_cost: self.call_cost.with_order(order),
            graph_node: Arc::new(permute_column(&self.graph_node, order)),
            graph_nodes: Arc::clone(&self.graph_nodes),
            graphs_unidentified: self.graphs_unidentified,
            since_range: self.since_range,
        }
    }

    /// Memory that the columns use per launch, bytes.
    pub fn bytes_per_launch(&self) -> usize {
        let narrow = [
            self.duration.short.len(),
            self.kernel.len(),
            self.config.len(),
            self.place.len(),
            self.since_call.short.len(),
            self.call_cost.short.len(),
            self.graph_node.len(),
        ];
        8 + 4 * narrow.iter().filter(|&&n| n > 0).count()
    }
}

fn permute_column<T: Copy>(column: &[T], order: &[u32]) -> Vec<T> {
    if column.is_empty() {
        return Vec::new();
    }
    order.iter().filter_map(|&row| column.get(row as usize).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Launches {
        let mut duration = TimesBuilder::default();
        for d in [Some(10), Some(5_000_000_000), Some(30)] {
            duration.push(d);
        }
        let mut launches = Launches::new(LaunchColumns { start: vec![100, 200, 300], duration, kernel: vec![0, 1, 0] });
        let (mut since, mut cost) = (TimesBuilder::default(), TimesBuilder::default());
        for s in [Some(20), None, Some(6_000_000_000)] {
            since.push(s);
            cost.push(s.map(|_| 4));
        }
        launches.set_calls(since, cost);
        launches
    }

    #[test]
    fn values_beyond_32_bits_and_absent_calls_survive() {
        let launches = three();
        assert_eq!((0..3).map(|r| launches.duration(r)).collect::<Vec<_>>(), [10, 5_000_000_000, 30]);
        assert_eq!(launches.call(0), Some((80, 4)));
        assert_eq!(launches.call(1), None);
        assert_eq!(launches.call(2), Some((300 - 6_000_000_000, 4)));
        assert!(!launches.is_in_launch_order());
    }

    #[test]
    fn a_call_is_found_by_its_process_and_start() {
        let mut launches = three();
        launches.set_details(vec![0; 3], vec![1, 0, 1], vec![0; 3], vec![7]);
        let places = [LaunchSite::default(), LaunchSite { pid: Some(5), ..LaunchSite::default() }];
        let known = launches.by_call(&places, |row| row < 2);
        assert_eq!((known.get(&(5, 80)), known.len()), (Some(&0), 1), "row 1 has no call, row 2 is not wanted");
    }

    #[test]
    fn a_permutation_takes_the_wide_values_along() {
        let sorted = three().with_order(&[2, 0, 1]);
        assert!(sorted.is_in_launch_order());
        assert_eq!(sorted.duration(2), 5_000_000_000);
        assert_eq!(sorted.call(0), Some((300 - 6_000_000_000, 4)));
    }

    #[test]
    fn other_times_leave_the_calls_where_they_were() {
        let mut launches = three();
        launches.set_times(&[(0, 80, None), (1, 150, Some(20)), (2, 400, Some(7_000_000_000)), (9, 0, None)]);
        assert_eq!(
            (0..3).map(|r| (launches.start(r), launches.duration(r))).collect::<Vec<_>>(),
            [(80, 0), (150, 20), (400, 7_000_000_000)]
        );
        assert_eq!((0..3).map(|r| launches.has_duration(r)).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!((0..3).map(|r| launches.call(r)).collect::<Vec<_>>(), [Some((80, 4)), None, Some((300 - 6_000_000_000, 4))]);
    }

    #[test]
    fn a_launch_with_every_column_costs_at_most_40_bytes() {
        let mut launches = three();
        launches.set_details(vec![0; 3], vec![0; 3], vec![0; 3], vec![7]);
        assert!(launches.bytes_per_launch() <= 40, "{}", launches.bytes_per_launch());
        assert_eq!(launches.graph_node(1), Some(7));
    }
}
