//! Scopes of actions: single screens, which the table of screens declares, and groups of screens.

macro_rules! scopes {
    (
        screens { $($open:ident($type:ident $(, $make:expr)?) {
            $($screen:ident $title:literal $(link $link:literal)? [$($group_of:ident)*]),+ $(,)?
        })+ }
        groups { $($(#[$doc:meta])* $group:ident $members:literal,)+ }
    ) => {
        /// Screens on which an action works.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum KeyScope {
            Everywhere,
            $($($screen,)+)+
            $($(#[$doc])* $group,)+
        }

        impl KeyScope {
            /// All single screens.
            pub const SCREENS: &[Self] = &[$($(Self::$screen),+),+];
            /// Screens that can be named on the command line.
            pub const LINKS: &[(&str, Self)] = &[$($($(($link, Self::$screen),)?)+)+];

            /// Returns true if an action of this scope works on the screen `there`, which must be a single screen.
            pub fn applies_to(self, there: Self) -> bool {
                let groups: &[Self] = match there {
                    $($(Self::$screen => &[$(Self::$group_of),*],)+)+
                    _ => &[],
                };
                self == Self::Everywhere || self == there || groups.contains(&self)
            }

            /// Name of the scope, for tables of keys.
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::Everywhere => "everywhere",
                    $($(Self::$screen => $title,)+)+
                    $(Self::$group => $members,)+
                }
            }
        }
    };
}

macro_rules! scopes_of {
    ($($rows:tt)+) => {
        scopes! {
            screens { $($rows)+ }
            groups {
                /// Screens about an entire run.
                Whole "overview, timeline, ranges, lines, tables",
                /// Screens whose selection has a position in time.
                Timed "overview, timeline, ranges, lines, tables",
                /// Screens whose rows fold.
                Trees "ranges, lines, timeline",
                /// Trees that can be folded all at once.
                Forest "ranges, lines",
                /// Screens that lead to the kernel table.
                Aside "overview, timeline, ranges, lines, launches, results",
                /// Screens whose rows have details.
                Detailed "overview, kernels, launches",
                /// Screens that filter by name.
                Named "kernels, ranges, lines",
                /// Screens that sort their rows.
                Sorted "kernels, launches, ranges",
                /// Screens from which a launch can be profiled again.
                Launchable "overview, timeline, tables, ranges, results",
                Tables "kernels, launches",
                /// All screens about a result.
                Results "metrics, hints, roofline, compare, source",
                /// The timeline, both tables and all screens about a result.
                Browse "timeline, tables and results",
                Runs "run, library",
            }
        }
    };
}

crate::with_screens!(scopes_of);

impl KeyScope {
    /// Command-line name of the screen, if it has one.
    pub fn link_name(self) -> Option<&'static str> {
        Self::LINKS.iter().find(|l| l.1 == self).map(|l| l.0)
    }

    /// Returns the screen with this command-line name.
    pub fn from_link(name: &str) -> Option<Self> {
        Self::LINKS.iter().find(|l| l.0 == name).map(|l| l.1)
    }

    /// Returns true if actions of both scopes work on a common screen.
    pub(super) fn overlaps_with(self, other: Self) -> bool {
        Self::SCREENS.iter().any(|&screen| self.applies_to(screen) && other.applies_to(screen))
    }
}
