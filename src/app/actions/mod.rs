//! What keys do: the actions, where they work, and which keys they have.

pub mod ids;
pub mod keymap;
pub mod places;
pub mod table;

pub use ids::ActionId;
pub use keymap::Keymap;
pub use places::Where;
pub use table::{ACTIONS, of};
