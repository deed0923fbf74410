//! What hints are about: a result of ncu, or a launch that stands for its kernel in a timeline.

use super::{Confirm, Depth, Facts, Hint, diagnose};
use crate::model::{Kernel, Metrics, Nanos, Profile};
use std::collections::BTreeMap;

/// A kernel with what is said about it.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The result; `None` in a timeline.
    pub result: Option<usize>,
    /// The launch: of a timeline the one of median duration.
    pub launch: u32,
    /// Names.
    pub kernel: Kernel,
    /// How much is known.
    pub depth: Depth,
    /// What is known.
    pub facts: Facts,
    /// Best first.
    pub hints: Vec<Hint>,
    /// The tool could not profile it.
    pub failed: bool,
}

/// Sections that decide between most causes, in about half the passes of the set `full`.
const DECIDE: [&str; 6] = ["SpeedOfLight", "LaunchStats", "Occupancy", "SchedulerStats", "WarpStateStats", "SourceCounters"];

impl Subject {
    fn new(result: Option<usize>, launch: u32, kernel: Kernel, facts: Facts) -> Self {
        let (depth, mut hints) = (facts.depth(), diagnose(&facts));
        super::context::add(&kernel, &mut hints);
        if depth <= Depth::Basic {
            for hint in hints.iter_mut().filter(|h| !h.confirm.sections.is_empty()) {
                hint.confirm = undecided();
            }
        }
        Self { result, launch, kernel, depth, facts, hints, failed: false }
    }

    /// A result of a report.
    #[must_use]
    pub fn of_metrics(metrics: &Metrics, result: usize) -> Option<Self> {
        let launch = u32::try_from(result).ok()?;
        let own = metrics.results.get(result)?;
        Some(Self { failed: own.failed, ..Self::new(Some(result), launch, own.kernel.clone(), Facts::of_result(metrics, result)) })
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
        let device = place.and_then(|p| p.device).and_then(|id| profile.devices.iter().find(|d| d.id == id)).cloned().unwrap_or_default();
        let duration = Nanos(profile.launches.duration(row));
        Some(Self::new(None, launch, kernel, Facts::of_launch(&config, &device, duration)))
    }

    /// What to collect when the hints say too little; `None` at full depth.
    #[must_use]
    pub fn collect(&self) -> Option<Confirm> {
        (self.depth < Depth::Detailed).then(undecided)
    }
}

fn undecided() -> Confirm {
    Confirm {
        sections: DECIDE.to_vec(),
        source: false,
        why: "what warps wait for, and which traffic is needed: that decides between the causes".to_owned(),
    }
}

/// Every result of a report of ncu; of a timeline each kernel's median launch, the kernels with the most time first.
#[must_use]
pub fn all(profile: &Profile) -> Vec<Subject> {
    if let Some(metrics) = &profile.metrics {
        return (0..metrics.results.len()).filter_map(|r| Subject::of_metrics(metrics, r)).collect();
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
    kernels.into_iter().filter_map(|(_, launch)| Subject::of_launch(profile, launch)).collect()
}
