//! Event sources of the explorer: the terminal, signals, and background work.

use super::failure::Failure;
use super::interrupt::active_signals;
use super::runs::start::Started;
use crate::app::Msg;
use crate::launch::terminal::{Came, Keys};
use crate::ui::input_parser::Input;
use crossbeam_channel::Sender;
use crossterm::event::Event;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};

/// Event that wakes up the event loop.
pub enum Wake {
    /// A terminal event.
    Terminal(Event),
    /// Result of background work.
    Message(Msg),
    /// A run that this program now owns.
    Held(Box<Started>),
    /// A terminating signal.
    Signal(i32),
    /// SIGTSTP: the shell stops the program.
    Stop,
    /// SIGCONT: the shell resumes the program.
    Continue,
    /// The terminal is gone.
    Gone,
}

/// Starts listening to the terminal and to signals.
pub fn start_listening(send: &Sender<Wake>) -> Result<(), Failure> {
    let mut signals = signal_hook::iterator::Signals::new(active_signals(&[SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH]))?;
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
    let mut keys = Keys::open_stdin()?;
    std::thread::spawn(move || {
        let (mut input, mut buffer) = (Input::default(), [0; 4096]);
        loop {
            let events = match keys.read_bytes(&mut buffer, input.idle_timeout()) {
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
