//! A hint: a diagnosis with this kernel's own numbers, what it costs, how that was bounded, what to change, and what would confirm it.

use super::diagnosis::Diagnosis;
use super::gain::{Gain, Relief, percent};

/// How much is at stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The kernel does what it can.
    Healthy,
    Low,
    /// From 10 % of the kernel's time on.
    Medium,
    /// From 30 % of the kernel's time on.
    High,
}

impl Severity {
    /// The word for scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Of a share of the kernel's time.
    #[must_use]
    pub fn of(stake: f64) -> Self {
        if stake >= 0.3 {
            Self::High
        } else if stake >= WORTH {
            Self::Medium
        } else {
            Self::Low
        }
    }
}

/// Share of a kernel's time from which a cause goes before the verdict that the kernel is near its roof. Below 10 % a change is within what
/// clocks and replay passes vary (Nsight Compute's Profiling Guide, "Range and Precision").
pub const WORTH: f64 = 0.10;

/// Share of a kernel's time below which a cause is not named.
pub const LEAST: f64 = 0.04;

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sure {
    /// Every number that decides was collected, and they agree.
    Certain,
    /// The numbers say so, but another cause could give them, too.
    Likely,
    /// A guess from little; collect what it names.
    Possible,
}

impl Sure {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// What a value is compared with, and who says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// `≥`, `<`, `>`.
    pub op: &'static str,
    /// The bound, in the metric's unit.
    pub value: f64,
    pub source: &'static str,
}

impl Threshold {
    /// Whether a value is on its side: a threshold that did not decide is not shown.
    #[must_use]
    pub fn met(&self, value: f64) -> bool {
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
    /// What people call it.
    pub label: String,
    /// The concept, as `metrics.toml` names it; empty for a number that is computed from several.
    pub concept: &'static str,
    /// The metric as the report names it; empty for what no report has: computed from several, or from the launch.
    pub metric: String,
    /// The value in its base unit.
    pub value: f64,
    pub unit: String,
    /// What it was compared with.
    pub threshold: Option<Threshold>,
    /// The section that shows it, as `--section` takes it.
    pub section: Option<&'static str>,
}

impl Evidence {
    /// A number that is computed from several metrics, or from the launch; a threshold that did not decide is left out.
    #[must_use]
    pub fn computed(label: &str, value: f64, unit: &str, threshold: Option<Threshold>) -> Option<Self> {
        let threshold = threshold.filter(|t| t.met(value));
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

/// Sections to collect, and what they would decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// Sections, as `--section` takes them.
    pub sections: Vec<&'static str>,
    /// Whether the CUDA sources belong to it.
    pub source: bool,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    pub id: Diagnosis,
    /// How much is at stake, in a word.
    pub severity: Severity,
    /// How sure it is.
    pub sure: Sure,
    /// One sentence with this kernel's numbers.
    pub headline: String,
    pub evidence: Vec<Evidence>,
    /// Share of the kernel's time that a perfect remedy saves at the most, 0 to 1.
    pub stake: f64,
    /// How that was bounded.
    pub bound: String,
    /// What its change lets go.
    pub relief: Relief,
    /// What its change gives.
    pub gain: Gain,
    /// What to change, best first.
    pub actions: Vec<String>,
    /// What would confirm it.
    pub confirm: Confirm,
    /// Effects of it that would be hints of their own, with their headlines.
    pub effects: Vec<(Diagnosis, String)>,
}

impl Hint {
    /// A hint that is worth a share of the kernel's time.
    #[must_use]
    pub fn new(id: Diagnosis, stake: f64, headline: impl Into<String>) -> Self {
        let stake = if stake.is_finite() { stake.clamp(0.0, 1.0) } else { 0.0 };
        Self {
            id,
            severity: Severity::of(stake),
            sure: Sure::Certain,
            headline: headline.into(),
            evidence: Vec::new(),
            stake,
            bound: String::new(),
            relief: Relief::default(),
            gain: Gain { at_most: stake, ..Gain::default() },
            actions: Vec::new(),
            confirm: Confirm::default(),
            effects: Vec::new(),
        }
    }

    /// How the stake was bounded.
    #[must_use]
    pub fn bound(mut self, text: impl Into<String>) -> Self {
        self.bound = text.into();
        self
    }

    /// What its change lets go.
    #[must_use]
    pub fn relief(mut self, relief: Relief) -> Self {
        self.relief = relief;
        self
    }

    /// How sure it is; never surer than before.
    #[must_use]
    pub fn sure(mut self, sure: Sure) -> Self {
        self.sure = self.sure.max(sure);
        self
    }

    /// Numbers; those that are not known are left out.
    #[must_use]
    pub fn because(mut self, evidence: impl IntoIterator<Item = Option<Evidence>>) -> Self {
        for e in evidence.into_iter().flatten() {
            if e.concept.is_empty() || self.evidence.iter().all(|known| known.concept != e.concept) {
                self.evidence.push(e);
            }
        }
        self
    }

    #[must_use]
    pub fn change(mut self, actions: &[&str]) -> Self {
        self.actions.extend(actions.iter().map(|a| (*a).to_owned()));
        self
    }

    /// What would confirm it.
    #[must_use]
    pub fn confirm(mut self, sections: &[&'static str], source: bool, why: &str) -> Self {
        self.confirm = Confirm { sections: sections.to_vec(), source, why: why.to_owned() };
        self
    }

    /// The two ends of what its change gives, as people read them: `saves 40–59%`, `saves at most 90%`; of a healthy kernel how far from its roof it is.
    #[must_use]
    pub fn promise(&self) -> String {
        match self.severity {
            Severity::Healthy => format!("{:.0}% from its roof", self.percent()),
            _ => format!("saves {}", self.gain.words()),
        }
    }

    /// The same for a narrow column: `40–59%`, `≤90%`.
    #[must_use]
    pub fn short(&self) -> String {
        match (self.severity, self.gain.expected) {
            (Severity::Healthy, _) => format!("{:.0}%", self.percent()),
            (_, None) => format!("≤{:.0}%", percent(self.gain.at_most)),
            _ => self.gain.words().replace("about ", ""),
        }
    }

    /// The two ends as shares of the kernel's time, for a bar.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        match self.severity {
            Severity::Healthy => (0.0, self.stake),
            _ => self.gain.expected.unwrap_or((0.0, self.gain.at_most)),
        }
    }

    /// What bounds the gain.
    #[must_use]
    pub fn limit(&self) -> &str {
        if self.gain.left.is_empty() { &self.bound } else { &self.gain.left }
    }

    /// Percent of the kernel's time at stake.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.stake * 100.0
    }
}
