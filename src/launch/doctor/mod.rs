//! What stands between a user and a profile on this machine: facts are gathered here, judged in [`checks`]. Nothing is changed.

pub mod checks;
pub mod machine;
pub mod preflight;
pub mod smi;

pub use checks::{CHECKS, Check, State, examine};
pub use machine::{Machine, Places, gather};
pub use preflight::preflight;
