//! Starts a run: adds it to the library and starts a supervisor process for it.

use super::super::failure::Failure;
use super::supervisor::SUPERVISE;
use crate::launch::runs::supervise::{DETACH, STOP};
use crate::launch::runs::{Exit, ExitProblem, spawn};
use crate::library::{Library, LibraryError, NewRun, Run, State};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};

impl From<LibraryError> for Failure {
    fn from(e: LibraryError) -> Self {
        if matches!(e, LibraryError::NoRun(_) | LibraryError::Refused(_)) {
            Self::wrong(e.to_string())
        } else {
            Self::unable(e.to_string())
        }
    }
}

/// A run that this program started, with a lifeline pipe: closing the pipe stops the run.
#[derive(Debug)]
pub struct Started {
    /// Initial state of the run.
    pub run: Run,
    lifeline: Option<ChildStdin>,
    supervisor: Child,
}

impl Started {
    /// Requests a stop; each repetition escalates.
    pub fn request_stop(&mut self) {
        self.send_byte(STOP);
    }

    /// Detaches the run: it continues without this program.
    pub fn detach(&mut self) {
        self.send_byte(DETACH);
        self.lifeline = None;
    }

    fn send_byte(&mut self, byte: u8) {
        if let Some(line) = &mut self.lifeline {
            // Ignore errors: the supervisor may have just ended.
            let _ = line.write_all(&[byte]);
        }
    }

    /// Releases a run that has ended or was detached; another thread waits for its supervisor.
    pub fn release_supervisor(mut self: Box<Self>) {
        self.lifeline = None;
        std::thread::spawn(move || {
            // If waiting fails, nothing can be done about it.
            let _ = self.supervisor.wait();
        });
    }

    /// Returns true if the supervisor has ended.
    pub fn has_exited(&mut self) -> bool {
        !matches!(self.supervisor.try_wait(), Ok(None))
    }
}

/// Starts a run. `make` completes the run's description once its number and folder are known.
pub fn start_run(
    library: &mut Library,
    detached: bool,
    make: impl FnOnce(i64, &Path) -> Result<NewRun, LibraryError>,
) -> Result<Started, Failure> {
    let run = library.begin_run(|id, folder| make(id, folder).map(|new| NewRun { detached, ..new }))?;
    let program = std::env::current_exe()?;
    let mut words = vec![SUPERVISE.to_owned(), run.id.to_string()];
    words.extend(detached.then(|| "--detached".to_owned()));
    let spawned = spawn::spawn_supervisor(&program, &words, !detached);
    match spawned {
        Ok(mut supervisor) => {
            // After this byte, the supervisor owns the run: this process and the terminal may end.
            let mut word = [0];
            let held = supervisor.stdout.take().is_some_and(|mut o| o.read_exact(&mut word).is_ok());
            if held {
                return Ok(Started { run, lifeline: supervisor.stdin.take(), supervisor });
            }
            let how = supervisor.wait()?;
            let what = format!("the run's supervisor ended before it began ({how})");
            library.end_run(run.id, State::Failed, Exit::default(), &[ExitProblem { what: what.clone(), fix: String::new() }], &[])?;
            Err(Failure::unable(what))
        }
        Err(e) => {
            library.delete_run(run.id)?;
            let _ = std::fs::remove_dir(library.run_folder(run.id));
            Err(Failure::unable(format!("cannot start {}: {e}", program.display())))
        }
    }
}
