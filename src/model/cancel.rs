//! Asks a job to stop, and counts the work that it has done until then.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    steps: AtomicU64,
}

/// A flag that stops a running job; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

impl Cancel {
    /// Asks the job to stop.
    pub fn cancel(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Steps that the job has done, in [`Pace`]s that have ended: unlike seconds they are the same on every machine.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.0.steps.load(Ordering::Relaxed)
    }

    /// Counts the steps of one thread.
    #[must_use]
    pub fn pace(&self) -> Pace {
        Pace { cancel: self.clone(), since: Cell::new(0) }
    }
}

/// Steps between two looks at the flag: a step takes less than a microsecond.
const LOOK: u64 = 1 << 14;

/// Counts the steps of a loop, and looks every so often whether the job was asked to stop. A step is a byte, a row or a value that is gone over;
/// whatever a loop goes over inside of it counts, too.
#[derive(Debug)]
pub struct Pace {
    cancel: Cancel,
    /// Steps since the last look.
    since: Cell<u64>,
}

impl Pace {
    /// Counts steps; false where the job was asked to stop.
    #[inline]
    #[must_use]
    pub fn step(&self, steps: usize) -> bool {
        let since = self.since.get().saturating_add(steps as u64);
        self.since.set(since);
        since < LOOK || self.look()
    }

    #[cold]
    fn look(&self) -> bool {
        self.cancel.0.steps.fetch_add(self.since.take(), Ordering::Relaxed);
        !self.cancel.is_cancelled()
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.look();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_and_an_end_is_noticed() {
        let cancel = Cancel::default();
        let (a, b) = (cancel.pace(), cancel.pace());
        assert!((0..100_000).all(|_| a.step(1)) && b.step(5));
        drop((a, b));
        assert_eq!(cancel.steps(), 100_005);
        let pace = cancel.pace();
        cancel.cancel();
        assert!((0..LOOK).any(|_| !pace.step(1)));
    }
}
