//! Everything the rules need to know about a run: device activity, causes of idle time, and the figures that tell the
//! causes apart.

use super::attribution::{Busy, sweep_windows};
use super::backlog;
use super::copy_class::{Copies, CopyClass};
use super::device_ops::{Class, DeviceOps, OperationRow, Unit};
use super::eligible_windows::{measuring_times, recorded_windows};
use super::function_time::time_of_functions;
pub use super::gather::RUNNING;
pub use super::gather::{AfterCall, LONGEST, STRIP, StepTime};
use super::gather::{Gather, keep_longest};
use super::host::{Host, is_poll};
use super::host_lines::HostTime;
use super::idle_causes::Piece;
use super::kernels::Kernels;
use super::launch_lines::sum_samples;
pub use super::outside::Outside;
use super::outside::outside_of;
use super::spread::{STEPS, Single, Spreads};
use super::start;
use super::steps::{Counts, Steps};
use super::time_category::{ByCause, Cause, TimeCategory};
use crate::model::terms::Terms;
use crate::model::{CallKind, Cancel, Profile};
use rustc_hash::FxHashMap;

/// Busy and idle time of a device, or of one process on a shared device.
#[derive(Clone, Debug)]
pub struct DeviceTime {
    pub unit: Unit,
    pub busy: Busy,
    pub idle: ByCause,
}

impl DeviceTime {
    /// Returns all categories with their time, ns. The times add up to the analyzed time.
    pub fn time_by_part(&self) -> [(TimeCategory, i64); TimeCategory::ALL.len()] {
        TimeCategory::ALL.map(|part| {
            let ns = match part {
                TimeCategory::Kernels => self.busy.kernels,
                TimeCategory::Collectives => self.busy.collectives_exposed,
                TimeCategory::Copies => self.busy.copies_exposed,
                _ => Cause::ALL.iter().filter(|c| c.part() == part).map(|c| self.idle.get(*c)).sum(),
            };
            (part, ns)
        })
    }
}

/// Facts about a run: the input to the rules.
pub struct RunContext<'a> {
    pub profile: &'a Profile,
    pub terms: &'static Terms,
    /// Name of the analyzed time, which is what all shares are relative to.
    pub base: &'static str,
    pub ops: DeviceOps<'a>,
    pub host: Host<'a>,
    pub steps: Steps,
    /// Analyzed window, ns.
    pub window: (i64, i64),
    /// Analyzed parts of the window, ns; they may not cover all of it.
    pub windows: Vec<(i64, i64)>,
    /// True if the user chose the windows.
    pub chosen: bool,
    /// First start and last end of all operations in the report, ns.
    pub span: (i64, i64),
    /// Devices active in the window.
    pub devices: Vec<DeviceTime>,
    /// Idle time of all devices by cause.
    pub idle: ByCause,
    pub kernels: Kernels,
    pub copies: Copies,
    /// One entry per step; empty if there are more than `MOST_STEPS`.
    pub per_step: Vec<StepTime>,
    /// Idle time by cause and by name of the call behind it.
    pub after: FxHashMap<(Cause, u32), AfterCall>,
    /// Distribution of the idle time over gaps, which tells recurring idle time from a single delay.
    pub spreads: Spreads,
    /// Idle time by stack of the launching threads.
    pub host_time: HostTime,
    /// Per cause, the one or two outlier gaps that account for most of its idle time. No rate can be derived from them.
    pub single: Vec<Single>,
    /// First launches that loaded code: kernel, and idle time during the launch, ns.
    pub loaded: Vec<(u32, i64)>,
    /// The part of the run outside the analyzed windows; `None` if the user chose a window.
    pub outside: Option<Outside>,
    /// Longest pieces of idle time by cause, longest first.
    pub pieces: FxHashMap<Cause, Vec<Piece>>,
    /// Longest intervals by copy class during which only copies of that class ran, or the device waited for one.
    pub copy_pieces: FxHashMap<CopyClass, Vec<Piece>>,
    /// Longest piece of time in which only collectives ran.
    pub exposed_collective: Option<(i64, i64)>,
    /// Start of the first and the last call that launched work in the window; only if operators have shapes.
    pub called: Option<(i64, i64)>,
    /// Calls that started in the window, by kind: count, and host time in ns.
    pub calls: FxHashMap<CallKind, (u64, i64)>,
    /// Total of the device's own pauses between queued operations, ns; each counts with at most 5 µs.
    pub pauses: i64,
    /// Idle time at synchronizations after copies to or from pageable memory, ns.
    pub after_pageable: i64,
    /// Activity in each of the [`STRIP`] slices of the window.
    pub strip: Vec<Slice>,
}

/// Activity in a slice of the window, averaged over the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// Share of each category in [`RUNNING`], 0 to 1.
    pub running: [f32; RUNNING.len()],
    /// Main idle category; `None` if the devices were hardly idle.
    pub idle: Option<TimeCategory>,
}

impl Slice {
    /// Share of the slice during which anything ran, 0 to 1.
    pub fn busy(&self) -> f32 {
        self.running.iter().sum::<f32>().clamp(0.0, 1.0)
    }
}

/// Minimum busy share for a slice to count as busy.
const BUSY: f32 = 0.9;

/// Name of the analyzed time: a window chosen by the user, the run, or the run without its warm-up.
fn name_base(chosen: bool, whole: bool) -> &'static str {
    match (chosen, whole) {
        (true, _) => "the window",
        (false, true) => "the run",
        (false, false) => "the steady state",
    }
}

/// Totals over all operations of a report.
struct OpTotals {
    /// First start and last end of any operation, ns.
    first: i64,
    last: i64,
    counts: Vec<Counts>,
    /// Per device: the latest end so far, and the time during which something ran.
    ran: Vec<(i64, i64)>,
    /// Total duration of all operations, ns.
    work: i64,
}

impl OpTotals {
    fn of(ops: &DeviceOps<'_>) -> Self {
        let units = ops.units.len();
        let mut out =
            Self { first: i64::MAX, last: i64::MIN, counts: vec![Counts::default(); units], ran: vec![(i64::MIN, 0); units], work: 0 };
        for op in ops.iter() {
            out.first = out.first.min(op.start);
            out.last = out.last.max(op.end);
            out.work = out.work.saturating_add(op.end - op.start);
            let line = &mut out.ran[op.unit];
            line.1 += (op.end - op.start.max(line.0)).max(0);
            line.0 = line.0.max(op.end);
            let counts = &mut out.counts[op.unit];
            match op.class {
                Class::Copy => counts.copies += usize::from(ops.mem_of(&op).is_some_and(|m| CopyClass::from_mem_op(&m).of_host())),
                _ => counts.kernels += 1,
            }
        }
        out
    }
}

/// Longest pieces of idle time of each cause, longest first.
fn longest_by_cause(pieces: Vec<Vec<Piece>>) -> FxHashMap<Cause, Vec<Piece>> {
    let longest = |(cause, mut pieces): (Cause, Vec<Piece>)| {
        keep_longest(&mut pieces);
        pieces.sort_unstable_by_key(|p| (std::cmp::Reverse(p.end - p.start), p.start));
        (cause, pieces)
    };
    Cause::ALL.into_iter().zip(pieces).map(longest).collect()
}

/// Converts the sums over devices to the average activity in each slice of the window.
fn average_slices(strip: &[[f64; RUNNING.len()]], why: &[ByCause], devices: usize) -> Vec<Slice> {
    let units = devices.max(1) as f64;
    let slice = |(sums, causes): (&[f64; RUNNING.len()], &ByCause)| {
        let running = sums.map(|sum| (sum / units).clamp(0.0, 1.0) as f32);
        let slice = Slice { running, idle: None };
        Slice { idle: (slice.busy() < BUSY).then(|| causes.largest_part()).flatten(), ..slice }
    };
    strip.iter().zip(why).map(slice).collect()
}

impl<'a> RunContext<'a> {
    /// Collects the facts. Returns `None` if nothing ran or if cancelled. If windows are given, they are analyzed
    /// instead of the steady state.
    pub fn from_profile(profile: &'a Profile, windows: &[(i64, i64)], device: Option<u32>, cancel: &Cancel) -> Option<Self> {
        let mut ops = DeviceOps::from_profile(profile);
        ops.restrict_to(device);
        let OpTotals { first, last, counts, ran, work } = OpTotals::of(&ops);
        if first >= last || cancel.is_cancelled() {
            return None;
        }
        // Finding steps and collecting host calls both require a scan of the whole profile: run them in parallel.
        let (mut steps, host) = std::thread::scope(|scope| {
            let host = scope.spawn(|| Host::from_profile(profile));
            (Steps::from_profile(profile, &ops, (first, last), &counts, !windows.is_empty()), host.join())
        });
        // Propagate a panic from the thread.
        let host = host.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        steps.remove_measured(&measuring_times(profile));
        steps.keep_recorded(&profile.recorded);
        let chosen = windows.first().zip(windows.last()).map(|(a, b)| (a.0, b.1));
        if let Some(window) = chosen {
            steps.keep_in_window(window, (first, last));
        }
        if chosen.is_none() && steps.found.is_none() {
            let beginning = backlog::left_out(&ops, &host, (first, last), work);
            steps.left_out.extend(beginning.or_else(|| start::left_out(&ops, &host, (first, last), work)));
        }
        // Marked ranges may start before the first operation, while the devices are still idle.
        let start = || steps.left_out.last().filter(|_| steps.found.is_none()).map_or(first, |l| l.end);
        let window = chosen.or_else(|| steps.window()).unwrap_or_else(|| (start(), last));
        if window.0.max(first) >= window.1.min(last) || cancel.is_cancelled() {
            return None;
        }
        // A window that covers the run is the run.
        let chosen = chosen.is_some();
        let is_part = chosen && (first < window.0 || window.1 < last);
        let windows = recorded_windows(profile, if windows.is_empty() { vec![window] } else { windows.to_vec() });
        let mut gather = Gather::new(profile, &ops, &host, &steps, (window, &windows), cancel);
        let busy = sweep_windows(ops.iter(), ops.units.len(), &windows, &mut gather);
        if cancel.is_cancelled() {
            return None;
        }
        let Gather {
            idle,
            per_step,
            mut kernels,
            mut copies,
            after,
            pieces,
            mut copy_pieces,
            exposed_collective,
            pauses,
            after_pageable,
            spreads,
            lines,
            gaps,
            called,
            strip,
            why,
            ..
        } = gather;
        let single = spreads.outlier_gaps(steps.list.len(), |unit, piece| is_amid_repeated_work(&ops, unit, window, piece));
        without_single(&mut copies, &copy_pieces, &single);
        let loaded = gaps.loaded;
        copy_pieces.values_mut().for_each(keep_longest);
        kernels.sort_samples();
        let span = (first.min(window.0), last.max(window.1));
        let rest = (!chosen).then(|| outside_of(profile, span, &windows, &busy, &ran)).flatten();
        let devices: Vec<DeviceTime> = ops
            .units
            .iter()
            .zip(busy)
            .zip(idle)
            .filter_map(|((unit, busy), idle)| Some(DeviceTime { unit: *unit, busy: busy?, idle }))
            .collect();
        let mut all = ByCause::default();
        for device in &devices {
            all.add_all(&device.idle);
        }
        let host_idle = Cause::ALL.into_iter().filter(|c| c.is_of_host()).map(|c| all.get(c)).sum();
        let pieces = longest_by_cause(pieces);
        let mut host_time = lines.into_time(&profile.samples, host_idle, sum_samples(profile, &host, &windows));
        if host_time.times.is_empty() && host.known.python {
            host_time = time_of_functions(profile, &host, &pieces, &windows);
        }
        let strip = average_slices(&strip, &why, devices.len());
        let calls = sum_calls(profile, window);
        Some(Self {
            profile,
            terms: Terms::of(profile.is_amd()),
            base: name_base(is_part, rest.is_none()),
            ops,
            host,
            steps,
            window,
            windows,
            chosen,
            span,
            devices,
            idle: all,
            kernels,
            copies,
            per_step,
            after,
            spreads,
            host_time,
            single,
            loaded,
            outside: rest,
            pieces,
            copy_pieces,
            exposed_collective,
            called,
            calls,
            pauses,
            after_pageable,
            strip,
        })
    }

    /// Analyzed time, ns: the total length of `windows`.
    pub fn length(&self) -> i64 {
        self.windows.iter().map(|w| w.1 - w.0).sum()
    }

    /// Converts device time, summed over devices, to a share: 1 is the whole analyzed time on every device.
    pub fn share(&self, ns: i64) -> f64 {
        ns as f64 / (self.length() as f64 * self.devices.len().max(1) as f64)
    }

    /// Idle time with a cause, as a share of the window.
    pub fn idle_share(&self, cause: Cause) -> f64 {
        self.share(self.idle.get(cause))
    }

    /// Recurring idle time with a cause, ns. Outlier gaps are excluded if they account for most of the idle time.
    pub fn recurring_idle(&self, cause: Cause) -> i64 {
        (self.idle.get(cause) - self.single.iter().filter(|s| s.cause == cause).map(|s| s.ns).sum::<i64>()).max(0)
    }

    /// Recurring idle time with [`Cause::Launch`] in which the thread was between calls, ns: the program's own code
    /// rather than the driver.
    pub fn between_launches(&self) -> i64 {
        let of_single = self.single.iter().filter(|s| s.cause == Cause::Launch).flat_map(|s| &s.gaps).map(|g| g.1.between).sum::<i64>();
        (self.spreads.between_calls(Cause::Launch) - of_single).clamp(0, self.recurring_idle(Cause::Launch))
    }

    /// Idle time after synchronizations that would remain even without the waits, ns. Without them, host and GPU would
    /// work concurrently, which can hide at most as much idle time as the GPU is busy. Zero if most waits belong to
    /// copies, because the idle time is then attributed to the copies.
    pub fn late_after_waits(&self) -> i64 {
        let copies = self.copies.get(CopyClass::Small).pageable + self.copies.get(CopyClass::Pageable).count;
        let waits = self.calls_of(CallKind::Sync).0.max(copies).max(self.blocking_copies()).max(self.polled_waits());
        if copies * 2 > waits { 0 } else { (self.recurring_idle(Cause::Sync) - self.sum_devices(Busy::busy_time)).max(0) }
    }

    /// Idle time with these causes during which the profiler flushed its buffers, ns; considers only the pieces that
    /// are kept.
    pub fn flushed_idle(&self, causes: &[Cause]) -> i64 {
        if self.host.flushes.is_empty() {
            return 0;
        }
        let pieces = causes.iter().filter_map(|cause| self.pieces.get(cause)).flatten();
        pieces.map(|p| self.host.flushes.covered_length(p.start, p.end)).sum()
    }

    /// Number of times that the GPU ran out of work while the host polled.
    pub fn polled_waits(&self) -> u64 {
        let polls = self.after.iter().filter(|((cause, name), _)| *cause == Cause::Sync && is_poll(self.call_name(*name)));
        polls.map(|(_, after)| after.gaps).sum()
    }

    /// Number of copies that started in the window and blocked their thread until they were done.
    pub fn blocking_copies(&self) -> u64 {
        let calls = &self.profile.calls;
        let within = |row: &&u32| calls.start.get(**row as usize).is_some_and(|&s| s >= self.window.0 && s < self.window.1);
        self.host.blocking.iter().filter(within).count() as u64
    }

    /// Recurring pieces of idle time with a cause, longest first.
    pub fn pieces_again(&self, cause: Cause) -> Vec<Piece> {
        let single: Vec<&Piece> = self.single.iter().filter(|s| s.cause == cause).flat_map(|s| &s.gaps).map(|g| &g.1).collect();
        self.pieces.get(&cause).into_iter().flatten().filter(|p| !single.contains(p)).copied().collect()
    }

    pub fn sum_devices(&self, of: impl Fn(&Busy) -> i64) -> i64 {
        self.devices.iter().map(|d| of(&d.busy)).sum()
    }

    /// Average per step; `None` if there are no steps.
    pub fn per_step(&self, n: u64) -> Option<f64> {
        (self.steps.list.len() > 1).then(|| n as f64 / self.steps.list.len() as f64)
    }

    /// Number of repetitions of the operation that accounts for the most time: a kernel with one configuration, copies
    /// of one class, or graph launches.
    pub fn main_repetitions(&self) -> u64 {
        let kernels = self.kernels.like.values().map(|l| (l.ns, l.count));
        let copies = CopyClass::ALL.into_iter().map(|c| self.copies.get(c)).map(|s| (s.ns, s.count));
        let graphs = (self.kernels.in_graphs.1, self.kernels.in_graphs.0);
        kernels.chain(copies).chain([graphs]).max().map_or(0, |most| most.1)
    }

    pub fn call_name(&self, name: u32) -> &str {
        self.profile.calls.names.get(name as usize).map_or("a call", |n| &n.name)
    }

    /// Names of the calls behind the idle time with a cause, most idle time first.
    pub fn calls_behind(&self, cause: Cause) -> Vec<(&str, AfterCall)> {
        let mut out: Vec<(&str, AfterCall)> =
            self.after.iter().filter(|(k, _)| k.0 == cause).map(|(k, v)| (self.call_name(k.1), *v)).collect();
        out.sort_by_key(|(name, after)| (std::cmp::Reverse(after.ns), *name));
        out
    }

    /// Number of calls of a kind that started in the window, and the host time in these calls, ns.
    pub fn calls_of(&self, kind: CallKind) -> (u64, i64) {
        self.calls.get(&kind).copied().unwrap_or_default()
    }
}

/// Returns true if most of the kernel time of a device in the window belongs to kernels that ran at least [`STEPS`]
/// times both before and after a piece of idle time.
fn is_amid_repeated_work(ops: &DeviceOps<'_>, unit: usize, window: (i64, i64), piece: &Piece) -> bool {
    // Per kernel: launches before and after, and their total duration.
    let mut sums: FxHashMap<u32, ([usize; 2], i64)> = FxHashMap::default();
    for op in ops.iter().filter(|op| op.unit == unit && op.start >= window.0 && op.end <= window.1) {
        if let OperationRow::Launch(row) = op.row {
            let sum = sums.entry(ops.profile().launches.kernel(row as usize).0).or_default();
            sum.0[usize::from(op.start >= piece.end)] += 1;
            sum.1 = sum.1.saturating_add(op.end - op.start);
        }
    }
    let total: i64 = sums.values().map(|s| s.1).sum();
    let repeated: i64 = sums.values().filter(|s| s.0.iter().all(|n| *n >= STEPS)).map(|s| s.1).sum();
    repeated > 0 && repeated * 2 > total
}

/// Removes outlier gaps from the idle time of copies, because they are not part of the cost of each copy.
fn without_single(copies: &mut Copies, pieces: &FxHashMap<CopyClass, Vec<Piece>>, single: &[Single]) {
    let gaps = single.iter().filter(|s| s.cause == Cause::CopyCall).flat_map(|s| &s.gaps);
    for (_, gap) in gaps {
        let class = pieces.iter().find(|(_, list)| list.contains(gap)).map(|(class, _)| *class);
        if let Some(class) = class {
            copies.add_idle(class, gap.start - gap.end);
        }
    }
}

fn sum_calls(profile: &Profile, window: (i64, i64)) -> FxHashMap<CallKind, (u64, i64)> {
    let calls = &profile.calls;
    let kinds: Vec<CallKind> = calls.names.iter().map(|n| n.kind).collect();
    let mut out: FxHashMap<CallKind, (u64, i64)> = FxHashMap::default();
    let mut sums = vec![(0_u64, 0_i64); kinds.len()];
    for row in 0..calls.len() {
        if calls.start[row] >= window.0
            && calls.start[row] < window.1
            && let Some(sum) = sums.get_mut(calls.name[row] as usize)
        {
            sum.0 += 1;
            sum.1 = sum.1.saturating_add(calls.duration[row]);
        }
    }
    for (kind, (n, ns)) in kinds.into_iter().zip(sums) {
        let sum = out.entry(kind).or_default();
        sum.0 += n;
        sum.1 = sum.1.saturating_add(ns);
    }
    out
}
