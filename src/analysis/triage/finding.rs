//! A finding: a verdict with this run's own numbers, its cost, its places and its remedies.

use super::verdict::Verdict;
pub use crate::analysis::certainty::{Severity, Sure, WORTH};

/// Share of the window below which nothing is reported.
pub const LEAST: f64 = 0.03;

/// A number that led to a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub name: String,
    /// In base units: ns, bytes, percent, a count.
    pub value: f64,
    /// `ns`, `byte`, `%`, `byte/s`, `1/s`; empty for a count.
    pub unit: &'static str,
    /// Bound that the value met: `≥` or `<` and a number in the same unit.
    pub threshold: Option<(&'static str, f64)>,
}

/// Kind of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaceKind {
    Range,
    Operator,
    Python,
    /// A function of the host's code with its executed line, from samples.
    Line,
    Call,
    Kernel,
    Step,
    /// A time interval.
    Window,
}

impl PlaceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Operator => "operator",
            Self::Python => "python",
            Self::Line => "line",
            Self::Call => "call",
            Self::Kernel => "kernel",
            Self::Step => "step",
            Self::Window => "window",
        }
    }
}

/// Location of a finding in the program or on the time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub kind: PlaceKind,
    pub name: String,
    /// Start of the example that is shown, ns.
    pub start: i64,
    /// End of the example that is shown, ns.
    pub end: i64,
    /// Part of the finding's time at this place, ns; `None` if unknown.
    pub ns: Option<i64>,
    pub rank: Option<u32>,
}

/// A command that confirms a finding or records more detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    pub argv: Vec<String>,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub id: Verdict,
    pub severity: Severity,
    pub sure: Sure,
    /// One sentence with this run's numbers.
    pub headline: String,
    /// Maximum gain as a share of the window, 0 to 1.
    pub stake: f64,
    /// Basis of the maximum gain.
    pub bound: String,
    pub evidence: Vec<Evidence>,
    pub places: Vec<Place>,
    /// Recommended changes, best first.
    pub actions: Vec<String>,
    pub confirm: Option<Confirm>,
    /// Findings that describe the same problem from another side; listed under this one if this one costs about as
    /// much.
    pub explains: Vec<Verdict>,
    /// Findings caused by this one, each with an explanation.
    pub effects: Vec<(Verdict, String)>,
}

impl Finding {
    /// Share of the judged time, `42%`; `-` for a finding that costs none, such as a capture that is too short.
    pub fn share_text(&self) -> String {
        if self.stake > 0.0 { format!("{:.0}%", self.gain_percent()) } else { "-".to_owned() }
    }

    /// Creates a finding with a maximum gain, a share of the window.
    pub fn new(id: Verdict, stake: f64, headline: impl Into<String>) -> Self {
        let stake = if stake.is_finite() { stake.clamp(0.0, 1.0) } else { 0.0 };
        Self {
            id,
            severity: Severity::from_share(stake),
            sure: Sure::Certain,
            headline: headline.into(),
            stake,
            bound: String::new(),
            evidence: Vec::new(),
            places: Vec::new(),
            actions: Vec::new(),
            confirm: None,
            explains: Vec::new(),
            effects: Vec::new(),
        }
    }

    pub fn with_gain_basis(mut self, text: impl Into<String>) -> Self {
        self.bound = text.into();
        self
    }

    /// Lowers the confidence to `sure`; never raises it.
    pub fn with_confidence(mut self, sure: Sure) -> Self {
        self.sure = self.sure.max(sure);
        self
    }

    pub fn with_explained(mut self, findings: impl IntoIterator<Item = Verdict>) -> Self {
        self.explains.extend(findings);
        self
    }

    /// Adds a number as evidence, unless it is unknown.
    pub fn with_evidence(mut self, name: &str, value: impl Into<Option<f64>>, unit: &'static str) -> Self {
        if let Some(value) = value.into().filter(|v| v.is_finite()) {
            self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: None });
        }
        self
    }

    /// Adds a number as evidence, together with its bound if the number meets it.
    pub fn with_judged_evidence(
        mut self,
        name: &str,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        than: (&'static str, f64),
    ) -> Self {
        if let Some(value) = value.into().filter(|v| v.is_finite()) {
            let met = if than.0 == "<" { value < than.1 } else { value >= than.1 };
            self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: met.then_some(than) });
        }
        self
    }

    pub fn with_places(mut self, places: impl IntoIterator<Item = Place>) -> Self {
        self.places.extend(places);
        self
    }

    pub fn with_actions(mut self, actions: &[&str]) -> Self {
        self.actions.extend(actions.iter().map(|a| (*a).to_owned()));
        self
    }

    /// Maximum gain in percent of the window.
    pub fn gain_percent(&self) -> f64 {
        self.stake * 100.0
    }
}
