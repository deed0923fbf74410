//! Signals while a report is read for printing: the reader is stopped, so that its child ends and nothing half-made is left.

use super::Failure;
use crate::import::{self, Cancel, ImportError, Job, Wants};
use crate::model::Profile;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

/// Time that a reader gets to clean up.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Of these signals those that end the program here. A shell that starts a program in the background of a script has it ignore SIGINT, and `nohup`
/// SIGHUP: what was ignored when the program started stays ignored.
#[must_use]
pub fn heard(signals: &[i32]) -> Vec<i32> {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// A bit for each ignored signal, the lowest for signal 1, as /proc/PID/status has it.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0)
}

/// Reads a report of launches.
pub fn open(file: &Path, nsys: Option<PathBuf>, wants: Wants) -> Result<Profile, Failure> {
    reading(file, |cancel| import::open(file, &Job { cancel, nsys, ..Job::new(wants, &|_| {}) }))
}

/// Reads a file; a signal stops the reader and then the program, with the exit code that shells expect. Before and after, signals end
/// the program as always.
pub fn reading<T>(file: &Path, read: impl FnOnce(Cancel) -> Result<T, ImportError>) -> Result<T, Failure> {
    let cancel = Cancel::default();
    let reading = Arc::new(AtomicBool::new(true));
    let caught = Arc::new(AtomicI32::new(0));
    let mut signals = signal_hook::iterator::Signals::new(heard(&[SIGINT, SIGTERM, SIGHUP]))?;
    let (stop, still, which) = (cancel.clone(), Arc::clone(&reading), Arc::clone(&caught));
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if still.load(Ordering::SeqCst) && which.swap(signal, Ordering::SeqCst) == 0 {
                stop.cancel();
                // A reader that waits for a disk or a network that is gone hears of nothing.
                std::thread::spawn(move || {
                    std::thread::sleep(PATIENCE);
                    std::process::exit(128 + signal);
                });
            } else {
                std::process::exit(128 + signal);
            }
        }
    });
    let outcome = read(cancel);
    reading.store(false, Ordering::SeqCst);
    match caught.load(Ordering::SeqCst) {
        0 => Ok(outcome?),
        signal => {
            Err(Failure { text: format!("{}: stopped", file.display()), code: 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_ignored_at_the_start_are_known() {
        // SIGHUP, SIGINT and SIGTERM, as the kernel prints them.
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000004003\nSigCgt:\t0000000000000000\n"), 0x4003);
        assert_eq!(ignored("Name:\tx\n"), 0);
    }
}
