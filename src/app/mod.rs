//! The explorer's state and its changes: `update(&mut App, Msg) -> Vec<Effect>`, without any I/O.
//!
//! A message goes to the top screen, whose response contains effects and navigation; `update` applies both. Modules use
//! only those below them: `update`, `keys` → `overlay_input` → `dispatch`, `run_events` → `navigation` → `state` →
//! `screens` → `screen` → `session`, `jobs`, `overlay`, `actions`.

pub mod actions;
mod checklist;
mod clipboard;
mod deep_link;
mod dispatch;
mod file_list;
pub mod found_files;
mod initial_screen;
pub mod jobs;
mod keys;
pub mod messages;
pub mod msg;
mod navigation;
pub mod overlay;
mod overlay_input;
mod run_events;
pub mod run_state;
pub mod screen;
pub mod screens;
pub mod session;
pub mod state;
pub mod timeline_view;
pub mod tour;
mod update;

pub use actions::{ACTIONS, ActionId, KeyScope, Keymap};
pub use jobs::{JobResult, Work};
pub use msg::{Effect, Mouse, Msg, Pointer};
pub use navigation::{open_library, show_watched_run};
pub use overlay::{LineOf, Overlay, OverlayKind, Page, PickList};
pub use run_state::Watched;
pub use screen::{ResultView, Status};
pub use screens::*;
pub use session::{DetailsRoom, Location, Report, Session, Settings, Stage};
pub use state::{App, SMALLEST};
pub use update::update;
