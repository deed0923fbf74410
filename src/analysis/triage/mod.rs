//! Bottleneck analysis of a run: attributes each nanosecond of a device to one category, explains idle time by the
//! host's activity, and applies rules to the result.

mod attribution;
mod backlog;
mod certainty;
pub mod copy_class;
pub mod device_ops;
mod eligible_windows;
pub mod finding;
mod first;
mod function_time;
mod gather;
mod host;
mod host_lines;
mod host_samples;
mod idle;
mod idle_causes;
pub mod intervals;
pub mod judged_time;
mod kernels;
mod launch_lines;
mod marked;
mod os;
mod outcome;
mod outside;
mod period;
mod phase;
mod piece;
mod places;
mod program;
mod queued;
mod rank;
mod rules;
pub mod run_context;
mod spread;
mod start;
mod step;
mod step_kinds;
mod step_sketch;
mod steps;
pub mod text;
pub mod time_category;
mod unrecorded;
pub mod verdict;
mod waits;

pub use crate::analysis::host_frames::frame_label;
pub use eligible_windows::measuring_times;
pub use finding::{Confirm, Evidence, Finding, Place, PlaceKind, Severity, Sure};
pub use host::Known;
pub use host_lines::{FunctionKey, HostTime, LineTime, StackTime};
pub use host_samples::ENOUGH;
pub use idle::{Idle, find_idle_times};
pub use judged_time::JudgedTime;
pub use launch_lines::LaunchSum;
pub use outcome::{JudgedDevice, StepStats, StepTimes, Triage, like_steps, step_parts};
pub use phase::Phase;
pub use run_context::{DeviceTime, Outside, RUNNING, Slice};
pub use step_kinds::{Launched, StepKind};
pub use steps::{LeftOut, Step, StepSource};
pub use time_category::{Cause, TimeCategory};
pub use verdict::{VERDICTS, Verdict};

use crate::analysis::flops::{self, Counted, Operators, Rate};
use crate::analysis::name_pattern::name_pattern;
use crate::analysis::run_estimate::RunEstimate;
use crate::model::{Cancel, Profile, Vendor};
use certainty::SLIVER;
use run_context::RunContext;

/// Scope of a triage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// Restricts the analysis to these times, ns, in order; if empty, to the steady state.
    pub windows: Vec<(i64, i64)>,
    /// Restricts the analysis to the device with this number.
    pub device: Option<u32>,
    /// Floating-point operations per step, given by the user; for the whole window if the run has no steps.
    pub flops: Option<f64>,
}

/// Note if the analyzed loop is only a small part of the report.
const SMALL_PART: &str = "only a small part of the report repeats, and that was judged; `--range` judges another part";

/// Maximum share of the kernel time in which counters were collected; beyond it, the rest does not represent the run.
const MOSTLY_MEASURED: f64 = 0.5;

/// Analyzes a run. Returns `None` if nothing ran on a device, or if cancelled.
pub fn triage_profile(profile: &Profile, scope: &Scope, cancel: &Cancel) -> Option<Triage> {
    // A thread trace covers one kernel; time between kernels that were measured one by one is due to the profiler.
    if profile.ranges.is_hardware() || profile.metrics.is_some() {
        return None;
    }
    let case = RunContext::from_profile(profile, &scope.windows, scope.device, cancel)?;
    let flops = flop_rate(&case, scope.flops);
    let findings = rules::RULES.iter().filter_map(|rule| rule(&case)).collect();
    let mut findings = rank::rank_findings(findings);
    // A loop detected from its kernels alone may be a small part of the program's work.
    let span = (case.span.1 - case.span.0).max(1) as f64;
    let sliver =
        matches!(case.steps.found, Some(StepSource::Period(_))) && scope.windows.is_empty() && (case.length() as f64) < SLIVER * span;
    let amd = profile.is_amd();
    // Recipes and re-runs require NVIDIA's or AMD's tools.
    let known = profile.maker() != Vendor::Other;
    for finding in &mut findings {
        finding.confirm = finding.confirm.take().or_else(|| text::confirm_command(profile, finding)).filter(|_| known);
        // Python's functions were recorded: no recipe has to record them again.
        let records_python =
            |c: &Confirm| c.argv.windows(2).any(|w| matches!(w, [option, recipe] if option == "--recipe" && recipe == "python"));
        if case.host.known.python && finding.confirm.as_ref().is_some_and(records_python) {
            finding.confirm = Some(text::show_lines(profile));
        }
        // nsys' recipes do not apply to AMD GPUs.
        finding.confirm = finding.confirm.take().filter(|c| !amd || !c.argv.iter().any(|word| word == "--recipe"));
    }
    for finding in findings.iter_mut().filter(|_| sliver) {
        finding.sure = finding.sure.max(Sure::Likely);
    }
    certainty::lower_confidence(&case, &mut findings);
    let measured = eligible_windows::measured_share(profile, &scope.windows, scope.device);
    let mostly = measured > MOSTLY_MEASURED;
    for finding in findings.iter_mut().filter(|_| mostly) {
        finding.sure = Sure::Possible;
    }
    rank::place_short_capture(&mut findings);
    unrecorded::judge_unrecorded(profile, &mut findings);
    let mostly = mostly.then(|| {
        format!(
            "{} of the kernels ran while counters or stall reasons were measured: to know what limits the run, record it without \
             measuring",
            crate::model::units::format_share(measured)
        )
    });
    let device = |d: &DeviceTime| JudgedDevice {
        number: case.ops.device_number(&d.unit),
        name: d.unit.device.and_then(|i| profile.devices.get(i as usize)).map(crate::model::Device::short_name),
        pid: d.unit.pid,
        busy: d.busy.busy_time(),
        parts: d.time_by_part(),
        causes: Cause::ALL.into_iter().map(|c| (c, d.idle.get(c))).filter(|c| c.1 > 0).collect(),
        collectives: d.busy.collectives,
        copies: d.busy.copies,
    };
    certainty::say_judged(&case, &mut findings);
    certainty::add_breakdown_shares(&case, &mut findings);
    let devices = i64::try_from(case.devices.len().max(1)).unwrap_or(1);
    Some(Triage {
        window: case.window,
        base: case.base,
        judged: JudgedTime::from_windows(&case.windows),
        unrecorded: profile.coverage.is_inconclusive(),
        devices: case.devices.iter().map(device).collect(),
        findings,
        kernel_lead: None,
        flops,
        memory: None,
        doubt: mostly,
        missing: sliver.then(|| SMALL_PART.to_owned()).into_iter().chain(missing_notes(&case)).collect(),
        families: case.kernels.time_by_family(profile),
        kinds: step_kinds(&case),
        outside: case.outside,
        strip: case.strip.clone(),
        span: case.span,
        whole_run: RunEstimate::from_profile(profile).map(|e| {
            let steps: Vec<(i64, i64)> = case.steps.list.iter().map(|s| (s.start, s.end)).collect();
            e.with_steps(profile, &steps)
        }),
        kernels: case.kernels.top_kernels(profile),
        found: case.steps.found,
        step_lengths: outcome::measure_steps(&case.steps.list),
        step_idle: case.per_step.iter().map(|s| (s.idle.total() / devices, s.idle.largest_part())).collect(),
        host_time: case.host_time,
        steps: case.steps.list,
        left_out: case.steps.left_out,
    })
}

impl Triage {
    /// Marks the name of an idle category as doubtful if so much work has no record that the device may have been busy:
    /// `idle?: launching`.
    pub fn doubt_idle(&self, name: String) -> String {
        match name.strip_prefix("idle:") {
            Some(rest) if self.unrecorded => format!("idle?:{rest}"),
            _ => name,
        }
    }

    /// Stores the memory findings, or the reason why memory was not examined.
    pub fn take_memory(&mut self, found: Result<Vec<(&'static str, String)>, String>) {
        match found {
            Ok(found) => self.memory = Some(found),
            Err(why) => self.missing.push(why),
        }
    }
}

/// Returns the times covered by the ranges with this name, including the device work launched in them. Numbers in the
/// name match literally or as `#`. Each window starts with its range, or when the devices have finished earlier work if
/// that is later, and ends with the range or with the last operation launched in it. Empty if there is no such range,
/// or if nothing was launched in it.
pub fn range_windows(profile: &Profile, name: &str) -> Vec<(i64, i64)> {
    let ranges = &profile.ranges;
    // Spaces are ignored: `decode #` matches `decode#`.
    let alike = |text: &str| name_pattern(text).replace(' ', "");
    let wanted = alike(name);
    let names: Vec<bool> = (0..ranges.names.len())
        .map(|n| {
            let label = ranges.label(u32::try_from(n).unwrap_or(u32::MAX));
            let text = &ranges.names[n].1;
            label == name || **text == *name || name.contains('#') && [alike(&label), alike(text)].contains(&wanted)
        })
        .collect();
    let mut by_process: rustc_hash::FxHashMap<u32, Vec<(i64, i64)>> = rustc_hash::FxHashMap::default();
    for range in ranges.iter().filter(|r| names.get(r.name as usize).copied().unwrap_or_default()) {
        let pid = ranges.threads.get(range.thread as usize).map_or(0, |t| t.0);
        by_process.entry(pid).or_default().push((range.start, range.end));
    }
    // Ranges that overlap, on other threads or nested, are merged.
    let mut merged: rustc_hash::FxHashMap<u32, Vec<(i64, i64, i64, i64)>> = rustc_hash::FxHashMap::default();
    for (pid, mut list) in by_process {
        list.sort_unstable();
        let mut out: Vec<(i64, i64, i64, i64)> = Vec::new();
        for (start, end) in list {
            match out.last_mut() {
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                // A range that is still open ends with its last operation.
                _ => out.push((start, end, i64::MAX, i64::MIN)),
            }
        }
        merged.insert(pid, out);
    }
    let ops = device_ops::DeviceOps::from_profile(profile);
    let mut latest = i64::MIN;
    for op in ops.iter() {
        let before = latest;
        latest = latest.max(op.end);
        let Some(call) = ops.find_call(&op) else { continue };
        let Some(list) = merged.get_mut(&call.pid) else { continue };
        let at = list.partition_point(|r| r.0 <= call.start);
        if let Some(range) = at.checked_sub(1).and_then(|i| list.get_mut(i)).filter(|r| call.start <= r.1) {
            range.2 = range.2.min(steps::device_range_start(range.0, before, op.start));
            range.3 = range.3.max(op.end);
        }
    }
    let found: intervals::Intervals = merged
        .into_values()
        .flatten()
        .filter(|r| r.2 < r.3)
        .map(|r| (r.2, if r.1 == i64::MAX { r.3 } else { r.3.max(device_ops::clamp_time(r.1)) }))
        .collect();
    found.as_slice().to_vec()
}

/// Returns the range name most similar to `name`.
pub fn nearest_range(profile: &Profile, name: &str) -> Option<String> {
    let labels: std::collections::BTreeSet<String> = (0..profile.ranges.names.len())
        .map(|n| name_pattern(&profile.ranges.label(u32::try_from(n).unwrap_or(u32::MAX))))
        .take(10_000)
        .collect();
    crate::analysis::fuzzy::nearest_match(&name_pattern(name), labels.iter().map(String::as_str)).map(str::to_owned)
}

/// Returns the kinds of steps, if steps run different kernels.
fn step_kinds(case: &RunContext<'_>) -> Vec<StepKind> {
    step_kinds::find_kinds(&case.per_step, &case.steps.list, case.devices.len())
}

/// Rate of floating-point operations in the window.
fn flop_rate(case: &RunContext<'_>, given: Option<f64>) -> Option<Rate> {
    let seconds = case.length() as f64 / 1e9;
    let peaks: Option<Vec<f64>> =
        case.devices.iter().map(|d| flops::tensor_peak(case.profile.devices.get(d.unit.device? as usize)?)).collect();
    let peak = peaks.map(|p| p.iter().sum::<f64>());
    let per_second = match (given, case.steps.median_length()) {
        (Some(flops), Some(step)) => flops / (step.max(1) as f64 / 1e9),
        (Some(flops), None) => flops / seconds,
        (None, _) => {
            let work = Operators::from_profile(case.profile).work_between(case.profile, case.called?)?;
            let counted = Counted::Operators { count: work.operators, unknown: work.unknown };
            return Some(Rate { per_second: work.flops / seconds, peak, counted });
        }
    };
    Some(Rate { per_second, peak, counted: Counted::Given })
}

/// Minimum idle share that the host causes for a note on what the recording costs the host.
const SLOWED: f64 = 0.1;

/// Notes on data that is missing from the report and would have allowed more conclusions.
fn missing_notes(case: &RunContext<'_>) -> Vec<String> {
    let base = case.base;
    let mut out = Vec::new();
    let measured = eligible_windows::measuring_times(case.profile).covered_length(case.window.0, case.window.1);
    // If nothing else is left, the time of the measurement itself is analyzed, so nothing was left out.
    if measured > 0 && case.length() < case.window.1 - case.window.0 {
        out.push(format!("left out: while counters or stall reasons were measured ({})", crate::model::Nanos(measured)));
    }
    let known = case.host.known;
    let unknown = case.idle_share(Cause::Unknown);
    if unknown >= finding::LEAST_SHARE {
        out.push(if known.python {
            "no function of the launching thread was recorded for a part of the time: waiting and computing cannot be told apart there".to_owned()
        } else if known.operators {
            "recorded without Python functions (with_stack=True): outside operators, waiting and computing cannot be told apart".to_owned()
        } else if known.states {
            "the launching thread was looked at every few milliseconds: where it was on a processor for part of that, waiting and computing cannot be told apart".to_owned()
        } else {
            let terms = case.terms;
            format!("{}: waiting and computing cannot be told apart{}", terms.no_waiting, terms.record_waiting)
        });
    }
    let host_bound = case.idle_share(Cause::Launch) + case.idle_share(Cause::Compute) + case.idle_share(Cause::Unknown);
    if known.python && host_bound >= SLOWED {
        out.push(
            "recorded with Python functions (with_stack=True), which slows every call of the host: recorded once more without them, it \
             shows how much of the idle time is the profiler's"
                .to_owned(),
        );
    }
    if case.idle_share(Cause::NoCall) >= finding::LEAST_SHARE {
        out.push(format!(
            "recorded without the host's {} calls, or without some of them: what the host did while the GPU was idle is not known",
            case.terms.gpu.api
        ));
    }
    let flushed = case.share(case.flushed_idle(&Cause::ALL));
    if flushed >= finding::LEAST_SHARE {
        out.push(format!(
            "the profiler handed over its records for {} of {base} while the GPU was idle: that is its own cost",
            crate::model::units::format_share(flushed)
        ));
    }
    let ended = case.idle_share(Cause::Ended);
    if ended >= finding::LEAST_SHARE {
        out.push(format!("idle for {} of {base} because nothing more was launched on a device", crate::model::units::format_share(ended)));
    }
    out.extend(say_late_start(case));
    let absent = case.idle_share(Cause::Absent);
    if absent >= finding::LEAST_SHARE {
        out.push(format!(
            "idle for {} of {base} between two processes: the first had launched its last work, and the next had not called {} yet",
            crate::model::units::format_share(absent),
            case.terms.gpu.api
        ));
    }
    if case.kernels.count == 0 && !case.profile.graphs.is_empty() {
        let how = case.terms.record_graph_kernels;
        out.push(format!("graphs were recorded as a whole: the kernels in them are not known{how}"));
    }
    if case.steps.found.is_none() {
        let ranges = case.terms.ranges;
        out.push(format!(
            "no steps were found: mark them with {ranges} (\"step 0\", \"step 1\", …) or ProfilerStep to have the warm-up left out"
        ));
    }
    out
}
/// Remark on a recording that began while the program ran, if its first operation started long after its launch.
fn say_late_start(case: &RunContext<'_>) -> Option<String> {
    case.profile.capture.gate.as_ref()?;
    let first = case.ops.iter().next()?;
    let call = case.ops.find_call(&first)?;
    let late = first.start - call.end;
    let worth = late > 1_000_000 && late as f64 >= finding::LEAST_SHARE * (case.span.1 - case.span.0) as f64;
    (worth && first.start == case.span.0).then(|| {
        format!(
            "the first operation started {} after its launch: work that was launched before the recording may have run until then, and is not in the report",
            text::format_ns(late as f64)
        )
    })
}

/// Start of the first and end of the last operation on a GPU, ns; `None` without any.
pub fn gpu_span(profile: &Profile) -> Option<(i64, i64)> {
    let ops = device_ops::DeviceOps::from_profile(profile);
    ops.iter().map(|op| (op.start, op.end)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}
