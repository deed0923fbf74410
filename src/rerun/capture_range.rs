//! Conditions under which a launch counts: the capture's own range, an NVTX range chosen by the user, or both.

use super::launch_skip::Population;
use super::nvtx::{self, Cover, Enclosing, RangeName};
use super::options::{OpenedBy, Options, Within};
use super::{CommandPart, PartId};
use crate::model::{self, LaunchOrder, Profile, RangeKind};

/// Capture range and NVTX range of a re-run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Index of the `cudaProfilerStart`/`cudaProfilerStop` window to profile, 1-based.
    pub api: Option<u32>,
    /// NVTX range, and optionally a single instance of it, 1-based.
    pub range: Option<(RangeName, Option<u32>)>,
    /// Launches made before the capture opened are unknown, and the command cannot exclude them.
    pub late: bool,
    /// The program calls `cudaProfilerStop` but the capture continued: ncu must ignore the call, because it stops there
    /// by default.
    pub ignore_api: bool,
}

/// Returns how the capture was opened: as set by the user, otherwise as recorded in the report.
pub fn opened_by(profile: &Profile, options: &Options) -> OpenedBy {
    options.opened_by.unwrap_or(match profile.capture.gate {
        None => OpenedBy::Start,
        Some(model::CaptureRange::ProfilerApi) => OpenedBy::ProfilerApi(1),
        // Recording starts with the range that opens the capture, so that range has the earliest start.
        Some(model::CaptureRange::Nvtx) => match profile.ranges.iter().min_by_key(|r| r.start) {
            Some(r) => OpenedBy::Range(RangeName { name: r.name, kind: r.kind }),
            None => OpenedBy::Late,
        },
        Some(model::CaptureRange::Delay(_) | model::CaptureRange::Late) => OpenedBy::Late,
    })
}

/// Returns the number at the end of the file name. With `--capture-range-end=repeat` nsys writes one numbered report
/// per range: `NAME.1.nsys-rep`, `NAME.2.nsys-rep` … (observed with nsys 2025.3). `NAME.%q{RANK}` also produces such
/// names.
pub fn range_of_file(profile: &Profile) -> Option<u32> {
    let name = profile.file_name();
    let stem = name.split_once(".nsys-rep").or_else(|| name.split_once(".sqlite")).or_else(|| name.split_once(".qdrep"))?.0;
    stem.rsplit_once('.')?.1.parse().ok().filter(|&n| n > 0)
}

/// Returns the calls to `cudaProfilerStart` (true) and `cudaProfilerStop` (false) with their processes and times,
/// sorted by time.
pub fn profiler_calls(profile: &Profile) -> Vec<(u32, i64, bool)> {
    let calls = &profile.calls;
    let kinds: Vec<Option<bool>> = calls
        .names
        .iter()
        .map(|t| match &*t.name {
            "cudaProfilerStart" | "cuProfilerStart" => Some(true),
            "cudaProfilerStop" | "cuProfilerStop" => Some(false),
            _ => None,
        })
        .collect();
    if kinds.iter().all(Option::is_none) {
        return Vec::new();
    }
    let call = |i: usize| {
        let opens = (*kinds.get(*calls.name.get(i)? as usize)?)?;
        Some((calls.thread_of(i).0, *calls.start.get(i)?, opens))
    };
    let mut out: Vec<_> = (0..calls.len()).filter_map(call).collect();
    out.sort_by_key(|c| c.1);
    out
}

/// Checks that the range with this number encloses the launch and will have the same number in another run.
fn check_instance(profile: &Profile, around: &[Enclosing], range: RangeName, n: u32, gated: bool) -> Result<(), String> {
    let name = profile.ranges.label(range.name);
    if gated {
        return Err(
            "the capture did not begin with the program, so the number of a single NVTX range is unknown; count in all ranges of that name"
                .to_owned(),
        );
    }
    let mine: Vec<&Enclosing> = around.iter().filter(|e| e.range == range).collect();
    if !mine.iter().any(|e| e.instance + 1 == n) {
        let numbers = mine.iter().map(|e| (e.instance + 1).to_string()).collect::<Vec<_>>().join(", ");
        return Err(format!("the launch is in the NVTX range {name:?} number {numbers}, counted from 1, not in number {n}"));
    }
    let threads: std::collections::BTreeSet<(u32, u32)> = profile
        .ranges
        .iter()
        .filter(|r| r.name == range.name && r.kind == range.kind)
        .filter_map(|r| profile.ranges.threads.get(r.thread as usize).copied())
        .collect();
    if threads.len() > 1 {
        return Err(format!(
            "{} threads enter the NVTX range {name:?}, so its numbers may differ from run to run; count in all ranges of that name",
            threads.len()
        ));
    }
    Ok(())
}

impl Gate {
    /// Resolves the conditions for a launch inside these ranges.
    pub fn resolve(profile: &Profile, options: &Options, around: &[Enclosing]) -> Result<Self, String> {
        let mut opened = opened_by(profile, options);
        // A range that opened the capture does not filter launches from other threads.
        if let OpenedBy::Range(range) = opened
            && options.opened_by.is_none()
            && !around.iter().any(|e| e.range == range)
        {
            opened = OpenedBy::Late;
        }
        let mut gate = Self { late: opened == OpenedBy::Late, ..Self::default() };
        if let OpenedBy::ProfilerApi(n) = opened {
            gate.api = Some(n.max(1));
        }
        let inside = |range: RangeName| around.iter().any(|e| e.range == range);
        let label = |range: RangeName| profile.ranges.label(range.name);
        gate.ignore_api = gate.api.is_none() && profiler_calls(profile).iter().any(|c| !c.2);
        match options.within {
            Within::Range(range, instance) => {
                if !inside(range) {
                    return Err(format!("the launch is not in the NVTX range {:?}", label(range)));
                }
                if let OpenedBy::Range(opening) = opened
                    && opening != range
                {
                    return Err(format!(
                        "the capture was opened by the NVTX range {:?}, where the count must begin; ncu cannot filter by {:?} inside it as well",
                        label(opening),
                        label(range)
                    ));
                }
                if let Some(n) = instance {
                    check_instance(profile, around, range, n, gate.late || gate.api.is_some())?;
                }
                gate.range = Some((range, instance));
            }
            Within::Everything => {
                if let OpenedBy::Range(range) = opened {
                    if !inside(range) {
                        return Err(format!(
                            "the launch is not in the NVTX range {:?} on its own thread, so ncu's filter for the range would not match it",
                            label(range)
                        ));
                    }
                    gate.range = Some((range, None));
                } else if gate.late {
                    // Prefer the innermost enclosing range whose name occurs once: a repeated range may also have
                    // occurred before the capture opened.
                    let usable = |e: &&Enclosing| nvtx::filter_expression(profile, e.range).is_some();
                    let best = around.iter().filter(usable).find(|e| e.of == 1).or_else(|| around.iter().find(usable));
                    gate.range = best.map(|e| (e.range, None));
                }
            }
        }
        if let Some((range, _)) = gate.range
            && nvtx::filter_expression(profile, range).is_none()
        {
            return Err(format!("ncu has no syntax for an NVTX range named {:?}", label(range)));
        }
        Ok(gate)
    }

    /// Returns the launches that meet these conditions.
    pub fn population(&self, profile: &Profile, opened: OpenedBy, pid: u32) -> Population {
        let cover = self.range.map(|(range, instance)| {
            let only = instance.and_then(|n| nvtx::start_of(profile, range, pid, n)).map(|start| (pid, start));
            Cover::for_range(profile, range, only)
        });
        let calls = if self.api.is_some() { profiler_calls(profile) } else { Vec::new() };
        let stops: Vec<(u32, i64, bool)> = if calls.iter().any(|c| !c.2) { calls } else { Vec::new() };
        Population {
            cover,
            only_called: opened != OpenedBy::Start && !matches!(profile.order, LaunchOrder::Device | LaunchOrder::Chosen),
            without_nodes: false,
            stops,
            first_window: self.api.is_some_and(|n| n > 1),
        }
    }

    /// Returns the options for ncu.
    pub fn to_part(&self, profile: &Profile) -> Option<CommandPart> {
        let mut words: Vec<String> = Vec::new();
        let mut why = Vec::new();
        match self.api {
            Some(1) => {
                words.extend(["--profile-from-start", "off"].map(str::to_owned));
                why.push(
                    "The capture covers only what ran between cudaProfilerStart and cudaProfilerStop; so does ncu, and counts from there."
                        .to_owned(),
                );
            }
            Some(n) => {
                words.extend(["--range-filter".to_owned(), format!(":{n}:")]);
                why.push(format!(
                    "Only launches between cudaProfilerStart number {n} and its cudaProfilerStop are counted, as in the capture."
                ));
            }
            None => {}
        }
        if self.ignore_api {
            words.push("--disable-profiler-start-stop".to_owned());
            why.push(
                "The program calls cudaProfilerStop, where ncu would stop counting; the capture continued, and so does ncu.".to_owned(),
            );
        }
        if let Some((range, instance)) = self.range {
            words.extend(["--nvtx".to_owned(), "--nvtx-include".to_owned(), nvtx::filter_expression(profile, range).unwrap_or_default()]);
            let kind = if range.kind == RangeKind::PushPop { "that their own thread pushed" } else { "of their process" };
            let slash = if range.kind == RangeKind::PushPop { " (the / at the end says push/pop)" } else { "" };
            why.push(format!("Only launches inside NVTX ranges {:?} {kind} are counted{slash}.", profile.ranges.label(range.name)));
            if let Some(n) = instance {
                words.extend(["--range-filter".to_owned(), format!("::{n}")]);
                why.push(format!("Of these ranges only number {n} is used, counted from 1."));
            }
        }
        (!words.is_empty()).then(|| CommandPart { id: PartId::Gate, words, why: why.join(" ") })
    }
}
