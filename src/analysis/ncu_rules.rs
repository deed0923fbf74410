//! Largest speedups estimated by the profiler's own rules, for comparison with our hints.

use crate::model::Details;
use crate::model::sections::Scope;

/// Minimum estimate worth showing, percent.
const LEAST: f64 = 5.0;

/// Returns rule, message, scope and estimate in percent; estimates for the whole kernel first, then by size.
pub fn largest_speedups(details: &Details) -> Vec<(usize, usize, Scope, f64)> {
    let mut all: Vec<(usize, usize, Scope, f64)> = Vec::new();
    for (r, rule) in details.rules.iter().enumerate() {
        all.extend(rule.messages.iter().enumerate().filter_map(|(m, message)| {
            let (scope, percent) = message.speedup?;
            (percent.is_finite() && percent >= LEAST).then_some((r, m, scope, percent))
        }));
    }
    let part = |s: Scope| u8::from(s != Scope::Global);
    all.sort_by(|a, b| part(a.2).cmp(&part(b.2)).then(b.3.total_cmp(&a.3)));
    all
}
