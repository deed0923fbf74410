//! A run without the explorer: what it prints goes to stderr, the reports' names go to stdout.

use super::super::{FAILED, Failure, interrupt, print};
use super::follow::Follow;
use super::start::Started;
use crate::launch::runs::{Progress, process, progress};
use crate::library::{Library, Run, State};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a run is looked at.
pub const LOOK: Duration = Duration::from_millis(100);

/// Who holds the run: this program, or somebody else.
pub enum Holder {
    /// This program started it.
    Mine(Box<Started>),
    Other,
}

/// Counts the signals that ask for an end. To be called before a run is started: none of them gets lost then.
pub fn listen() -> Result<Arc<AtomicUsize>, Failure> {
    let asked = Arc::new(AtomicUsize::new(0));
    let mut signals = signal_hook::iterator::Signals::new(interrupt::heard(&[SIGINT, SIGTERM, SIGHUP]))?;
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(asked)
}

/// Follows a run to its end. INT and TERM stop it (of a detached run: only the following).
pub fn follow(library: Library, run: &Run, mut holder: Holder, asked: &AtomicUsize) -> Result<Run, Failure> {
    let mut follow = Follow::patient(library, run.id);
    let mut done = 0;
    let mut shown = 0;
    let mut percent = None;
    loop {
        let update = follow.look()?;
        let mut err = std::io::stderr().lock();
        for line in update.news.lines.iter().filter(|l| worth(l.as_deref(), &mut percent)) {
            // A reader of stderr that went away does not end the run.
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
                Holder::Mine(started) => (done..now).for_each(|_| started.stop()),
            }
            done = now;
        }
        if let Holder::Mine(started) = &mut holder
            && started.gone()
            && shown == 0
            && update.run.holder.is_none_or(|(pid, ticks)| !process::runs(pid, ticks) || pid == this())
        {
            return Err(Failure { text: "the run's supervisor could not start".to_owned(), code: FAILED });
        }
        // What is there already is not waited for.
        if update.news.all {
            std::thread::park_timeout(LOOK);
        }
    }
}

/// Of nsys' bar, which it draws again and again, only every quarter.
fn worth(line: Option<&str>, last: &mut Option<u8>) -> bool {
    let Some(Progress::Report(now)) = line.and_then(progress::parse).filter(|_| line.is_some_and(|l| l.starts_with('['))) else {
        return true;
    };
    let step = now / 25;
    let new = *last != Some(step);
    *last = Some(step);
    new
}

fn this() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(i32::MAX)
}

/// Says how a run ended: why on stderr, its reports on stdout, and the exit code.
pub fn tell(run: &Run) -> Result<(), Failure> {
    for f in &run.findings {
        print::error(&if f.fix.is_empty() { f.what.clone() } else { format!("{}: {}", f.what, f.fix) });
    }
    print::lines(&run.reports.iter().map(|r| r.path.display().to_string()).collect::<Vec<_>>())?;
    let code = match run.state {
        State::Done => return Ok(()),
        State::Stopped => 130,
        _ => FAILED,
    };
    let text = match run.state {
        State::Lost => format!(
            "run {} is lost: its supervisor died silently (killed, or the disk was full); its log is kept (`warpscope runs show {}`)",
            run.id, run.id
        ),
        _ => String::new(),
    };
    Err(Failure { text, code })
}
