//! Rules: the kernels themselves.

use crate::analysis::Family;
use crate::analysis::readable::readable_name;
use crate::analysis::triage::device_ops::OperationRow;
use crate::analysis::triage::finding::{Finding, Place, PlaceKind, Severity, Sure};
use crate::analysis::triage::kernels::{EMPTY_NS, Like, SHORT_NS, SLICES};
use crate::analysis::triage::rank::FILLS;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::verdict::Verdict;
use crate::model::CallKind;
use crate::model::units;
use crate::model::units::format_share;

/// Minimum share of kernel time in short kernels for them to dominate.
const MOSTLY_SHORT: f64 = 0.3;

/// Minimum number of short kernels: of a few, none can be fused with another.
const LEAST_SHORT: u64 = 10;

fn kernel_place(case: &RunContext<'_>, (kernel, ns, _): (u32, i64, u64)) -> Place {
    let name = case.profile.kernels.get(kernel as usize).map_or_else(String::new, |k| readable_name(k).into_owned());
    Place { kind: PlaceKind::Kernel, name, start: case.window.0, end: case.window.1, ns: Some(ns), rank: None }
}

/// Kernels are so short that launch overhead on the device takes much of their time.
pub fn small_kernels(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let k = &case.kernels;
    let median = k.median_duration()?;
    if median >= SHORT_NS || k.short.0 < LEAST_SHORT || (k.short.1 as f64) < MOSTLY_SHORT * k.ns as f64 {
        return None;
    }
    // Includes the device's pauses between queued kernels.
    let cost = k.fixed + case.pauses;
    let share = case.share(cost);
    let graphs = k.in_graphs.0 * 2 > k.count;
    let finding = Finding::new(
        Verdict::SmallKernels,
        share,
        format!(
            "{} of {} each: launch overhead takes up to {} of {base}{}",
            units::format_count(k.short.0, "kernel"),
            format_ns(k.short.1 as f64 / k.short.0.max(1) as f64),
            format_share(share),
            if graphs { format!(", although they are in a {} graph", case.terms.gpu.api) } else { String::new() }
        ),
    )
    .with_gain_basis(format!(
        "{} for the start and end of each kernel shorter than {}, and the pauses between queued ones",
        format_ns(EMPTY_NS as f64),
        format_ns(SHORT_NS as f64)
    ))
    .with_judged_number("median duration of a kernel", median as f64, "ns", ("<", SHORT_NS as f64))
    .with_number("kernels shorter than 5 µs", k.short.0 as f64, "")
    .with_number("their share of all kernel time", k.short.1 as f64 / k.ns.max(1) as f64 * 100.0, "%")
    .with_number("pauses between queued kernels", case.pauses as f64, "ns")
    .with_number("kernels in graphs", (k.in_graphs.0 > 0).then_some(k.in_graphs.0 as f64), "")
    .with_number("kernels in a step", case.per_step(k.count), "")
    .with_places(k.top_kernels(case.profile).into_iter().take(3).map(|t| kernel_place(case, t)))
    .with_actions(&[
        &format!(
            "Fuse them: one {} or Triton kernel for a chain of elementwise operations (in PyTorch: torch.compile, fused optimizers and norms).",
            case.terms.gpu.api
        ),
        "Give each more work: larger batches, several steps or tensors at once (grouped GEMM; in PyTorch: torch._foreach).",
    ]);
    Some(if graphs {
        finding
    } else {
        finding.with_actions(&[&format!("A {} graph shortens the pauses between them, not the kernels.", case.terms.gpu.api)])
    })
}

/// Minimum share of the window in which a stream's kernels must run for the stream to be considered.
const A_STREAM: f64 = 0.05;
/// Average number of concurrent kernels below which streams count as not overlapping.
const OVERLAP: f64 = 1.1;

/// Streams hardly overlap, although their kernels do not fill the device.
pub fn serialised_streams(case: &RunContext<'_>) -> Option<Finding> {
    let mut best: Option<(f64, Finding)> = None;
    for (unit, device) in case.ops.units.iter().enumerate().filter_map(|(i, u)| Some((i, case.devices.iter().find(|d| d.unit == *u)?))) {
        let mut streams: Vec<(Option<u32>, i64, i64)> = case
            .kernels
            .streams
            .iter()
            .filter(|((u, _), _)| *u == unit)
            .map(|((_, s), t)| (*s, t.ns, t.small))
            .filter(|s| s.1 as f64 >= A_STREAM * case.length() as f64)
            .collect();
        streams.sort_by_key(|s| std::cmp::Reverse(s.1));
        let total: i64 = streams.iter().map(|s| s.1).sum();
        let small: i64 = streams.iter().map(|s| s.2).sum();
        if streams.len() < 2 || device.busy.kernels == 0 {
            continue;
        }
        let overlap = total as f64 / device.busy.kernels as f64;
        if overlap >= OVERLAP || small * 2 < total {
            continue;
        }
        // Running concurrently, the streams would take only as long as the longest of them.
        let gain = (small - streams.first().map_or(0, |s| s.1)).max(0);
        let share = case.share(gain);
        let finding = Finding::new(
            Verdict::Serialised,
            share,
            format!(
                "kernels of {} streams hardly ever run concurrently ({overlap:.2} at a time), although each fills only a part of the GPU",
                streams.len()
            ),
        )
        .with_gain_basis("the time of all streams but the longest, as far as their grids leave room")
        .with_judged_number("kernels at a time", overlap, "", ("<", OVERLAP))
        .with_number("of their time with grids smaller than the GPU", small as f64 / total.max(1) as f64 * 100.0, "%")
        .with_number("streams", streams.len() as f64, "")
        .with_actions(&[
            &format!("Look for what orders them: the legacy default stream (use {} or {}StreamNonBlocking), event waits, allocations between launches.", case.terms.thread_streams, case.terms.prefix),
            "If each stream waits for the other's result, they are one chain: then a larger batch or a graph helps.",
        ])
        .with_confidence(Sure::Likely);
        if best.as_ref().is_none_or(|b| share > b.0) {
            best = Some((share, finding));
        }
    }
    best.map(|b| b.1)
}

/// Minimum number of launches of a kernel with one configuration to evaluate its durations.
const LAUNCHES: u64 = 30;
/// Minimum growth from the first to the last third of the window.
const GROWTH: f64 = 1.10;
/// Minimum share of the total kernel time in kernels that have slowed down.
const MOST: f64 = 0.6;

/// Maximum factor by which the clock can drop: from 1980 MHz on an H100 to about 600 MHz under the strictest power and
/// thermal limits. Launches whose durations vary by more than that do different work.
const CLOCK: f64 = 3.3;
/// Number of parts of the window to compare.
const THIRDS: usize = 3;

/// Returns the mean duration of comparable launches in each third of the window; `None` if durations vary by more than
/// a clock can explain.
fn mean_by_third(like: &Like) -> Option<[f64; THIRDS]> {
    let mean = |(n, ns): (u64, i64)| (n > 0).then(|| ns as f64 / n as f64);
    let slices = like.slices.iter().copied().filter_map(mean);
    let (least, most) = slices.fold((f64::MAX, 0.0_f64), |(least, most), m| (least.min(m), most.max(m)));
    if most > least * CLOCK {
        return None;
    }
    let third = |at: usize| {
        let slices = &like.slices[at * SLICES / THIRDS..(at + 1) * SLICES / THIRDS];
        mean(slices.iter().fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1)))
    };
    Some([third(0)?, third(1)?, third(2)?])
}

/// Returns true if the sampled clocks fell by more than 2 % from the first to the last third of the window; `None`
/// without samples.
fn clock_fell(case: &RunContext<'_>) -> Option<bool> {
    let third = (case.window.1 - case.window.0) / 3;
    let mean = |from: i64, to: i64| {
        let clocks = case.profile.counters.iter().filter(|c| c.name.to_ascii_lowercase().contains("clock"));
        let values = clocks.flat_map(|c| c.times.iter().zip(&c.values)).filter(|(t, _)| (from..to).contains(*t)).map(|(_, v)| *v);
        let (n, sum) = values.fold((0_u32, 0.0), |(n, sum), v| (n + 1, sum + v));
        (n > 0).then(|| sum / f64::from(n))
    };
    Some(mean(case.window.1 - third, case.window.1)? < mean(case.window.0, case.window.0 + third)? * 0.98)
}

/// The same kernels get slower over the run.
pub fn throttled_kernels(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let (mut judged, mut slower, mut lost) = (0.0, 0.0, 0.0);
    let (mut before, mut after) = (0.0, 0.0);
    for like in case.kernels.like.values().filter(|l| l.count >= LAUNCHES && l.ns / i64::try_from(l.count).unwrap_or(1) >= SHORT_NS) {
        let Some([a, b, c]) = mean_by_third(like) else { continue };
        judged += like.ns as f64;
        if c >= a * GROWTH && b >= a * 1.02 && c >= b {
            let last: u64 = like.slices[SLICES / THIRDS * 2..].iter().map(|s| s.0).sum();
            slower += like.ns as f64;
            lost += like.ns as f64 - a * like.count as f64;
            before += a * last as f64;
            after += c * last as f64;
        }
    }
    if judged <= 0.0 || judged < 0.5 * case.kernels.ns as f64 || slower < MOST * judged || clock_fell(case) == Some(false) {
        return None;
    }
    let clocks = case.profile.counters.iter().any(|c| c.name.to_ascii_lowercase().contains("clock"));
    let finding = Finding::new(
        Verdict::Throttled,
        lost / (case.length() as f64 * case.devices.len().max(1) as f64),
        format!(
            "the same kernels in the same configurations take {} longer at the end of {base} than at its beginning",
            format_share(after / before - 1.0)
        ),
    )
    .with_gain_basis(format!("what these kernels take beyond their mean in the first third of {base}"))
    .with_number("kernel time that got slower", slower / judged * 100.0, "%")
    .with_judged_number("growth from the first to the last third", (after / before - 1.0) * 100.0, "%", ("≥", (GROWTH - 1.0) * 100.0))
    .with_actions(&[
        "Look at clocks, power and temperature: nvidia-smi -q -d PERFORMANCE,CLOCK, or --query-gpu=clocks_throttle_reasons.active.",
        "If the clocks hold, look for what else uses memory and power at the same time: copies, other processes, growing inputs.",
    ]);
    Some(if clocks { finding.with_confidence(Sure::Likely) } else { finding.with_confidence(Sure::Possible) })
}

/// Minimum share of SMs that must have work for kernels that fill the window to be considered to fill the GPU.
const FEW_SMS: f64 = 0.5;

/// Formats a number with at most one decimal: `1`, `12.5`.
fn format_tenth(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Kernels fill the window, but only a small part of the GPU.
fn underused_gpu(case: &RunContext<'_>, mut finding: Finding, share: f64, used: f64) -> Finding {
    let base = case.base;
    let cores = case.terms.gpu.units;
    let sms: Vec<u32> = case.devices.iter().filter_map(|d| case.profile.devices.get(d.unit.device? as usize)?.sm_count).collect();
    let of = sms.first().filter(|n| sms.iter().all(|m| m == *n)).map_or_else(
        || format!("{} of the {cores}", format_share(used)),
        |&n| format!("{} of {n} {cores}", format_tenth(used * f64::from(n))),
    );
    let emptiest = case.kernels.emptiest_kernels();
    let name = |kernel: u32| case.profile.kernels.get(kernel as usize).map_or_else(Default::default, readable_name);
    let first = emptiest
        .first()
        .map_or_else(String::new, |(kernel, _, blocks)| format!("; {} launches {}", name(*kernel), units::format_count(*blocks, "block")));
    let stake = share * (1.0 - used);
    finding.stake = stake;
    finding.severity = Severity::from_share(stake);
    finding.headline = format!(
        "kernels run for {} of {base}, but occupy only {of} on average: their grids are too small for this GPU{first}",
        format_share(share)
    );
    finding
        .with_judged_number(&format!("{cores} with a block to work on, weighted by time"), used * 100.0, "%", ("<", FEW_SMS * 100.0))
        .with_gain_basis(format!("the part of the kernels' time in which {cores} had no block, from the launch configurations; larger grids or concurrent kernels could use it"))
        .with_places(emptiest.into_iter().take(3).map(|(k, ns, _)| kernel_place(case, (k, ns, 0))))
        .with_actions(&[
            &format!("Launch at least as many blocks as the GPU has {cores}, better several for each: split the work finer, parallelize over more dimensions, split-K."),
            "Run independent kernels at the same time: streams, a larger batch, several requests at once.",
            &format!("Give blocks at least a few {}s: blocks of one thread leave most lanes of {} {} empty, too.", case.terms.gpu.warp, if case.profile.is_amd() { "a" } else { "an" }, case.terms.gpu.unit),
        ])
}

/// The kernels fill the window.
/// Share of the window above which the host's own time is the next limit.
const HOST_IS_NEXT: f64 = 0.75;

/// Time in which the only thread that launches does not wait for the GPU, ns, by which faster kernels cannot shorten
/// the run. `None` if several threads launch, or if the thread may be waiting in other calls: in launches, whose queue
/// may be full, or in copies.
fn host_time(case: &RunContext<'_>) -> Option<i64> {
    let (from, to) = case.window;
    let mut lanes = case.host.lanes.iter().filter(|l| case.host.launches_between(l, from, to));
    let (_, None, 1) = (lanes.next()?, lanes.next(), case.devices.len()) else { return None };
    let length = case.length();
    let may_wait = [CallKind::Launch, CallKind::GraphLaunch, CallKind::Copy].iter().map(|k| case.calls_of(*k).1).sum::<i64>();
    let sync = case.calls_of(CallKind::Sync);
    (sync.0 > 0 && case.polled_waits() == 0 && may_wait * 2 < length).then(|| (length - sync.1).max(0))
}

/// Time from the first to the last recorded call or range of the host, ns.
fn host_length(case: &RunContext<'_>) -> i64 {
    let calls = &case.profile.calls;
    let ends = calls.start.iter().zip(&calls.duration).map(|(start, duration)| (*start, start.saturating_add(*duration)));
    let ranges = case.profile.ranges.iter().filter(|r| !r.origin.is_hardware() && r.end < i64::MAX).map(|r| (r.start, r.end));
    let (first, last) = ends.chain(ranges).fold((i64::MAX, i64::MIN), |(first, last), (start, end)| (first.min(start), last.max(end)));
    last.saturating_sub(first).max(0)
}

/// Returns the duration of the longest launch of a kernel, ns, if it takes most of the kernel's time although there are
/// others with the same configuration.
fn find_odd_launch(case: &RunContext<'_>, (kernel, total, count): (u32, i64, u64)) -> Option<i64> {
    let launches = &case.profile.launches;
    let own = || {
        let inside = case.ops.iter().filter(|op| op.start >= case.window.0 && op.end <= case.window.1);
        inside.filter_map(|op| match op.row {
            OperationRow::Launch(row) if launches.kernel(row as usize).0 == kernel => {
                Some((op.end - op.start, launches.config(row as usize)))
            }
            _ => None,
        })
    };
    let (longest, config) = own().max_by_key(|l| l.0)?;
    (count > 1 && longest * 2 > total && own().filter(|l| l.1 == config).nth(1).is_some()).then_some(longest)
}

pub fn gpu_bound(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let kernels = case.sum_devices(|b| b.kernels);
    let share = case.share(kernels);
    // The time from the first to the last of a few operations is not the run, if the host was recorded for longer.
    let operations = case.devices.iter().map(|d| d.busy.operations).sum::<u64>();
    let few = !case.chosen && operations < super::capture::FEW && host_length(case) > 2 * case.length();
    if kernels == 0 || few {
        return None;
    }
    let top = case.kernels.top_kernels(case.profile);
    let once = top.first().and_then(|t| find_odd_launch(case, *t));
    let first = top.first().map_or_else(String::new, |(kernel, ns, _)| {
        let name = case.profile.kernels.get(*kernel as usize).map_or_else(Default::default, readable_name);
        // The kernels in graphs that were recorded as a whole are unknown.
        let all = case.kernels.ns.saturating_add(case.kernels.whole).max(1) as f64;
        let in_graphs = case.kernels.whole as f64 / all;
        let whole = if case.kernels.whole > 0 {
            format!(", {} is in {} graphs recorded as a whole", format_share(in_graphs), case.terms.gpu.api)
        } else {
            String::new()
        };
        // Collectives are kernels, too, but compute nothing.
        let of = if case.kernels.collectives.0 > 0 { "of the time of compute kernels is" } else { "of kernel time is" };
        format!("; {} {of} {name}{whole}", format_share(*ns as f64 / all))
    });
    let host = host_time(case).filter(|ns| *ns as f64 >= HOST_IS_NEXT * case.length() as f64);
    let next = host.map_or_else(String::new, |ns| {
        format!(", and the launching thread is busy for {} of it", format_share(ns as f64 / case.length() as f64))
    });
    let headline = format!("the GPU runs kernels for {} of {base}{next}{first}", format_share(share));
    let mut finding = Finding::new(Verdict::GpuBound, share, headline)
        .with_gain_basis("the time in which kernels ran; see each kernel's diagnosis for possible savings")
        .with_number(if case.devices.len() > 1 { "kernels, summed over the devices" } else { "kernels" }, kernels as f64, "ns")
        .with_number("median duration of a kernel", case.kernels.median_duration().map(|n| n as f64), "ns")
        .with_number("the launching thread's time outside of waits for the GPU", host.map(|n| n as f64), "ns");
    let mut families = case.kernels.time_by_family(case.profile);
    families.retain(|f| f.0 != Family::Nccl);
    let total: i64 = families.iter().map(|f| f.1).sum::<i64>().saturating_add(case.kernels.whole);
    for (family, time) in families.iter().take(4) {
        finding = finding.with_number(
            &format!("{}, by the names of the kernels that compute", family.display_name()),
            *time as f64 / total.max(1) as f64 * 100.0,
            "%",
        );
    }
    let used = case.kernels.filled_share(kernels);
    // Report empty SMs only if kernels fill the window; otherwise, idle time is the more important finding.
    if used < FEW_SMS && share >= FILLS {
        return Some(underused_gpu(case, finding, share, used));
    }
    if let Some(ns) = host {
        finding = finding.with_actions(&[&format!(
            "Expect at most {} from faster kernels while the launching thread takes as long as in this recording{}. Reduce its work, too: {} graphs, fewer and larger kernels.",
            format_share(1.0 - ns as f64 / case.length() as f64),
            if case.host.known.python { ", which recording Python functions slows down" } else { "" },
            case.terms.gpu.api
        )]);
    }
    let finding = match once {
        Some(ns) => finding.with_number("the longest launch of the first kernel", ns as f64, "ns").with_actions(&[
            "One launch takes most of the first kernel's time: a first use, page faults, or more work than the others have. Launch it once before what you measure, or look at that launch alone.",
        ]),
        None => finding,
    };
    let network = families.iter().any(|f| matches!(f.0, Family::Attention | Family::Norm | Family::Gemm | Family::Convolution));
    let mut finding = finding.with_places(top.into_iter().take(3).map(|t| kernel_place(case, t))).with_actions(&[
        "Go to the kernels: what limits the first of them, and profile it again with its counters.",
        if network {
            "Do less: lower precision where it is allowed, fused attention and norms, no work that is thrown away."
        } else {
            "Do less: fewer passes over the data (fused kernels, tiles in shared memory), lower precision where it is allowed, no work that is thrown away."
        },
    ]);
    finding.severity = Severity::Healthy;
    Some(finding)
}
