//! Actions: identifiers, scopes, default keys and key bindings

pub mod key_scopes;
pub mod keymap;
pub mod table;

pub use key_scopes::KeyScope;
pub use keymap::Keymap;
pub use table::{ACTIONS, ActionId, find_action};
