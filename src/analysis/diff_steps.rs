//! Comparison of runs of different lengths: kernel time per step, or a warning if there are no steps.

use super::diff::{Diff, DiffRow, Fate, StepChange};
use super::triage::{Triage, like_steps};
use super::workload_match::Work;
use super::{GroupBy, Grouping, Paths};
use crate::model::Profile;
use rustc_hash::FxHashMap;

/// Minimum ratio between the launch counts of most kernels for two runs without steps to differ in length.
const LONGER: f64 = 1.1;
/// If a kernel's launch count changes by this factor more or less than the number of steps (without steps: than most
/// launch counts), its launches may do different amounts of work. A design choice: a changed batch or layer count has a
/// larger effect, and a partial step at the edge of a run a smaller one.
const UNEVEN: f64 = 1.25;

/// Compares kernels by their time per step if the runs have different numbers of steps. Without steps, warns that the
/// lengths differ, and sorts the rows by the change in the median instead.
pub fn compare_lengths(diff: &mut Diff, before: (&Profile, Option<&Triage>), after: (&Profile, Option<&Triage>), by: GroupBy) {
    let alike = before.1.zip(after.1).and_then(|(was, is)| like_steps(was, is));
    let steps = |t: Option<&Triage>| t.and_then(Triage::step_stats).is_some_and(|s| s.count > 0);
    if alike.is_none() && steps(before.1) && steps(after.1) && !diff.one_isolated {
        diff.caveats.push("the steps of the two runs are not of the same kind, so that the runs are compared as a whole".to_owned());
    }
    let tools = (&before.0.source.tool, &after.0.source.tool);
    if tools.0 != tools.1 && !diff.one_isolated {
        diff.caveats.push(format!(
            "the reports are of different tools ({}, {}): what one of them does not record, such as the host's work, looks like a change of the idle time",
            tools.0, tools.1
        ));
    }
    if by.is_kernel() && !diff.has_common_kernel() {
        diff.caveats.push("no kernel is in both runs: they may be different programs".to_owned());
    }
    match alike {
        Some((a, b)) if a != b && !diff.one_isolated => {
            let (was, is) = (step_times(before, a, by), step_times(after, b, by));
            for row in &mut diff.rows {
                let of = |times: &FxHashMap<String, (f64, f64)>, side: &Option<super::diff::Side>| {
                    side.as_ref().map_or((0.0, 0.0), |s| times.get(&s.name).copied().unwrap_or_default())
                };
                let (was, is) = (of(&was, &row.before), of(&is, &row.after));
                row.step = Some(StepChange { before: was.0, after: is.0, launches: (was.1, is.1) });
            }
            let total = |times: &FxHashMap<String, (f64, f64)>| times.values().map(|t| t.0).sum::<f64>();
            let (was, mut is) = (total(&was), total(&is));
            // Work that both runs do equally often, however many steps they have, is no work of a step: divided by other
            // numbers of steps, it would look slower or faster.
            let ratio = b as f64 / a as f64;
            let mut kernels = 0;
            for step in diff.rows.iter_mut().filter(|r| is_once_a_run(r, ratio)).filter_map(|r| r.step.as_mut()) {
                is += step.after * (ratio - 1.0);
                (step.after, step.launches.1) = (step.after * ratio, step.launches.1 * ratio);
                kernels += 1;
            }
            if kernels > 0 && by.is_kernel() {
                diff.once_a_run = kernels;
                diff.caveats.push(format!(
                    "{} as often in both runs, however many steps they have: both times are divided by the steps of the first run",
                    if kernels == 1 { "1 kernel is launched".to_owned() } else { format!("{kernels} kernels are launched") }
                ));
            }
            diff.step_totals = Some((was, is));
            diff.steps = Some((a, b));
            let outside = diff.rows.iter().filter(|r| is_outside_once(r)).count();
            if outside > 0 && by.is_kernel() {
                diff.caveats.push(format!(
                    "of {} that both runs have, the launches in one of them lie outside the steps and are not compared",
                    crate::model::units::format_count(outside, "kernel")
                ));
            }
            sort_by(diff, |row| row.shown_change().abs());
        }
        None if !diff.one_isolated && have_other_lengths(diff) => {
            let (a, b) = diff.launches;
            diff.caveats.push(format!(
                "the runs differ in length ({} and {} launches) and have no steps in common: their totals are of different amounts of work, \
                 so that the rows are in order of the change of the median",
                crate::model::units::format_grouped(a),
                crate::model::units::format_grouped(b)
            ));
            diff.differ_in_length = true;
            sort_by(diff, |row| row.each_percent().map_or(-1.0, f64::abs));
        }
        _ => {}
    }
    if by.is_kernel() && !diff.one_isolated {
        mark_uneven(diff, alike);
    }
}

/// Marks kernels whose launch count did not change in proportion to the number of steps or, without steps, to most
/// other launch counts.
fn mark_uneven(diff: &mut Diff, steps: Option<(usize, usize)>) {
    let expected = steps.map_or_else(|| median_ratio(diff), |(a, b)| b as f64 / a as f64);
    for row in diff.rows.iter_mut().filter(|r| r.work != Work::Other) {
        let ratio = count_ratio(row).map_or(1.0, |r| r / expected);
        if ratio >= UNEVEN || ratio <= 1.0 / UNEVEN {
            row.work = Work::Uneven;
        }
    }
}

fn sort_by(diff: &mut Diff, key: impl Fn(&DiffRow) -> f64) {
    diff.rows.sort_by(|x, y| key(y).total_cmp(&key(x)).then_with(|| x.name().cmp(y.name())));
}

/// Returns true for a kernel of both runs that is in the steps of only one of them.
fn is_outside_once(row: &DiffRow) -> bool {
    let launched = row.before.as_ref().zip(row.after.as_ref()).is_some_and(|(a, b)| a.count > 0 && b.count > 0);
    launched && row.step.as_ref().is_some_and(|s| (s.launches.0 > 0.0) != (s.launches.1 > 0.0))
}

/// Returns true for a kernel with as many launches in both runs, although one has clearly more steps. `ratio` is that of
/// the steps.
fn is_once_a_run(row: &DiffRow, ratio: f64) -> bool {
    let alike = row.before.as_ref().zip(row.after.as_ref()).is_some_and(|(a, b)| a.count == b.count && a.count > 0);
    row.fate == Fate::Both && alike && (ratio >= UNEVEN || ratio <= 1.0 / UNEVEN)
}

/// Mean time, ns, and number of launches of each group per step.
fn step_times((profile, triage): (&Profile, Option<&Triage>), steps: usize, by: GroupBy) -> FxHashMap<String, (f64, f64)> {
    let paths = by.needs_paths().then(|| Paths::from_profile(profile));
    let grouping = Grouping::from_window(profile, by, paths.as_ref(), triage.map(|t| t.window));
    let each = |n: f64| n / steps.max(1) as f64;
    grouping.rows.into_iter().map(|r| (r.name, (each(r.stats.total as f64), each(r.stats.count as f64)))).collect()
}

/// Launches in the second run for each one in the first; `None` if the kernel is not in both.
fn count_ratio(row: &DiffRow) -> Option<f64> {
    let (a, b) = (row.before.as_ref()?.count, row.after.as_ref()?.count);
    (row.fate == Fate::Both && a > 0 && b > 0).then(|| b as f64 / a as f64)
}

fn median_ratio(diff: &Diff) -> f64 {
    let mut ratios: Vec<f64> = diff.rows.iter().filter_map(count_ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(1.0)
}

/// Returns true if most kernels were launched clearly more often in one of the runs.
fn have_other_lengths(diff: &Diff) -> bool {
    let median = median_ratio(diff);
    median >= LONGER || median <= 1.0 / LONGER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::diff::Side;

    fn row(name: &str, counts: (u64, u64), each: f64) -> DiffRow {
        let side = |count: u64| {
            let total = i64::try_from(count).unwrap() * 1_000;
            Some(Side { name: name.to_owned(), count, total, avg: 1_000.0, median: Some(1_000.0), collective: false })
        };
        let (before, after) = (side(counts.0), side(counts.1));
        DiffRow {
            fate: Fate::Both,
            before,
            after,
            p: None,
            work: Work::Same,
            each: Some(each),
            promise: None,
            step: None,
            config_changes: Vec::new(),
        }
    }

    #[test]
    fn runs_of_different_length_without_steps_are_in_order_of_the_median() {
        let profile = Profile::new(crate::model::Source::default());
        let compare = |counts: (u64, u64)| {
            let rows = vec![row("long", (counts.0 * 100, counts.1 * 100), 1.0), row("slower", counts, 40.0)];
            let mut diff = Diff { rows, launches: (counts.0 * 101, counts.1 * 101), ..Diff::default() };
            compare_lengths(&mut diff, (&profile, None), (&profile, None), GroupBy::Kernel);
            (diff.rows[0].name().to_owned(), diff.differ_in_length, diff.caveats.len())
        };
        assert_eq!(compare((10, 10)), ("long".to_owned(), false, 0));
        assert_eq!(compare((160, 10)), ("slower".to_owned(), true, 1));
    }

    #[test]
    fn a_kernel_that_is_launched_more_often_than_the_rest_may_do_other_work() {
        let profile = Profile::new(crate::model::Source::default());
        let rows = vec![row("persistent", (75, 255), -40.0), row("a", (80, 160), 0.0), row("b", (40, 80), 1.0), row("c", (9, 20), 1.0)];
        let mut diff = Diff { rows, launches: (204, 515), ..Diff::default() };
        compare_lengths(&mut diff, (&profile, None), (&profile, None), GroupBy::Kernel);
        let uneven: Vec<&str> = diff.rows.iter().filter(|r| r.work == Work::Uneven).map(DiffRow::name).collect();
        assert_eq!(uneven, ["persistent"]);
        assert!(diff.rows.iter().filter(|r| r.work == Work::Uneven).all(|r| r.saved_fraction().is_none()));
    }

    #[test]
    fn a_row_shows_the_change_in_a_step() {
        let mut row = row("k", (96, 6), 0.0);
        assert!(row.shown_change() < -80_000.0);
        row.step = Some(StepChange { before: 1_000.0, after: 1_100.0, launches: (1.0, 1.0) });
        assert_eq!((row.shown_change(), row.step_percent(), row.shown_launches()), (100.0, Some(10.0), (1.0, 1.0)));
    }
    #[test]
    fn prefill_is_no_part_of_a_step_of_decoding() {
        // 84 launches in both runs, of which one has 96 steps and the other 24; and a kernel of the steps.
        assert!(is_once_a_run(&row("prefill", (84, 84), 0.0), 24.0 / 96.0));
        assert!(!is_once_a_run(&row("decode", (96, 24), 0.0), 24.0 / 96.0));
        // With about as many steps, equal counts say nothing.
        assert!(!is_once_a_run(&row("decode", (96, 96), 0.0), 100.0 / 96.0));
    }
}
