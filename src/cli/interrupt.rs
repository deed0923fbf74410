//! Signal handling while a report is read for printing: stops the reader, so that its child process ends and no
//! partial files are left behind.

use super::failure::Failure;
use crate::import::{self, Cancel, ImportError, Job, Wants};
use crate::model::Profile;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time for a reader to clean up.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Time for a reader that has nothing to clean up: it only has to notice the cancellation.
const NOTICE: Duration = Duration::from_millis(50);

/// Selects the signals that should end the program. Signals that were ignored at startup stay ignored: shell scripts
/// start background programs with SIGINT ignored, and `nohup` ignores SIGHUP.
pub fn active_signals(signals: &[i32]) -> Vec<i32> {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_mask(&status));
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Parses the mask of ignored signals from `/proc/PID/status`; the lowest bit is signal 1.
fn ignored_mask(status: &str) -> u64 {
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

/// Reads a report of launches.
pub fn open_report(file: &Path, nsys: Option<PathBuf>, wants: Wants) -> Result<Profile, Failure> {
    read_cancellable(file, |cancel| import::open_profile(file, &Job { cancel, nsys, ..Job::new(wants, &|_| {}) }))
}

/// Readers to cancel on a signal, and the signal. One thread handles signals for the whole program, because with a
/// thread per file, a signal would end the program while the next file is being read.
#[derive(Default)]
struct Heard {
    reading: Mutex<Vec<Cancel>>,
    caught: AtomicI32,
    /// Set while a pager runs, which handles Ctrl-C itself.
    paging: AtomicBool,
}

impl Heard {
    fn lock_readers(&self) -> MutexGuard<'_, Vec<Cancel>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the active readers; ends the program if there are none or if the signal is repeated.
    fn cancel_readers(&self, signal: i32) {
        if signal == SIGINT && self.paging.load(Ordering::SeqCst) {
            return;
        }
        let reading = self.lock_readers();
        if reading.is_empty() || self.caught.swap(signal, Ordering::SeqCst) != 0 {
            std::process::exit(128 + signal);
        }
        reading.iter().for_each(Cancel::cancel);
        let reading = reading.clone();
        // Force the exit, since a reader blocked on an unreachable disk or network does not react.
        std::thread::spawn(move || {
            let since = Instant::now();
            while since.elapsed() < PATIENCE {
                std::thread::sleep(NOTICE);
                if !reading.iter().any(Cancel::is_unfinished) {
                    break;
                }
            }
            std::process::exit(128 + signal);
        });
    }
}

static HEARD: OnceLock<Arc<Heard>> = OnceLock::new();

/// Returns the signal listener, starting it on first use.
fn signal_listener() -> Result<Arc<Heard>, Failure> {
    if let Some(ears) = HEARD.get() {
        return Ok(Arc::clone(ears));
    }
    let mut signals = signal_hook::iterator::Signals::new(active_signals(&[SIGINT, SIGTERM, SIGHUP]))?;
    let ears = Arc::clone(HEARD.get_or_init(Arc::default));
    let stops = Arc::clone(&ears);
    std::thread::spawn(move || signals.forever().for_each(|signal| stops.cancel_readers(signal)));
    Ok(ears)
}

/// Leaves Ctrl-C to a pager until the program exits.
pub fn leave_interrupts_to_pager() -> Result<(), Failure> {
    signal_listener()?.paging.store(true, Ordering::SeqCst);
    Ok(())
}

/// Reads a file. A signal cancels the reader and then ends the program with the exit code that shells expect. Outside
/// this function, signals end the program as usual.
pub fn read_cancellable<T>(file: &Path, read: impl FnOnce(Cancel) -> Result<T, ImportError>) -> Result<T, Failure> {
    let ears = signal_listener()?;
    let cancel = Cancel::default();
    ears.lock_readers().push(cancel.clone());
    let outcome = read(cancel);
    ears.lock_readers().pop();
    match ears.caught.load(Ordering::SeqCst) {
        0 => Ok(outcome?),
        signal => Err(Failure {
            text: format!("{}: stopped", file.display()),
            code: 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
            reason: crate::cli::reason::Reason::Cancelled,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_ignored_at_the_start_are_known() {
        // SIGHUP, SIGINT and SIGTERM, as printed by the kernel.
        assert_eq!(ignored_mask("Name:\tx\nSigIgn:\t0000000000004003\nSigCgt:\t0000000000000000\n"), 0x4003);
        assert_eq!(ignored_mask("Name:\tx\n"), 0);
    }
}
