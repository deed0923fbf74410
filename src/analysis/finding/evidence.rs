//! Numbers behind findings, and the thresholds that they met.

use std::borrow::Cow;

/// Bound for a value, and the source of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Comparison: `≥`, `>`, `≤` or `<`.
    pub op: &'static str,
    /// The bound, in the value's unit.
    pub value: f64,
    /// Source of the bound; empty if the rule's own documentation gives it.
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

/// A number behind a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub name: String,
    /// The value in its base unit.
    pub value: f64,
    /// `ns`, `byte`, `%`, `byte/s`, `1/s`, or the unit of the metric; empty for a count.
    pub unit: Cow<'static, str>,
    /// Bound that the value met.
    pub threshold: Option<Threshold>,
    /// Concept id in `metrics.toml`; empty if the number is not a single metric.
    pub concept: &'static str,
    /// Metric name in the report; empty if the number is not a single metric.
    pub metric: String,
    /// Section that contains the metric, as an argument to `--section`.
    pub section: Option<&'static str>,
}

impl Evidence {
    /// Creates evidence from a number that is not a single metric of the report; drops a threshold that is not met.
    pub fn from_value(name: &str, value: f64, unit: impl Into<Cow<'static, str>>, threshold: Option<Threshold>) -> Option<Self> {
        let threshold = threshold.filter(|t| t.is_met(value));
        value.is_finite().then(|| Self {
            name: name.to_owned(),
            value,
            unit: unit.into(),
            threshold,
            concept: "",
            metric: String::new(),
            section: None,
        })
    }
}
