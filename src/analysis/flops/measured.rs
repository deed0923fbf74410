//! Floating-point work of a run, based on ncu results for some of its launches.

use super::{Counted, Rate, peak_of_all};
use crate::analysis::roofline::{self, Amount};
use crate::model::{Metrics, Profile};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A launch, and a result for this launch or a similar one.
pub type Joined = (u32, Arc<Metrics>, usize);

/// Counted floating-point operations of a result, a lower bound.
fn of_result(metrics: &Metrics, result: usize) -> Option<f64> {
    let result = metrics.results.get(result)?;
    let seconds = metrics.duration(result)?.as_seconds();
    let work = &roofline::place_result(metrics, result).work;
    let floating = work.iter().filter(|w| !w.name.starts_with("INT") && w.amount == Amount::Counted);
    let counted: Vec<f64> = floating.filter_map(|w| w.achieved).filter(|a| a.is_finite()).collect();
    let flops = counted.iter().sum::<f64>() * seconds;
    // A count of zero proves nothing if there is also work for which only an upper bound is known.
    let unknown = flops == 0.0 && work.iter().any(|w| w.amount == Amount::AtMost);
    (!counted.is_empty() && flops.is_finite() && !unknown).then_some(flops)
}

/// Floating-point rate of the devices over a time range, from joined results: a result represents all launches of its
/// kernel with the same grid and block. `None` if no result counts floating-point work.
pub fn of_results(profile: &Profile, joined: &[Joined], (start, end): (i64, i64)) -> Option<Rate> {
    let launches = &profile.launches;
    let key = |row: usize| (launches.kernel(row), launches.config(row));
    let mut known = FxHashMap::default();
    for (launch, metrics, result) in joined.iter().filter(|j| (j.0 as usize) < launches.len()) {
        if let Some(flops) = of_result(metrics, *result) {
            known.insert(key(*launch as usize), flops);
        }
    }
    let (mut sum, mut counted, mut all) = (0.0, 0_i64, 0_i64);
    for row in (0..launches.len()).filter(|&r| launches.start(r) < end && launches.end(r) > start) {
        let ns = launches.duration(row);
        all = all.saturating_add(ns);
        if let Some(flops) = known.get(&key(row)) {
            sum += flops;
            counted = counted.saturating_add(ns);
        }
    }
    let seconds = (end - start) as f64 / 1e9;
    (sum > 0.0 && seconds > 0.0).then(|| Rate {
        per_second: sum / seconds,
        peak: peak_of_all(profile),
        counted: Counted::Results(counted as f64 / all.max(1) as f64),
    })
}
