//! The places where actions work: single screens, and groups of them.

/// Where an action works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Everywhere,
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
    /// In both tables and on all screens about a result.
    Browse,
    /// While a run is watched.
    Run,
    Library,
    /// In both of these.
    Runs,
    /// On the screen of what changed.
    Diff,
}

impl Where {
    pub const SCREENS: [Self; 11] = [
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
    ];

    /// Whether an action of this place works there (a single screen).
    #[must_use]
    pub fn works(self, there: Self) -> bool {
        let table = matches!(there, Self::Kernels | Self::Launches);
        let result = matches!(there, Self::Metrics | Self::Hints | Self::Roofline | Self::Compare | Self::Source);
        match self {
            Self::Everywhere => true,
            Self::Tables => table,
            Self::Results => result,
            Self::Browse => table || result,
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
            Self::Browse => "tables and results",
            Self::Run => "run",
            Self::Library => "library",
            Self::Runs => "run, library",
            Self::Diff => "changes",
        }
    }
}
