//! Comparison of two runs: common, new, removed and probably renamed kernels, and significance of changes in duration.

use super::fuzzy::name_similarity;
use super::hint_outcome::{Promise, add_remaining, predicted_gains};
use super::workload_match::{GroupLaunches, Work, WorkChange, compare_durations, grouped_launches};
use super::{Family, GroupBy, GroupRow, Grouping, Paths};
use crate::model::config::format_dim3;
use crate::model::{LaunchConfig, Profile};
use std::collections::BTreeMap;

/// Tells in which of the two runs a kernel occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// In both runs.
    Both,
    /// Only in the second run.
    New,
    /// Only in the first run.
    Gone,
    /// The names differ, but names and launch counts are so similar that this is probably the same kernel.
    Renamed,
}

impl Fate {
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Renamed => "renamed",
        }
    }
}

/// One side of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Name in this run.
    pub name: String,
    pub count: u64,
    /// Total duration in ns.
    pub total: i64,
    /// Mean duration in ns.
    pub avg: f64,
    /// Median duration in ns.
    pub median: Option<f64>,
    /// True for collectives, whose durations include waiting for other ranks.
    pub collective: bool,
}

impl From<&GroupRow> for Side {
    fn from(r: &GroupRow) -> Self {
        Self {
            name: r.name.clone(),
            count: r.stats.count,
            total: r.stats.total,
            avg: r.stats.avg,
            median: r.stats.median,
            collective: r.family == Family::Nccl,
        }
    }
}

/// A kernel, or another kind of group, with its data from both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRow {
    pub fate: Fate,
    /// Data of the first run.
    pub before: Option<Side>,
    /// Data of the second run.
    pub after: Option<Side>,
    /// Probability that the durations of individual launches differ this much by chance (Mann–Whitney); `None` if there
    /// are too few launches.
    pub p: Option<f64>,
    /// Launches covered by `p` and `each`.
    pub work: Work,
    /// Change in the median duration of these launches, in percent.
    pub each: Option<f64>,
    /// Gain predicted by the first run's hint on this kernel.
    pub promise: Option<Promise>,
    /// Time per step in each run, if the runs have different numbers of steps.
    pub step: Option<StepChange>,
    /// Changes of the launch configuration with the most time.
    pub config_changes: Vec<ConfigChange>,
}

/// Mean time of a kernel per step in each run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepChange {
    /// Nanoseconds per step.
    pub before: f64,
    /// Nanoseconds per step.
    pub after: f64,
    /// Launches per step of each run.
    pub launches: (f64, f64),
}

impl DiffRow {
    /// Describes what changed in the launch configuration: `grid 2048 to 1024, registers 40 to 32`.
    pub fn config_text(&self) -> Option<String> {
        let one = |c: &ConfigChange| format!("{} {} to {}", c.name, c.before, c.after);
        (!self.config_changes.is_empty()).then(|| self.config_changes.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    /// Returns the name in the second run, or else in the first.
    pub fn name(&self) -> &str {
        self.after.as_ref().or(self.before.as_ref()).map_or("", |s| &s.name)
    }

    /// Change in total duration, ns.
    pub fn total_change(&self) -> i64 {
        let total = |s: &Option<Side>| s.as_ref().map_or(0, |s| s.total);
        total(&self.after).saturating_sub(total(&self.before))
    }

    /// Change in total duration, in percent of the first run; `None` if the kernel is missing there.
    pub fn total_change_percent(&self) -> Option<f64> {
        let before = self.before.as_ref().filter(|b| b.total > 0)?;
        Some(self.total_change() as f64 / before.total as f64 * 100.0)
    }

    /// Change in the time shown in tables, ns: per step if the runs have different numbers of steps, otherwise in
    /// total.
    pub fn shown_change(&self) -> f64 {
        self.step.map_or(self.total_change() as f64, |s| s.after - s.before)
    }

    /// Change in the time per step, in percent of the first run.
    pub fn step_percent(&self) -> Option<f64> {
        let step = self.step.filter(|s| s.before > 0.0)?;
        Some((step.after - step.before) / step.before * 100.0)
    }

    /// Number of launches per step if the runs have different numbers of steps, otherwise per run.
    pub fn shown_launches(&self) -> (f64, f64) {
        let count = |side: &Option<Side>| side.as_ref().map_or(0, |s| s.count) as f64;
        self.step.map_or_else(|| (count(&self.before), count(&self.after)), |s| s.launches)
    }

    /// Change in the median launch duration, in percent, over comparable launches.
    pub fn each_percent(&self) -> Option<f64> {
        self.each
    }

    /// Fraction of time saved: of the total duration if the number of launches and their work match, otherwise of the
    /// median. `None` if the kernel is missing from one run, or if its launches may do different amounts of work.
    pub fn saved_fraction(&self) -> Option<f64> {
        let (a, b) = (self.before.as_ref()?, self.after.as_ref()?);
        if self.work == Work::Uneven {
            return None;
        }
        if a.count == b.count && matches!(self.work, Work::Same | Work::Reshaped) {
            Some(-self.total_change_percent()? / 100.0)
        } else {
            Some(-self.each_percent()? / 100.0)
        }
    }

    /// Returns the predicted gain and the saved fraction, if the change is large enough to matter.
    pub fn hint_outcome(&self) -> Option<(&Promise, f64)> {
        let (promise, saved) = (self.promise.as_ref()?, self.saved_fraction()?);
        (saved.abs() * 100.0 >= MATTERS && self.p.is_none_or(|p| p < CHANCE)).then_some((promise, saved))
    }

    /// Returns true if the change in launch durations is significant and large enough to matter.
    pub fn is_significant(&self) -> bool {
        self.p.is_some_and(|p| p < CHANCE) && self.each_percent().is_some_and(|c| c.abs() >= MATTERS)
    }
}

/// Probability below which a difference is significant: 1 in 1,000, since a table compares hundreds of kernels at once.
pub const CHANCE: f64 = 0.001;
/// Minimum change in the median that matters, percent, however significant it is: clock variations alone cause as much.
pub const MATTERS: f64 = 1.0;
/// Minimum similarity of names, and of launch counts, for a kernel to count as renamed.
const ALIKE: f64 = 0.75;
/// Maximum number of unmatched kernels to compare per run, because the cost is quadratic.
const MOST_COMPARED: usize = 300;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// Rows, largest change in time first.
    pub rows: Vec<DiffRow>,
    /// Total duration of all launches, before and after, in ns.
    pub totals: (i64, i64),
    /// Kernel time per step in each run, ns, if the runs have different numbers of steps.
    pub step_totals: Option<(f64, f64)>,
    /// True if the runs have no steps and differ in length, so that their totals cannot be compared.
    pub differ_in_length: bool,
    /// Number of steps in each run, if they differ.
    pub steps: Option<(usize, usize)>,
    /// Number of kernels that both runs launch equally often, however many steps they have; their times are divided by
    /// the steps of the first run.
    pub once_a_run: usize,
    /// Number of launches, before and after.
    pub launches: (u64, u64),
    /// True if one run comes from ncu and the other from a timeline. ncu measures only a few launches, so comparing the
    /// totals is meaningless.
    pub one_isolated: bool,
    /// Reasons why the two runs are hard to compare.
    pub caveats: Vec<String>,
}

/// Time of the kernels in both runs, ns.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTimes {
    /// `kernel time`, with what it is of and what it leaves out.
    pub name: String,
    pub before: f64,
    pub after: f64,
}

impl KernelTimes {
    /// Change in percent; `None` if nothing ran before.
    pub fn change_percent(&self) -> Option<f64> {
        (self.before > 0.0).then(|| (self.after - self.before) / self.before * 100.0)
    }
}

impl Diff {
    /// Time of the kernels: of a step if the runs have different numbers of steps, since totals are then of different
    /// amounts of work, and without collectives, which take longer because another rank is late, too.
    pub fn kernel_times(&self) -> KernelTimes {
        let (was, is) = self.step_totals.unwrap_or((self.totals.0 as f64, self.totals.1 as f64));
        let collectives = self.collective_times();
        let of = if self.step_totals.is_some() { " a step" } else { "" };
        let without = if collectives == (0.0, 0.0) { "" } else { " without collectives" };
        KernelTimes { name: format!("kernel time{of}{without}"), before: was - collectives.0, after: is - collectives.1 }
    }

    /// Returns true if the runs share a kernel, perhaps under another name, or have no more than one to compare.
    pub fn has_common_kernel(&self) -> bool {
        self.rows.len() < 2 || self.rows.iter().any(|r| matches!(r.fate, Fate::Both | Fate::Renamed))
    }

    /// Time in collectives in each run, ns: per step if the runs have different numbers of steps, otherwise in total.
    fn collective_times(&self) -> (f64, f64) {
        let is = |side: &Option<Side>| side.as_ref().is_some_and(|s| s.collective);
        let rows = self.rows.iter().filter(|r| is(&r.before) || is(&r.after));
        let total = |side: &Option<Side>| side.as_ref().map_or(0.0, |s| s.total as f64);
        rows.map(|r| r.step.map_or((total(&r.before), total(&r.after)), |s| (s.before, s.after)))
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Change in total duration, in percent; `None` if nothing ran before.
    pub fn total_change_percent(&self) -> Option<f64> {
        (self.totals.0 > 0).then(|| (self.totals.1 - self.totals.0) as f64 / self.totals.0 as f64 * 100.0)
    }
}

fn build_row(fate: Fate, before: Option<&GroupRow>, after: Option<&GroupRow>, found: WorkChange) -> DiffRow {
    let (before, after) = (before.map(Into::into), after.map(Into::into));
    DiffRow { fate, before, after, p: found.p, work: found.work, each: found.each, promise: None, step: None, config_changes: Vec::new() }
}

/// Compares two runs, grouped by the same criterion.
pub fn diff_profiles(before: &Profile, after: &Profile, by: GroupBy) -> Diff {
    let paths = |p: &Profile| by.needs_paths().then(|| Paths::from_profile(p));
    let (paths_a, paths_b) = (paths(before), paths(after));
    let (a, b) = (Grouping::from_profile(before, by, paths_a.as_ref()), Grouping::from_profile(after, by, paths_b.as_ref()));
    let single_a = grouped_launches(before, by.is_kernel(), |l| a.row_of(before, paths_a.as_ref(), l));
    let single_b = grouped_launches(after, by.is_kernel(), |l| b.row_of(after, paths_b.as_ref(), l));
    let none = GroupLaunches::default();
    // Without individual launches (tables of totals), only medians are available.
    let test = |i: usize, j: usize| match (single_a.get(&i), single_b.get(&j)) {
        (None, None) => {
            let change = |a: f64, b: f64| (a > 0.0).then(|| (b - a) / a * 100.0);
            WorkChange { each: a.rows[i].stats.median.zip(b.rows[j].stats.median).and_then(|(a, b)| change(a, b)), ..WorkChange::default() }
        }
        (a, b) => compare_durations(&a.unwrap_or(&none).durations, &b.unwrap_or(&none).durations),
    };
    let changes = |i: usize, j: usize| {
        let main = |profile: &'_ Profile, group: Option<&GroupLaunches>| profile.configs.get(group?.main_config()?.0 as usize).cloned();
        let configs = main(before, single_a.get(&i)).zip(main(after, single_b.get(&j)));
        configs.map(|(was, is)| config_changes(&was, &is, after.is_amd())).unwrap_or_default()
    };
    let pair = |fate: Fate, i: usize, j: usize| DiffRow {
        config_changes: changes(i, j),
        ..build_row(fate, Some(&a.rows[i]), Some(&b.rows[j]), test(i, j))
    };
    let by_name: BTreeMap<&str, usize> = b.rows.iter().enumerate().map(|(i, r)| (r.name.as_str(), i)).collect();
    let mut rows = Vec::new();
    let mut used = vec![false; b.rows.len()];
    let mut gone = Vec::new();
    for (i, before) in a.rows.iter().enumerate() {
        if let Some(&j) = by_name.get(before.name.as_str()) {
            used[j] = true;
            rows.push(pair(Fate::Both, i, j));
        } else {
            gone.push(i);
        }
    }
    let mut new: Vec<usize> = (0..b.rows.len()).filter(|j| !used[*j]).collect();
    // Most similar pairs first; if there are too many kernels, only the longest-running are compared.
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    if by.is_kernel() {
        for &i in gone.iter().take(MOST_COMPARED) {
            for &j in new.iter().take(MOST_COMPARED) {
                let (x, y) = (&a.rows[i], &b.rows[j]);
                let counts = x.stats.count.min(y.stats.count) as f64 / x.stats.count.max(y.stats.count).max(1) as f64;
                let alike = name_similarity(&x.name, &y.name);
                if alike >= ALIKE && counts >= ALIKE {
                    pairs.push((alike + counts, i, j));
                }
            }
        }
    }
    pairs.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
    for (_, i, j) in pairs {
        if gone.contains(&i) && new.contains(&j) {
            gone.retain(|g| *g != i);
            new.retain(|n| *n != j);
            rows.push(pair(Fate::Renamed, i, j));
        }
    }
    rows.extend(gone.into_iter().map(|i| build_row(Fate::Gone, Some(&a.rows[i]), None, WorkChange::default())));
    rows.extend(new.into_iter().map(|j| build_row(Fate::New, None, Some(&b.rows[j]), WorkChange::default())));
    // On another GPU, or on one that is not known, a kernel is faster or slower for other reasons than the change.
    if by.is_kernel() && gpu_names(before) == gpu_names(after) {
        let promised = predicted_gains(before);
        for row in &mut rows {
            row.promise = row.before.as_ref().and_then(|b| promised.get(&b.name)).cloned();
        }
        let pairs = rows.iter_mut().filter_map(|r| Some((r.after.as_ref()?.name.as_str(), r.promise.as_mut()?)));
        add_remaining(pairs, after);
    }
    rows.sort_by(|x, y| y.total_change().unsigned_abs().cmp(&x.total_change().unsigned_abs()).then_with(|| x.name().cmp(y.name())));
    let sum = |g: &Grouping| g.rows.iter().map(|r| r.stats.total).sum::<i64>();
    let count = |g: &Grouping| g.rows.iter().map(|r| r.stats.count).sum::<u64>();
    Diff {
        totals: (sum(&a), sum(&b)),
        step_totals: None,
        steps: None,
        once_a_run: 0,
        differ_in_length: false,
        launches: (count(&a), count(&b)),
        one_isolated: is_one_isolated(before, after),
        caveats: comparison_caveats(before, after),
        rows,
    }
}

/// A property of the launch configuration with the most time, where it differs between the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub name: &'static str,
    pub before: String,
    pub after: String,
}

/// Returns the properties that are known of both configurations and differ.
fn config_changes(was: &LaunchConfig, is: &LaunchConfig, amd: bool) -> Vec<ConfigChange> {
    type Property = fn(&LaunchConfig) -> Option<String>;
    const PROPERTIES: [(&str, &str, Property); 5] = [
        ("grid", "grid", |c| c.grid.map(format_dim3)),
        ("block", "workgroup", |c| c.block.map(format_dim3)),
        ("cluster", "cluster", |c| Some(c.cluster.filter(|c| *c != [1, 1, 1]).map_or_else(|| "none".to_owned(), format_dim3))),
        ("shared", "LDS", |c| c.shared_memory().map(|s| s.to_string())),
        ("registers", "VGPRs", |c| c.registers.map(|n| n.to_string())),
    ];
    let change = |(cuda, hip, of): (&'static str, &'static str, Property)| {
        let (before, after) = (of(was)?, of(is)?);
        (before != after).then_some(ConfigChange { name: if amd { hip } else { cuda }, before, after })
    };
    PROPERTIES.into_iter().filter_map(change).collect()
}

fn is_one_isolated(a: &Profile, b: &Profile) -> bool {
    a.metrics.is_some() != b.metrics.is_some()
}

/// Maximum length of the part of a command line that is shown.
const SHOWN: usize = 60;

/// Says where the command lines of two runs differ. The folder in front of a word makes no difference.
fn command_difference(a: &[String], b: &[String]) -> Option<String> {
    let words = |all: &[String]| all.iter().map(|w| w.rsplit('/').next().unwrap_or(w).to_owned()).collect::<Vec<_>>();
    let (a, b) = (words(a), words(b));
    if a.is_empty() || b.is_empty() || a == b {
        return None;
    }
    let first = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let last = a[first..].iter().rev().zip(b[first..].iter().rev()).take_while(|(x, y)| x == y).count();
    let rest = |all: &[String]| match all[first..all.len() - last].join(" ") {
        text if text.is_empty() => "nothing".to_owned(),
        text if text.chars().count() > SHOWN => format!("`{}…`", text.chars().take(SHOWN).collect::<String>()),
        text => format!("`{text}`"),
    };
    Some(format!("the command lines differ ({} and {}), so that the runs may not do the same work", rest(&a), rest(&b)))
}

fn gpu_names(profile: &Profile) -> std::collections::BTreeSet<String> {
    profile.devices.iter().filter_map(|d| d.name.clone()).collect()
}

fn comparison_caveats(a: &Profile, b: &Profile) -> Vec<String> {
    let mut out = Vec::new();
    if is_one_isolated(a, b) {
        out.push(
            "one report is from ncu, which times each launch in isolation with flushed caches and locked clocks; the other is a timeline"
                .to_owned(),
        );
    }
    let (x, y) = (gpu_names(a), gpu_names(b));
    if !x.is_empty() && !y.is_empty() && x != y {
        let list = |s: &std::collections::BTreeSet<String>| s.iter().cloned().collect::<Vec<_>>().join(", ");
        out.push(format!("the GPUs differ: {} and {}", list(&x), list(&y)));
    }
    out.extend(command_difference(&a.capture.argv, &b.capture.argv));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_differ_in_their_own_words() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let said = |a: &str, b: &str| command_difference(&words(a), &words(b)).unwrap_or_default();
        assert!(
            said("python3 src/llm.py plain 16", "/usr/bin/python3 llm.py plain 4").starts_with("the command lines differ (`16` and `4`),")
        );
        assert!(said("a x --fast y", "a x y").contains("(`--fast` and nothing)"));
        assert_eq!((said("./a 1", "a 1"), command_difference(&[], &words("a"))), (String::new(), None));
    }
}
