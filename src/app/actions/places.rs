//! The places where actions work: single screens, and groups of them.

/// Where an action works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Everywhere,
    /// What limits the run.
    Overview,
    /// In the tree of ranges.
    Ranges,
    /// On the timeline.
    Timeline,
    /// On all screens about a run as a whole.
    Whole,
    /// Where what is selected has a place in time.
    Timed,
    /// Where rows fold.
    Trees,
    /// Off the table of kernels, on these screens.
    Aside,
    /// Where rows have details.
    Detailed,
    /// Where names are filtered.
    Named,
    /// Where rows are ordered.
    Sorted,
    /// Where a launch can be profiled again.
    Launchable,
    /// In the table of kernels.
    Kernels,
    /// In the table of launches.
    Launches,
    Tables,
    /// On the re-run screen.
    Rerun,
    /// On the metrics screen.
    Metrics,
    /// On the hints screen.
    Hints,
    Roofline,
    Compare,
    /// On the source screen.
    Source,
    /// On all screens about a result.
    Results,
    /// On the timeline, in both tables and on all screens about a result.
    Browse,
    /// While a run is watched.
    Run,
    Library,
    /// In both of these.
    Runs,
    /// On the screen of what changed.
    Diff,
    /// On the screen of a job's ranks.
    Ranks,
    /// On the screen of how memory is used.
    Memory,
}

impl Where {
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

    /// Whether an action of this place works there (a single screen).
    #[must_use]
    pub fn works(self, there: Self) -> bool {
        let table = matches!(there, Self::Kernels | Self::Launches);
        let result = matches!(there, Self::Metrics | Self::Hints | Self::Roofline | Self::Compare | Self::Source);
        match self {
            Self::Everywhere => true,
            Self::Whole => table || matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
            Self::Timed => table || result || matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
            Self::Trees => matches!(there, Self::Ranges | Self::Timeline),
            Self::Aside => matches!(there, Self::Overview | Self::Ranges | Self::Timeline),
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

    /// Whether two actions of these places may meet on one screen.
    pub(super) fn meets(self, other: Self) -> bool {
        Self::SCREENS.into_iter().any(|screen| self.works(screen) && other.works(screen))
    }

    /// The place in words, for tables of keys.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Overview => "overview",
            Self::Ranges => "ranges",
            Self::Timeline => "timeline",
            Self::Whole | Self::Timed => "overview, timeline, ranges, tables",
            Self::Trees => "ranges, timeline",
            Self::Aside => "overview, timeline, ranges",
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
