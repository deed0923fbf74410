//! Diagnosis of this machine for profiling: [`machine`] collects facts, and [`checks`] evaluates them. Nothing is
//! changed.

pub mod checks;
pub mod driver;
pub mod machine;
pub mod preflight;
pub mod smi;

pub use checks::{CHECKS, Check, State, run_checks};
pub use driver::{DriverAnswer, ask_driver};
pub use machine::{Machine, Places, collect_facts};
pub use preflight::preflight_problems;
