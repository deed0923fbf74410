//! Scopes of actions: single screens, and groups of them

/// Screens on which an action works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    Everywhere,
    Overview,
    Ranges,
    Timeline,
    /// All screens about an entire run.
    Whole,
    /// Screens whose selection has a time.
    Timed,
    /// Screens whose rows fold.
    Trees,
    /// Screens about the run other than the kernel table, from which one goes there.
    Aside,
    /// Screens whose rows have details.
    Detailed,
    /// Screens that filter by name.
    Named,
    /// Screens that sort their rows.
    Sorted,
    /// Screens from which a launch can be profiled again.
    Launchable,
    Kernels,
    Launches,
    Tables,
    Rerun,
    Metrics,
    Hints,
    Roofline,
    Compare,
    Source,
    /// All screens about a result.
    Results,
    /// The timeline, both tables and all screens about a result.
    Browse,
    /// The screen of the watched run.
    Run,
    Library,
    /// `Run` and `Library`.
    Runs,
    /// Changes between two reports.
    Diff,
    /// Ranks of a job.
    Ranks,
    Memory,
}

impl KeyScope {
    pub const SCREENS: [Self; 16] = [
        Self::Overview,
        Self::Timeline,
        Self::Ranges,
        Self::Kernels,
        Self::Launches,
        Self::Rerun,
        Self::Metrics,
        Self::Hints,
        Self::Roofline,
        Self::Compare,
        Self::Source,
        Self::Run,
        Self::Library,
        Self::Diff,
        Self::Ranks,
        Self::Memory,
    ];

    /// Returns true if an action of this scope works on the screen `there`, which must be a single screen.
    pub fn applies_to(self, there: Self) -> bool {
        let table = matches!(there, Self::Kernels | Self::Launches);
        let result = matches!(there, Self::Metrics | Self::Hints | Self::Roofline | Self::Compare | Self::Source);
        match self {
            Self::Everywhere => true,
            Self::Whole => table || matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
            Self::Timed => table || result || matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
            Self::Trees => matches!(there, Self::Ranges | Self::Timeline),
            Self::Aside => matches!(there, Self::Overview | Self::Ranges | Self::Timeline | Self::Launches),
            Self::Detailed => table || there == Self::Overview,
            Self::Named => matches!(there, Self::Kernels | Self::Ranges),
            Self::Sorted => table || there == Self::Ranges,
            Self::Launchable => table || result || matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
            Self::Tables => table,
            Self::Results => result,
            Self::Browse => table || result || there == Self::Timeline,
            Self::Runs => matches!(there, Self::Run | Self::Library),
            own => own == there,
        }
    }

    /// Returns true if actions of both scopes work on a common screen.
    pub(super) fn overlaps_with(self, other: Self) -> bool {
        Self::SCREENS.into_iter().any(|screen| self.applies_to(screen) && other.applies_to(screen))
    }

    /// Name of the scope, for tables of keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Overview => "overview",
            Self::Ranges => "ranges",
            Self::Timeline => "timeline",
            Self::Whole | Self::Timed => "overview, timeline, ranges, tables",
            Self::Trees => "ranges, timeline",
            Self::Aside => "overview, timeline, ranges, launches",
            Self::Detailed => "overview, kernels, launches",
            Self::Named => "kernels, ranges",
            Self::Sorted => "kernels, launches, ranges",
            Self::Launchable => "overview, timeline, tables, ranges, results",
            Self::Kernels => "kernels",
            Self::Launches => "launches",
            Self::Tables => "kernels, launches",
            Self::Rerun => "re-run",
            Self::Metrics => "metrics",
            Self::Hints => "hints",
            Self::Roofline => "roofline",
            Self::Compare => "compare",
            Self::Source => "source",
            Self::Results => "metrics, hints, roofline, compare, source",
            Self::Browse => "timeline, tables and results",
            Self::Run => "run",
            Self::Library => "library",
            Self::Runs => "run, library",
            Self::Diff => "changes",
            Self::Ranks => "ranks",
            Self::Memory => "memory",
        }
    }
}
