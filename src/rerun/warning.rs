//! Warnings that a re-run may select a different launch, or fail.

use crate::model::Severity;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable identifier for scripts.
    pub id: &'static str,
    pub severity: Severity,
    /// Description of the risk.
    pub text: String,
    pub fix: Option<String>,
    /// The command may select a launch other than the requested one.
    pub inexact: bool,
}

pub(super) fn warning(id: &'static str, severity: Severity, text: impl Into<String>) -> Warning {
    Warning { id, severity, text: text.into(), fix: None, inexact: false }
}

impl Warning {
    pub(super) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn mark_inexact(mut self) -> Self {
        self.inexact = true;
        self
    }

    /// Returns the warning and its remedy in one sentence.
    pub fn to_sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}; {fix}", self.text.trim_end_matches('.')),
            None => self.text.clone(),
        }
    }
}
