//! Runs that own the terminal: for programs that prompt, draw or debug. Their output is not recorded.
//!
//! As in other runs, there is a separate process between the explorer and the profiler, here in the terminal's session.
//! That process ends the profiler and any leftover processes if the explorer is killed or the terminal disappears.

use super::super::event_loop;
use super::super::failure::Failure;
use super::super::global_args::GlobalArgs;
use super::headless;
use super::nsys_tmpdir::{self, Temporary};
use super::supervisor::{EXEC, judge_outcome, look_around};
use crate::config::Config;
use crate::launch::profiler::silence_limit;
use crate::launch::runs::{Exit, Watch, environment, process, spawn, supervise};
use crate::library::{Library, LibraryError, NewRun, Run, State, export, store};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

/// Name of the command that owns the terminal.
pub const FOREGROUND: &str = "__foreground";

/// Ignores the terminal's key signals in this process: the profiler also receives them, and this process waits until
/// the profiler has ended.
fn leave_keys_to_the_profiler() -> std::io::Result<()> {
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Time for a profiler to write its report after its supervisor was killed.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// Runs a program to completion in the foreground.
pub fn run_in_terminal(library: &mut Library, make: impl FnOnce(i64, &Path) -> Result<NewRun, LibraryError>) -> Result<Run, Failure> {
    let run = library.begin_run(make)?;
    leave_keys_to_the_profiler()?;
    let words = [FOREGROUND.to_owned(), run.id.to_string(), std::process::id().to_string()];
    let status = spawn::run_in_terminal(&std::env::current_exe()?, &words)?;
    if !status.success() {
        // Orphans of a killed process were reparented to this process.
        supervise::end_leftovers(LAST_REPORT);
    }
    let ended = library.run(run.id)?;
    if ended.state == State::Starting {
        library.delete_run(run.id)?;
        return Err(Failure::unable(format!("the run did not start ({status})")));
    }
    Ok(ended)
}

/// `__foreground RUN EXPLORER`: runs the profiler in the terminal.
pub fn run_foreground(id: i64, explorer: i32) -> Result<(), Failure> {
    leave_keys_to_the_profiler()?;
    let stop = Arc::new(AtomicUsize::new(0));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&stop), 1)?;
    }
    process::end_with_parent(explorer)?;
    let library = Library::open()?;
    let run = library.run(id)?;
    library.hold_run(id)?;
    let (looking, began) = (look_around(&run), Instant::now());
    let private = Temporary::create_for_run(&run, &library.run_folder(id))?;
    let own = [std::env::current_exe()?.into_os_string(), EXEC.into(), std::process::id().to_string().into()];
    let words: Vec<OsString> = own.into_iter().chain(private.argv.iter().map(OsString::from)).collect();
    let limit = silence_limit(&run.tool);
    let (status, stopped) = supervise::run_in_foreground(&words, &private.env, &run.directory, limit, &stop, |pid| {
        // Missing facts are not an error.
        let _ = library.set_started(run.id, pid);
    })?;
    let _ = looking.join();
    if let Some(gpus) = environment::query_gpus() {
        let _ = library.set_fact(run.id, "clocks_end", &gpus.clocks);
    }
    let reports = export::find_reports(&run.patterns, &library.run_folder(run.id), store::adjusted_start(run.started_ms, began));
    // Ctrl-C in the terminal stops such a run, which shells report as exit code 130.
    let interrupted = status.signal() == Some(SIGINT) || status.code() == Some(128 + SIGINT);
    let exit = Exit { code: status.code(), signal: status.signal(), stopped: stopped || interrupted };
    let (state, mut findings) = judge_outcome(&run.tool, exit, &Watch::default(), &reports);
    findings.extend(private.clear_folder(&reports).as_deref().map(nsys_tmpdir::kept_finding));
    library.end_run(run.id, state, exit, &findings, &reports)?;
    Ok(())
}

/// Opens the reports of a run in the explorer.
pub fn open_reports(args: &GlobalArgs, config: &Config, run: &Run) -> Result<(), Failure> {
    if run.openable_reports(crate::import::open::is_openable).next().is_none() {
        return headless::print_outcome(run);
    }
    event_loop::explore_reports(args, config, run.openable_reports(crate::import::open::is_openable).map(|r| r.path.clone()).collect())
}
