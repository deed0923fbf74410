//! All screens. A new one needs a module here, a row in `with_screens!` below, and a row in `scopes!`
//! (`actions/key_scopes.rs`).

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
    ($($name:ident($screen:ident $(, $make:expr)?)),+ $(,)?) => {
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
/// a function that creates it.
#[macro_export]
macro_rules! with_screens {
    ($rows:ident) => {
        $rows! {
            Kernels(KernelsScreen),
            Launches(LaunchesScreen),
            Result(ResultScreen),
            Rerun(RerunScreen),
            Run(RunScreen),
            Library(LibraryScreen),
            Lines(LinesScreen, |_| LinesScreen::default()),
            Diff(DiffScreen),
            Memory(MemoryScreen, MemoryScreen::new),
            Overview(OverviewScreen, |_| OverviewScreen::default()),
            Ranges(RangesScreen, RangesScreen::new),
            Ranks(RanksScreen),
            Timeline(TimelineScreen),
        }
    };
}

with_screens!(screens);
