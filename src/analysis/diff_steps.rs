//! Comparison of runs of different length: kernel time in a step of each run, or a warning if there are no steps.

use super::diff::{Diff, DiffRow, Fate, StepChange};
use super::triage::Triage;
use super::{GroupBy, Grouping, Paths};
use crate::model::Profile;
use rustc_hash::FxHashMap;

/// Minimum ratio between the launch counts of most kernels for two runs without steps to differ in length.
const LONGER: f64 = 1.1;

/// Compares the kernels by their time in a step if the runs have different numbers of steps; without steps, warns about
/// different lengths and sorts the rows by the change of the median instead.
pub fn compare_lengths(diff: &mut Diff, before: (&Profile, Option<&Triage>), after: (&Profile, Option<&Triage>), by: GroupBy) {
    let steps = |t: Option<&Triage>| t.and_then(Triage::step_stats).map(|s| s.count).filter(|n| *n > 0);
    match steps(before.1).zip(steps(after.1)) {
        Some((a, b)) if a != b && !diff.one_isolated => {
            let (was, is) = (step_times(before, a, by), step_times(after, b, by));
            for row in &mut diff.rows {
                let time = |times: &FxHashMap<String, f64>, side: &Option<super::diff::Side>| {
                    side.as_ref().map_or(0.0, |s| times.get(&s.name).copied().unwrap_or_default())
                };
                row.step = Some(StepChange { before: time(&was, &row.before), after: time(&is, &row.after), steps: (a, b) });
            }
            diff.step_totals = Some((was.values().sum(), is.values().sum()));
            diff.steps = Some((a, b));
            sort_by(diff, |row| row.shown_change().abs());
        }
        Some(_) => {}
        None if !diff.one_isolated && have_other_lengths(diff) => {
            let (a, b) = diff.launches;
            let grouped = |n: u64| crate::model::units::format_grouped(i64::try_from(n).unwrap_or(i64::MAX));
            diff.caveats.push(format!(
                "the runs differ in length ({} and {} launches) and have no steps in common: their totals are of different amounts of work, \
                 so that the rows are in order of the change of the median",
                grouped(a),
                grouped(b)
            ));
            diff.differ_in_length = true;
            sort_by(diff, |row| row.each_percent().map_or(-1.0, f64::abs));
        }
        None => {}
    }
}

fn sort_by(diff: &mut Diff, key: impl Fn(&DiffRow) -> f64) {
    diff.rows.sort_by(|x, y| key(y).total_cmp(&key(x)).then_with(|| x.name().cmp(y.name())));
}

/// Mean time of each group in a step, ns.
fn step_times((profile, triage): (&Profile, Option<&Triage>), steps: usize, by: GroupBy) -> FxHashMap<String, f64> {
    let paths = by.needs_paths().then(|| Paths::from_profile(profile));
    let grouping = Grouping::from_window(profile, by, paths.as_ref(), triage.map(|t| t.window));
    grouping.rows.into_iter().map(|r| (r.name, r.stats.total as f64 / steps.max(1) as f64)).collect()
}

/// Returns true if most kernels were launched clearly more often in one of the runs.
fn have_other_lengths(diff: &Diff) -> bool {
    let ratio = |row: &DiffRow| {
        let (a, b) = (row.before.as_ref()?.count, row.after.as_ref()?.count);
        (row.fate == Fate::Both && a > 0 && b > 0).then(|| b as f64 / a as f64)
    };
    let mut ratios: Vec<f64> = diff.rows.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    median >= LONGER || median <= 1.0 / LONGER
}
