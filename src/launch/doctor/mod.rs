//! Diagnosis of this machine for profiling: facts are collected in [`machine`] and judged in [`checks`]. Nothing is
//! changed.

pub mod checks;
pub mod machine;
pub mod preflight;
pub mod smi;

pub use checks::{CHECKS, Check, State, examine};
pub use machine::{Machine, Places, gather};
pub use preflight::preflight;
