//! Effect of a gain in one kernel on the run.

use super::finding::Severity;
use crate::model::units::format_whole_percent;

/// Difference between a kernel's share of the run and what its removal saves from which the rest is mentioned.
const BESIDE: f64 = 0.1;

/// Effect on the run of a gain in a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Total duration of the kernel, as a share of the run's length.
    pub share: f64,
    /// Share of the run that would be saved without the kernel: its part of the critical path.
    pub critical: f64,
    /// Part of `share` during which other operations ran on the device.
    pub overlapped: f64,
    /// Lower and upper bound on the share of the run that the gain saves; `None` without a gain.
    pub saves: Option<(f64, f64)>,
    /// Share of the judged time that launching the kernel costs, for a change that saves launches, in a run that is
    /// limited by launching. The replay only makes kernels shorter.
    pub launches: Option<f64>,
}

impl Worth {
    /// Returns true if the gain does not make the run noticeably shorter.
    pub fn saves_nothing(&self) -> bool {
        self.launches.is_none() && self.saves.is_some_and(|(_, most)| most < 0.005)
    }

    /// The same for a part of the run in which the kernel has another share of the time, by the ratio of the shares.
    #[must_use]
    pub fn scale_to(self, factor: f64) -> Self {
        let scale = |share: f64| (share * factor).min(1.0);
        Self {
            share: scale(self.share),
            critical: scale(self.critical),
            overlapped: scale(self.overlapped),
            saves: self.saves.map(|(a, b)| (scale(a), scale(b))),
            ..self
        }
    }

    /// Severity for the run of a problem whose severity for its kernel is `own`.
    pub fn severity_in_run(&self, own: Severity) -> Severity {
        match (self.launches, self.saves) {
            (Some(share), _) if own > Severity::Healthy => Severity::High.limit_to_run(share),
            (_, Some((_, most))) => own.limit_to_run(most),
            _ => own,
        }
    }

    /// Formats the bound, without the kernel's own share of the run, which is on another base than the tables.
    pub fn describe_bound(&self) -> String {
        let critical = self.critical * 100.0;
        if self.launches.is_some() {
            return "what limits the run is its launches, not its duration".to_owned();
        }
        match self.saves.map(|(least, most)| (least * 100.0, most * 100.0)).filter(|(_, most)| *most >= 0.5) {
            Some((least, most)) if least < 0.5 && most >= 1.0 => format!("this change makes the run at most {most:.0}% shorter"),
            Some((least, most)) if most - least < 1.0 => format!("this change makes the run about {most:.0}% shorter"),
            Some((least, most)) => format!("this change makes the run {least:.0}–{most:.0}% shorter"),
            None if critical < 0.5 => "without it, the run would not be shorter".to_owned(),
            None => {
                // Its own time is a larger share than what would be saved.
                let rest = self.share - self.critical;
                let why = match rest > BESIDE {
                    true if self.overlapped * 2.0 > rest => ": what runs beside it would remain",
                    true => ": the host is not ready to continue much earlier",
                    false => "",
                };
                format!("without it, the run would be about {} shorter{why}", format_whole_percent(critical))
            }
        }
    }

    /// Formats the effect as a sentence: the kernel's share of the run, and the bound.
    pub fn describe_effect(&self) -> String {
        let share = self.share * 100.0;
        let part = if share < 0.5 { "less than 1%".to_owned() } else { format_whole_percent(share) };
        format!("{part} of the run; {}", self.describe_bound())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_launches_count_in_a_run_that_is_limited_by_launching() {
        let worth = Worth { share: 0.02, critical: 0.0, overlapped: 0.0, saves: Some((0.0, 0.0)), launches: None };
        assert_eq!((worth.severity_in_run(Severity::High), worth.saves_nothing()), (Severity::Low, true));
        let launched = |share| Worth { launches: Some(share), ..worth };
        let severities = [0.2, 0.02, 0.001].map(|share| launched(share).severity_in_run(Severity::Medium));
        assert_eq!(severities, [Severity::High, Severity::Medium, Severity::Low]);
        assert_eq!(launched(0.2).severity_in_run(Severity::Healthy), Severity::Healthy);
        assert!(!launched(0.2).saves_nothing() && launched(0.2).describe_effect().contains("its launches"));
    }

    #[test]
    fn a_kernel_that_gains_less_than_its_time_has_work_beside_it_or_a_late_host() {
        let worth = |critical, overlapped| Worth { share: 0.45, critical, overlapped, saves: None, launches: None }.describe_bound();
        assert!(worth(0.01, 0.4).ends_with("what runs beside it would remain"));
        assert!(worth(0.01, 0.0).ends_with("the host is not ready to continue much earlier"));
        assert!(worth(0.40, 0.0).ends_with("about 40% shorter"));
    }
}
