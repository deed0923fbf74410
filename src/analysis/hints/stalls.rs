//! Warp stall reasons, as shares of the cycles between two instructions of a warp. By Little's law, the instruction
//! rate is the number of warps divided by these cycles. If a stall that takes a share *s* of them disappears, the same
//! warps issue 1/(1−*s*) times as many instructions.

use super::metric_values::Facts;

/// Stall reasons: the ids of `stall_…` (cycles) and `pcsamp_…` (samples) concepts, without the prefix.
pub const REASONS: [&str; 19] = [
    "long_scoreboard",
    "short_scoreboard",
    "math_pipe_throttle",
    "mio_throttle",
    "lg_throttle",
    "tex_throttle",
    "barrier",
    "membar",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "imc_miss",
    "no_instruction",
    "not_selected",
    "selected",
    "sleeping",
    "wait",
    "misc",
    "gmma",
];

/// Shares of all reasons.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    shares: Vec<(&'static str, f64)>,
    /// Prefix of the concepts that contain the shares.
    from: &'static str,
}

impl Stalls {
    /// Reads stall cycles if they were collected, otherwise samples; `None` if there are neither.
    pub fn from_facts(facts: &Facts) -> Option<Self> {
        let collect = |from: &'static str| {
            let all: Vec<(&'static str, f64)> =
                REASONS.iter().filter_map(|r| Some((*r, facts.get(&format!("{from}_{r}"))?.max(0.0)))).collect();
            let total: f64 = all.iter().map(|r| r.1).sum();
            // Without the main reasons, or with few samples, shares are meaningless.
            let enough = if from == "pcsamp" { total >= LEAST_SAMPLES } else { total > 0.0 };
            (MAIN.iter().all(|m| all.iter().any(|r| r.0 == *m)) && enough)
                .then(|| Self { shares: all.into_iter().map(|(r, v)| (r, v / total)).collect(), from })
        };
        collect("stall").or_else(|| collect("pcsamp"))
    }

    /// Share of a reason, 0 to 1; 0 if the chip does not have it.
    pub fn share(&self, reason: &str) -> f64 {
        self.shares.iter().find(|s| s.0 == reason).map_or(0.0, |s| s.1)
    }

    pub fn summed_share(&self, reasons: &[&str]) -> f64 {
        reasons.iter().map(|r| self.share(r)).sum()
    }

    /// Returns the reason with the largest share.
    pub fn largest_reason<'a>(&self, reasons: &[&'a str]) -> &'a str {
        reasons.iter().copied().max_by(|a, b| self.share(a).total_cmp(&self.share(b))).unwrap_or("")
    }

    /// Id of the concept for a reason.
    pub fn concept_id(&self, reason: &str) -> String {
        format!("{}_{reason}", self.from)
    }

    /// Reasons by share, largest first.
    pub fn ranked_reasons(&self) -> Vec<(&'static str, f64)> {
        let mut all = self.shares.clone();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}

/// Reasons that exist on every chip and that are the largest for most kernels.
const MAIN: [&str; 8] =
    ["long_scoreboard", "short_scoreboard", "math_pipe_throttle", "mio_throttle", "barrier", "wait", "selected", "not_selected"];

/// Minimum number of samples: with 100, a share of 30 % is accurate to ±9 points (two standard
/// deviations of a binomial).
const LEAST_SAMPLES: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_need_all_reasons_and_enough_samples() {
        let few = Facts::from_pairs(&[("stall_wait", 3.0), ("stall_selected", 1.0)]);
        assert!(Stalls::from_facts(&few).is_none());
        let ids = ["pcsamp_wait", "pcsamp_selected", "pcsamp_barrier", "pcsamp_drain", "pcsamp_misc", "pcsamp_membar"];
        let more = [
            "pcsamp_long_scoreboard",
            "pcsamp_short_scoreboard",
            "pcsamp_math_pipe_throttle",
            "pcsamp_not_selected",
            "pcsamp_mio_throttle",
        ];
        let with = |n: f64| Facts::from_pairs(&ids.iter().chain(&more).map(|id| (*id, n)).collect::<Vec<_>>());
        assert!(Stalls::from_facts(&with(2.0)).is_none(), "22 samples");
        let stalls = Stalls::from_facts(&with(20.0)).unwrap();
        assert!((stalls.share("wait") - 1.0 / 11.0).abs() < 1e-9 && stalls.share("gmma") == 0.0);
        assert_eq!(stalls.concept_id("wait"), "pcsamp_wait");
    }
}
