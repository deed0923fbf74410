//! Two results side by side, metric by metric.

use super::catalog::{Better, better, catalog};
use super::fuzzy::Fuzzy;
use super::metric::{self, Lookup, is_list};
use crate::model::{Metrics, Value};
use std::sync::Arc;

/// How the second value is, seen from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Better,
    Worse,
    /// Different, and no direction is the better one.
    Different,
    /// As good as the same.
    Same,
    /// Only one of the two has it.
    Alone,
}

/// A metric of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: Arc<str>,
    /// What people call it.
    pub label: String,
    /// The first value with its unit; empty when it is not there.
    pub first: String,
    pub second: String,
    /// Second over first, minus one, in percent; for percentages the difference in points.
    pub delta: Option<f64>,
    /// Whether `delta` is in points.
    pub points: bool,
    /// How the second is.
    pub change: Change,
}

/// Differences below this are noise of the measurement: one percent, or a tenth of a point.
const SAME_PERCENT: f64 = 1.0;
const SAME_POINTS: f64 = 0.1;

/// All metrics of both, those with a known direction first, by the size of the change.
#[must_use]
pub fn rows(a: &Metrics, at_a: usize, b: &Metrics, at_b: usize, filter: &str) -> Vec<Row> {
    let (Some(first), Some(second)) = (a.results.get(at_a), b.results.get(at_b)) else { return Vec::new() };
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
    let mut out: Vec<(u8, f64, Row)> = Vec::new();
    for name in names {
        let label = metric::title(&name);
        if let Some(f) = &fuzzy
            && f.positions(&label).is_none()
            && f.positions(&name).is_none()
        {
            continue;
        }
        let row = row(&first, &second, name, label);
        let size = row.delta.map_or(0.0, f64::abs);
        let rank = match row.change {
            Change::Better | Change::Worse if catalog().of_metric(&row.name).is_some() => 0,
            Change::Better | Change::Worse => 1,
            Change::Different if catalog().of_metric(&row.name).is_some() => 2,
            Change::Different => 3,
            Change::Same => 4,
            Change::Alone => 5,
        };
        // How long it took is what one looks at first.
        let rank = if &*row.name == "gpu__time_duration.sum" { 0 } else { rank + 1 };
        out.push((rank, -size, row));
    }
    out.sort_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)).then_with(|| x.2.name.cmp(&y.2.name)));
    out.into_iter().map(|(_, _, row)| row).collect()
}

/// Two texts, or two numbers of which one can say nothing.
fn same(x: Option<&Value>, y: Option<&Value>) -> bool {
    let nan = |v: Option<&Value>| v.and_then(Value::number).is_some_and(f64::is_nan);
    x == y || nan(x) && nan(y)
}

/// Which direction is better between two results. How busy a unit is says where the limit is, not how good a kernel is: the kernel that does
/// the same with less traffic is the better one. Counts of samples grow with the kernel's duration.
fn direction(name: &str) -> Option<Better> {
    let busy = name.contains(".pct_of_peak_sustained") && !name.contains("warps_active");
    if busy || name.starts_with("smsp__pcsamp_") { None } else { better(name) }
}

fn row(first: &Lookup<'_>, second: &Lookup<'_>, name: Arc<str>, label: String) -> Row {
    let (x, y) = (first.value(&name), second.value(&name));
    let unit = if x.is_some() { first.unit(&name) } else { second.unit(&name) };
    let shown_unit = metric::unit_of(&name, unit);
    let shown = |v: Option<&Value>| {
        v.map_or_else(String::new, |v| {
            let (number, unit) = metric::human(v, shown_unit);
            format!("{number} {unit}").trim_end().to_owned()
        })
    };
    let points = unit == "%";
    let numbers = x.and_then(Value::number).zip(y.and_then(Value::number)).filter(|(a, b)| a.is_finite() && b.is_finite());
    let delta = numbers.and_then(|(a, b)| {
        if points {
            Some(b - a)
        } else if a != 0.0 {
            Some((b / a - 1.0) * 100.0)
        } else {
            None
        }
    });
    let change = match (x, y) {
        (Some(_), Some(_)) => {
            let least = if points { SAME_POINTS } else { SAME_PERCENT };
            let grows = match (delta, numbers) {
                // A twentieth of a cycle between two instructions is nothing, however large its share.
                (_, Some((a, b))) if shown_unit == "cycle" && name.contains("issue_stalled_") && (b - a).abs() < 0.05 => None,
                (Some(d), _) if d.abs() < least => None,
                (Some(d), _) => Some(d > 0.0),
                (None, Some((a, b))) if (b - a).abs() < f64::EPSILON => None,
                // From nothing to something.
                (None, Some((a, b))) => Some(b > a),
                (None, None) if same(x, y) => None,
                (None, None) => Some(true),
            };
            match (grows, direction(&name)) {
                (None, _) => Change::Same,
                _ if numbers.is_none() => Change::Different,
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
    Row { first: shown(x), second: shown(y), name, label, delta, points, change }
}
