//! The first hint on each result, for tables.

use super::amd::{self, Amd};
use super::diagnosed_kernel::of_amd;
use super::hint::Evidence;
use super::{Diagnosis, Facts, Hint, Severity, diagnose};
use crate::model::Metrics;
use std::collections::HashMap;
use std::sync::Arc;

/// First hint on a result.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstHint {
    pub id: Diagnosis,
    pub severity: Severity,
    /// One sentence that cites this kernel's numbers.
    pub headline: String,
    /// Minimum and maximum gain from the recommended change, as shares of the kernel's time; `None` if the kernel is
    /// healthy.
    pub gain: Option<(f64, f64)>,
    pub advice: Arc<Advice>,
}

/// Remedies and values of a hint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    pub actions: Vec<String>,
    pub evidence: Vec<Evidence>,
}

impl From<&Hint> for FirstHint {
    fn from(hint: &Hint) -> Self {
        Self {
            id: hint.id,
            severity: hint.severity,
            gain: (hint.severity > Severity::Healthy).then(|| hint.gain_range()),
            headline: hint.headline.clone(),
            advice: Arc::new(Advice { actions: hint.actions.clone(), evidence: hint.evidence.clone() }),
        }
    }
}

/// A measured kernel whose diagnosis promises more than the first finding about the run.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelLead {
    /// Readable name.
    pub kernel: String,
    pub hint: FirstHint,
    /// Upper bound of what the change saves, as a share of the judged time.
    pub gain: f64,
}

/// Returns the first hint on each of the given results, if it has one.
pub fn of_results(metrics: &Metrics, results: impl Iterator<Item = usize>) -> HashMap<usize, FirstHint> {
    let amd = of_amd(metrics);
    let of = |r| {
        if amd {
            Amd::of_result(metrics, r).map(|a| amd::diagnose(&a)).unwrap_or_default()
        } else {
            diagnose(&Facts::of_result(metrics, r))
        }
    };
    let first = |r| of(r).into_iter().next();
    results.filter_map(|r| Some((r, first(r)?))).map(|(r, h)| (r, FirstHint::from(&h))).collect()
}
