//! Runs without the explorer: prints the output to stderr and the report names to stdout.

use super::super::failure::{FOUND, Failure};
use super::super::{interrupt, print};
use super::start::Started;
use super::tail::Follow;
use crate::launch::runs::{Progress, process, progress};
use crate::library::{Library, Run, State};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Poll interval of a run.
pub const LOOK: Duration = Duration::from_millis(100);

/// Owner of the run.
pub enum Holder {
    /// This program started the run.
    Mine(Box<Started>),
    Other,
}

/// Counts signals that request termination. Call this before starting a run, so that no signal is missed.
pub fn count_signals() -> Result<Arc<AtomicUsize>, Failure> {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut signals = signal_hook::iterator::Signals::new(interrupt::active_signals(&[SIGINT, SIGTERM, SIGHUP]))?;
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(asked)
}

/// Follows a run to its end. INT and TERM stop the run; if another process owns it, this program only stops following
/// it.
pub fn follow_to_end(library: Library, run: &Run, mut holder: Holder, asked: &AtomicUsize) -> Result<Run, Failure> {
    let mut follow = Follow::patient(library, run.id);
    let mut done = 0;
    let mut shown = 0;
    let mut percent = None;
    loop {
        let update = follow.poll_update()?;
        let mut err = std::io::stderr().lock();
        for line in update.news.lines.iter().filter(|l| is_worth_printing(l.as_deref(), &mut percent)) {
            // A closed stderr must not end the run.
            let _ = match line {
                Some(line) => writeln!(err, "{line}"),
                None => writeln!(err, "… lines dropped: the log keeps the first and the last few MB of a long output"),
            };
            shown += 1;
        }
        drop(err);
        if update.ended {
            return Ok(update.run);
        }
        let now = asked.load(Ordering::SeqCst);
        if now > done {
            match &mut holder {
                Holder::Other => return Ok(update.run),
                Holder::Mine(started) => (done..now).for_each(|_| started.request_stop()),
            }
            done = now;
        }
        if let Holder::Mine(started) = &mut holder
            && started.has_exited()
            && shown == 0
            && update.run.holder.is_none_or(|(pid, ticks)| !process::is_running(pid, ticks) || pid == own_pid())
        {
            return Err(Failure::unable("the run's supervisor could not start".to_owned()));
        }
        // Read available output without waiting.
        if update.news.all {
            std::thread::park_timeout(LOOK);
        }
    }
}

/// Thins out the frequent progress lines of nsys to one line per quarter.
fn is_worth_printing(line: Option<&str>, last: &mut Option<u8>) -> bool {
    let Some(Progress::Report(now)) = line.and_then(progress::parse_progress).filter(|_| line.is_some_and(|l| l.starts_with('['))) else {
        return true;
    };
    let step = now / 25;
    let new = *last != Some(step);
    *last = Some(step);
    new
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(i32::MAX)
}

/// Prints the outcome of a run: reasons to stderr, reports to stdout; returns the exit code as an error.
pub fn print_outcome(run: &Run) -> Result<(), Failure> {
    for f in &run.findings {
        print::error(&if f.fix.is_empty() { f.what.clone() } else { format!("{}: {}", f.what, f.fix) });
    }
    print::lines(&run.reports.iter().map(|r| r.path.display().to_string()).collect::<Vec<_>>())?;
    let code = match run.state {
        State::Done => return Ok(()),
        State::Stopped => 130,
        _ => FOUND,
    };
    let text = match run.state {
        State::Lost => format!(
            "run {} is lost: its supervisor died silently (killed, or the disk was full); its log is kept (`warpscope runs show {}`)",
            run.id, run.id
        ),
        _ => String::new(),
    };
    Err(Failure { text, code, reason: crate::cli::reason::Reason::Failed })
}
