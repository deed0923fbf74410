//! A hint: a finding about a kernel.

use super::diagnosis::Diagnosis;
use super::speedup_model::{DemandReduction, Gain, whole_percent};
pub use crate::analysis::finding::{Evidence, OUTRANKS_HEALTHY, Severity, Sure, Threshold};
use crate::analysis::finding::{Finding, FindingId};
use crate::analysis::worth::Worth;
use crate::model::units;

/// Minimum share of a kernel's time for a cause to be reported.
pub const LEAST: f64 = 0.04;

/// A diagnosis with the kernel's own numbers.
pub type Hint = Finding<Diagnosis>;

/// Data to collect, and the question that it answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// Sections, as arguments to `--section`.
    pub sections: Vec<&'static str>,
    /// True if the CUDA sources are also needed.
    pub source: bool,
    /// True if only a thread trace of an AMD GPU tells more.
    pub trace: bool,
    pub why: String,
}

impl Confirm {
    /// Returns true if a re-run can tell more.
    pub fn is_rerun(&self) -> bool {
        self.trace || !self.sections.is_empty()
    }
}

/// Effect of the recommended change.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// Demand that the change removes.
    pub relief: DemandReduction,
    /// Predicted gain from the change.
    pub gain: Gain,
}

impl FindingId for Diagnosis {
    type Confirm = Confirm;
    type Details = Remedy;

    fn id(self) -> &'static str {
        Self::id(self)
    }

    fn sort_position(self) -> usize {
        Self::sort_position(self)
    }

    fn effects(self) -> &'static [(f64, &'static [Self])] {
        Self::effects(self)
    }

    /// A cause that is only a guess cannot explain a more certain hint, and a little waste cannot explain a unit at its
    /// limit.
    fn may_explain(cause: &Hint, effect: &Hint) -> bool {
        cause.sure <= effect.sure.max(Sure::Likely) && (cause.stake >= OUTRANKS_HEALTHY || !effect.id.is_bound())
    }

    fn new_details(stake: f64) -> Remedy {
        Remedy { relief: DemandReduction::default(), gain: Gain { at_most: stake, ..Gain::default() } }
    }
}

impl Hint {
    /// Sets the demand that the change removes.
    pub fn with_relief(mut self, relief: DemandReduction) -> Self {
        self.details.relief = relief;
        self
    }

    /// Says that nothing is known of the gain; the stake is only a place in the order then.
    pub fn with_unknown_gain(mut self) -> Self {
        self.details.relief = DemandReduction::unknown();
        self.details.gain.unknown = true;
        self
    }

    /// Sets the upper bound of the gain, where the stake is only a part of it.
    pub fn with_bound(mut self, at_most: f64) -> Self {
        self.details.gain.at_most = at_most.clamp(0.0, 1.0);
        self
    }

    /// Sets the data that would confirm the diagnosis.
    pub fn with_confirmation(mut self, sections: &[&'static str], source: bool, why: &str) -> Self {
        self.confirm = Confirm { sections: sections.to_vec(), source, trace: false, why: why.to_owned() };
        self
    }

    /// Sets the question that a thread trace of an AMD GPU would answer.
    pub fn with_thread_trace(mut self, why: &str) -> Self {
        self.confirm = Confirm { trace: true, why: format!("a thread trace: {why}"), ..Confirm::default() };
        self
    }

    /// Formats the predicted gain: `saves 40–59%`, `saves at most 90%`; for a healthy kernel, the distance from its
    /// roof.
    pub fn gain_text(&self) -> String {
        match self.severity {
            Severity::Healthy => format!("{} from its roof", units::format_whole_percent(self.gain_percent())),
            _ if self.details.gain.unknown => "gain not known".to_owned(),
            _ if self.is_minor() => format!("{} at stake", units::format_whole_percent(self.gain_percent())),
            _ => format!("saves {}", self.details.gain.to_text()),
        }
    }

    /// Returns true if the problem costs little, and only a formal bound on the gain is known.
    fn is_minor(&self) -> bool {
        self.severity == Severity::Low && self.details.gain.expected.is_none()
    }

    /// Formats the predicted gain, limited to the part by which it makes the whole run shorter.
    pub fn gain_text_in_run(&self, worth: Option<&Worth>) -> String {
        match worth.filter(|w| self.severity != Severity::Healthy && w.saves_nothing()) {
            Some(_) => format!("{} of the kernel; the run would not be shorter", self.details.gain.to_text()),
            None => self.gain_text(),
        }
    }

    /// Severity for the whole run, if the kernel's effect on it is known; otherwise for the kernel.
    pub fn severity_in_run(&self, worth: Option<&Worth>) -> Severity {
        worth.map_or(self.severity, |w| w.severity_in_run(self.severity))
    }

    /// Formats the gain for a narrow column: `40–59%`, `≤90%`.
    pub fn short_gain_text(&self) -> String {
        match (self.severity, self.details.gain.expected) {
            (Severity::Healthy, _) => units::format_whole_percent(self.gain_percent()),
            _ if self.details.gain.unknown => "?".to_owned(),
            _ if self.is_minor() => units::format_whole_percent(self.gain_percent()),
            (_, None) => format!("≤{:.0}%", whole_percent(self.details.gain.at_most)),
            _ => self.details.gain.to_text().replace("about ", ""),
        }
    }

    /// Minimum and maximum gain as shares of the kernel's time, for drawing a bar.
    pub fn gain_range(&self) -> (f64, f64) {
        match self.severity {
            Severity::Healthy => (0.0, self.stake),
            _ if self.details.gain.unknown => (0.0, 0.0),
            _ if self.is_minor() => (0.0, self.stake),
            _ => self.details.gain.expected.unwrap_or((0.0, self.details.gain.at_most)),
        }
    }

    /// Describes the limit that bounds the gain.
    pub fn limit_text(&self) -> &str {
        if self.details.gain.left.is_empty() { &self.bound } else { &self.details.gain.left }
    }
}
