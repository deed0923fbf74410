//! Registers of a thread that waits in a system call, and the way back to it, by architecture.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{REACH, Wait, keep_waiting, stack_and_code, write_return};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{REACH, Wait, keep_waiting, stack_and_code, write_return};
