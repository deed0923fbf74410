//! Outcome of a hint: the gain predicted by the first hint on a kernel in one run, and the kernel's actual time in
//! another.

use super::hints::diagnosed_kernel::diagnose_all;
use super::hints::{Diagnosis, Gain, Hint, Severity};
use crate::model::metrics::IN_PLACE;
use crate::model::{Profile, ResultKind};
use std::collections::HashMap;

/// Gain predicted by the first hint on a kernel whose counters were collected.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    pub id: Diagnosis,
    pub gain: Gain,
    /// Size of the fault: the first value of the hint's evidence; `None` if it is not known.
    pub size: Option<f64>,
    /// True if the later report finds the same fault in the kernel, and it is as large.
    pub remains: bool,
}

/// Maximum relative difference of the sizes of a fault in two reports for it to be the same.
const SAME: f64 = 0.05;

/// Comparison of a prediction with the time actually saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The prediction came true; if the hint gave only a bound, the gain is within it.
    Kept,
    /// Less than predicted.
    Less,
    /// More than predicted, within the bound.
    More,
    /// More than the bound: the hint was wrong, or the change went beyond its advice.
    Beyond,
    /// Time was saved, but not by what the hint names, which is as it was.
    Elsewhere,
}

impl Outcome {
    /// Stable identifier for scripts.
    pub fn id(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Less => "less",
            Self::More => "more",
            Self::Beyond => "beyond",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Tolerance for a predicted gain, as a share of the kernel's time: clocks and replay passes vary by as much.
const SLACK: f64 = 0.02;

impl Promise {
    /// Prediction of a hint.
    pub fn from_hint(hint: &Hint) -> Self {
        Self { id: hint.id, gain: hint.details.gain.clone(), size: fault_size(hint), remains: false }
    }

    /// Compares the fault with those that a later report finds in the kernel.
    #[must_use]
    pub fn compare_with(mut self, later: &[(Diagnosis, Option<f64>)]) -> Self {
        let same = |now: f64, was: f64| (now - was).abs() <= SAME * was.abs();
        self.remains = later.iter().any(|(id, size)| *id == self.id && size.zip(self.size).is_some_and(|(now, was)| same(now, was)));
        self
    }

    /// Classifies the outcome, given the share of the kernel's time that was saved.
    pub fn classify_outcome(&self, got: f64) -> Outcome {
        let (least, most) = self.gain.expected.unwrap_or((0.0, self.gain.at_most));
        if self.remains && got > SLACK {
            Outcome::Elsewhere
        } else if got > self.gain.at_most + SLACK {
            Outcome::Beyond
        } else if got > most + SLACK {
            Outcome::More
        } else if got < least - SLACK {
            Outcome::Less
        } else {
            Outcome::Kept
        }
    }

    /// Formats the prediction and its outcome: `uncoalesced-global predicted 40–59%, measured 57%`.
    pub fn describe_outcome(&self, got: f64) -> String {
        let end = match self.classify_outcome(got) {
            _ if got < 0.0 => format!("but it takes {:.0}% longer", -got * 100.0),
            Outcome::Beyond => format!("measured {:.0}%: more than it called possible", got * 100.0),
            Outcome::Elsewhere => format!("measured {:.0}%, by another change: what it names is as it was", got * 100.0),
            _ => format!("measured {:.0}%", got * 100.0),
        };
        format!("{} predicted {}, {end}", self.id.id(), self.gain.to_text())
    }
}

fn fault_size(hint: &Hint) -> Option<f64> {
    hint.evidence.first().map(|e| e.value)
}

/// Returns the faults that hints name, with their sizes.
pub fn faults_of(hints: &[Hint]) -> Vec<(Diagnosis, Option<f64>)> {
    hints.iter().filter(|h| h.severity > Severity::Low).map(|h| (h.id, fault_size(h))).collect()
}

/// Adds to predictions if a later report makes nearly the same ones.
pub fn add_remaining<'a>(promises: impl Iterator<Item = (&'a str, &'a mut Promise)>, after: &Profile) {
    let after = after.measured.as_deref().unwrap_or(after);
    let Some(metrics) = &after.metrics else { return };
    let mut found: HashMap<String, Vec<(Diagnosis, Option<f64>)>> = HashMap::new();
    for subject in diagnose_all(after) {
        if subject.result.and_then(|r| metrics.results.get(r)).is_none_or(|r| r.kind != ResultKind::Kernel) {
            continue;
        }
        let hints = faults_of(&subject.hints);
        for name in [Some(subject.kernel.function()), subject.kernel.demangled.as_deref()].into_iter().flatten() {
            found.entry(name.to_owned()).or_default().extend(hints.iter().copied());
        }
    }
    for (name, promise) in promises {
        *promise = promise.clone().compare_with(found.get(name).map_or(&[], Vec::as_slice));
    }
}

/// Returns predictions by kernel name, in every form of the name, each from the kernel's longest result. Kernels that
/// are healthy or have too little data have none.
pub fn predicted_gains(profile: &Profile) -> HashMap<String, Promise> {
    let profile = profile.measured.as_deref().unwrap_or(profile);
    let Some(metrics) = &profile.metrics else { return HashMap::new() };
    let mut out: HashMap<String, (f64, Promise)> = HashMap::new();
    for subject in diagnose_all(profile) {
        let Some(result) = subject.result.and_then(|r| metrics.results.get(r)).filter(|r| r.kind == ResultKind::Kernel) else { continue };
        let Some(hint) = subject.hints.first().filter(|h| h.severity != Severity::Healthy) else { continue };
        let ns = metrics.duration(result).map_or(0.0, |d| d.0 as f64);
        let names = [Some(subject.kernel.function()), subject.kernel.demangled.as_deref(), subject.kernel.mangled.as_deref()];
        for name in names.into_iter().flatten() {
            if out.get(name).is_none_or(|known| known.0 < ns) {
                out.insert(name.to_owned(), (ns, Promise::from_hint(hint)));
            }
        }
    }
    out.into_iter().map(|(name, (_, promise))| (name, promise)).collect()
}

/// Measurement of a kernel in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Function name.
    pub kernel: String,
    /// Measurement method: under ncu with locked clocks, under ncu with free clocks, or in the run itself. Times from
    /// different methods are not comparable.
    pub way: &'static str,
    /// Mean time per launch, ns.
    pub ns: f64,
    /// Number of measured launches.
    pub launches: u64,
    pub promise: Option<Promise>,
}

/// Returns the kernels with counters in a report, longest time first.
pub fn measured_kernels(profile: &Profile) -> Vec<Kept> {
    let promises = predicted_gains(profile);
    let profile = profile.measured.as_deref().unwrap_or(profile);
    let Some(metrics) = &profile.metrics else { return Vec::new() };
    let mut out: HashMap<(&str, &'static str), (f64, u64)> = HashMap::new();
    for result in metrics.results.iter().filter(|r| r.kind == ResultKind::Kernel) {
        let Some(ns) = metrics.duration(result).map(|d| d.0 as f64).filter(|ns| *ns > 0.0) else { continue };
        let way = match result.clocks_locked {
            _ if metrics.source.tool == IN_PLACE => "in place",
            Some(true) => "ncu, clocks locked",
            _ => "ncu",
        };
        let sum = out.entry((result.kernel.function(), way)).or_default();
        (sum.0, sum.1) = (sum.0 + ns, sum.1 + 1);
    }
    let one = |((kernel, way), (ns, n)): ((&str, &'static str), (f64, u64))| Kept {
        kernel: kernel.to_owned(),
        way,
        ns: ns / n as f64,
        launches: n,
        promise: promises.get(kernel).cloned(),
    };
    let mut all: Vec<Kept> = out.into_iter().map(one).collect();
    all.sort_by(|a, b| (b.ns * b.launches as f64).total_cmp(&(a.ns * a.launches as f64)).then_with(|| a.kernel.cmp(&b.kernel)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_promise() {
        let gain = Gain { at_most: 0.7, expected: Some((0.4, 0.59)), ..Gain::default() };
        let promise = Promise { id: Diagnosis::Uncoalesced, gain, size: None, remains: false };
        let outcome = [0.57, 0.2, 0.65, 0.8, -0.1].map(|got| promise.classify_outcome(got));
        assert_eq!(outcome, [Outcome::Kept, Outcome::Less, Outcome::More, Outcome::Beyond, Outcome::Less]);
        assert_eq!(promise.describe_outcome(0.57), "uncoalesced-global predicted 40–59%, measured 57%");
        assert_eq!(promise.describe_outcome(-0.1), "uncoalesced-global predicted 40–59%, but it takes 10% longer");
        // Another change made it faster.
        let promise = Promise { remains: true, ..promise };
        assert_eq!(promise.classify_outcome(0.57), Outcome::Elsewhere);
        assert_eq!(promise.classify_outcome(0.0), Outcome::Less);
    }
}
