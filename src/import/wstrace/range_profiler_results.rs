//! Results built from counters measured during the run: one result for all launches of the same kernel and
//! configuration, each of which contributed a pass, and one per replayed launch.

use super::counters::{Measured, Set};
use super::kernels::{Unwrap, build_kernel, launch_config};
use super::names::Names;
use super::pc_sample_rows::Stalls;
use super::pc_sampling;
use super::rows::{Config, INLINE, Kernel, Overhead, Rows};
use crate::import::ncu;
use crate::model::metrics::{IN_PLACE, MEASURED_LAUNCHES, SAMPLED_LAUNCHES};
use crate::model::units::format_count;
use crate::model::{Device, Metrics, Note, NoteKind, Profile, ResultMetrics, Severity, Source, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum ratio of the longest to the shortest duration of the launches in a result. If it is exceeded, the launches
/// are reported to have done different work. Durations of the same work vary by about 10 %.
const ALIKE: f64 = 1.25;

/// Overhead kind for the time during which the tracer measured a launch.
const WINDOW: u32 = 1 << 30;

type Shape = (u32, [u32; 3], [u32; 3], u32);

/// Metric names and their units, numbered in order of first appearance.
#[derive(Default)]
struct Table {
    ids: FxHashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    units: Vec<Arc<str>>,
}

impl Table {
    fn metric_id(&mut self, name: &Arc<str>) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        *self.ids.entry(name.clone()).or_insert_with(|| {
            self.names.push(name.clone());
            self.units.push(Arc::from(metric_unit(name)));
            next
        })
    }
}

/// Base unit of a metric as spelled by ncu, derived from the name.
fn metric_unit(name: &str) -> &'static str {
    let (base, form) = name.split_once('.').unwrap_or((name, ""));
    if form.contains("pct") {
        return "%";
    }
    let counts = if base.ends_with("time_duration") {
        "nsecond"
    } else if base.contains("__cycles") || base.contains("cycles_active") {
        "cycle"
    } else if base.contains("bytes") {
        "byte"
    } else if base.contains("sectors") {
        "sector"
    } else if base.contains("requests") {
        "request"
    } else if base.contains("pcsamp") {
        // ncu gives no unit for sample counts.
        if base.ends_with("interval_cycles") { "cycle" } else { "" }
    } else if base.contains("warps") {
        "warp"
    } else if base.contains("inst_executed") || base.contains("inst_issued") {
        "inst"
    } else {
        ""
    };
    match (form.rsplit('.').next().unwrap_or(""), counts) {
        ("per_second", "byte") => "byte/second",
        ("per_second", "cycle") => "cycle/second",
        ("ratio", _) | (_, "") => "",
        ("per_cycle_elapsed" | "peak_sustained", "inst") => "inst/cycle",
        ("per_cycle_elapsed" | "peak_sustained", "byte") => "byte/cycle",
        (_, counts) => counts,
    }
}

/// Returns the median; `None` if the list is empty.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let (low, high) = (values.get(n.checked_sub(1)? / 2)?, values.get(n / 2)?);
    Some(f64::midpoint(*low, *high))
}

/// Returns the ratio of the longest to the shortest duration. If there are at least eight durations, the longest is
/// ignored, since it may be from a pass with patched code.
fn duration_spread(mut durations: Vec<i64>) -> f64 {
    durations.sort_unstable();
    if durations.len() >= 8 {
        durations.pop();
    }
    durations.last().zip(durations.first()).map_or(1.0, |(most, least)| *most as f64 / *least as f64)
}

/// Measurements of one process.
struct Of<'a> {
    names: &'a Names,
    sets: FxHashMap<u32, &'a Set>,
    /// Configurations and durations of the measured launches, by correlation id.
    launches: FxHashMap<u32, (Config, i64)>,
    /// Unwrapped ids of all launches whose shape was measured, in launch order.
    ordinals: FxHashMap<Shape, Vec<i64>>,
    unwrapped: FxHashMap<u32, i64>,
}

fn launch_shape(c: &Config) -> Shape {
    (c.name, c.grid, c.block, c.dynamic_shared)
}

impl<'a> Of<'a> {
    fn new(names: &'a Names, rows: &'a Rows) -> Self {
        let sampled = rows.stalls.iter().map(|s| s.correlation);
        let wanted: FxHashSet<u32> = rows.measured.iter().flat_map(|m| m.correlations.iter().copied()).chain(sampled).collect();
        let shapes: FxHashSet<Shape> = rows.measured.iter().map(|m| m.shape).chain(rows.stalls.iter().map(|s| s.shape)).collect();
        let all: FxHashMap<u32, Config> = rows.configs.iter().copied().chain((INLINE..).zip(rows.inline.iter().copied())).collect();
        let mut unwrap = Unwrap::starting_at(rows.kernels.first().map_or(0, |k| k.correlation));
        let (mut launches, mut unwrapped) = (FxHashMap::default(), FxHashMap::default());
        let mut ordinals: FxHashMap<Shape, Vec<i64>> = FxHashMap::default();
        for k in &rows.kernels {
            let id = unwrap.unwrap_id(k.correlation);
            let Some(config) = all.get(&k.config).copied() else { continue };
            if shapes.contains(&launch_shape(&config)) {
                ordinals.entry(launch_shape(&config)).or_default().push(id);
            }
            if wanted.contains(&k.correlation) {
                launches.insert(k.correlation, (config, k.duration));
                unwrapped.insert(k.correlation, id);
            }
        }
        for ids in ordinals.values_mut() {
            ids.sort_unstable();
        }
        let sets = rows.sets.iter().map(|s| (s.number, s)).collect();
        Self { names, sets, launches, ordinals, unwrapped }
    }

    /// Formats the positions of these launches, starting at 1, among the launches of the same kernel and configuration.
    fn format_ordinals(&self, launches: impl Iterator<Item = (u32, Shape)>) -> String {
        let mut all: Vec<usize> = launches
            .filter_map(|(c, shape)| {
                let id = self.unwrapped.get(&c)?;
                Some(self.ordinals.get(&shape)?.partition_point(|i| i < id) + 1)
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Returns true if the set is complete and the record of every launch matches the measured call.
    fn is_proved(&self, m: &Measured) -> bool {
        let complete = self.sets.get(&m.set).is_some_and(|s| s.metrics.len() == m.values.len());
        complete
            && !m.correlations.is_empty()
            && m.correlations.iter().all(|c| self.launches.get(c).is_some_and(|(c, _)| launch_shape(c) == m.shape))
    }

    /// Returns true if the record of the launch matches the sampled call.
    fn proved_sample(&self, s: &Stalls) -> bool {
        self.launches.get(&s.correlation).is_some_and(|(c, _)| launch_shape(c) == s.shape)
    }

    fn build_result(&self, rows: &[&Measured], sampled: &[&Stalls], devices: &[Device], table: &mut Table) -> Option<(ResultMetrics, f64)> {
        let first = rows.iter().find_map(|m| m.correlations.first()).or(sampled.first().map(|s| &s.correlation))?;
        let (config, _) = *self.launches.get(first)?;
        let mut by_metric: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for row in rows {
            let Some(set) = self.sets.get(&row.set) else { continue };
            for (name, value) in set.metrics.iter().zip(&row.values).filter(|(_, v)| v.is_finite()) {
                let Some(name) = self.names.get(*name) else { continue };
                // Instruction-level counters (`__sass_`) require patched code, which CUPTI uses only for replays. In
                // other launches, they are 0 (observed with CUPTI 13.0).
                if !row.replayed && name.contains("__sass_") && !name.ends_with(".peak_sustained") {
                    continue;
                }
                by_metric.entry(table.metric_id(&name)).or_default().push(*value);
            }
        }
        let alike = rows.iter().filter(|m| !m.replayed).flat_map(|m| &m.correlations);
        let durations: Vec<i64> = alike.filter_map(|c| Some(self.launches.get(c)?.1)).filter(|d| *d > 0).collect();
        let spread = duration_spread(durations);
        let mut values: Vec<(u32, Value)> =
            by_metric.into_iter().filter_map(|(id, mut all)| Some((id, Value::Float(median(&mut all)?)))).collect();
        let found: BTreeMap<Arc<str>, f64> =
            values.iter().filter_map(|(id, v)| Some((table.names.get(*id as usize)?.clone(), v.as_number()?))).collect();
        let launch = launch_config(&config);
        let mut derived = super::derived_metrics::derive_metrics(&found);
        derived.extend(super::derived_metrics::launch_metrics(&launch));
        for (name, value) in derived {
            if !found.contains_key(&*name) {
                values.push((table.metric_id(&name), value));
            }
        }
        let measured = rows.iter().flat_map(|m| m.correlations.iter().map(|c| (*c, m.shape)));
        if !rows.is_empty() {
            values.push((table.metric_id(&Arc::from(MEASURED_LAUNCHES)), Value::Text(Arc::from(self.format_ordinals(measured)))));
        }
        let samples = (!sampled.is_empty()).then(|| pc_sampling::build_values(sampled, self.names, &mut |name| table.metric_id(name)));
        let samples = samples.map(|(of, samples)| {
            values.extend(of);
            let launches = sampled.iter().map(|s| (s.correlation, s.shape));
            values.push((table.metric_id(&Arc::from(SAMPLED_LAUNCHES)), Value::Text(Arc::from(self.format_ordinals(launches)))));
            Arc::new(samples)
        });
        let device = self.names.device_index(config.device);
        let known = device.and_then(|d| devices.get(d as usize));
        let capability = known.and_then(|d| d.compute_capability).map(|(major, minor)| (u64::from(major), u64::from(minor)));
        let result = ResultMetrics {
            kernel: build_kernel(self.names.get(config.name)),
            grid: Some(config.grid),
            block: Some(config.block),
            pid: Some(self.names.pid),
            device: Some(u64::from(config.device)),
            compute_capability: capability,
            context: Some(u64::from(config.context)),
            stream: Some(u64::from(config.stream)),
            clocks_locked: Some(false),
            sampled: samples,
            launched: known.map(|d| Arc::new((launch, d.clone()))),
            ..ResultMetrics::from_values(values)
        };
        Some((result, spread))
    }
}

/// Returns a note that the report contains counter results in addition to its timeline.
pub fn measured_note(metrics: &Metrics) -> Note {
    let kernels: FxHashSet<&str> = metrics.results.iter().map(|r| r.kernel.function()).collect();
    let text = format!(
        "{} measured while the program ran ({}): hints, metrics and rooflines are in the report beside the timeline.",
        format_count(kernels.len(), "kernel"),
        format_count(metrics.results.len(), "launch configuration")
    );
    Note::new(Severity::Info, NoteKind::Tool, text)
}

/// Name of a kernel that CUPTI launches in order to wait.
pub const WAITS: &str = "WaitNs";

/// Removes CUPTI's wait kernels, which have the correlation ids of measured launches, and synchronization calls made
/// by the tracer. The tracer already drops most wait kernels, but not all of them.
pub fn take_out_waits(names: &Names, rows: &mut Rows) {
    let waits = |c: &Config| names.get(c.name).is_some_and(|n| &*n == WAITS);
    let ids: FxHashSet<u32> = rows.configs.iter().filter(|(_, c)| waits(c)).map(|c| c.0).collect();
    if !ids.is_empty() {
        take_out_kernels(rows, &ids);
    }
    take_out_synchronizing(names, rows);
}

/// Removes kernels that have one of these configurations and the correlation id of a measured launch or of another
/// kernel. The latter is needed because CUPTI may have measured a launch of another thread, for which the tracer
/// wrote no row.
fn take_out_kernels(rows: &mut Rows, ids: &FxHashSet<u32>) {
    let sampled = rows.stalls.iter().map(|s| s.correlation);
    let mut known: FxHashSet<u32> = rows.measured.iter().flat_map(|m| m.correlations.iter().copied()).chain(sampled).collect();
    let waiting: FxHashSet<u32> = rows.kernels.iter().filter(|k| ids.contains(&k.config)).map(|k| k.correlation).collect();
    let beside = |k: &&Kernel| !ids.contains(&k.config) && waiting.contains(&k.correlation);
    known.extend(rows.kernels.iter().filter(beside).map(|k| k.correlation));
    rows.kernels.retain(|k| !(ids.contains(&k.config) && known.contains(&k.correlation)));
}

/// Removes the calls to `cuCtxSynchronize` around each sampled launch. They are made by the tracer, but CUPTI records
/// them like calls made by the program.
fn take_out_synchronizing(names: &Names, rows: &mut Rows) {
    let inside = |start: i64, o: &Overhead| o.start <= start && start <= o.start.saturating_add(o.duration);
    // A thread measures one launch at a time, so its windows do not overlap.
    let mut all: FxHashMap<u32, Vec<Overhead>> = FxHashMap::default();
    for o in rows.overhead.iter().filter(|o| o.kind == WINDOW && !rows.stalls.is_empty()) {
        all.entry(o.thread).or_default().push(*o);
    }
    for list in all.values_mut() {
        list.sort_by_key(|o| o.start);
    }
    let last = |list: &[Overhead], time: i64| {
        let at = list.partition_point(|o| o.start <= time).checked_sub(1)?;
        Some(at).filter(|&at| inside(time, &list[at]))
    };
    let mut found: FxHashMap<u32, BTreeSet<usize>> = FxHashMap::default();
    for s in &rows.stalls {
        if let Some(at) = all.get(&s.thread).and_then(|list| last(list, s.time)) {
            found.entry(s.thread).or_default().insert(at);
        }
    }
    let of = |(thread, places): (u32, BTreeSet<usize>)| (thread, places.into_iter().map(|at| all[&thread][at]).collect());
    let windows: FxHashMap<u32, Vec<Overhead>> = found.into_iter().map(of).collect();
    if windows.is_empty() {
        return;
    }
    let mut known: FxHashMap<u32, bool> = FxHashMap::default();
    let mut synchronizes = |name: u32| {
        *known.entry(name).or_insert_with(|| names.get(name).is_some_and(|n| matches!(&*n, "cuCtxSynchronize" | "cuCtxSynchronize_v2")))
    };
    rows.calls.retain(|c| !(windows.get(&c.thread).is_some_and(|w| last(w, c.start).is_some()) && synchronizes(c.name)));
}

/// Builds a separate profile for the measurements; `None` if there are none.
pub fn build_report(processes: &[(Names, Rows)], profile: &Profile) -> Option<Profile> {
    let nothing = |rows: &Rows| rows.measured.is_empty() && rows.stalls.is_empty();
    if processes.iter().all(|(_, rows)| nothing(rows)) {
        return None;
    }
    let mut table = Table::default();
    let mut results: Vec<(i64, ResultMetrics)> = Vec::new();
    let (mut unproved, mut apart, mut launches) = (0_u64, 0_u64, 0_u64);
    let (mut sampled_launches, mut lacking) = (0_u64, 0_u64);
    for (names, rows) in processes.iter().filter(|(_, rows)| !nothing(rows)) {
        let of = Of::new(names, rows);
        let mut alike: BTreeMap<Shape, Vec<&Measured>> = BTreeMap::new();
        let mut single: Vec<&Measured> = Vec::new();
        for m in &rows.measured {
            if !of.is_proved(m) {
                unproved += 1;
            } else if m.replayed {
                single.push(m);
            } else {
                alike.entry(m.shape).or_default().push(m);
            }
        }
        launches += alike.values().flatten().chain(&single).map(|m| m.correlations.len() as u64).sum::<u64>();
        let mut samples: BTreeMap<Shape, Vec<&Stalls>> = BTreeMap::new();
        for s in &rows.stalls {
            if of.proved_sample(s) {
                samples.entry(s.shape).or_default().push(s);
                sampled_launches += 1;
                lacking += u64::from(pc_sampling::has_missing_samples(s, names));
            } else {
                unproved += 1;
            }
        }
        // Add samples to the counters of launches with the same shape, or to those of a replayed launch. Samples
        // without matching counters become results of their own.
        let mut groups: Vec<(Vec<&Measured>, Vec<&Stalls>)> = Vec::new();
        for rows in alike.into_values().chain(single.into_iter().map(|m| vec![m])) {
            let samples = rows.first().and_then(|m| samples.remove(&m.shape)).unwrap_or_default();
            groups.push((rows, samples));
        }
        groups.extend(samples.into_values().map(|s| (Vec::new(), s)));
        for (rows, samples) in groups {
            let times = rows.iter().map(|m| m.time).chain(samples.iter().map(|s| s.time));
            let time = times.min().unwrap_or(0);
            if let Some((result, spread)) = of.build_result(&rows, &samples, &profile.devices, &mut table) {
                apart += u64::from(spread > ALIKE);
                results.push((time, result));
            }
        }
    }
    results.sort_by_key(|r| r.0);
    let results: Vec<ResultMetrics> = results.into_iter().map(|r| r.1).collect();
    let mut metrics = Metrics {
        source: Source { tool: IN_PLACE.to_owned(), ..profile.source.clone() },
        names: table.names,
        units: table.units,
        program: profile.capture.argv.clone(),
        directory: profile.capture.directory.clone(),
        ..Metrics::default()
    };
    let many = processes.iter().any(|(_, rows)| rows.measured.iter().any(|m| m.correlations.len() > 1));
    let stalls = match sampled_launches {
        0 => String::new(),
        n => format!(" Stall reasons were sampled in {}.", format_count(n, "launch")),
    };
    let what = if launches > 0 {
        format!("Counters of {} were measured", format_count(launches, "launch"))
    } else {
        "Stall reasons were sampled".to_owned()
    };
    let stalls = if launches > 0 { stalls } else { String::new() };
    let how = format!(
        "{what} while the program ran: clocks not locked, caches as the program left them, no other kernel at the same time.{}{stalls}",
        if many { " Metrics that need several passes come from that many launches of the same kernel, grid and block." } else { "" }
    );
    metrics.notes.push(Note::new(Severity::Info, NoteKind::Tool, how));
    if apart > 0 {
        let text = format!(
            "The launches behind {} differ in duration by more than a quarter: their metrics may mix different work.",
            format_count(apart, "result")
        );
        metrics.notes.push(Note::new(Severity::Warning, NoteKind::Tool, text));
    }
    if lacking > 0 {
        let text = format!(
            "Some samples of {} are missing: more came than CUPTI could take, and instructions that ran late may have too few.",
            format_count(lacking, "launch")
        );
        metrics.notes.push(Note::new(Severity::Warning, NoteKind::Lost, text));
    }
    if unproved > 0 {
        let text = format!(
            "{} measured or sampled but left out: no trace record with the same kernel, grid and block matches.",
            format_count(unproved, "launch")
        );
        metrics.notes.push(Note::new(Severity::Warning, NoteKind::Tool, text));
    }
    metrics.results = results;
    Some(ncu::profile_of(metrics))
}

#[cfg(test)]
mod tests {
    use super::super::key_values::Facts;
    use super::super::pc_sample_rows;
    use super::super::rows::Call;
    use super::super::varint::Cursor;
    use super::*;

    #[test]
    fn the_tracers_own_calls_are_not_the_programs() {
        let call = |name, thread, start| Call { correlation: 1, name, start, duration: 5, thread, returned: 0 };
        // Thread 7 launched at 150, in a window from 100 to 200.
        let sampled = [7, 0x96, 1, 3, 2, 1, 1, 64, 1, 1, 0, 9, 11, 5, 0, 0, 0];
        let mut rows = Rows {
            strings: vec![(4, b"cuCtxSynchronize".to_vec()), (5, b"cuLaunchKernel".to_vec())],
            stalls: vec![pc_sample_rows::read_stalls(&mut Cursor::new(&sampled)).unwrap()],
            overhead: vec![Overhead { kind: WINDOW, thread: 7, start: 100, duration: 100 }],
            calls: vec![call(4, 7, 90), call(4, 7, 110), call(5, 7, 120), call(4, 8, 130), call(4, 7, 190), call(4, 7, 210)],
            ..Rows::default()
        };
        let names = Names::new(&mut rows, &Facts::default(), 0);
        take_out_waits(&names, &mut rows);
        let left: Vec<_> = rows.calls.iter().map(|c| (c.name, c.thread, c.start)).collect();
        assert_eq!(left, [(4, 7, 90), (5, 7, 120), (4, 8, 130), (4, 7, 210)]);
    }
}
