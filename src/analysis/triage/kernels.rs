//! Kernels in the window: durations, counts, families and launch mode.

use super::device_ops::{DeviceOp, DeviceOps, OperationRow};
use crate::analysis::Family;
use crate::analysis::readable::readable_name;
use crate::model::Profile;
use rustc_hash::FxHashMap;

/// Duration below which starting and ending account for a large part of a kernel, ns: an empty kernel takes about 1 µs
/// on an H200, and the pause after it takes about another 1 µs.
pub const SHORT_NS: i64 = 5_000;
/// Duration of an empty kernel, ns: the shortest one in timelines from an H200 took 0.96 µs.
pub const EMPTY_NS: i64 = 1_000;

/// Duration below which a collective costs mainly its latency, ns; an assumption, in line with what nccl-tests print for
/// the smallest messages within a host (10 to 30 µs).
pub const SHORT_COLLECTIVE_NS: i64 = 20_000;

/// Number of slices of the window used to detect durations that change over time.
pub const SLICES: usize = 12;

/// Launches of one kernel with one configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Like {
    pub count: u64,
    pub ns: i64,
    /// Count and total duration in each slice of the window.
    pub slices: [(u64, i64); SLICES],
    /// Time during which SMs had no block of the kernel, weighted by the share of such SMs, ns; based on the grid size
    /// alone.
    pub empty: i64,
}

/// Kernel time on one stream of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamTime {
    /// Time during which the stream's kernels ran, ns.
    pub ns: i64,
    /// Part of `ns` during which the grid had fewer blocks than the device has SMs, ns.
    pub small: i64,
    until: i64,
}

/// Kernels in the window; collectives are counted separately.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    pub count: u64,
    /// Total duration, ns.
    pub ns: i64,
    /// Count and time of kernels shorter than [`SHORT_NS`].
    pub short: (u64, i64),
    /// Minimum time for starting and ending the short kernels, ns.
    pub fixed: i64,
    /// Count and time of kernels in graphs.
    pub in_graphs: (u64, i64),
    /// Total duration of graphs that were traced as a whole, ns.
    pub whole: i64,
    /// Collectives: count and total duration.
    pub collectives: (u64, i64),
    /// Number of collectives shorter than [`SHORT_COLLECTIVE_NS`].
    pub short_collectives: u64,
    /// Time and count of each collective.
    each_collective: FxHashMap<u32, (i64, u64)>,
    /// Number of launching calls.
    pub launches: u64,
    /// Durations of a sample of the launching calls, ns.
    pub costs: Vec<i64>,
    /// Times from the end of the call to the start of the kernel, for a sample of the kernels, ns.
    pub queued: Vec<i64>,
    durations: Vec<i64>,
    /// Start of the call that launched the last graph.
    graph_call: i64,
    /// Count and host time of the calls that launched graphs, of whose nodes some were recorded, ns.
    pub graph_calls: (u64, i64),
    /// Latest start of these calls.
    latest_graph_call: Option<i64>,
    /// Launches by kernel and configuration.
    pub like: FxHashMap<(u32, u32), Like>,
    pub streams: FxHashMap<(usize, Option<u32>), StreamTime>,
    /// Number of blocks in each configuration.
    blocks: Vec<u64>,
    /// SM count of each device.
    sms: Vec<u64>,
    every: u64,
}

/// Number of stored samples at which every second one is dropped and the sampling interval doubled.
const SAMPLES: usize = 1 << 17;

impl Kernels {
    pub fn new(profile: &Profile) -> Self {
        Self {
            blocks: profile.configs.iter().map(|c| c.block_count().unwrap_or(u64::MAX)).collect(),
            sms: profile.devices.iter().map(|d| d.sm_count.map_or(0, u64::from)).collect(),
            every: 1,
            ..Self::default()
        }
    }

    /// Adds an operation other than a copy.
    pub fn add_kernel(&mut self, op: &DeviceOp, ops: &DeviceOps<'_>, window: (i64, i64)) {
        let ns = op.end - op.start;
        let OperationRow::Launch(row) = op.row else {
            // The kernels in a graph that was traced as a whole are unknown.
            self.in_graphs.0 += 1;
            self.in_graphs.1 = self.in_graphs.1.saturating_add(ns);
            self.whole = self.whole.saturating_add(ns);
            self.launches += 1;
            return;
        };
        let launches = &ops.profile().launches;
        let at = row as usize;
        // Nodes of two launches may alternate on several streams.
        if launches.graph_node(at).is_some()
            && let Some((call, cost)) = launches.call(at).filter(|c| self.latest_graph_call.is_none_or(|latest| c.0 > latest))
        {
            self.latest_graph_call = Some(call);
            self.graph_calls = (self.graph_calls.0 + 1, self.graph_calls.1.saturating_add(cost));
        }
        let kernel = launches.kernel(at).0;
        if ops.collective.get(kernel as usize).copied().unwrap_or_default() {
            self.collectives.0 += 1;
            self.collectives.1 = self.collectives.1.saturating_add(ns);
            self.short_collectives += u64::from(ns < SHORT_COLLECTIVE_NS);
            let sum = self.each_collective.entry(kernel).or_default();
            *sum = (sum.0.saturating_add(ns), sum.1 + 1);
            self.launches += match launches.call(at) {
                Some(call) if launches.graph_node(at).is_some() => u64::from(std::mem::replace(&mut self.graph_call, call.0) != call.0),
                call => u64::from(call.is_some()),
            };
            return;
        }
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
        if ns < SHORT_NS {
            self.short.0 += 1;
            self.short.1 += ns;
            self.fixed += ns.min(EMPTY_NS);
        }
        let in_graph = launches.graph_node(at).is_some();
        if in_graph {
            self.in_graphs.0 += 1;
            self.in_graphs.1 = self.in_graphs.1.saturating_add(ns);
            // All nodes of a graph are one launch.
            let call = launches.call(at).map_or(i64::MIN, |c| c.0);
            self.launches += u64::from(call != self.graph_call);
            self.graph_call = call;
        }
        let config = launches.config(at).map_or(u32::MAX, |c| c.0);
        let like = self.like.entry((kernel, config)).or_default();
        like.count += 1;
        like.ns = like.ns.saturating_add(ns);
        let slice = ((op.start - window.0) as f64 / (window.1 - window.0) as f64 * SLICES as f64) as usize;
        let slice = &mut like.slices[slice.min(SLICES - 1)];
        slice.0 += 1;
        slice.1 = slice.1.saturating_add(ns);
        let place = launches.place(at).and_then(|p| ops.profile().places.get(p.0 as usize));
        let sms = place.and_then(|p| self.sms.get(p.device? as usize)).copied().unwrap_or_default();
        // Short kernels are excluded because more blocks would not make them shorter. Grids of unknown size count as
        // full.
        let blocks = self.blocks.get(config as usize).copied().unwrap_or(u64::MAX);
        if blocks < sms && ns >= SHORT_NS {
            like.empty = like.empty.saturating_add(((op.end.min(window.1) - op.start) as f64 * (1.0 - blocks as f64 / sms as f64)) as i64);
        }
        let stream = self.streams.entry((op.unit, place.and_then(|p| p.stream))).or_default();
        let own = (op.end - op.start.max(stream.until)).max(0);
        stream.until = stream.until.max(op.end);
        stream.ns = stream.ns.saturating_add(own);
        if blocks < sms {
            stream.small = stream.small.saturating_add(own);
        }
        if self.count.is_multiple_of(self.every) {
            self.durations.push(ns);
            if let Some((call, cost)) = launches.call(at).filter(|_| !in_graph) {
                self.launches += self.every;
                self.costs.push(cost);
                self.queued.push((op.start - call.saturating_add(cost)).max(0));
            }
            if self.durations.len() >= SAMPLES {
                self.every *= 2;
                for list in [&mut self.durations, &mut self.costs, &mut self.queued] {
                    let mut keep = false;
                    list.retain(|_| {
                        keep = !keep;
                        keep
                    });
                }
            }
        }
    }

    pub fn sort_samples(&mut self) {
        for list in [&mut self.durations, &mut self.costs, &mut self.queued] {
            list.sort_unstable();
        }
    }

    /// Median duration, ns.
    pub fn median_duration(&self) -> Option<i64> {
        sorted_median(&self.durations)
    }

    /// Median duration of the launching calls, ns.
    pub fn median_cost(&self) -> Option<i64> {
        sorted_median(&self.costs)
    }

    /// Share of the kernels that started within `ns` after the end of their call.
    pub fn began_within(&self, ns: i64) -> Option<f64> {
        (!self.queued.is_empty()).then(|| self.queued.partition_point(|&q| q <= ns) as f64 / self.queued.len() as f64)
    }

    /// Returns the time by which this share of the total kernel time had been reached, ns, rounded down to the start of
    /// a slice of the window.
    pub fn time_of_share(&self, share: f64, (begin, until): (i64, i64)) -> i64 {
        let slice = |at: usize| self.like.values().map(|l| l.slices[at].1).fold(0, i64::saturating_add);
        let all: Vec<i64> = (0..SLICES).map(slice).collect();
        let wanted = all.iter().sum::<i64>() as f64 * share;
        let mut sum = 0;
        let at = all.iter().position(|ns| {
            sum += ns;
            sum as f64 >= wanted
        });
        begin + ((until - begin) as f64 * at.unwrap_or(0) as f64 / SLICES as f64) as i64
    }

    /// Share of the SMs that had a block while kernels ran. `busy` is the time during which kernels ran, summed over
    /// devices, ns. Uses only launch configurations: concurrent kernels add up, and grids of unknown size count as
    /// full.
    pub fn filled_share(&self, busy: i64) -> f64 {
        let empty: i64 = self.like.values().map(|l| l.empty).sum();
        // Kernels that were already running when the window began are included only in `busy`.
        let all = self.ns.saturating_add(self.whole).max(busy);
        ((all - empty) as f64 / busy.max(1) as f64).clamp(0.0, 1.0)
    }

    /// Kernels with the time during which SMs had no block of them, longest first: kernel index, that time in ns, and
    /// the number of blocks in the configuration that accounts for most of it.
    pub fn emptiest_kernels(&self) -> Vec<(u32, i64, u64)> {
        let mut sums: FxHashMap<u32, (i64, (i64, u64))> = FxHashMap::default();
        for ((kernel, config), like) in self.like.iter().filter(|l| l.1.empty > 0) {
            let sum = sums.entry(*kernel).or_default();
            sum.0 += like.empty;
            sum.1 = sum.1.max((like.empty, self.blocks.get(*config as usize).copied().unwrap_or_default()));
        }
        let mut out: Vec<(u32, i64, u64)> = sums.into_iter().map(|(kernel, (ns, (_, blocks)))| (kernel, ns, blocks)).collect();
        out.sort_by_key(|k| (std::cmp::Reverse(k.1), k.0));
        out
    }

    /// Kernel time by family, longest first, ns. Families are guessed from names.
    pub fn time_by_family(&self, profile: &Profile) -> Vec<(Family, i64)> {
        let mut sums: FxHashMap<Family, i64> = FxHashMap::default();
        let mut known: FxHashMap<u32, Family> = FxHashMap::default();
        for ((kernel, _), like) in &self.like {
            let family = *known.entry(*kernel).or_insert_with(|| {
                profile.kernels.get(*kernel as usize).map_or(Family::Other, |k| Family::guess(k.function(), k.demangled()))
            });
            *sums.entry(family).or_default() += like.ns;
        }
        if self.collectives.1 > 0 {
            sums.insert(Family::Nccl, self.collectives.1);
        }
        let mut out: Vec<(Family, i64)> = sums.into_iter().collect();
        out.sort_by_key(|(family, ns)| (std::cmp::Reverse(*ns), *family));
        out
    }

    /// Kernels and collectives grouped by readable name, longest first: index of the longest-running kernel with that
    /// name, time in ns, count.
    pub fn top_kernels(&self, profile: &Profile) -> Vec<(u32, i64, u64)> {
        let mut kernels = self.each_collective.clone();
        for ((kernel, _), like) in &self.like {
            let sum = kernels.entry(*kernel).or_default();
            sum.0 = sum.0.saturating_add(like.ns);
            sum.1 += like.count;
        }
        let mut kernels: Vec<(u32, i64, u64)> = kernels.into_iter().map(|(k, (ns, n))| (k, ns, n)).collect();
        kernels.sort_by_key(|(kernel, ns, _)| (std::cmp::Reverse(*ns), *kernel));
        let names: Vec<_> = profile.kernels.iter().map(readable_name).collect();
        let mut of: FxHashMap<&str, usize> = FxHashMap::default();
        let mut out: Vec<(u32, i64, u64)> = Vec::new();
        for (kernel, ns, count) in kernels {
            let name = names.get(kernel as usize).map_or("", AsRef::as_ref);
            let at = *of.entry(name).or_insert(out.len());
            match out.get_mut(at) {
                Some(sum) => {
                    sum.1 = sum.1.saturating_add(ns);
                    sum.2 += count;
                }
                None => out.push((kernel, ns, count)),
            }
        }
        out.sort_by_key(|(kernel, ns, _)| (std::cmp::Reverse(*ns), *kernel));
        out
    }
}

fn sorted_median(sorted: &[i64]) -> Option<i64> {
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}
