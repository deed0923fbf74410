//! A run that has the terminal to itself: for programs that ask, draw or debug. What it prints is not kept.

use super::super::args::Args;
use super::super::{FAILED, Failure, explore};
use super::plain;
use super::supervisor::{EXEC, judge, look_around};
use crate::config::Config;
use crate::launch::runs::{Exit, Watch, facts, spawn};
use crate::library::{Library, LibraryError, NewRun, Run, export};
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs it to its end in the foreground.
pub fn run(library: &mut Library, make: impl FnOnce(i64, &Path) -> Result<NewRun, LibraryError>) -> Result<Run, Failure> {
    let run = library.begin(make)?;
    // The terminal sends its keys' signals to the profiler, too, which is meant; this program waits for what comes of it.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let looking = look_around(&run);
    let own = [std::env::current_exe()?.into_os_string(), EXEC.into(), std::process::id().to_string().into()];
    let words: Vec<OsString> = own.into_iter().chain(run.argv.iter().map(OsString::from)).collect();
    let ended = spawn::foreground(&words, &run.env, &run.directory, |pid| {
        // A fact less is no reason to stop.
        let _ = library.started(run.id, pid);
    });
    let status = match ended {
        Ok(status) => status,
        Err(e) => {
            library.forget(run.id)?;
            return Err(Failure { text: format!("cannot start the profiler: {e}"), code: FAILED });
        }
    };
    let _ = looking.join();
    if let Some(gpus) = facts::gpus() {
        library.describe(run.id, "clocks_end", &gpus.clocks)?;
    }
    let reports = export::found(&run.patterns, &library.run_folder(run.id), run.started_ms);
    let exit = Exit { code: status.code(), signal: status.signal(), stopped: false };
    let (state, findings) = judge(&run.tool, exit, &Watch::default(), &reports);
    library.end(run.id, state, exit, &findings, &reports)?;
    Ok(library.run(run.id)?)
}

/// Opens what it left in the explorer.
pub fn open(args: &Args, config: &Config, run: &Run) -> Result<(), Failure> {
    if run.openable().next().is_none() {
        return plain::tell(run);
    }
    explore::reports(args, config, run.openable().map(|r| r.path.clone()).collect())
}
