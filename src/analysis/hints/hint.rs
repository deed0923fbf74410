//! A hint: a diagnosis with the kernel's own numbers, the time that it costs and the basis of this estimate, remedies,
//! and data that would confirm the diagnosis.

use super::diagnosis::Diagnosis;
use super::speedup_model::{DemandReduction, Gain, whole_percent};
pub use crate::analysis::certainty::{Severity, Sure, WORTH};

/// Share of a kernel's time below which a cause is not reported.
pub const LEAST: f64 = 0.04;

/// Bound for a value, and the source of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Comparison: `≥`, `>`, `≤` or `<`.
    pub op: &'static str,
    /// The bound, in the metric's unit.
    pub value: f64,
    pub source: &'static str,
}

impl Threshold {
    /// Returns true if a value meets the bound. Only thresholds that are met are displayed.
    pub fn is_met(&self, value: f64) -> bool {
        match self.op {
            "≥" => value >= self.value,
            ">" => value > self.value,
            "≤" => value <= self.value,
            _ => value < self.value,
        }
    }
}

/// A number that led to a hint.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Display name.
    pub label: String,
    /// Concept id in `metrics.toml`; empty for a number computed from several concepts.
    pub concept: &'static str,
    /// Metric name in the report; empty for values computed from several metrics or from the launch.
    pub metric: String,
    /// The value in its base unit.
    pub value: f64,
    pub unit: String,
    /// Bound for the value.
    pub threshold: Option<Threshold>,
    /// Section that contains the metric, as an argument of `--section`.
    pub section: Option<&'static str>,
}

impl Evidence {
    /// Creates evidence from a number computed from several metrics or from the launch; drops a threshold that is not
    /// met.
    pub fn from_value(label: &str, value: f64, unit: &str, threshold: Option<Threshold>) -> Option<Self> {
        let threshold = threshold.filter(|t| t.is_met(value));
        value.is_finite().then(|| Self {
            label: label.to_owned(),
            concept: "",
            metric: String::new(),
            value,
            unit: unit.to_owned(),
            threshold,
            section: None,
        })
    }
}

/// Sections to collect, and the question that they answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// Sections, as arguments of `--section`.
    pub sections: Vec<&'static str>,
    /// Set if the CUDA sources are needed, too.
    pub source: bool,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    pub id: Diagnosis,
    pub severity: Severity,
    pub sure: Sure,
    /// One sentence with this kernel's numbers.
    pub headline: String,
    pub evidence: Vec<Evidence>,
    /// Maximum share of the kernel's time that a perfect remedy saves, 0 to 1.
    pub stake: f64,
    /// Basis of the maximum `stake`, in words.
    pub bound: String,
    /// Demand that the change removes.
    pub relief: DemandReduction,
    /// Predicted gain of the change.
    pub gain: Gain,
    /// Recommended changes, best first.
    pub actions: Vec<String>,
    /// Data that would confirm the diagnosis.
    pub confirm: Confirm,
    /// Effects of this diagnosis that would otherwise be separate hints, with headlines.
    pub effects: Vec<(Diagnosis, String)>,
}

impl Hint {
    /// Creates a hint with a maximum gain, a share of the kernel's time.
    pub fn new(id: Diagnosis, stake: f64, headline: impl Into<String>) -> Self {
        let stake = if stake.is_finite() { stake.clamp(0.0, 1.0) } else { 0.0 };
        Self {
            id,
            severity: Severity::from_share(stake),
            sure: Sure::Certain,
            headline: headline.into(),
            evidence: Vec::new(),
            stake,
            bound: String::new(),
            relief: DemandReduction::default(),
            gain: Gain { at_most: stake, ..Gain::default() },
            actions: Vec::new(),
            confirm: Confirm::default(),
            effects: Vec::new(),
        }
    }

    /// Sets the basis of the maximum gain.
    pub fn with_gain_basis(mut self, text: impl Into<String>) -> Self {
        self.bound = text.into();
        self
    }

    /// Sets the demand that the change removes.
    pub fn with_relief(mut self, relief: DemandReduction) -> Self {
        self.relief = relief;
        self
    }

    /// Lowers the confidence to `sure`; never raises it.
    pub fn with_confidence(mut self, sure: Sure) -> Self {
        self.sure = self.sure.max(sure);
        self
    }

    /// Adds evidence; unknown values are left out.
    pub fn with_evidence(mut self, evidence: impl IntoIterator<Item = Option<Evidence>>) -> Self {
        for e in evidence.into_iter().flatten() {
            if e.concept.is_empty() || self.evidence.iter().all(|known| known.concept != e.concept) {
                self.evidence.push(e);
            }
        }
        self
    }

    pub fn with_actions(mut self, actions: &[&str]) -> Self {
        self.actions.extend(actions.iter().map(|a| (*a).to_owned()));
        self
    }

    /// Sets the data that would confirm the diagnosis.
    pub fn with_confirmation(mut self, sections: &[&'static str], source: bool, why: &str) -> Self {
        self.confirm = Confirm { sections: sections.to_vec(), source, why: why.to_owned() };
        self
    }

    /// Formats the predicted gain: `saves 40–59%`, `saves at most 90%`; for a healthy kernel, its
    /// distance from its roof.
    pub fn gain_text(&self) -> String {
        match self.severity {
            Severity::Healthy => format!("{:.0}% from its roof", self.gain_percent()),
            _ => format!("saves {}", self.gain.to_text()),
        }
    }

    /// Short form for a narrow column: `40–59%`, `≤90%`.
    pub fn short_gain_text(&self) -> String {
        match (self.severity, self.gain.expected) {
            (Severity::Healthy, _) => format!("{:.0}%", self.gain_percent()),
            (_, None) => format!("≤{:.0}%", whole_percent(self.gain.at_most)),
            _ => self.gain.to_text().replace("about ", ""),
        }
    }

    /// Minimum and maximum gain as shares of the kernel's time, for a bar.
    pub fn gain_range(&self) -> (f64, f64) {
        match self.severity {
            Severity::Healthy => (0.0, self.stake),
            _ => self.gain.expected.unwrap_or((0.0, self.gain.at_most)),
        }
    }

    /// Limit that bounds the gain, in words.
    pub fn limit_text(&self) -> &str {
        if self.gain.left.is_empty() { &self.bound } else { &self.gain.left }
    }

    /// Maximum gain in percent of the kernel's time.
    pub fn gain_percent(&self) -> f64 {
        self.stake * 100.0
    }
}
