//! Attaches the tracer to a program that is already running: one of the program's threads loads the object.
//!
//! Only a thread that is waiting in a system call is used. It is stopped just long enough to be redirected to code that
//! loads the object and then returns (`tracer/object/attach.c`). Nothing in the program waits for this process after
//! that: if this process is killed at any step, the program keeps running.

mod candidates;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod graph_instantiation;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod loader_wait;
mod memory_map;
mod refusal;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod registers;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod seize;
mod stop_signals;
mod target;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod wait_calls;

pub use candidates::{GpuProcess, list_processes};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use graph_instantiation::hold_threads;
pub use refusal::Refusal;
pub use stop_signals::Unstoppable;
pub use target::Target;

use std::path::Path;

/// Loads the object into a process, which then reads the settings and starts tracing. Returns once this has happened.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn load_object(target: &Target, object: &Path, settings: &Path) -> Result<(), Refusal> {
    loader_wait::await_loader(target)?;
    seize::load_object(target, object, settings)
}

/// Each architecture needs its own code for attaching.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn load_object(_: &Target, _: &Path, _: &Path) -> Result<(), Refusal> {
    Err(Refusal::Machine)
}

/// Threads of a process that are stopped.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[derive(Debug)]
pub struct HeldThreads;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn hold_threads(_: &Target) -> Result<HeldThreads, Refusal> {
    Err(Refusal::Machine)
}
