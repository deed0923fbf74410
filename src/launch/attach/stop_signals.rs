//! Signals by which a terminal stops this program.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Keeps this thread, and those that it starts, from being stopped by the terminal until it is dropped: the threads of
/// another program that they have stopped would otherwise stay stopped as well.
#[derive(Debug)]
pub struct Unstoppable {
    /// Signals that were blocked before; `None` if nothing was changed.
    before: Option<SigSet>,
}

impl Unstoppable {
    pub fn begin() -> Self {
        let mut stops = SigSet::empty();
        for signal in [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU] {
            stops.add(signal);
        }
        Self { before: stops.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
    }
}

impl Drop for Unstoppable {
    fn drop(&mut self) {
        // This fails only for an invalid argument.
        let _ = self.before.map(|before| before.thread_set_mask());
    }
}
