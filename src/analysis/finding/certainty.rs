//! Severity and confidence of findings about a run and of hints about a kernel.

/// A cause ranks before the verdict that nothing is wrong if it costs at least this share of the time. Smaller changes
/// are within the variation of clocks and replay passes (Nsight Compute's Profiling Guide, "Range and Precision").
pub const OUTRANKS_HEALTHY: f64 = 0.10;
/// Minimum share of the time for a cause to be of high severity: the "idle-bound" threshold of common triage practice.
const HIGH: f64 = 0.3;
/// Minimum share of the run that a problem of one kernel costs, for high and for medium severity in the run.
const RUN: [(f64, Severity); 2] = [(0.05, Severity::High), (0.01, Severity::Medium)];

/// Severity, based on the share of the kernel's time or of the run's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing to fix: a kernel is near its roof, or a run is bound by its kernels.
    Healthy,
    Low,
    /// At least 10 %.
    Medium,
    /// At least 30 %.
    High,
}

impl Severity {
    /// Stable identifier for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Severity of a cause that costs a given share of the time.
    pub fn from_share(stake: f64) -> Self {
        if stake >= HIGH {
            Self::High
        } else if stake >= OUTRANKS_HEALTHY {
            Self::Medium
        } else {
            Self::Low
        }
    }

    /// Lowers the severity to the one for a run in which fixing the problem saves at most the share `most`: even if
    /// half of a kernel can be saved, it is no problem if the run would not get shorter.
    #[must_use]
    pub fn limit_to_run(self, most: f64) -> Self {
        let allowed = RUN.iter().find(|limit| most >= limit.0).map_or(Self::Low, |limit| limit.1);
        self.min(allowed)
    }
}

/// Confidence in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sure {
    /// The deciding facts were recorded and agree. For runs, the problem also recurs, and less idle time is unexplained
    /// than explained: at least 98 % of such first findings are correct.
    Certain,
    /// Another cause could look the same; at least 90 % of such findings are correct.
    Likely,
    /// The deciding facts were not recorded.
    Possible,
}

impl Sure {
    /// Stable identifier for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_the_run_does_not_wait_for_is_no_severe_problem() {
        assert_eq!(Severity::High.limit_to_run(0.0), Severity::Low);
        assert_eq!(Severity::High.limit_to_run(0.03), Severity::Medium);
        assert_eq!(Severity::High.limit_to_run(0.2), Severity::High);
        assert_eq!(Severity::Medium.limit_to_run(0.9), Severity::Medium);
        assert_eq!(Severity::Healthy.limit_to_run(0.0), Severity::Healthy);
    }
}
