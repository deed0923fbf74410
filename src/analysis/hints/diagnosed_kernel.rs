//! A diagnosed kernel: an ncu result, or a launch that represents its kernel in a timeline.

use super::amd::{self, Amd};
use super::rule_context::Case;
use super::{Confirm, Depth, Facts, Hint, Sure, diagnose};
use crate::analysis::Family;
use crate::analysis::median_launch::median_launch;
use crate::model::{Kernel, Metrics, Nanos, Profile, ResultKind, Vendor};
use std::collections::BTreeMap;

/// A kernel with its hints.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Index of the result; `None` for a timeline.
    pub result: Option<usize>,
    /// Row of the launch; in a timeline, the launch with the median duration.
    pub launch: u32,
    pub kernel: Kernel,
    pub depth: Depth,
    pub facts: Facts,
    /// Hints, best first.
    pub hints: Vec<Hint>,
    /// Reasoning from the numbers to the hints, in sentences.
    pub reasoning: Vec<String>,
    /// True if the profiler could not profile the kernel.
    pub failed: bool,
    /// True for a range, a graph or a command list: the launch configuration is not evaluated, and a re-run cannot
    /// select these by name.
    pub several: bool,
    /// Vendor of the GPU; there are separate rules for AMD.
    pub maker: Vendor,
    /// Busy shares of the GPU's units; AMD only.
    pub units: Vec<(&'static str, f64)>,
    /// Activities of the waves, as shares of their cycles; AMD only.
    pub waves: Vec<(&'static str, f64)>,
    /// Counters with an implausible value of 0, and the remedy; AMD only.
    pub not_counted: Option<String>,
    /// True if the roofs for compute and memory are known; if not, an unmeasured unit may be near its peak.
    pub roofs: bool,
}

/// Returns true if results are from AMD's profilers.
pub fn of_amd(metrics: &Metrics) -> bool {
    metrics.source.tool.starts_with("rocprof")
}

/// Sections that distinguish most causes; collecting them takes about half as many passes as the set `full`.
const DECIDE: [&str; 6] = ["SpeedOfLight", "LaunchStats", "Occupancy", "SchedulerStats", "WarpStateStats", "SourceCounters"];

impl Subject {
    fn new(result: Option<usize>, launch: u32, kernel: Kernel, facts: Facts) -> Self {
        let (depth, mut hints) = (facts.depth(), diagnose(&facts));
        let roofs = Case::new(&facts).roofs_known();
        let undecided_yet = depth <= Depth::Basic || !roofs;
        super::context::add_family_advice(&kernel, &mut hints);
        for hint in &mut hints {
            // A hint that settles the kernel needs only its own sections; other hints need the sections that
            // distinguish causes.
            if undecided_yet && !settles_kernel(hint) && !hint.confirm.sections.is_empty() {
                hint.confirm = deciding_sections();
            }
            remove_collected(&facts, &mut hint.confirm);
        }
        let reasoning = super::reasoning::reasoning_sentences(&facts);
        Self { result, launch, kernel, depth, facts, hints, reasoning, roofs, ..Self::default() }
    }

    /// Diagnoses a result in a report.
    pub fn of_metrics(metrics: &Metrics, result: usize) -> Option<Self> {
        let launch = u32::try_from(result).ok()?;
        let own = metrics.results.get(result)?;
        let mut out = Self::new(Some(result), launch, own.kernel.clone(), Facts::of_result(metrics, result));
        (out.failed, out.several) = (own.failed, own.kind != ResultKind::Kernel);
        out.maker = if of_amd(metrics) { Vendor::Amd } else { Vendor::Nvidia };
        if let Some(amd) = Amd::of_result(metrics, result).filter(|_| out.is_amd()) {
            out.by_amd(&amd);
        }
        if out.several {
            out.confirm_nothing();
        }
        Some(out)
    }

    /// Diagnoses a launch in a timeline.
    pub fn of_launch(profile: &Profile, launch: u32) -> Option<Self> {
        let row = launch as usize;
        if row >= profile.launches.len() {
            return None;
        }
        let kernel = profile.kernels.get(profile.launches.kernel(row).0 as usize)?.clone();
        let config = profile.launches.config(row).and_then(|c| profile.configs.get(c.0 as usize)).cloned().unwrap_or_default();
        let place = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        let device = place.and_then(|p| profile.device_of(p)).cloned().unwrap_or_default();
        let duration = Nanos(profile.launches.duration(row));
        let mut out = Self::new(None, launch, kernel, Facts::of_launch(&config, &device, duration));
        out.maker = device.maker;
        if out.is_amd() {
            out.by_amd(&Amd::of_launch(&config, &device, duration.0 as f64));
        }
        // Collectives use few SMs on purpose, and they take as long as the slowest rank.
        if Family::guess(out.kernel.function(), out.kernel.demangled()) == Family::Nccl {
            out.hints.clear();
        }
        Some(out)
    }

    /// Returns true if the kernel ran on an AMD GPU.
    pub fn is_amd(&self) -> bool {
        self.maker == Vendor::Amd
    }

    /// Replaces the hints from ncu's metrics with hints from AMD's rules.
    fn by_amd(&mut self, amd: &Amd<'_>) {
        self.depth = match amd.has_counters() {
            false => Depth::Timeline,
            // A thread trace accounts for every cycle of its waves.
            true if amd.wave_cycles().is_some() => Depth::Full,
            true if amd.roofs_known() => Depth::Detailed,
            true => Depth::Basic,
        };
        self.facts = std::mem::take(&mut self.facts).with_duration(amd.ns);
        self.hints = amd::diagnose(amd);
        for hint in &mut self.hints {
            // If all counters needed to confirm a hint were collected, no other run is necessary.
            if !hint.confirm.sections.is_empty() && hint.confirm.sections.iter().all(|c| amd.get(c).is_some()) {
                hint.confirm = Confirm::default();
            }
        }
        self.not_counted = amd.not_counted().map(amd::not_counted);
        self.reasoning = amd::reasoning_sentences(amd);
        (self.units, self.waves) = (amd.shown_units(), amd.waves_spend());
        self.roofs = amd.roofs_known();
        super::context::add_family_advice(&self.kernel, &mut self.hints);
    }

    fn confirm_nothing(&mut self) {
        for hint in &mut self.hints {
            hint.confirm = Confirm::default();
        }
    }

    /// Returns true if the user can act on the first hint: the data that distinguishes causes was collected or is not
    /// needed.
    pub fn is_decided(&self) -> bool {
        self.depth >= Depth::Detailed || self.hints.first().is_some_and(settles_kernel)
    }

    /// Sections to collect if the cause is still undecided; `None` if the depth is sufficient.
    pub fn sections_to_collect(&self) -> Option<Confirm> {
        let mut confirm = deciding_sections();
        remove_collected(&self.facts, &mut confirm);
        ((self.depth < Depth::Detailed || !self.roofs) && !self.several && !self.is_amd() && !confirm.sections.is_empty())
            .then_some(confirm)
    }
}

/// A cause with full confidence settles the diagnosis without further sections if it accounts for at least this share
/// of the kernel's time; below it, most of the time is unexplained. Our own estimate: for a kernel with contended
/// atomics, the only certain cause without stall reasons was an imbalance of 7 %.
const SETTLES: f64 = 0.3;

fn settles_kernel(hint: &Hint) -> bool {
    hint.sure == Sure::Certain && !hint.id.is_bound() && hint.stake >= SETTLES
}

/// Sections, each with a concept by which to tell that the section was collected.
const COLLECTED: [(&str, &str); 8] = [
    ("LaunchStats", "waves_per_sm"),
    ("Occupancy", "achieved_occupancy"),
    ("SchedulerStats", "issued_warp"),
    ("WarpStateStats", "stall_wait"),
    ("SourceCounters", "pcsamp_selected"),
    ("MemoryWorkloadAnalysis_Tables", "global_requests"),
    ("ComputeWorkloadAnalysis", "sm_busy"),
    ("InstructionStats", "instructions_executed"),
];

/// Removes sections that are already in the report, except source counters if the CUDA sources are needed. Speed of
/// light alone does not justify another run.
fn remove_collected(facts: &Facts, confirm: &mut Confirm) {
    let source = confirm.source;
    let has = |s: &str| COLLECTED.iter().any(|(section, concept)| *section == s && facts.get(concept).is_some());
    confirm.sections.retain(|s| !has(s) || source && *s == "SourceCounters");
    if confirm.sections.iter().all(|s| *s == "SpeedOfLight") {
        confirm.sections.clear();
    }
}

fn deciding_sections() -> Confirm {
    Confirm {
        sections: DECIDE.to_vec(),
        source: false,
        trace: false,
        why: "what warps wait for, and how much of the traffic is needed: that tells the causes apart".to_owned(),
    }
}

/// Reference to a kernel, for diagnosis on demand because a report may have very many kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A result in an ncu report.
    Result(usize),
    /// A launch in a timeline.
    Launch(u32),
}

impl Place {
    /// Row of the launch; for an ncu report, the index of the result.
    pub fn launch_row(self) -> u32 {
        match self {
            Self::Result(r) => u32::try_from(r).unwrap_or(u32::MAX),
            Self::Launch(l) => l,
        }
    }

    pub fn kernel(self, profile: &Profile) -> Option<&Kernel> {
        match self {
            Self::Result(r) => profile.metrics.as_ref()?.results.get(r).map(|r| &r.kernel),
            Self::Launch(l) => profile.kernels.get(profile.launches.kernel(l as usize).0 as usize),
        }
    }

    /// Diagnoses the kernel; `None` if the profile does not contain it.
    pub fn diagnose_kernel(self, profile: &Profile) -> Option<Subject> {
        match self {
            Self::Result(r) => Subject::of_metrics(profile.metrics.as_ref()?, r),
            Self::Launch(l) => Subject::of_launch(profile, l),
        }
    }
}

/// All results in an ncu report; for a timeline, the median launch of each kernel, longest-running kernels first.
pub fn list_places(profile: &Profile) -> Vec<Place> {
    if let Some(metrics) = &profile.metrics {
        return (0..metrics.results.len()).map(Place::Result).collect();
    }
    let mut launches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in 0..profile.launches.len() {
        launches.entry(profile.launches.kernel(row).0).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
    }
    let duration = |l: u32| profile.launches.duration(l as usize);
    let mut kernels: Vec<(i64, u32)> =
        launches.into_values().filter_map(|rows| Some((rows.iter().map(|&l| duration(l)).sum(), median_launch(profile, &rows)?))).collect();
    kernels.sort_by_key(|k| (std::cmp::Reverse(k.0), k.1));
    kernels.into_iter().map(|(_, launch)| Place::Launch(launch)).collect()
}

/// Diagnoses all kernels returned by [`list_places`].
pub fn diagnose_all(profile: &Profile) -> Vec<Subject> {
    list_places(profile).into_iter().filter_map(|p| p.diagnose_kernel(profile)).collect()
}
