//! Signals by which a terminal stops this program.

use nix::sys::signal::{SigSet, Signal};

/// Keeps this thread, and those that it starts, from being stopped by the terminal until it is dropped: threads of another
/// program would stay stopped, too.
#[derive(Debug)]
pub struct Unstoppable(SigSet);

impl Unstoppable {
    pub fn begin() -> Self {
        let mut stops = SigSet::empty();
        for signal in [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU] {
            stops.add(signal);
        }
        // Those that are blocked already are not stopped either.
        let _ = stops.thread_block();
        Self(stops)
    }
}

impl Drop for Unstoppable {
    fn drop(&mut self) {
        let _ = self.0.thread_unblock();
    }
}
