//! A finding about a run.

use super::verdict::Verdict;
use crate::analysis::finding;
use crate::analysis::finding::FindingId;
pub use crate::analysis::finding::{Evidence, OUTRANKS_HEALTHY, Place, PlaceKind, Severity, Sure};
use crate::model::units;

/// Minimum share of the window for a finding to be reported.
pub const LEAST_SHARE: f64 = 0.03;

/// Advice for users who have opened only one rank of a job.
pub const COMPARE_RANKS: &str = "Compare the ranks: open all their reports together; a rank that is late makes the others wait.";

/// A verdict with the run's own numbers.
pub type Finding = finding::Finding<Verdict>;

/// A command that confirms a finding or records more detail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    pub argv: Vec<String>,
    pub why: String,
}

impl FindingId for Verdict {
    type Confirm = Option<Confirm>;
    type Details = ();

    fn id(self) -> &'static str {
        Self::id(self)
    }

    fn sort_position(self) -> usize {
        self as usize
    }

    fn effects(self) -> &'static [(f64, &'static [Self])] {
        Self::effects(self)
    }

    fn new_details(_stake: f64) {}
}

impl Finding {
    /// Formats the share of the analyzed time as `42%`; `-` for a finding that costs none, such as a capture that is
    /// too short.
    pub fn share_text(&self) -> String {
        if self.stake > 0.0 { units::format_whole_percent(self.gain_percent()) } else { "-".to_owned() }
    }
}
