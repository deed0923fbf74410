//! The result that stands for a group of launches.

use crate::analysis::hints::FirstHint;
use crate::analysis::median_launch::median_launch;
use crate::model::Profile;
use crate::rerun::match_results::Sure;

/// Result of a launch: report, index in the report, and certainty of the match; `None` if the result is in the launch's
/// own report.
pub type Best = (usize, usize, Option<Sure>);

/// A launch with a result.
#[derive(Clone)]
pub struct Measured<'a> {
    pub launch: u32,
    pub verdict: Option<&'a FirstHint>,
    pub result: Best,
    /// True if the result belongs to exactly this launch.
    pub exact: bool,
    /// Number of counters in the result, 0 on NVIDIA's GPUs. Reports of rocprofv3 may combine a trace with several sets
    /// of counters of a few launches each.
    pub counters: usize,
    /// True if the launch is in the shown time. A window rarely contains the very launches that were measured.
    pub inside: bool,
}

/// Returns the launch that stands for a group among those that were measured: by the same rule as for a re-run, so that
/// a kernel's diagnosis and its re-run are about the same launch. Results with more counters precede those with fewer,
/// exact ones all others, and launches in the shown time those outside.
pub fn representative<'m, 'a>(profile: &Profile, measured: &'m [Measured<'a>]) -> Option<&'m Measured<'a>> {
    let rank = |m: &Measured<'_>| (m.counters, m.exact, m.inside);
    let first = measured.iter().map(rank).max()?;
    let mut rows: Vec<u32> = measured.iter().filter(|m| rank(m) == first).map(|m| m.launch).collect();
    rows.sort_unstable();
    rows.dedup();
    let launch = median_launch(profile, &rows)?;
    measured.iter().find(|m| m.launch == launch && rank(m) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LaunchColumns, Launches, Source};

    #[test]
    fn an_outlier_does_not_stand_for_a_kernel() {
        let mut columns = LaunchColumns::default();
        for (start, ns) in (0..).step_by(1_000).zip([430, 371, 375, 374, 373]) {
            columns.start.push(start);
            columns.duration.push(Some(ns));
            columns.kernel.push(0);
        }
        let profile = Profile { launches: Launches::new(columns), ..Profile::new(Source::default()) };
        let of =
            |launch: u32, exact, inside| Measured { launch, verdict: None, result: (0, launch as usize, None), exact, counters: 1, inside };
        let launch = |all: &[Measured<'_>]| representative(&profile, all).map(|m| m.launch);
        let all: Vec<Measured<'_>> = (0..5).map(|l| of(l, true, true)).collect();
        assert_eq!(launch(&all), Some(3));
        assert_eq!(launch(&[of(0, true, false), of(1, false, true)]), Some(0), "exact results precede all others");
        assert_eq!(launch(&[of(0, true, false), of(1, true, true)]), Some(1), "the shown time precedes the rest");
        assert_eq!(launch(&[Measured { counters: 0, ..of(0, true, true) }, of(1, true, false)]), Some(1), "more counters precede all");
        assert_eq!(launch(&[]), None);
    }
}
