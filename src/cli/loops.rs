//! What wakes the explorer: the terminal, signals, and the thread that analyses.

use super::Failure;
use super::runs::start::Started;
use crate::app::{Msg, Work, work};
use crate::launch::terminal::{Came, Keys};
use crate::ui::input::Input;
use crossbeam_channel::{Sender, unbounded};
use crossterm::event::Event;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What wakes the loop.
pub enum Wake {
    /// Something of the terminal's.
    Terminal(Event),
    /// Something that was done beside the loop.
    Message(Msg),
    /// A run that this program holds from now on.
    Held(Box<Started>),
    /// A signal that ends the program.
    Signal(i32),
    /// The shell stops the program.
    Stop,
    /// The shell lets it go on.
    Continue,
    /// The terminal is gone.
    Gone,
}

/// Starts listening to the terminal and to signals.
pub fn listen(send: &Sender<Wake>) -> Result<(), Failure> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH])?;
    let to = send.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let wake = match signal {
                SIGTSTP => Wake::Stop,
                SIGCONT => Wake::Continue,
                SIGWINCH => match crossterm::terminal::size() {
                    Ok((width, height)) => Wake::Terminal(Event::Resize(width, height)),
                    Err(_) => continue,
                },
                other => Wake::Signal(other),
            };
            if to.send(wake).is_err() {
                break;
            }
        }
    });
    let to = send.clone();
    let mut keys = Keys::open()?;
    std::thread::spawn(move || {
        let (mut input, mut buffer) = (Input::default(), [0; 4096]);
        loop {
            let events = match keys.read(&mut buffer, input.patience()) {
                Came::Bytes(n) => input.feed(&buffer[..n]),
                Came::Nothing => input.idle(),
                Came::End => {
                    let _ = to.send(Wake::Gone);
                    return;
                }
            };
            if events.into_iter().any(|e| to.send(Wake::Terminal(e)).is_err()) {
                return;
            }
        }
    });
    Ok(())
}

/// A thread that analyses, one piece after the other. A newer question of the same kind about the same report replaces one that waits.
#[must_use]
pub fn worker(send: Sender<Wake>) -> Sender<Box<Work>> {
    let (ask, asked) = unbounded::<Box<Work>>();
    std::thread::spawn(move || {
        let mut waiting: Vec<Box<Work>> = Vec::new();
        while let Ok(first) = if waiting.is_empty() { asked.recv().map(Some) } else { Ok(None) } {
            waiting.extend(first);
            waiting.extend(asked.try_iter());
            let kind = |w: &Work| {
                let other = if let work::Ask::Join { other, .. } = w.ask { other } else { 0 };
                (w.report, std::mem::discriminant(&w.ask), other)
            };
            let newest: Vec<_> =
                (0..waiting.len()).filter(|&i| !waiting[i + 1..].iter().any(|later| kind(later) == kind(&waiting[i]))).collect();
            let mut at = 0;
            waiting.retain(|_| {
                at += 1;
                newest.contains(&(at - 1))
            });
            // What the user waits for goes before what fills the header.
            let urgent = |w: &Work| match w.ask {
                work::Ask::Launches { .. } | work::Ask::Rerun { .. } | work::Ask::Diff { .. } => 0,
                work::Ask::Group(_) => 1,
                work::Ask::Detail { .. } => 2,
                work::Ask::Verdicts | work::Ask::Join { .. } | work::Ask::Overview => 3,
                work::Ask::Paths => 4,
            };
            let first = (0..waiting.len()).min_by_key(|&i| (urgent(&waiting[i]), i)).unwrap_or(0);
            let work = waiting.remove(first);
            let msg = match catch_unwind(AssertUnwindSafe(|| work::perform(&work))) {
                Ok(done) => Msg::Done { report: work.report, generation: work.generation, done },
                Err(_) => Msg::Trouble("an analysis of this report failed; please report it as a bug".to_owned()),
            };
            if send.send(Wake::Message(msg)).is_err() {
                break;
            }
        }
    });
    ask
}
