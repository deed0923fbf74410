//! Attaches the tracer to a program that runs already: one of its threads loads the object.
//!
//! Only a thread that waits in a system call is used, and only for the moment in which it is sent to code that loads the
//! object and goes back (`tracer/object/attach.c`). Nothing waits for this process after that: if it is killed at any
//! step, the program goes on.

mod candidates;
mod memory_map;
mod refusal;
#[cfg(target_arch = "x86_64")]
mod seize;
mod target;

pub use candidates::{GpuProcess, list_processes};
pub use refusal::Refusal;
pub use target::Target;

use std::path::Path;

/// Loads the object into a process, which then reads the settings and begins. Returns once the process has done so.
#[cfg(target_arch = "x86_64")]
pub fn load_object(target: &Target, object: &Path, settings: &Path) -> Result<(), Refusal> {
    seize::load_object(target, object, settings)
}

/// Attaching needs code for each architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn load_object(_: &Target, _: &Path, _: &Path) -> Result<(), Refusal> {
    Err(Refusal::Machine)
}
