//! What comes out of judging a run.

use super::case::Outside;
use super::finding::Finding;
use super::part::{Cause, Part};
use super::step_kinds::Kind;
use super::steps::{Found, LeftOut, Step, median};
use crate::analysis::Family;
use crate::analysis::flops::Rate;

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
    /// How much of it was judged, ns: all, unless ranges were chosen.
    pub judged: i64,
    pub found: Option<Found>,
    pub steps: Vec<Step>,
    pub left_out: Vec<LeftOut>,
    /// Kinds of step, where they run different things.
    pub kinds: Vec<Kind>,
    /// Share of the run that was judged, and the idle time of the rest; `None` where there is no rest, or the window was chosen.
    pub outside: Option<Outside>,
    pub devices: Vec<Device>,
    /// The verdict first.
    pub findings: Vec<Finding>,
    /// Floating-point work, where shapes were recorded or the user said it.
    pub flops: Option<Rate>,
    /// What is wrong with the use of memory: id and headline; `None` where that was not looked at. It costs no time by itself, so it has no share.
    pub memory: Option<Vec<(&'static str, String)>>,
    /// Why what was judged does not show how the program runs.
    pub doubt: Option<String>,
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
    /// Kernels with their time and count, longest first: index into [`Profile::kernels`](crate::model::Profile::kernels).
    pub kernels: Vec<(u32, i64, u64)>,
}

impl Triage {
    /// The first finding.
    #[must_use]
    pub fn verdict(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// How much was judged, ns.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.judged
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
        Some(StepStats { count: lengths.len(), min: *lengths.iter().min()?, max: *lengths.iter().max()?, median: median(lengths)? })
    }
}
