//! Terminal screen: entered at startup and restored on every exit path.

use super::View;
use super::compact_backend::CompactBackend;
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

/// Buffer size: a frame of several kilobytes needs only a single write.
const BUFFER: usize = 64 << 10;

/// True while this program uses the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Guard that restores the terminal if this process is killed.
static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

/// Sets the guard, which restores the terminal if this process cannot.
pub fn set_guard(by: Option<Guard>) {
    if let Ok(mut guard) = GUARD.lock() {
        *guard = by;
    }
}

/// Notifies the guard; does nothing if the guard is locked, as in a panic during a notification.
fn notify_guard(what: fn(&mut Guard)) {
    if let Ok(mut guard) = GUARD.try_lock()
        && let Some(guard) = guard.as_mut()
    {
        what(guard);
    }
}

/// Escape sequences that restore the terminal.
pub fn restore_sequence() -> Vec<u8> {
    let mut out = Vec::new();
    // Writing to a `Vec` cannot fail.
    let _ = queue!(out, EndSynchronizedUpdate, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, cursor::Show);
    out
}

/// The terminal in use. Dropping it restores the terminal.
pub struct Screen {
    /// Never dropped: its drop would write to the terminal again, and panic if both the terminal and stderr are gone.
    terminal: ManuallyDrop<Terminal<CompactBackend<BufWriter<Stdout>>>>,
}

impl Screen {
    /// Enters raw mode and the alternate screen.
    pub fn take_over(size: (u16, u16)) -> io::Result<Self> {
        enter_terminal()?;
        Ok(Self { terminal: ManuallyDrop::new(create_terminal(size)?) })
    }

    /// Draws a frame as one synchronized update.
    pub fn draw(&mut self, app: &App, view: &mut View, theme: &Theme) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| super::draw(frame, app, view, theme))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Write::flush(self.terminal.backend_mut())
    }

    /// Clears the screen and sets a new size; the next frame draws everything.
    pub fn reset(&mut self, size: (u16, u16)) -> io::Result<()> {
        // Do not use `Terminal::clear`: it queries the cursor and waits for seconds if the terminal does not answer.
        execute!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.terminal, ManuallyDrop::new(create_terminal(size)?))));
        Ok(())
    }

    /// Restores the terminal and stops the process group, including a calling script, until the shell continues it.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        stop_group()
    }

    /// Enters the terminal again after a stop.
    pub fn resume_terminal(&mut self) -> io::Result<()> {
        // SIGSTOP leaves no chance to restore the terminal: the shell has then set its own modes, while crossterm still
        // assumes its own.
        let _ = crossterm::terminal::disable_raw_mode();
        enter_terminal()
    }

    /// Writes raw bytes to the terminal (the clipboard escape sequence).
    pub fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
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

/// Creates a terminal with a fixed area, which ratatui never resizes on its own.
fn create_terminal((width, height): (u16, u16)) -> io::Result<Terminal<CompactBackend<BufWriter<Stdout>>>> {
    let backend = CompactBackend::new(BufWriter::with_capacity(BUFFER, io::stdout()), (width, height));
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, width, height)) })
}

fn enter_terminal() -> io::Result<()> {
    notify_guard(Guard::notify_taken);
    crossterm::terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, cursor::Hide, Clear(ClearType::All))
}

/// Restores the terminal if it is in use; may be called repeatedly and during a panic.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Ignore errors: the terminal may be gone.
        let mut out = io::stdout();
        let _ = out.write_all(&restore_sequence()).and_then(|()| out.flush());
        let _ = crossterm::terminal::disable_raw_mode();
        notify_guard(Guard::notify_restored);
    }
}

/// Restores the terminal before a panic of the main thread is reported. Panics of other threads are caught where the
/// thread was spawned and appear on the screen; printing them would only garble it.
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
