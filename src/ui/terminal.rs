//! The terminal: taken over, drawn to, and given back as it was, on every way out.

use super::View;
use super::backend::Sparing;
use super::theme::Theme;
use crate::app::App;
use crate::launch::terminal::{Guard, stop_group};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute, queue};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, BufWriter, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A frame is some kilobytes; one write sends it.
const BUFFER: usize = 64 << 10;

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Who gives it back when this process is killed.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

/// Has a process give the terminal back should this one not be able to.
pub fn guard(by: Option<Guard>) {
    if let Ok(mut guard) = GUARD.lock() {
        *guard = by;
    }
}

/// Tells it. Not from a panic in the middle of telling.
fn tell(what: fn(&mut Guard)) {
    if let Ok(mut guard) = GUARD.try_lock()
        && let Some(guard) = guard.as_mut()
    {
        what(guard);
    }
}

/// What a terminal is sent to be as it was.
#[must_use]
pub fn escape() -> Vec<u8> {
    let mut out = Vec::new();
    // A list in memory takes everything.
    let _ = queue!(out, EndSynchronizedUpdate, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    out
}

/// The screen while the program has it. Dropping it gives the terminal back.
pub struct Screen {
    /// Not dropped with the screen: it would write to the terminal once more, and panic where both that and stderr are gone.
    terminal: ManuallyDrop<Terminal<Sparing<BufWriter<Stdout>>>>,
}

impl Screen {
    /// Takes the terminal over.
    pub fn take(size: (u16, u16)) -> io::Result<Self> {
        take()?;
        Ok(Self { terminal: ManuallyDrop::new(terminal(size)?) })
    }

    /// Draws a frame; the terminal shows it at once.
    pub fn draw(&mut self, app: &App, view: &mut View, theme: &Theme) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| super::draw(frame, app, view, theme))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Write::flush(self.terminal.backend_mut())
    }

    /// Forgets what is on the screen, so that the next frame draws everything, at a new size.
    pub fn reset(&mut self, size: (u16, u16)) -> io::Result<()> {
        // Not Terminal::clear: it asks the terminal for the cursor and waits seconds for one that does not answer.
        execute!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.terminal, ManuallyDrop::new(terminal(size)?))));
        Ok(())
    }

    /// Gives the terminal back and stops, with the script that it may run in, until the shell continues the program.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        stop_group()
    }

    /// Takes the terminal again after a stop.
    pub fn retake(&mut self) -> io::Result<()> {
        // After a stop that gave no chance to give it back (SIGSTOP), the shell has set modes of its own, and crossterm believes in its own.
        let _ = crossterm::terminal::disable_raw_mode();
        take()
    }

    /// Writes bytes to the terminal as they are (the clipboard's escape sequence).
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(bytes)?;
        Write::flush(out)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// A terminal with a fixed area: ours is never resized behind our back.
fn terminal((width, height): (u16, u16)) -> io::Result<Terminal<Sparing<BufWriter<Stdout>>>> {
    let backend = Sparing::new(BufWriter::with_capacity(BUFFER, io::stdout()), (width, height));
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, width, height)) })
}

fn take() -> io::Result<()> {
    tell(Guard::taken);
    crossterm::terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, cursor::Hide, Clear(ClearType::All))
}

/// Gives the terminal back if it is ours; safe to call again, and from a panic.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // There is nobody to tell when the terminal is gone.
        let mut out = io::stdout();
        let _ = out.write_all(&escape()).and_then(|()| out.flush());
        let _ = crossterm::terminal::disable_raw_mode();
        tell(Guard::given);
    }
}

/// Makes a panic of the main thread give the terminal back before it is reported. A panic of another thread is caught where the thread
/// was started and told on the screen; printing it would only spoil the screen.
pub fn restore_on_panic() {
    let report = std::panic::take_hook();
    let main = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == main {
            restore();
        }
        if !TAKEN.load(Ordering::SeqCst) {
            report(info);
        }
    }));
}
