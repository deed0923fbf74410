//! Signals by which a terminal stops this program.

use nix::sys::signal::{SigSet, Signal};

/// Keeps this thread, and those that it starts, from being stopped by the terminal until it is dropped: the threads of
/// another program that they have stopped would otherwise stay stopped as well.
#[derive(Debug)]
pub struct Unstoppable(SigSet);

impl Unstoppable {
    pub fn begin() -> Self {
        let mut stops = SigSet::empty();
        for signal in [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU] {
            stops.add(signal);
        }
        // Only adds to the signals that this thread already blocks; dropping the value unblocks all three.
        let _ = stops.thread_block();
        Self(stops)
    }
}

impl Drop for Unstoppable {
    fn drop(&mut self) {
        let _ = self.0.thread_unblock();
    }
}
