//! All screens. A new one needs a module here and a row in `with_screens!` below.

pub mod diff;
pub mod kernels;
pub mod launches;
pub mod library;
pub mod lines;
pub mod memory;
pub mod overview;
pub mod ranges;
pub mod ranks;
pub mod rerun;
pub mod result;
pub mod run;
pub mod timeline;

pub use diff::DiffScreen;
pub use kernels::KernelsScreen;
pub use launches::LaunchesScreen;
pub use library::LibraryScreen;
pub use lines::LinesScreen;
pub use memory::MemoryScreen;
pub use overview::OverviewScreen;
pub use ranges::RangesScreen;
pub use ranks::RanksScreen;
pub use rerun::RerunScreen;
pub use result::ResultScreen;
pub use run::RunScreen;
pub use timeline::TimelineScreen;

use super::actions::KeyScope;
use super::screen::Screen;

/// Type of a screen, used to find an open screen.
pub trait Kind: Sized {
    fn of(open: &Open) -> Option<&Self>;
    fn of_mut(open: &mut Open) -> Option<&mut Self>;
}

macro_rules! screens {
    ($($name:ident($screen:ident $(, $make:expr)?) { $($scopes:tt)+ })+) => {
        #[derive(Clone, Debug)]
        pub enum Open {
            $($name($screen)),+
        }

        impl Open {
            pub fn screen(&self) -> &dyn Screen {
                match self {
                    $(Self::$name(screen) => screen),+
                }
            }

            pub fn screen_mut(&mut self) -> &mut dyn Screen {
                match self {
                    $(Self::$name(screen) => screen),+
                }
            }

            /// Creates a screen about a whole report with this id; `None` for other screens.
            pub fn on_report(screen: KeyScope, id: u64) -> Option<Self> {
                match screen {
                    $($(KeyScope::$name => { let make: fn(u64) -> $screen = $make; Some(make(id).into()) })?)+
                    _ => None,
                }
            }
        }

        $(
            impl From<$screen> for Open {
                fn from(screen: $screen) -> Self {
                    Self::$name(screen)
                }
            }

            impl Kind for $screen {
                fn of(open: &Open) -> Option<&Self> {
                    if let Open::$name(screen) = open { Some(screen) } else { None }
                }

                fn of_mut(open: &mut Open) -> Option<&mut Self> {
                    if let Open::$name(screen) = open { Some(screen) } else { None }
                }
            }
        )+
    };
}

/// Passes the rows of all screens to a macro. A row is the screen's name and type; a screen about a whole report also has
/// a function that creates it. In braces are the scopes of its keys, one for each of its views: the title, the name on
/// the command line, and the groups that it belongs to (`actions/key_scopes.rs`).
#[macro_export]
macro_rules! with_screens {
    ($rows:ident) => {
        $rows! {
            Overview(OverviewScreen, |_| OverviewScreen::default()) {
                Overview "overview" link "overview" [Whole Timed Aside Detailed Launchable],
            }
            Kernels(KernelsScreen) {
                Kernels "kernels" link "kernels" [Whole Timed Detailed Named Sorted Launchable Tables Browse],
            }
            Launches(LaunchesScreen) {
                Launches "launches" link "launches" [Whole Timed Aside Detailed Sorted Launchable Tables Browse],
            }
            Timeline(TimelineScreen) {
                Timeline "timeline" link "timeline" [Whole Timed Trees Aside Launchable Browse],
            }
            Ranges(RangesScreen, RangesScreen::new) {
                Ranges "ranges" link "ranges" [Whole Timed Trees Forest Aside Named Sorted Launchable],
            }
            Lines(LinesScreen, |_| LinesScreen::default()) {
                Lines "lines" link "lines" [Whole Timed Trees Forest Aside Named],
            }
            Memory(MemoryScreen, MemoryScreen::new) {
                Memory "memory" link "memory" [],
            }
            Ranks(RanksScreen) {
                Ranks "ranks" link "ranks" [],
            }
            Rerun(RerunScreen) {
                Rerun "re-run" link "rerun" [],
            }
            Result(ResultScreen) {
                Metrics "metrics" link "metrics" [Timed Aside Launchable Results Browse],
                Hints "hints" link "hints" [Timed Aside Launchable Results Browse],
                Roofline "roofline" link "roofline" [Timed Aside Launchable Results Browse],
                Source "source" link "source" [Timed Aside Launchable Results Browse],
                Compare "compare" [Timed Aside Launchable Results Browse],
            }
            Run(RunScreen) {
                Run "run" [Runs],
            }
            Library(LibraryScreen) {
                Library "library" [Runs],
            }
            Diff(DiffScreen) {
                Diff "changes" [],
            }
        }
    };
}

with_screens!(screens);
