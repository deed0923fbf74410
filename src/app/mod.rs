//! The explorer's state and how it changes: `update(&mut App, Msg) -> Vec<Effect>`, without any I/O.
//!
//! A message goes to the top screen, whose answer holds effects and navigation; `update` applies it. Modules use only
//! those below them: update, keys → answering, act, runs → open → state → screens → screen → session, work, over,
//! actions.

mod act;
pub mod actions;
mod answering;
mod arrive;
mod checklist;
mod copies;
mod first;
mod keys;
pub mod msg;
mod open;
pub mod orders;
pub mod over;
pub mod running;
mod runs;
pub mod screen;
pub mod screens;
pub mod session;
pub mod sight;
pub mod state;
pub mod tour;
mod update;
pub mod work;

pub use actions::{ACTIONS, ActionId, Keymap, Where};
pub use msg::{Effect, Mouse, Msg, Pointer};
pub use open::{open_library, show_watched_run};
pub use over::{LineOf, Over, Page, Pick, What};
pub use running::Watched;
pub use screen::{ResultView, Status};
pub use screens::{
    DiffScreen, KernelsScreen, LaunchesScreen, LibraryScreen, MemoryScreen, Open, OverviewScreen, RangesScreen, RanksScreen, RerunScreen,
    ResultScreen, RunScreen, TimelineScreen,
};
pub use session::{Address, DetailsRoom, Report, Session, Settings, Show, Stage};
pub use state::{App, SMALLEST};
pub use update::update;
pub use work::{Done, Work};
