//! A finding: a verdict with this run's own numbers, what it costs, where, and what to do.

use super::verdict::Verdict;

/// How much it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// As it should be.
    Healthy,
    Low,
    /// From 10 % of the window on.
    Medium,
    /// From 30 % of the window on (the "idle-bound" threshold of common triage practice).
    High,
}

impl Severity {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Of a share of the window.
    #[must_use]
    pub fn of(share: f64) -> Self {
        if share >= 0.3 {
            Self::High
        } else if share >= WORTH {
            Self::Medium
        } else {
            Self::Low
        }
    }
}

/// Share of the window from which a finding outside the kernels goes before the verdict that they are the limit.
pub const WORTH: f64 = 0.10;
/// Share of the window below which nothing is said.
pub const LEAST: f64 = 0.03;

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sure {
    /// The deciding facts were recorded, it came again and again, and less idle time has no known cause than is explained: at least 98% of such
    /// first findings are right.
    Certain,
    /// Another cause could look the same; at least 90% are right.
    Likely,
    /// What decides was not recorded.
    Possible,
}

impl Sure {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// A number that led to a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What people call it.
    pub name: String,
    /// In base units: ns, bytes, percent, a count.
    pub value: f64,
    /// `ns`, `byte`, `%`, `byte/s`, `1/s`; empty for a count.
    pub unit: &'static str,
    /// What it was compared with: `≥` or `<` and the bound, in the same unit.
    pub threshold: Option<(&'static str, f64)>,
}

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaceKind {
    Range,
    Operator,
    Python,
    Call,
    Kernel,
    Step,
    /// A stretch of time.
    Window,
}

impl PlaceKind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Operator => "operator",
            Self::Python => "python",
            Self::Call => "call",
            Self::Kernel => "kernel",
            Self::Step => "step",
            Self::Window => "window",
        }
    }
}

/// A place in the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub kind: PlaceKind,
    pub name: String,
    /// ns: of the example that is shown.
    pub start: i64,
    /// ns.
    pub end: i64,
    /// What of the finding's time lies there, ns; `None` where that was not added up.
    pub ns: Option<i64>,
    pub rank: Option<u32>,
}

/// What would confirm a finding, or tell more.
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
    /// Share of the window that would be gained at most, 0 to 1.
    pub stake: f64,
    /// How that was bounded.
    pub bound: String,
    pub evidence: Vec<Evidence>,
    pub places: Vec<Place>,
    /// What to change, best first.
    pub actions: Vec<String>,
    pub confirm: Option<Confirm>,
    /// Findings that say the same of another side: they go under this one if they cost as much.
    pub explains: Vec<Verdict>,
    /// Findings that it brings about.
    pub effects: Vec<(Verdict, String)>,
}

impl Finding {
    /// The same for an AMD GPU: recipes of nsys confirm nothing there.
    pub(super) fn in_words_of_hip(&mut self) {
        let all = self.actions.iter_mut().chain([&mut self.headline, &mut self.bound]).chain(self.evidence.iter_mut().map(|e| &mut e.name));
        for text in all.chain(self.effects.iter_mut().map(|e| &mut e.1)) {
            *text = super::hip::said(text);
        }
        self.confirm = self.confirm.take().filter(|c| !c.argv.iter().any(|word| word == "--recipe"));
    }

    /// A finding that is worth a share of the window.
    #[must_use]
    pub fn new(id: Verdict, stake: f64, headline: impl Into<String>) -> Self {
        let stake = if stake.is_finite() { stake.clamp(0.0, 1.0) } else { 0.0 };
        Self {
            id,
            severity: Severity::of(stake),
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

    #[must_use]
    pub fn bound(mut self, text: impl Into<String>) -> Self {
        self.bound = text.into();
        self
    }

    /// How sure it is; never surer than before.
    #[must_use]
    pub fn sure(mut self, sure: Sure) -> Self {
        self.sure = self.sure.max(sure);
        self
    }

    #[must_use]
    pub fn explains(mut self, findings: impl IntoIterator<Item = Verdict>) -> Self {
        self.explains.extend(findings);
        self
    }

    /// A number; nothing where it is not known.
    #[must_use]
    pub fn because(mut self, name: &str, value: impl Into<Option<f64>>, unit: &'static str) -> Self {
        if let Some(value) = value.into().filter(|v| v.is_finite()) {
            self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: None });
        }
        self
    }

    /// A number that was compared with a bound.
    #[must_use]
    pub fn judged(mut self, name: &str, value: impl Into<Option<f64>>, unit: &'static str, than: (&'static str, f64)) -> Self {
        if let Some(value) = value.into().filter(|v| v.is_finite()) {
            let met = if than.0 == "<" { value < than.1 } else { value >= than.1 };
            self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: met.then_some(than) });
        }
        self
    }

    #[must_use]
    pub fn at(mut self, places: impl IntoIterator<Item = Place>) -> Self {
        self.places.extend(places);
        self
    }

    #[must_use]
    pub fn change(mut self, actions: &[&str]) -> Self {
        self.actions.extend(actions.iter().map(|a| (*a).to_owned()));
        self
    }

    /// Percent of the window at stake.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.stake * 100.0
    }
}
