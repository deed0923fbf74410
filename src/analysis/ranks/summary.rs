//! Builds digests of the ranks in a report.

use super::marks::Marks;
use super::nccl;
use crate::analysis::host_frames::frame_label;
use crate::analysis::triage::device_ops::{Class, DeviceOp, DeviceOps, OperationRow};
use crate::analysis::triage::{ENOUGH, JudgedDevice, Triage, Verdict};
use crate::model::Profile;
use crate::model::digest::{Collective, CollectiveKind, Digest, HostLine, Kernel, MOST_HOST_LINES, RankFinding, RankStep, duration_bucket};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum number of collectives in a digest. If there are more, only every second, fourth, eighth … collective of each
/// group is kept.
const MOST: usize = 1 << 15;
/// Maximum number of kernels in a digest, by total time; the rest are merged into one entry.
const MOST_KERNELS: usize = 400;
/// Maximum number of steps in a digest; the last ones are kept.
const MOST_STEPS: usize = 1 << 14;

/// Data collected for one rank of a report.
#[derive(Default)]
struct Part {
    /// Time of the host call, step number, and collective.
    collectives: Vec<(i64, Option<u32>, Collective)>,
    kernels: FxHashMap<u32, Kernel>,
    kernel_time: i64,
    launches: u64,
    steps: Vec<RankStep>,
    /// Latest end of a kernel so far.
    computed: i64,
    /// Latest end of any operation so far.
    covered: i64,
    first: Option<i64>,
    last: i64,
}

impl Part {
    /// Adds the time from `from` to `to` to a field of each overlapping step. Steps must be in order, and `from` must
    /// never decrease.
    fn add_step_time(&mut self, from: i64, to: i64, of: impl Fn(&mut RankStep) -> &mut i64) {
        let mut at = self.steps.partition_point(|s| s.start.saturating_add(s.length) <= from);
        while let Some(step) = self.steps.get_mut(at).filter(|s| s.start < to) {
            let inside = to.min(step.start.saturating_add(step.length)) - from.max(step.start);
            *of(step) += inside.max(0);
            at += 1;
        }
    }

    fn add_op(&mut self, op: &DeviceOp) {
        self.first.get_or_insert(op.start);
        self.last = self.last.max(op.end);
        if op.class == Class::Kernel {
            let from = op.start.max(self.computed);
            if op.end > from {
                self.add_step_time(from, op.end, |s| &mut s.compute);
                self.computed = op.end;
            }
        }
        let from = op.start.max(self.covered);
        if op.end > from {
            // Until all operations have been added, `idle` holds the time in which something ran; it is converted at
            // the end.
            self.add_step_time(from, op.end, |s| &mut s.idle);
            self.covered = op.end;
        }
    }
}

/// Kinds of a rank's collectives, numbered.
#[derive(Default)]
struct Kinds {
    list: Vec<CollectiveKind>,
    ids: FxHashMap<(String, String, String, Option<u32>), usize>,
}

impl Kinds {
    fn kind_id(&mut self, kind: CollectiveKind) -> usize {
        let key = (kind.name.clone(), kind.group.clone(), kind.algorithm.clone(), kind.peer);
        *self.ids.entry(key).or_insert_with(|| {
            self.list.push(kind);
            self.list.len() - 1
        })
    }
}

/// Parses ranks as listed by PyTorch: `[0, 1, 2, 3]`. Empty if the middle of the list is abbreviated.
fn parse_ranks(text: &str) -> Vec<u32> {
    if text.contains("...") {
        return Vec::new();
    }
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect()
}

/// Returns the units that took part in collectives, if there are several: each has a digest of its own.
fn communicating_units(ops: &DeviceOps<'_>) -> Vec<usize> {
    let mut with: Vec<usize> = ops.iter().filter(|o| o.class == Class::Collective).map(|o| o.unit).collect();
    with.sort_unstable();
    with.dedup();
    if with.len() > 1 { with } else { Vec::new() }
}

/// Returns start and end of the longest idle time between two operations that overlap a span, for the digest with this
/// place among those of a report.
pub fn find_longest_idle(profile: &Profile, place: usize, (from, to): (i64, i64)) -> Option<(i64, i64)> {
    let ops = DeviceOps::from_profile(profile);
    let unit = communicating_units(&ops).get(place).copied();
    let mut busy = ops.iter().filter(|op| op.start < to && op.end > from && unit.is_none_or(|unit| op.unit == unit));
    let mut until = busy.next()?.end;
    let mut longest: Option<(i64, i64)> = None;
    for op in busy {
        if op.start - until > longest.map_or(0, |(start, end)| end - start) {
            longest = Some((until, op.start));
        }
        until = until.max(op.end);
    }
    longest
}

/// Builds the digests of a report: a single one, or one per device and process if several of them took part in
/// collectives. `file` is the name of the report.
pub fn build_digests(profile: &Profile, triage: &Triage, file: &str) -> Vec<Digest> {
    let ops = DeviceOps::from_profile(profile);
    // One launch may send to several ranks and receive from several.
    let mut of_launch: FxHashMap<u32, Vec<&crate::model::Collective>> = FxHashMap::default();
    for c in &profile.collectives {
        if let Some(launch) = c.launch {
            of_launch.entry(launch).or_default().push(c);
        }
    }
    let several = communicating_units(&ops);
    let marks = Marks::from_profile(profile, triage.found.as_ref());
    let place = |unit: usize| several.iter().position(|&u| u == unit);
    let steps = |triage: &Triage| {
        let from = triage.steps.len().saturating_sub(MOST_STEPS);
        let of = |s: &crate::analysis::triage::Step| RankStep {
            number: s.number,
            start: s.start,
            length: s.length(),
            compute: 0,
            exposed: 0,
            idle: 0,
        };
        triage.steps.iter().skip(from).map(of).collect::<Vec<_>>()
    };
    let mut parts: Vec<Part> = (0..several.len().max(1))
        .map(|_| Part { steps: steps(triage), covered: i64::MIN, computed: i64::MIN, ..Part::default() })
        .collect();
    let mut kinds: Vec<Kinds> = (0..parts.len()).map(|_| Kinds::default()).collect();
    let mut streams: Vec<Vec<Option<u32>>> = vec![Vec::new(); parts.len()];
    for op in ops.iter() {
        let at = if several.is_empty() { 0 } else { place(op.unit).unwrap_or(usize::MAX) };
        let Some(part) = parts.get_mut(at) else { continue };
        part.add_op(&op);
        let OperationRow::Launch(row) = op.row else { continue };
        let kernel = profile.launches.kernel(row as usize);
        let duration = op.end - op.start;
        part.launches += 1;
        let known = part.kernels.entry(kernel.0).or_insert_with(|| Kernel { min: i64::MAX, ..Kernel::default() });
        known.count += 1;
        known.total = known.total.saturating_add(duration);
        (known.min, known.max) = (known.min.min(duration), known.max.max(duration));
        known.collective = op.class == Class::Collective;
        add_to_bucket(known, duration_bucket(duration));
        if op.class != Class::Collective {
            part.kernel_time = part.kernel_time.saturating_add(duration);
            continue;
        }
        let name = profile.kernels.get(kernel.0 as usize).map_or("", |k| k.function());
        let (by_name, algorithm) = nccl::of_kernel(name);
        let called = ops.find_call(&op).map_or(op.start, |c| c.start);
        let step = marks.step_at(ops.units.get(op.unit).and_then(|u| u.pid), called);
        let stream = profile.launches.place(row as usize).and_then(|p| profile.places.get(p.0 as usize)?.stream);
        let Some(said) = of_launch.get(&row) else {
            let known = &mut streams[at];
            let number = known.iter().position(|s| *s == stream).unwrap_or_else(|| {
                known.push(stream);
                known.len() - 1
            });
            let kind =
                CollectiveKind { name: by_name.to_owned(), group: format!("stream {number}"), algorithm, ..CollectiveKind::default() };
            let kind = kinds[at].kind_id(kind);
            part.collectives.push((called, step, Collective { kind, sequence: -1, start: op.start, duration, bytes: 0 }));
            continue;
        };
        for c in said {
            let kind = kinds[at].kind_id(CollectiveKind {
                name: nccl::collective_kind(&c.kind).to_owned(),
                group: c.group.to_string(),
                ranks: parse_ranks(&c.ranks),
                size: c.group_size,
                algorithm: algorithm.clone(),
                numbered: c.sequence.is_some() && c.peer.is_none(),
                peer: c.peer,
                member: c.member,
            });
            // Sends and receives are numbered per pair.
            let sequence = c.sequence.filter(|_| c.peer.is_none()).and_then(|n| i64::try_from(n).ok()).unwrap_or(-1);
            part.collectives.push((called, step, Collective { kind, sequence, start: op.start, duration, bytes: c.bytes.unwrap_or(0) }));
        }
    }
    let all = parts.into_iter().zip(kinds).enumerate();
    all.map(|(i, (part, kinds))| {
        let unit = several.get(i).and_then(|&u| ops.units.get(u));
        let device = match unit {
            Some(unit) => triage.devices.iter().find(|d| d.number == ops.device_number(unit) && d.pid == unit.pid),
            None => triage.devices.first(),
        };
        build_digest(profile, triage, (file, several.len() > 1), device, part, kinds)
    })
    .collect()
}

fn add_to_bucket(kernel: &mut Kernel, bucket: u32) {
    match kernel.bucket.binary_search(&bucket) {
        Ok(at) => kernel.filled[at] += 1,
        Err(at) => {
            kernel.bucket.insert(at, bucket);
            kernel.filled.insert(at, 1);
        }
    }
}

fn build_digest(
    profile: &Profile,
    triage: &Triage,
    (file, several): (&str, bool),
    device: Option<&JudgedDevice>,
    mut part: Part,
    kinds: Kinds,
) -> Digest {
    for step in &mut part.steps {
        // Until here, `idle` holds the time in which something ran.
        let covered = step.idle;
        step.exposed = (covered - step.compute).max(0);
        step.idle = (step.length - covered).max(0);
    }
    // All ranks call collectives in the same order, so numbering them by host call gives the same numbers on all ranks.
    let mut numbers: BTreeMap<usize, i64> = BTreeMap::new();
    part.collectives.sort_by_key(|c| (c.0, c.2.start));
    let group = |kind: usize| {
        let own = &kinds.list[kind];
        let way = |k: &CollectiveKind| k.peer.map(|peer| (peer, k.name.clone()));
        kinds.list.iter().position(|k| k.group == own.group && k.ranks == own.ranks && way(k) == way(own)).unwrap_or(kind)
    };
    for (_, _, c) in &mut part.collectives {
        let next = numbers.entry(group(c.kind)).or_default();
        if c.sequence < 0 {
            c.sequence = *next;
        }
        *next += 1;
    }
    part.collectives.sort_by_key(|c| c.2.start);
    let each = part.collectives.len().div_ceil(MOST).next_power_of_two();
    part.collectives.retain(|c| c.2.sequence.rem_euclid(i64::try_from(each).unwrap_or(1)) == 0);
    let (named, list): (Vec<Option<u32>>, Vec<Collective>) = part.collectives.into_iter().map(|c| (c.1, c.2)).unzip();
    let pid = if several { device.and_then(|d| d.pid) } else { profile.processes.first().map(|p| p.pid) };
    let own = pid.and_then(|pid| profile.processes.iter().find(|p| p.pid == pid)).and_then(|p| p.rank);
    let mut digest = Digest {
        file: file.to_owned(),
        tool: profile.source.tool.clone(),
        host: profile.rank.host.clone(),
        rank: if several { own } else { profile.rank.rank.or(own) },
        world: profile.rank.world,
        pid,
        device: device.and_then(|d| d.number),
        device_name: device.and_then(|d| d.name.clone()),
        epoch: profile.clock.epoch_ns,
        start: part.first.unwrap_or(triage.span.0),
        end: part.last.max(part.first.unwrap_or(triage.span.1)),
        window_start: triage.window.0,
        window_end: triage.window.1,
        judged: triage.length(),
        parts: device.map(|d| d.parts.iter().map(|p| p.1).collect()).unwrap_or_default(),
        collective_time: device.map_or(0, |d| d.collectives),
        kernel_time: part.kernel_time,
        launches: part.launches,
        kinds: kinds.list,
        missing: triage.doubt.iter().chain(&triage.missing).cloned().collect(),
        unrecorded: profile.coverage.describe_losses().filter(|_| profile.coverage.is_inconclusive()),
        // If a report has several ranks, its findings and lines apply to all of them together; what is missing from it
        // is missing for each.
        findings: triage
            .findings
            .iter()
            .filter(|f| !several || f.id == Verdict::ShortCapture)
            .map(|f| RankFinding {
                id: f.id.id().to_owned(),
                headline: f.headline.clone(),
                stake: f.stake,
                severity: f.severity.as_str().to_owned(),
            })
            .collect(),
        host_lines: if several { Vec::new() } else { list_host_lines(triage) },
        ..Digest::default()
    };
    digest.set_collectives(&list, u32::try_from(each).unwrap_or(u32::MAX));
    digest.set_steps_of_collectives(&named);
    digest.set_steps(&part.steps);
    digest.kernels = merge_by_name(profile, part.kernels);
    digest
}

/// Functions during which the GPU is idle, longest first. Each is labeled with the line that accounts for most of its
/// time, but identified by name and file, because two ranks may be at different lines of the same function.
fn list_host_lines(triage: &Triage) -> Vec<HostLine> {
    let host = &triage.host_time;
    let sure = host.functions.iter().filter(|f| host.exact || f.samples >= ENOUGH);
    sure.take(MOST_HOST_LINES).map(|f| HostLine { label: frame_label(&f.frame), ns: f.ns }).collect()
}

/// Returns kernels, longest time first; those beyond the maximum are merged into one.
fn merge_by_name(profile: &Profile, of: FxHashMap<u32, Kernel>) -> Vec<Kernel> {
    // Kernels with the same name are merged, even if they differ otherwise.
    let mut by_name: BTreeMap<String, Kernel> = BTreeMap::new();
    for (id, kernel) in of {
        let name = profile.kernels.get(id as usize).map_or_else(String::new, |k| k.demangled().to_owned());
        merge_kernel(
            by_name.entry(name).or_insert_with(|| Kernel { min: i64::MAX, collective: kernel.collective, ..Kernel::default() }),
            &kernel,
        );
    }
    let mut list: Vec<Kernel> = by_name.into_iter().map(|(name, kernel)| Kernel { name, ..kernel }).collect();
    list.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    if list.len() > MOST_KERNELS {
        let rest = list.split_off(MOST_KERNELS);
        let mut others = Kernel { name: format!("({} other kernels)", rest.len()), min: i64::MAX, ..Kernel::default() };
        for kernel in &rest {
            merge_kernel(&mut others, kernel);
        }
        list.push(others);
    }
    list
}

/// Adds the launches of one kernel to those of another.
pub fn merge_kernel(into: &mut Kernel, from: &Kernel) {
    into.count = into.count.saturating_add(from.count);
    into.total = into.total.saturating_add(from.total);
    (into.min, into.max) = (into.min.min(from.min), into.max.max(from.max));
    for (&bucket, &filled) in from.bucket.iter().zip(&from.filled) {
        match into.bucket.binary_search(&bucket) {
            Ok(at) => into.filled[at] = into.filled[at].saturating_add(filled),
            Err(at) => {
                into.bucket.insert(at, bucket);
                into.filled.insert(at, filled);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GraphLaunch, Kernel, LaunchColumns, LaunchSite, Launches, Nanos, Source};

    /// Two ranks in one report, each with an all-reduce at the end; the first one also launches a graph, traced as a whole.
    #[test]
    fn a_rank_is_idle_while_neither_its_kernels_nor_its_graphs_run() {
        let mut columns = LaunchColumns::default();
        for (start, duration) in [(0, 100), (0, 400), (400, 100), (900, 100), (900, 100)] {
            columns.start.push(start);
            columns.duration.push(Some(duration));
            columns.kernel.push(u32::from(start == 900));
        }
        let kernel = |name: &str| Kernel { function: Some(name.into()), ..Kernel::default() };
        let site = |device| LaunchSite { pid: Some(device), device: Some(device), ..LaunchSite::default() };
        let mut profile = Profile {
            launches: Launches::new(columns),
            kernels: vec![kernel("gemm"), kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL")],
            places: vec![site(0), site(1)],
            graphs: vec![GraphLaunch { start: Nanos(100), duration: Nanos(500), graph: 1, place: 0, call: None }],
            ..Profile::new(Source::default())
        };
        profile.launches.set_places(vec![0, 1, 1, 0, 1]);
        assert_eq!(find_longest_idle(&profile, 0, (0, 1_000)), Some((600, 900)));
        assert_eq!(find_longest_idle(&profile, 1, (0, 1_000)), Some((500, 900)));
        assert_eq!(find_longest_idle(&profile, 1, (0, 500)), None);
    }
}
