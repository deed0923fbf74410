//! Kernels of a running program, measured live.

use super::hints::{Facts, FirstHint, first};
use crate::model::metrics::MEASURED_LAUNCHES;
use crate::model::{Metrics, Profile, Value};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredNow {
    /// Function name.
    pub name: Arc<str>,
    /// Index of the representative result: that of the longest-running launch configuration.
    pub result: usize,
    /// Number of launch configurations measured.
    pub configurations: usize,
    /// Number of launches whose counters make up that result; if a kernel is measured repeatedly, only the latest
    /// launches count.
    pub launches: usize,
    /// Throughput, percent of peak.
    pub compute: Option<f64>,
    pub memory: Option<f64>,
    pub first: Option<FirstHint>,
}

/// All measured kernels.
#[derive(Clone, Debug)]
pub struct Results {
    pub metrics: Arc<Metrics>,
    pub kernels: Vec<MeasuredNow>,
}

impl PartialEq for Results {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.metrics, &other.metrics) && self.kernels == other.kernels
    }
}

impl Results {
    /// Collects the measured kernels in a report; `None` if there are no results.
    pub fn from_profile(profile: &Profile) -> Option<Self> {
        let metrics = profile.metrics.clone().filter(|m| !m.results.is_empty())?;
        let mut hints = first::of_results(&metrics, 0..metrics.results.len());
        let mut kernels: Vec<MeasuredNow> = Vec::new();
        for (at, result) in metrics.results.iter().enumerate() {
            let length = |at: usize| metrics.results.get(at).and_then(|r| metrics.duration(r)).map_or(0, |d| d.0);
            let known = kernels.iter_mut().find(|k| *k.name == *result.kernel.function());
            match known {
                Some(kernel) => {
                    let alike = |other: &&crate::model::ResultMetrics| {
                        (&other.kernel, other.grid, other.block) == (&result.kernel, result.grid, result.block)
                    };
                    kernel.configurations += usize::from(metrics.results[..at].iter().find(alike).is_none());
                    if length(at) > length(kernel.result) {
                        kernel.result = at;
                    }
                }
                None => kernels.push(MeasuredNow {
                    name: Arc::from(result.kernel.function()),
                    result: at,
                    configurations: 1,
                    launches: 0,
                    compute: None,
                    memory: None,
                    first: None,
                }),
            }
        }
        for kernel in &mut kernels {
            let facts = Facts::of_result(&metrics, kernel.result);
            (kernel.compute, kernel.memory) = (facts.get("sm_throughput"), facts.get("memory_throughput"));
            kernel.first = hints.remove(&kernel.result);
            let listed = metrics.results.get(kernel.result).and_then(|r| metrics.value(r, MEASURED_LAUNCHES));
            kernel.launches = if let Some(Value::Text(text)) = listed { text.split_whitespace().count() } else { 0 };
        }
        Some(Self { metrics, kernels })
    }

    /// Returns the measurement of a kernel by function name.
    pub fn of_kernel(&self, name: &str) -> Option<&MeasuredNow> {
        self.kernels.iter().find(|k| *k.name == *name)
    }
}
