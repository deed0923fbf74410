//! Actions: identifiers, scopes, default keys and key bindings

pub mod ids;
pub mod keymap;
pub mod places;
pub mod table;

pub use ids::ActionId;
pub use keymap::Keymap;
pub use places::Where;
pub use table::{ACTIONS, find_action};
