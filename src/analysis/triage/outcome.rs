//! Result of a triage.

use super::finding::Finding;
use super::host_lines::HostTime;
use super::judged_time::JudgedTime;
use super::run_context::{Outside, Slice};
use super::step_kinds::StepKind;
use super::steps::{LeftOut, Step, StepSource, lower_median};
use super::time_category::{Cause, TimeCategory};
use super::verdict::Verdict;
use crate::analysis::Family;
use crate::analysis::flops::Rate;
use crate::analysis::hints::KernelLead;
use crate::analysis::readable::readable_name;
use crate::analysis::run_estimate::RunEstimate;
use crate::model::Profile;
use std::collections::HashMap;

/// A device and its time by category.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedDevice {
    /// Device number shown to the user.
    pub number: Option<u32>,
    pub name: Option<String>,
    pub pid: Option<u32>,
    /// Time during which anything ran, ns.
    pub busy: i64,
    /// Categories with their time, which adds up to the window, ns.
    pub parts: [(TimeCategory, i64); TimeCategory::ALL.len()],
    /// Idle time by cause, ns, which subdivides the idle categories of `parts`; causes without idle time are omitted.
    pub causes: Vec<(Cause, i64)>,
    /// Time of collectives, overlapped or not, ns.
    pub collectives: i64,
    /// Time of copies, overlapped or not, ns.
    pub copies: i64,
}

/// Statistics of step lengths, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepStats {
    pub count: usize,
    pub median: i64,
    pub min: i64,
    pub max: i64,
    /// Median time from the start of one step to the start of the next, ns; `None` for fewer than four steps.
    pub period: Option<i64>,
    /// Mean length, ns.
    pub mean: i64,
    /// Mean time from the start of one step to the start of the next, ns; `None` for fewer than four steps.
    pub mean_period: Option<i64>,
}

/// Ratio of the mean length to the median, or the inverse, above which the median does not stand for the run: with two
/// kinds of steps, the median is that of the more frequent kind.
const UNEVEN: f64 = 1.1;

/// Time that a step takes in each of two runs, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimes {
    /// Name of the compared times, such as `median step`.
    pub name: &'static str,
    pub before: i64,
    pub after: i64,
}

/// Ratio of the launches in a step of two runs up to which steps that were found by different marks may be the same.
const ALIKE: f64 = 1.25;
/// The same for repetitions of a sequence of kernels. It is larger, since a change may fuse kernels; ten times as many
/// are another step.
const REPEATED_ALIKE: f64 = 4.0;

/// Returns the numbers of steps of two runs, if their steps are of the same kind: by the same mark, or with about as many
/// launches.
pub fn like_steps(was: &Triage, is: &Triage) -> Option<(usize, usize)> {
    let counts = (was.step_stats()?.count, is.step_stats()?.count);
    let launches = |t: &Triage, steps: usize| t.kernels.iter().map(|k| k.2).sum::<u64>() as f64 / steps.max(1) as f64;
    let (a, b) = (launches(was, counts.0), launches(is, counts.1));
    let within = |ratio: f64| a.max(b) <= ratio * a.min(b);
    let alike = match (was.found.as_ref()?, is.found.as_ref()?) {
        (StepSource::Period(_), StepSource::Period(_)) => within(REPEATED_ALIKE),
        (one, other) => one == other || within(ALIKE),
    };
    (counts.0 > 0 && counts.1 > 0 && alike).then_some(counts)
}

/// Mean time of a step by category in two runs, ns, the largest change first; `None` if their steps are not of the same
/// kind.
pub fn step_parts(was: &Triage, is: &Triage) -> Option<Vec<(TimeCategory, f64, f64)>> {
    let (before, after) = like_steps(was, is)?;
    let mean = |t: &Triage, part, steps: usize| t.part_percent(part) / 100.0 * t.length() as f64 / steps as f64;
    let mut parts: Vec<_> = TimeCategory::ALL.into_iter().map(|p| (p, mean(was, p, before), mean(is, p, after))).collect();
    parts.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    Some(parts)
}

impl StepTimes {
    /// Compares the steps of two runs, if they are of the same kind.
    pub fn of_runs(was: &Triage, is: &Triage) -> Option<Self> {
        like_steps(was, is)?;
        Some(Self::compare(&was.step_stats()?, &is.step_stats()?))
    }

    /// Compares the time from step to step if the time between steps matters, otherwise the length of a step: by their
    /// medians, or by their means if the steps of a run are of several kinds.
    pub fn compare(before: &StepStats, after: &StepStats) -> Self {
        let uneven = before.is_uneven() || after.is_uneven();
        let apart = before.longer_period().or(after.longer_period()).is_some();
        let periods = |of: fn(&StepStats) -> Option<i64>| of(before).zip(of(after)).filter(|_| apart);
        let (name, (before, after)) = match (uneven, periods(|s| s.period), periods(|s| s.mean_period)) {
            (true, _, Some(means)) => ("a step on average every", means),
            (false, Some(medians), _) => ("a step every", medians),
            (true, ..) => ("mean step", (before.mean, after.mean)),
            (false, ..) => ("median step", (before.median, after.median)),
        };
        Self { name, before, after }
    }
}

impl StepStats {
    /// Returns true if the median does not stand for the steps.
    pub fn is_uneven(&self) -> bool {
        let ratio = self.mean as f64 / self.median.max(1) as f64;
        !(1.0 / UNEVEN..=UNEVEN).contains(&ratio)
    }

    /// Median time from step to step, if it exceeds the median length of a step by more than 10 % (`LONGER`).
    pub fn longer_period(&self) -> Option<i64> {
        self.period.filter(|p| *p as f64 > self.median as f64 * LONGER)
    }
}

/// Ratio of the time from step to step to the length of a step above which the time between steps matters.
const LONGER: f64 = 1.1;

/// Bottlenecks of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Triage {
    /// Analyzed window, ns.
    pub window: (i64, i64),
    /// Name of the analyzed time: `the run`, `the steady state`, or `the window` that the user chose.
    pub base: &'static str,
    /// Analyzed parts of the window.
    pub judged: JudgedTime,
    /// True if so much work has no record that idle time is not known to be idle.
    pub unrecorded: bool,
    pub found: Option<StepSource>,
    pub steps: Vec<Step>,
    /// Idle time in each step, ns, averaged over the devices, and its largest category; empty if there are too many steps.
    pub step_idle: Vec<(i64, Option<TimeCategory>)>,
    /// `None` if the run has no steps.
    pub step_lengths: Option<StepStats>,
    pub left_out: Vec<LeftOut>,
    /// Kinds of steps, if steps run different kernels.
    pub kinds: Vec<StepKind>,
    /// Analyzed share of the run, and idle share of the rest; `None` if all of it was analyzed or the user chose the
    /// window.
    pub outside: Option<Outside>,
    pub devices: Vec<JudgedDevice>,
    /// Findings; the verdict comes first.
    pub findings: Vec<Finding>,
    /// A measured kernel that comes before the findings; `None` if there is none, or if kernels were not examined.
    pub kernel_lead: Option<KernelLead>,
    /// Floating-point rate, if shapes were recorded or the user gave the number of operations.
    pub flops: Option<Rate>,
    /// Memory findings as (id, headline); `None` if memory was not examined. They have no share of the time, because
    /// they do not cost time by themselves.
    pub memory: Option<Vec<(&'static str, String)>>,
    /// Idle time by stack of the launching threads; empty if they were not sampled.
    pub host_time: HostTime,
    /// Reason why the analyzed time may not represent the program, if there is one.
    pub doubt: Option<String>,
    /// Notes on data that was not recorded, and how that affects the analysis.
    pub missing: Vec<String>,
    /// Kernel time by family, guessed from names, ns.
    pub families: Vec<(Family, i64)>,
    /// Activity of the devices in each slice of the window.
    pub strip: Vec<Slice>,
    /// First start and last end of all operations in the report, ns.
    pub span: (i64, i64),
    /// Totals of the whole run, if the report is a sample of it.
    pub whole_run: Option<RunEstimate>,
    /// Kernels, including collectives, longest first: index into [`Profile::kernels`](crate::model::Profile::kernels),
    /// time in ns, and count.
    pub kernels: Vec<(u32, i64, u64)>,
}

impl Triage {
    /// Number of devices that run collectives: each is probably a rank.
    pub fn talking_devices(&self) -> usize {
        self.devices.iter().filter(|d| d.collectives > 0).count()
    }

    /// Returns the first finding.
    pub fn verdict(&self) -> Option<&Finding> {
        self.findings.first()
    }

    /// Analyzed time, ns.
    pub fn length(&self) -> i64 {
        self.judged.length()
    }

    /// Start of the window, ns, if it was analyzed without holes: times in it can then be given from there.
    pub fn origin(&self) -> Option<i64> {
        (self.judged.count() <= 1).then_some(self.window.0)
    }

    /// Share of a category in the window over all devices, in percent.
    pub fn part_percent(&self, part: TimeCategory) -> f64 {
        let ns: i64 = self.devices.iter().map(|d| d.parts[part as usize].1).sum();
        ns as f64 / (self.length() as f64 * self.devices.len().max(1) as f64) * 100.0
    }

    /// Share of the window in which a device did anything, in percent.
    pub fn busy_percent(&self) -> f64 {
        100.0 - TimeCategory::ALL.into_iter().filter(|p| p.is_idle()).map(|p| self.part_percent(p)).sum::<f64>()
    }

    /// For each kernel, by readable name, the maximum share of the analyzed time that launching it costs: the cost of
    /// launching, divided in proportion to the number of launches. Empty unless the verdict is that launching limits
    /// the run.
    pub fn launch_costs(&self, profile: &Profile) -> HashMap<String, f64> {
        let all = self.kernels.iter().map(|k| k.2).sum::<u64>().max(1) as f64;
        let stake = self.verdict().filter(|f| f.id == Verdict::LaunchBound).map(|f| f.stake);
        let costs = stake.into_iter().flat_map(|stake| {
            self.kernels.iter().filter_map(move |(kernel, _, count)| {
                let kernel = profile.kernels.get(*kernel as usize)?;
                Some((readable_name(kernel).into_owned(), stake * *count as f64 / all))
            })
        });
        costs.collect()
    }

    pub fn step_stats(&self) -> Option<StepStats> {
        self.step_lengths
    }
}

/// Computes statistics of step lengths; `None` if there are no steps.
pub fn measure_steps(steps: &[Step]) -> Option<StepStats> {
    let lengths: Vec<i64> = steps.iter().map(Step::length).collect();
    let mut starts: Vec<i64> = steps.iter().map(|s| s.start).collect();
    starts.sort_unstable();
    let period = lower_median(starts.windows(2).map(|w| w[1] - w[0]).collect()).filter(|_| steps.len() >= 4);
    let (min, max) = (*lengths.iter().min()?, *lengths.iter().max()?);
    let count = i64::try_from(lengths.len()).ok()?;
    let mean = lengths.iter().sum::<i64>() / count;
    let span = starts.last().zip(starts.first()).map(|(last, first)| last - first);
    let mean_period = span.filter(|_| steps.len() >= 4).map(|span| span / (count - 1));
    Some(StepStats { count: lengths.len(), min, max, median: lower_median(lengths)?, period, mean, mean_period })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that follow each other, with the given lengths and the same time between them, ns.
    fn stats(lengths: &[i64], between: i64) -> StepStats {
        let mut start = 0;
        let steps: Vec<Step> = (0..)
            .zip(lengths)
            .map(|(number, length)| {
                let step = Step { start, end: start + length, number };
                start += length + between;
                step
            })
            .collect();
        measure_steps(&steps).unwrap()
    }

    #[test]
    fn steps_of_two_kinds_are_compared_by_their_mean() {
        let even = stats(&[1000; 20], 0);
        let two_kinds = stats(&[[100, 1900]; 10].concat(), 0);
        assert_eq!((two_kinds.median, two_kinds.mean, even.is_uneven(), two_kinds.is_uneven()), (100, 1000, false, true));
        assert_eq!(StepTimes::compare(&even, &even), StepTimes { name: "median step", before: 1000, after: 1000 });
        for (a, b) in [(&even, &two_kinds), (&two_kinds, &even)] {
            assert_eq!(StepTimes::compare(a, b), StepTimes { name: "mean step", before: 1000, after: 1000 });
        }
        // A single outlier does not make steps uneven, and time between steps counts.
        assert!(!stats(&[&[1000; 50][..], &[3000]].concat(), 0).is_uneven());
        let apart = stats(&[1000; 20], 500);
        assert_eq!(StepTimes::compare(&even, &apart), StepTimes { name: "a step every", before: 1000, after: 1500 });
        let uneven_apart = stats(&[[100, 1900]; 10].concat(), 500);
        let times = StepTimes::compare(&uneven_apart, &apart);
        assert_eq!((times.name, times.after), ("a step on average every", 1500));
        assert!((1400..=1600).contains(&times.before), "{times:?}");
    }
}
