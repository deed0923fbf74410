//! Cancels running jobs, and counts the work that they have done.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    steps: AtomicU64,
    unfinished: AtomicUsize,
}

/// A flag that stops a running job. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

impl Cancel {
    /// Asks the job to stop.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Returns true if the job was canceled.
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Number of steps counted by the job's [`Pace`]s; complete once all of them have been dropped. Unlike time, it is
    /// the same on every machine.
    pub fn steps_done(&self) -> u64 {
        self.0.steps.load(Ordering::Relaxed)
    }

    /// Records that the job has something to clean up when it ends, such as a temporary file. Applies until the
    /// returned guard is dropped.
    pub fn mark_unfinished(&self) -> Unfinished {
        self.0.unfinished.fetch_add(1, Ordering::SeqCst);
        Unfinished(self.clone())
    }

    /// Returns true if the process must not exit before the job has ended.
    pub fn is_unfinished(&self) -> bool {
        self.0.unfinished.load(Ordering::SeqCst) > 0
    }

    /// Creates a step counter for one thread.
    pub fn pace(&self) -> Pace {
        Pace { cancel: self.clone(), since: Cell::new(0) }
    }
}

/// Guard returned by [`Cancel::mark_unfinished`].
#[derive(Debug)]
pub struct Unfinished(Cancel);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.0.unfinished.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Number of steps between two checks of the flag. A step takes less than a microsecond, so a check is due at least
/// every 16 ms.
const LOOK: u64 = 1 << 14;

/// Counts the steps of a loop and periodically checks for cancellation. A step is one byte, row or value visited,
/// including in inner loops.
#[derive(Debug)]
pub struct Pace {
    cancel: Cancel,
    /// Steps since the last check.
    since: Cell<u64>,
}

impl Pace {
    /// Counts steps; returns false if the job was canceled.
    #[inline]
    pub fn count_steps(&self, steps: usize) -> bool {
        let since = self.since.get().saturating_add(steps as u64);
        self.since.set(since);
        since < LOOK || self.check_flag()
    }

    #[cold]
    fn check_flag(&self) -> bool {
        self.cancel.0.steps.fetch_add(self.since.take(), Ordering::Relaxed);
        !self.cancel.is_cancelled()
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.check_flag();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_and_an_end_is_noticed() {
        let cancel = Cancel::default();
        let (a, b) = (cancel.pace(), cancel.pace());
        assert!((0..100_000).all(|_| a.count_steps(1)) && b.count_steps(5));
        drop((a, b));
        assert_eq!(cancel.steps_done(), 100_005);
        let mark = cancel.mark_unfinished();
        assert!(cancel.clone().is_unfinished());
        drop(mark);
        assert!(!cancel.is_unfinished());
        let pace = cancel.pace();
        cancel.cancel();
        assert!((0..LOOK).any(|_| !pace.count_steps(1)));
    }
}
