//! A finding: a problem shown by this report's own numbers, with its cost, places and remedies. Runs, kernels and
//! memory each have their own vocabulary ([`FindingId`]); everything else about a finding is the same.

mod certainty;
mod evidence;
mod place;
mod rank;

pub use certainty::{OUTRANKS_HEALTHY, Severity, Sure};
pub use evidence::{Evidence, Threshold};
pub use place::{Place, PlaceKind};
pub use rank::{move_under_causes, sort_by_cost};

use std::fmt::Debug;

/// Vocabulary of findings.
pub trait FindingId: Copy + Eq + Debug + 'static {
    /// Command or data that would confirm a finding.
    type Confirm: Clone + Debug + Default + PartialEq;
    /// Data specific to findings of this vocabulary.
    type Details: Clone + Debug + PartialEq;

    /// Stable id for scripts.
    fn id(self) -> &'static str;

    /// Position among findings of equal cost: causes before effects.
    fn sort_position(self) -> usize;

    /// Effects of this cause, each with the minimum fraction of the effect's cost that this cause must have to explain
    /// it.
    fn effects(self) -> &'static [(f64, &'static [Self])] {
        &[]
    }

    /// Returns false if `cause` cannot explain `effect`, whatever their costs.
    fn may_explain(_cause: &Finding<Self>, _effect: &Finding<Self>) -> bool {
        true
    }

    /// Details of a new finding.
    fn new_details(stake: f64) -> Self::Details;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Finding<I: FindingId> {
    pub id: I,
    pub severity: Severity,
    pub sure: Sure,
    /// One sentence that cites this report's numbers.
    pub headline: String,
    /// Maximum gain: a share of the run's window, of the kernel's time or of the memory, 0 to 1.
    pub stake: f64,
    /// Derivation of the maximum gain, in words.
    pub bound: String,
    pub evidence: Vec<Evidence>,
    pub places: Vec<Place>,
    /// Recommended changes, best first.
    pub actions: Vec<String>,
    pub confirm: I::Confirm,
    /// Findings that describe the same problem from another angle; each is listed under this one if this one costs
    /// enough to explain it.
    pub explains: Vec<I>,
    /// Findings caused by this one, each with its headline.
    pub effects: Vec<(I, String)>,
    pub details: I::Details,
}

impl<I: FindingId> Finding<I> {
    /// Creates a finding with its maximum gain, a share from 0 to 1.
    pub fn new(id: I, stake: f64, headline: impl Into<String>) -> Self {
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
            confirm: I::Confirm::default(),
            explains: Vec::new(),
            effects: Vec::new(),
            details: I::new_details(stake),
        }
    }

    /// Sets the derivation of the maximum gain.
    pub fn with_gain_basis(mut self, text: impl Into<String>) -> Self {
        self.bound = text.into();
        self
    }

    /// Lowers the confidence to `sure`; never raises it.
    pub fn with_confidence(mut self, sure: Sure) -> Self {
        self.sure = self.sure.max(sure);
        self
    }

    /// Adds a number as evidence, unless it is unknown.
    pub fn with_number(self, name: &str, value: impl Into<Option<f64>>, unit: &'static str) -> Self {
        self.with_evidence([value.into().and_then(|v| Evidence::from_value(name, v, unit, None))])
    }

    /// Adds a number as evidence, with its threshold if the number meets it.
    pub fn with_judged_number(
        self,
        name: &str,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        (op, than): (&'static str, f64),
    ) -> Self {
        let threshold = Threshold { op, value: than, source: "" };
        self.with_evidence([value.into().and_then(|v| Evidence::from_value(name, v, unit, Some(threshold)))])
    }

    /// Adds evidence; unknown values and repeated metric concepts are skipped.
    pub fn with_evidence(mut self, evidence: impl IntoIterator<Item = Option<Evidence>>) -> Self {
        for e in evidence.into_iter().flatten() {
            if e.concept.is_empty() || self.evidence.iter().all(|known| known.concept != e.concept) {
                self.evidence.push(e);
            }
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

    pub fn with_explained(mut self, findings: impl IntoIterator<Item = I>) -> Self {
        self.explains.extend(findings);
        self
    }

    /// Maximum gain in percent.
    pub fn gain_percent(&self) -> f64 {
        self.stake * 100.0
    }
}
