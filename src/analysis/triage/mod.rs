//! What limits a run: every nanosecond of a device given to one part, idle time to what the host did, and rules over that.

pub mod case;
pub mod copies;
pub mod finding;
mod gaps;
mod host;
pub mod intervals;
mod kernels;
pub mod ops;
mod os;
pub mod part;
mod places;
mod rank;
mod rules;
mod steps;
mod sweep;
mod text;
pub mod verdict;

pub use case::DeviceTime;
pub use finding::{Confirm, Evidence, Finding, Place, PlaceKind, Severity, Sure};
pub use host::Known;
pub use part::{Cause, Part};
pub use steps::{Found, LeftOut, Step};
pub use verdict::{VERDICTS, Verdict};

use crate::analysis::Family;
use crate::analysis::like::like;
use crate::model::{Cancel, Profile};
use case::Case;

/// What is to be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only this time, ns.
    pub window: Option<(i64, i64)>,
    /// Only the device with this number.
    pub device: Option<u32>,
}

/// One device of a triage.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Its number.
    pub number: Option<u32>,
    pub name: Option<String>,
    pub pid: Option<u32>,
    /// Time in which anything ran, ns.
    pub busy: i64,
    /// Parts that add up to the window, ns.
    pub parts: [(Part, i64); Part::ALL.len()],
    /// Idle time by cause in more detail, ns; those that are not zero.
    pub causes: Vec<(Cause, i64)>,
    /// Collectives and copies, hidden or not, ns.
    pub collectives: i64,
    pub copies: i64,
}

/// Length of steps, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepStats {
    pub count: usize,
    pub median: i64,
    pub min: i64,
    pub max: i64,
}

/// What limits a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// ns.
    pub window: (i64, i64),
    pub found: Option<Found>,
    pub steps: Vec<Step>,
    pub left_out: Vec<LeftOut>,
    pub devices: Vec<Device>,
    /// The verdict first.
    pub findings: Vec<Finding>,
    /// What was not recorded, and what that hides.
    pub missing: Vec<String>,
    /// Shares of kernel time by family, guessed from the names.
    pub families: Vec<(Family, i64)>,
    /// Share of the time in which the devices were busy, in slices of the window.
    pub strip: Vec<f32>,
    /// Of each slice why the devices idled, where they did.
    pub why: Vec<Option<Part>>,
    /// From the first to the last operation of the report, ns.
    pub span: (i64, i64),
    /// Kernels with their time and count, longest first: index into [`Profile::kernels`].
    pub kernels: Vec<(u32, i64, u64)>,
}

impl Triage {
    /// The first finding.
    #[must_use]
    pub fn verdict(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// Length of the window, ns.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.window.1 - self.window.0
    }

    /// A part's share of the window over all devices, in percent.
    #[must_use]
    pub fn percent(&self, part: Part) -> f64 {
        let ns: i64 = self.devices.iter().map(|d| d.parts[part as usize].1).sum();
        ns as f64 / (self.length() as f64 * self.devices.len().max(1) as f64) * 100.0
    }

    #[must_use]
    pub fn step_stats(&self) -> Option<StepStats> {
        let lengths: Vec<i64> = self.steps.iter().map(Step::length).collect();
        Some(StepStats { count: lengths.len(), min: *lengths.iter().min()?, max: *lengths.iter().max()?, median: steps::median(lengths)? })
    }
}

/// Judges a run; `None` where nothing ran on a device, or nobody wants to know any more.
#[must_use]
pub fn triage(profile: &Profile, scope: &Scope, cancel: &Cancel) -> Option<Triage> {
    let case = Case::of(profile, scope.window, scope.device, cancel)?;
    let findings = rules::RULES.iter().filter_map(|rule| rule(&case)).collect();
    let findings = rank::rank(findings);
    let device = |d: &DeviceTime| Device {
        number: case.ops.number(&d.unit),
        name: d.unit.device.and_then(|i| profile.devices.get(i as usize)).map(crate::model::Device::short_name),
        pid: d.unit.pid,
        busy: d.busy.busy(),
        parts: d.parts(),
        causes: Cause::ALL.into_iter().map(|c| (c, d.idle.get(c))).filter(|c| c.1 > 0).collect(),
        collectives: d.busy.collectives,
        copies: d.busy.copies,
    };
    Some(Triage {
        window: case.window,
        devices: case.devices.iter().map(device).collect(),
        findings,
        missing: missing(&case),
        families: case.kernels.families(profile),
        strip: case.strip.clone(),
        why: case.why.clone(),
        span: case.span,
        kernels: case.kernels.top(profile),
        found: case.steps.found,
        steps: case.steps.list,
        left_out: case.steps.left_out,
    })
}

/// The time on the devices of what was launched in ranges of that name, numbers written as such or as `#`: from its first operation to its last.
#[must_use]
pub fn range_window(profile: &Profile, name: &str) -> Option<(i64, i64)> {
    let ranges = &profile.ranges;
    let alike = like(name);
    let names: Vec<bool> = (0..ranges.names.len())
        .map(|n| {
            let label = ranges.label(u32::try_from(n).unwrap_or(u32::MAX));
            let text = &ranges.names[n].1;
            label == name || **text == *name || name.contains('#') && [like(&label), like(text)].iter().any(|l| *l == alike)
        })
        .collect();
    let inside: Vec<(u32, i64, i64)> = ranges
        .iter()
        .filter(|r| names.get(r.name as usize).copied().unwrap_or_default())
        .map(|r| (ranges.threads.get(r.thread as usize).map_or(0, |t| t.0), r.start, r.end))
        .collect();
    let mut by_process: rustc_hash::FxHashMap<u32, Vec<(i64, i64)>> = rustc_hash::FxHashMap::default();
    for (pid, start, end) in inside {
        by_process.entry(pid).or_default().push((start, end));
    }
    let by_process: rustc_hash::FxHashMap<u32, intervals::Intervals> =
        by_process.into_iter().map(|(pid, list)| (pid, list.into_iter().collect())).collect();
    let ops = ops::Ops::of(profile);
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for op in ops.iter() {
        let Some(call) = ops.call(&op) else { continue };
        if by_process.get(&call.pid).is_some_and(|set| set.covered(call.start, call.start + 1) > 0) {
            first = first.min(op.start);
            last = last.max(op.end);
        }
    }
    (first < last).then_some((first, last))
}

/// What was not recorded and would have told more.
fn missing(case: &Case<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let known = case.host.known;
    let unknown = case.idle_share(Cause::Unknown);
    if unknown >= finding::LEAST {
        out.push(if known.operators {
            "recorded without Python functions (with_stack=True): outside operators, waiting and computing cannot be told apart".to_owned()
        } else {
            "recorded without osrt: waiting and computing cannot be told apart; `warpscope run --recipe full` records it".to_owned()
        });
    }
    if case.idle_share(Cause::NoCall) >= finding::LEAST {
        out.push("recorded without the host's CUDA calls: what the host did while the GPU was idle is not known".to_owned());
    }
    let queued = case.share(case.idle.get(Cause::Queued) - case.pauses);
    if queued >= finding::LEAST {
        out.push(format!(
            "idle for {} of the window with the next operation already launched: it waited for another stream, device or host function",
            text::pct(queued)
        ));
    }
    let ended = case.idle_share(Cause::Ended);
    if ended >= finding::LEAST {
        out.push(format!("idle for {} of the window because nothing more was launched on a device", text::pct(ended)));
    }
    if case.kernels.count == 0 && !case.profile.graphs.is_empty() {
        out.push(
            "graphs were recorded as a whole: the kernels in them are not known; `warpscope run --recipe exact` records them".to_owned(),
        );
    }
    if case.steps.found.is_none() {
        out.push(
            "no steps were found: mark them with NVTX (\"step 0\", \"step 1\", …) or ProfilerStep to have the warm-up left out".to_owned(),
        );
    }
    out
}
