//! Two results side by side, metric by metric.

use super::catalog::{Better, better_direction, builtin_catalog};
use super::fuzzy::{Fuzzy, name_similarity};
use super::mann_whitney::separation_p_value;
use super::metric::{self, Lookup, Shown, is_list};
use crate::model::{Metrics, ResultMetrics, Value};
use std::sync::Arc;

/// Assessment of the change from the first value to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Better,
    Worse,
    /// Different, but neither direction is better, or there are too few launches to rule out chance.
    Different,
    /// Within measurement noise.
    Same,
    /// Only one of the two results contains the metric.
    Alone,
}

/// A metric that occurs in either result.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMetric {
    pub name: Arc<str>,
    pub label: String,
    /// First value with its unit; empty if missing.
    pub first: String,
    pub second: String,
    /// Second value over first, minus one, in percent; for percentages, the difference in points.
    pub delta: Option<f64>,
    /// True if `delta` is in percentage points.
    pub points: bool,
    pub change: Change,
    /// Probability that repeated launches differ this much by chance; `None` if there are too few of them.
    pub p: Option<f64>,
}

/// Differences below these are measurement noise: one percent, or a tenth of a point.
const SAME_PERCENT: f64 = 1.0;
const SAME_POINTS: f64 = 0.1;

/// Significance level: a difference with a larger p-value may be due to chance. Among 200 unchanged metrics, two are
/// expected to have a smaller one by accident.
const CHANCE: f64 = 0.01;
/// Maximum number of repeated results to read per side.
const MOST_LIKE: usize = 64;
/// Minimum name similarity at which a kernel may be a rewrite of the other.
const ALIKE: f64 = 0.5;

/// Identity of a kernel that survives a rebuild; symbols may contain a hash.
fn kernel_identity(result: &ResultMetrics) -> (&str, Option<[u32; 3]>, Option<[u32; 3]>) {
    (result.kernel.function(), result.grid, result.block)
}

/// Returns all results in a report with the same kernel, grid and block as the given one, including itself. Their
/// differences are taken to be noise.
pub fn repeated_results(metrics: &Metrics, at: usize) -> Vec<usize> {
    let Some(own) = metrics.results.get(at) else { return Vec::new() };
    let same = |r: &ResultMetrics| kernel_identity(r) == kernel_identity(own) && !r.failed;
    let mut out: Vec<usize> = metrics.results.iter().enumerate().filter(|(i, r)| *i != at && same(r)).map(|(i, _)| i).collect();
    out.truncate(MOST_LIKE - 1);
    out.push(at);
    out
}

/// Returns the results to compare on each side: all repetitions, or only the two given results if both belong to the
/// same group of launches, which cannot be tested against itself.
pub fn comparable_results(a: &Metrics, at_a: usize, b: &Metrics, at_b: usize) -> (Vec<usize>, Vec<usize>) {
    let (like_a, like_b) = (repeated_results(a, at_a), repeated_results(b, at_b));
    if std::ptr::eq(a, b) && like_a.contains(&at_b) { (vec![at_a], vec![at_b]) } else { (like_a, like_b) }
}

/// Distance between two results for sorting candidates to compare; smaller is closer. The same kernel comes first,
/// preferably with the same grid and block, then from a different report, to compare before with after. Kernels with
/// similar names follow, then all others, those in the same report first.
pub fn result_distance(own: &ResultMetrics, other: &ResultMetrics, same_report: bool) -> u32 {
    let (a, b) = (own.kernel.function(), other.kernel.function());
    if a == b {
        return u32::from(kernel_identity(own) != kernel_identity(other)) * 2 + u32::from(same_report);
    }
    let alike = name_similarity(a, b);
    if alike >= ALIKE { 10 + ((1.0 - alike) * 100.0) as u32 } else { 1_000 + u32::from(!same_report) }
}

/// Returns all metrics of both results: metrics with a known direction first, then by size of the change.
pub fn compare_metrics(a: &Metrics, at_a: usize, b: &Metrics, at_b: usize, filter: &str) -> Vec<ComparedMetric> {
    let (Some(first), Some(second)) = (a.results.get(at_a), b.results.get(at_b)) else { return Vec::new() };
    let (of_a, of_b) = comparable_results(a, at_a, b, at_b);
    let (like_a, like_b) = (sample_lookups(a, at_a, &of_a), sample_lookups(b, at_b, &of_b));
    let (first, second) = (Lookup::new(a, first), Lookup::new(b, second));
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for lookup in [&first, &second] {
        for (n, _) in &lookup.result.values {
            if let Some(name) = lookup.metrics.names.get(*n as usize)
                && !is_list(name)
                && !name.starts_with("device__attribute")
                && !name.starts_with("derived_tempMetric")
                && seen.insert(name.clone())
            {
                names.push(name.clone());
            }
        }
    }
    let fuzzy = (!filter.trim().is_empty()).then(|| Fuzzy::new(filter));
    // A stall that grows fiftyfold from a hundredth of a cycle matters less than a stall of twenty cycles that shrinks
    // by half, so stalls are ordered by cycles, as a percentage of the longest.
    let cycles = |name: &str| -> Option<[f64; 2]> {
        let unit = if first.value(name).is_some() { first.unit(name) } else { second.unit(name) };
        let stall = name.contains("issue_stalled_") && metric::unit_of(name, unit) == "cycle";
        let of = |lookup: &Lookup<'_>| lookup.value(name).and_then(Value::as_number).filter(|v| v.is_finite()).unwrap_or(0.0);
        stall.then(|| [of(&first), of(&second)])
    };
    let longest = names.iter().filter_map(|n| cycles(n)).flatten().fold(0.0, f64::max);
    let mut out: Vec<(u8, f64, ComparedMetric)> = Vec::new();
    for name in names {
        let label = metric::display_title(&name);
        if let Some(f) = &fuzzy
            && f.match_positions(&label).is_none()
            && f.match_positions(&name).is_none()
        {
            continue;
        }
        let row = build_row((&first, &like_a), (&second, &like_b), name, label);
        let size = match cycles(&row.name) {
            Some([a, b]) if longest > 0.0 => (b - a).abs() / longest * 100.0,
            _ => row.delta.map_or(0.0, f64::abs),
        };
        let rank = match row.change {
            Change::Better | Change::Worse if builtin_catalog().of_metric(&row.name).is_some() => 0,
            Change::Better | Change::Worse => 1,
            // Sample counts are small, and a higher count only means that the kernel took longer.
            Change::Different if row.name.starts_with("smsp__pcsamp_") => 3,
            Change::Different if builtin_catalog().of_metric(&row.name).is_some() => {
                if comparison_direction(&row.name).is_some() {
                    1
                } else {
                    2
                }
            }
            Change::Different => 3,
            Change::Same => 4,
            Change::Alone => 5,
        };
        // The duration comes first.
        let rank = if &*row.name == "gpu__time_duration.sum" { 0 } else { rank + 1 };
        out.push((rank, -size, row));
    }
    out.sort_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)).then_with(|| x.2.name.cmp(&y.2.name)));
    out.into_iter().map(|(_, _, row)| row).collect()
}

/// Lookups for the results in the sample, except the one at `at`.
fn sample_lookups<'a>(metrics: &'a Metrics, at: usize, sample: &[usize]) -> Vec<Lookup<'a>> {
    sample.iter().filter(|i| **i != at).filter_map(|i| Some(Lookup::new(metrics, metrics.results.get(*i)?))).collect()
}

/// Returns true for equal values and for two NaNs.
fn are_equal(x: Option<&Value>, y: Option<&Value>) -> bool {
    let nan = |v: Option<&Value>| v.and_then(Value::as_number).is_some_and(f64::is_nan);
    x == y || nan(x) && nan(y)
}

/// Direction in which a metric improves between two results; `None` for utilization and sample counts. Utilization
/// shows which unit is the limit, not how good a kernel is: one that does the same work with less traffic is better.
/// Sample counts grow with the duration.
fn comparison_direction(name: &str) -> Option<Better> {
    let busy = name.contains(".pct_of_peak_sustained") && !name.contains("warps_active");
    if busy || name.starts_with("smsp__pcsamp_") { None } else { better_direction(name) }
}

/// A result and its repetitions.
type Side<'a> = (&'a Lookup<'a>, &'a [Lookup<'a>]);

fn build_row((first, like_a): Side<'_>, (second, like_b): Side<'_>, name: Arc<str>, label: String) -> ComparedMetric {
    let (x, y) = (first.value(&name), second.value(&name));
    let unit = if x.is_some() { first.unit(&name) } else { second.unit(&name) };
    let shown_unit = metric::unit_of(&name, unit);
    let whole = |(number, unit): Shown| format!("{number} {unit}").trim_end().to_owned();
    let alone = |v: Option<&Value>| v.map_or_else(String::new, |v| whole(metric::format_value(v, shown_unit)));
    let points = unit == "%";
    let numbers = x.and_then(Value::as_number).zip(y.and_then(Value::as_number)).filter(|(a, b)| a.is_finite() && b.is_finite());
    let delta = numbers.and_then(|(a, b)| {
        if points {
            Some(b - a)
        } else if a != 0.0 {
            Some((b / a - 1.0) * 100.0)
        } else {
            None
        }
    });
    let values = |own: Option<&Value>, like: &[Lookup<'_>]| -> Vec<f64> {
        let like = like.iter().map(|l| l.value(&name));
        std::iter::once(own).chain(like).filter_map(|v| v.and_then(Value::as_number)).filter(|v| v.is_finite()).collect()
    };
    let chance = numbers.and_then(|_| separation_p_value(&values(x, like_a), &values(y, like_b)));
    let change = match (x, y) {
        (Some(_), Some(_)) => {
            let least = if points { SAME_POINTS } else { SAME_PERCENT };
            let grows = match (delta, numbers) {
                // A twentieth of a cycle between two instructions is negligible, however large in relative terms.
                (_, Some((a, b))) if shown_unit == "cycle" && name.contains("issue_stalled_") && (b - a).abs() < 0.05 => None,
                (Some(d), _) if d.abs() < least => None,
                (Some(d), _) => Some(d > 0.0),
                (None, Some((a, b))) if (b - a).abs() < f64::EPSILON => None,
                // From zero to nonzero.
                (None, Some((a, b))) => Some(b > a),
                (None, None) if are_equal(x, y) => None,
                (None, None) => Some(true),
            };
            match (grows, comparison_direction(&name)) {
                (None, _) => Change::Same,
                _ if numbers.is_none() || chance.is_none_or(|c| c >= CHANCE) => Change::Different,
                (Some(grows), Some(direction)) => {
                    if grows == (direction == Better::High) {
                        Change::Better
                    } else {
                        Change::Worse
                    }
                }
                (Some(_), None) => Change::Different,
            }
        }
        _ => Change::Alone,
    };
    let [first, second] = match numbers {
        Some((a, b)) => metric::human_pair(a, b, shown_unit).map(whole),
        None => [alone(x), alone(y)],
    };
    ComparedMetric { first, second, name, label, delta, points, change, p: chance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kernel;

    /// A report with results of one kernel, with the given durations and registers.
    fn report(durations: &[f64], registers: f64) -> Metrics {
        let names = ["gpu__time_duration.sum", "launch__registers_per_thread", "smsp__inst_executed.sum"].map(Arc::from).to_vec();
        let result = |d: &f64| ResultMetrics {
            grid: Some([8, 1, 1]),
            block: Some([128, 1, 1]),
            device: Some(0),
            compute_capability: Some((9, 0)),
            clocks_locked: Some(true),
            ..ResultMetrics::from_values(vec![(0, Value::Float(*d)), (1, Value::Float(registers)), (2, Value::Float(registers * 1e6))])
        };
        let units = ["ns", "register/thread", "inst"].map(Arc::from).to_vec();
        Metrics { names, units, results: durations.iter().map(result).collect(), ..Metrics::default() }
    }

    fn change(a: &Metrics, b: &Metrics, name: &str) -> (Change, Option<f64>) {
        let all = compare_metrics(a, 0, b, 0, "");
        let row = all.iter().find(|r| &*r.name == name).unwrap();
        (row.change, row.p)
    }

    #[test]
    fn better_is_said_only_of_what_was_tested() {
        let slow = report(&[100.0, 102.0, 101.0, 99.0, 103.0], 40.0);
        let fast = report(&[80.0, 82.0, 79.0, 81.0, 83.0], 32.0);
        let name = "gpu__time_duration.sum";
        let (verdict, p) = change(&slow, &fast, name);
        assert_eq!(verdict, Change::Better);
        assert!((p.unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(change(&fast, &slow, name).0, Change::Worse);
        // One launch each: the variation is unknown.
        assert_eq!(change(&report(&[100.0], 40.0), &report(&[80.0], 32.0), name), (Change::Different, None));
        // Overlapping samples may differ by chance.
        let overlapping = report(&[80.0, 82.0, 79.0, 81.0, 100.5], 32.0);
        assert_eq!(change(&slow, &overlapping, name).0, Change::Different);
        // A counter that does not vary between launches needs fewer launches to be compared.
        let (a, b) = (report(&[100.0, 102.0], 40.0), report(&[80.0, 82.0], 32.0));
        assert_eq!(change(&a, &b, "smsp__inst_executed.sum"), (Change::Better, Some(0.0)));
        assert_eq!(change(&a, &b, name).0, Change::Different);
    }

    #[test]
    fn stalls_are_ordered_by_cycles() {
        let stall = |reason: &str| Arc::from(format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"));
        let of = |cycles: [f64; 3]| {
            let values = (0..).zip(cycles).map(|(i, c)| (i, Value::Float(c))).collect();
            Metrics {
                names: vec![stall("membar"), stall("long_scoreboard"), stall("barrier")],
                units: vec![Arc::from(""); 3],
                results: vec![ResultMetrics::from_values(values)],
                ..Metrics::default()
            }
        };
        // 90 times a negligible value, 16 cycles less, and 2 cycles more.
        let rows = compare_metrics(&of([0.01, 20.0, 1.0]), 0, &of([0.91, 4.0, 3.0]), 0, "");
        let names: Vec<&str> = rows.iter().map(|r| &*r.name).collect();
        assert!(names[0].contains("long_scoreboard") && names[1].contains("barrier") && names[2].contains("membar"), "{names:?}");
    }

    #[test]
    fn a_group_of_launches_is_not_tested_against_itself() {
        let one = report(&[100.0, 102.0, 101.0, 99.0, 80.0], 40.0);
        let all = compare_metrics(&one, 0, &one, 4, "");
        assert!(all.iter().all(|r| r.p.is_none()));
        assert_eq!(comparable_results(&one, 0, &one, 4), (vec![0], vec![4]));
    }

    #[test]
    fn the_same_kernel_of_another_report_is_nearest() {
        let named = |name: &str, grid: u32| {
            let mut r = report(&[1.0], 1.0).results.remove(0);
            r.kernel = Kernel { function: Some(Arc::from(name)), ..Kernel::default() };
            r.grid = Some([grid, 1, 1]);
            r
        };
        let own = named("matmul_naive", 8);
        let near = |name, grid, same| result_distance(&own, &named(name, grid), same);
        let order = [
            near("matmul_naive", 8, false),
            near("matmul_naive", 8, true),
            near("matmul_naive", 9, false),
            near("matmul_naive", 9, true),
            near("matmul_tiled", 8, true),
            near("copy", 8, true),
            near("copy", 8, false),
        ];
        assert!(order.is_sorted() && order.windows(2).all(|w| w[0] != w[1]), "{order:?}");
    }
}
