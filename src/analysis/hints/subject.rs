//! What hints are about: a result of ncu, or a launch that stands for its kernel in a timeline.

use super::amd::{self, Amd};
use super::case::Case;
use super::{Confirm, Depth, Facts, Hint, Sure, diagnose};
use crate::model::{Kernel, Maker, Metrics, Nanos, Profile, ResultKind};
use std::collections::BTreeMap;

/// A kernel with what is said about it.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The result; `None` in a timeline.
    pub result: Option<usize>,
    /// The launch: of a timeline the one of median duration.
    pub launch: u32,
    pub kernel: Kernel,
    /// How much is known.
    pub depth: Depth,
    pub facts: Facts,
    /// Best first.
    pub hints: Vec<Hint>,
    /// The way from the numbers to the hints, in sentences.
    pub reasoning: Vec<String>,
    /// The tool could not profile it.
    pub failed: bool,
    /// A range, a graph or a command list: nothing is said of launches, and nothing can be profiled again by its name.
    pub several: bool,
    /// Whose GPU it ran on: AMD's have rules of their own.
    pub maker: Maker,
    /// On an AMD GPU: how busy its units are and what waves spend their cycles on, as shares.
    pub units: Vec<(&'static str, f64)>,
    pub waves: Vec<(&'static str, f64)>,
    /// On an AMD GPU: counters that stand at 0 although they cannot, and what to do about it.
    pub not_counted: Option<String>,
    /// Whether the roofs are known: without them nobody can say that nothing is near its peak.
    pub roofs: bool,
}

/// Whether results are of AMD's profilers.
#[must_use]
pub fn of_amd(metrics: &Metrics) -> bool {
    metrics.source.tool.starts_with("rocprof")
}

/// Sections that decide between most causes, in about half the passes of the set `full`.
const DECIDE: [&str; 6] = ["SpeedOfLight", "LaunchStats", "Occupancy", "SchedulerStats", "WarpStateStats", "SourceCounters"];

impl Subject {
    fn new(result: Option<usize>, launch: u32, kernel: Kernel, facts: Facts) -> Self {
        let (depth, mut hints) = (facts.depth(), diagnose(&facts));
        let roofs = Case::new(&facts).roofs_known();
        let undecided_yet = depth <= Depth::Basic || !roofs;
        super::context::add(&kernel, &mut hints);
        for hint in &mut hints {
            // What the launch alone tells for certain, and what takes much of the time, needs nothing more than its own sections; the rest what
            // decides between causes.
            if undecided_yet && !settles(hint) && !hint.confirm.sections.is_empty() {
                hint.confirm = undecided();
            }
            lacking(&facts, &mut hint.confirm);
        }
        let reasoning = super::reasoning::sentences(&facts);
        Self { result, launch, kernel, depth, facts, hints, reasoning, roofs, ..Self::default() }
    }

    /// A result of a report.
    #[must_use]
    pub fn of_metrics(metrics: &Metrics, result: usize) -> Option<Self> {
        let launch = u32::try_from(result).ok()?;
        let own = metrics.results.get(result)?;
        let mut out = Self::new(Some(result), launch, own.kernel.clone(), Facts::of_result(metrics, result));
        (out.failed, out.several) = (own.failed, own.kind != ResultKind::Kernel);
        out.maker = if of_amd(metrics) { Maker::Amd } else { Maker::Nvidia };
        if let Some(amd) = Amd::of_result(metrics, result).filter(|_| out.amd()) {
            out.by_amd(&amd);
        }
        if out.several {
            out.confirm_nothing();
        }
        Some(out)
    }

    /// A launch of a timeline.
    #[must_use]
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
        if out.amd() {
            out.by_amd(&Amd::of_launch(&config, &device, duration.0 as f64));
        }
        Some(out)
    }

    /// Whether it ran on an AMD GPU.
    #[must_use]
    pub fn amd(&self) -> bool {
        self.maker == Maker::Amd
    }

    /// What AMD's rules say takes the place of what those over ncu's metrics do.
    fn by_amd(&mut self, amd: &Amd<'_>) {
        self.depth = match amd.counted() {
            false => Depth::Timeline,
            // A thread trace tells what every cycle of its waves went to.
            true if amd.wave_cycles().is_some() => Depth::Full,
            true if amd.roofs_known() => Depth::Detailed,
            true => Depth::Basic,
        };
        self.facts = std::mem::take(&mut self.facts).with_duration(amd.ns);
        self.hints = amd::diagnose(amd);
        for hint in &mut self.hints {
            // What was collected needs no other run.
            if !hint.confirm.sections.is_empty() && hint.confirm.sections.iter().all(|c| amd.get(c).is_some()) {
                hint.confirm = Confirm::default();
            }
        }
        self.not_counted = amd.not_counted().map(amd::not_counted);
        self.reasoning = amd::sentences(amd);
        (self.units, self.waves) = (amd.ranked(), amd.waves_spend());
        self.roofs = amd.roofs_known();
        super::context::add(&self.kernel, &mut self.hints);
    }

    fn confirm_nothing(&mut self) {
        for hint in &mut self.hints {
            hint.confirm = Confirm::default();
        }
    }

    /// Whether the first hint can be acted on: what decides between causes was collected, or is not needed.
    #[must_use]
    pub fn decided(&self) -> bool {
        self.depth >= Depth::Detailed || self.hints.first().is_some_and(settles)
    }

    /// What to collect when the hints say too little; `None` at full depth.
    #[must_use]
    pub fn collect(&self) -> Option<Confirm> {
        let mut confirm = undecided();
        lacking(&self.facts, &mut confirm);
        ((self.depth < Depth::Detailed || !self.roofs) && !self.several && !self.amd() && !confirm.sections.is_empty()).then_some(confirm)
    }
}

/// Part of its time from which on a cause that is certain settles a kernel without more sections: below, most of the time has no cause yet. A
/// judgement (a kernel of contended atomics showed 7 % of imbalance, for certain, and nothing else, before its stalls were collected).
const SETTLES: f64 = 0.3;

fn settles(hint: &Hint) -> bool {
    hint.sure == Sure::Certain && !hint.id.is_bound() && hint.stake >= SETTLES
}

/// Sections with a concept that tells that they were collected.
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

/// Leaves out what the report has already: sections come again only for the sources, which a report may lack, and speed of light, without which
/// the new result could not be read alone.
fn lacking(facts: &Facts, confirm: &mut Confirm) {
    let source = confirm.source;
    let has = |s: &str| COLLECTED.iter().any(|(section, concept)| *section == s && facts.get(concept).is_some());
    confirm.sections.retain(|s| !has(s) || source && *s == "SourceCounters");
    if confirm.sections.iter().all(|s| *s == "SpeedOfLight") {
        confirm.sections.clear();
    }
}

fn undecided() -> Confirm {
    Confirm {
        sections: DECIDE.to_vec(),
        source: false,
        why: "what warps wait for, and how much of the traffic is needed: that tells the causes apart".to_owned(),
    }
}

/// What hints can be about, before they are reckoned: there may be very many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A result of a report of ncu.
    Result(usize),
    /// A launch of a timeline.
    Launch(u32),
}

impl Place {
    /// The launch: of a report of ncu the result's number.
    #[must_use]
    pub fn launch(self) -> u32 {
        match self {
            Self::Result(r) => u32::try_from(r).unwrap_or(u32::MAX),
            Self::Launch(l) => l,
        }
    }

    #[must_use]
    pub fn kernel(self, profile: &Profile) -> Option<&Kernel> {
        match self {
            Self::Result(r) => profile.metrics.as_ref()?.results.get(r).map(|r| &r.kernel),
            Self::Launch(l) => profile.kernels.get(profile.launches.kernel(l as usize).0 as usize),
        }
    }

    /// What is said about it.
    #[must_use]
    pub fn subject(self, profile: &Profile) -> Option<Subject> {
        match self {
            Self::Result(r) => Subject::of_metrics(profile.metrics.as_ref()?, r),
            Self::Launch(l) => Subject::of_launch(profile, l),
        }
    }
}

/// Every result of a report of ncu; of a timeline each kernel's median launch, the kernels with the most time first.
#[must_use]
pub fn places(profile: &Profile) -> Vec<Place> {
    if let Some(metrics) = &profile.metrics {
        return (0..metrics.results.len()).map(Place::Result).collect();
    }
    let mut launches: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in 0..profile.launches.len() {
        launches.entry(profile.launches.kernel(row).0).or_default().push(u32::try_from(row).unwrap_or(u32::MAX));
    }
    let duration = |l: u32| profile.launches.duration(l as usize);
    let mut kernels: Vec<(i64, u32)> = launches
        .into_values()
        .map(|mut rows| {
            let total = rows.iter().map(|&l| duration(l)).sum();
            let middle = (rows.len() - 1) / 2;
            let (_, median, _) = rows.select_nth_unstable_by_key(middle, |&l| (duration(l), l));
            (total, *median)
        })
        .collect();
    kernels.sort_by_key(|k| (std::cmp::Reverse(k.0), k.1));
    kernels.into_iter().map(|(_, launch)| Place::Launch(launch)).collect()
}

/// What is said about each of them.
#[must_use]
pub fn all(profile: &Profile) -> Vec<Subject> {
    places(profile).into_iter().filter_map(|p| p.subject(profile)).collect()
}
