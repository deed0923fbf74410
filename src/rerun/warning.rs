//! What may make a re-run select another launch, or fail.

use crate::model::Severity;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable word that scripts can rely on.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What may go wrong, in plain words.
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
    /// Whether the selection may be another launch than the wanted one.
    pub inexact: bool,
}

pub(super) fn warning(id: &'static str, severity: Severity, text: impl Into<String>) -> Warning {
    Warning { id, severity, text: text.into(), fix: None, inexact: false }
}

impl Warning {
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn inexact(mut self) -> Self {
        self.inexact = true;
        self
    }

    /// The warning and what to do about it, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}; {fix}", self.text.trim_end_matches('.')),
            None => self.text.clone(),
        }
    }
}
