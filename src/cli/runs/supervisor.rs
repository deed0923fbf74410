//! The hidden commands behind a run: its supervisor, and the exec step that precedes the profiler.

use super::super::failure::Failure;
use super::nsys_tmpdir::{self, Temporary};
use crate::launch::profiler::{PROFILERS, silence_limit};
use crate::launch::runs::supervise::{self, Order, exec_profiler};
use crate::launch::runs::{Event, Exit, ExitProblem, LogWriter, environment, explain_exit, process, spawn};
use crate::library::store::Library;
use crate::library::{Report, Run, State, export, gc, store};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Name of the supervisor command.
pub const SUPERVISE: &str = "__supervise";
/// Option that starts the supervisor itself instead of its keeper process.
const KEPT: &str = "--kept";
/// Name of the exec command.
pub const EXEC: &str = "__exec";
/// Exit code of the exec step if the program does not exist, as in shells.
const NOT_FOUND: u8 = 127;
/// Exit code of the exec step if the program exists but cannot be executed.
const NOT_RUN: u8 = 126;

/// `__exec SUPERVISOR WORD…`: replaces this process with the profiler. Returns only on failure.
pub fn last_step(supervisor: i32, argv: &[OsString]) -> Failure {
    let error = exec_profiler(argv, supervisor);
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    let program = argv.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    Failure { text: format!("cannot start {program}: {error}"), code, reason: crate::cli::reason::Reason::Failed }
}

/// Time for a profiler to write its report after its supervisor has died and the kernel has sent TERM to the profiler.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// `__supervise RUN`: runs the supervisor in a child process. If the child is killed, its orphans in all sessions
/// become children of this process, which then ends them and marks the run as ended in the library.
pub fn keep_supervisor(id: i64, detached: bool) -> Result<(), Failure> {
    // A separate session shields the profiler from the terminal's keys and hangup.
    let _ = process::start_own_session();
    // Ignore these signals here: the supervisor also receives them and handles them.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let mut words = vec![SUPERVISE.to_owned(), id.to_string(), KEPT.to_owned()];
    words.extend(detached.then(|| "--detached".to_owned()));
    let mut supervisor = spawn::spawn_kept_supervisor(&std::env::current_exe()?, &words)?;
    // Only the supervisor communicates with the process that started the run.
    let ended = supervisor.wait()?;
    let killed = !ended.success();
    let library = Library::open();
    if killed && let Ok(library) = &library {
        // Hold the run until then, because followers wait for its end.
        let _ = library.hold_run(id);
    }
    if killed {
        // End the processes even if the library fails.
        supervise::end_leftovers(LAST_REPORT);
    }
    let library = library?;
    let run = library.run(id)?;
    // A run that no process owns is lost, even if the library lists it as in progress.
    if run.ended_ms.is_some() || !matches!(run.state, State::Lost | State::Starting | State::Running) {
        return Ok(());
    }
    let folder = library.run_folder(id);
    let reports = export::find_reports(&run.patterns, &folder, run.started_ms);
    let kept = nsys_tmpdir::clear_run_folder(&folder.join(gc::TEMPORARY), &reports);
    let what = format!("the run's supervisor died silently ({ended}): killed, or out of memory");
    let mut findings = vec![ExitProblem { what, fix: String::new() }];
    findings.extend(kept.as_deref().map(nsys_tmpdir::kept_finding));
    library.end_run(id, State::Lost, Exit::default(), &findings, &reports)?;
    Ok(())
}

/// `__supervise RUN --kept`: no process reads stdout, so all output goes to the library and the log.
pub fn supervise_run(id: i64, detached: bool) -> Result<(), Failure> {
    // The session id identifies all processes of the run in case this process and its keeper are killed.
    let _ = process::start_own_session();
    let signals = Arc::new(AtomicUsize::new(0));
    count_signals(&signals)?;
    let library = Library::open()?;
    let run = library.run(id)?;
    library.hold_run(id)?;
    tell_starter();
    let outcome = watch_over(&library, &run, detached, signals);
    match outcome {
        Ok(()) => Ok(()),
        Err(failure) => {
            let finding = ExitProblem { what: failure.text.clone(), fix: String::new() };
            library.end_run(id, State::Failed, Exit::default(), &[finding], &[])?;
            Err(failure)
        }
    }
}

/// Notifies the waiting starter that the supervisor owns the run. The starter reads nothing after that.
fn tell_starter() {
    let mut out = std::io::stdout();
    // If the starter is gone, the lifeline reveals it.
    let _ = out.write_all(b"h").and_then(|()| out.flush());
}

fn count_signals(count: &Arc<AtomicUsize>) -> Result<(), Failure> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let count = Arc::clone(count);
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // A hangup is not a request to stop: the lifeline indicates whether the run is still wanted.
            if signal != SIGHUP {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    Ok(())
}

fn watch_over(library: &Library, run: &Run, detached: bool, signals: Arc<AtomicUsize>) -> Result<(), Failure> {
    let (folder, began) = (library.run_folder(run.id), Instant::now());
    let mut log = LogWriter::create(&folder)?;
    let looking = look_around(run);
    let me = std::process::id();
    let starter = vec![std::env::current_exe()?.into_os_string(), EXEC.into(), me.to_string().into()];
    let private = Temporary::create_for_run(run, &folder)?;
    if private.is_created() {
        log.write_message(&format!("temporary files of {} go to {}", run.tool, folder.join(gc::TEMPORARY).display()));
    }
    let order = Order {
        starter,
        argv: &private.argv,
        env: &private.env,
        directory: &run.directory,
        silence_limit: silence_limit(&run.tool),
        lifeline: !detached,
        signals,
        helper: Some(looking),
    };
    // Do not stop the profiler if the library cannot be written.
    let outcome = supervise::supervise_run(order, &mut log, &mut |event| {
        let _ = match event {
            Event::Started(pid) => library.set_started(run.id, pid),
            Event::Stage(stage) => library.set_stage(run.id, stage.as_str()),
            Event::Detached => library.set_detached(run.id),
        };
    })
    .map_err(|e| Failure::unable(e.to_string()))?;
    if let Some(gpus) = environment::query_gpus() {
        let _ = library.set_fact(run.id, "clocks_end", &gpus.clocks);
    }
    let mut reports = export::find_reports(&run.patterns, &folder, store::adjusted_start(run.started_ms, began));
    for path in &outcome.watch.generated {
        // The profiler may have written to a different path than requested.
        if path.is_file() && reports.iter().all(|r| !is_same_file(&r.path, path)) {
            reports.push(export::describe_report(path.clone(), &folder));
        }
    }
    let joined = super::files::join_traces(run, &mut reports, &folder);
    let (state, mut findings) = judge_outcome(&run.tool, outcome.exit, &outcome.watch, &reports);
    findings.extend(joined.err().map(|e| ExitProblem {
        what: format!("the traces of the processes could not be put into one file: {e}"),
        fix: "open their folder".to_owned(),
    }));
    findings.extend(private.clear_folder(&reports).as_deref().map(nsys_tmpdir::kept_finding));
    findings.extend(
        log.trouble.map(|why| ExitProblem { what: format!("its output could not be logged to the end: {why}"), fix: String::new() }),
    );
    library.end_run(run.id, state, outcome.exit, &findings, &reports)?;
    // Followers need not wait for this; missing data can be read from the report later.
    let _ = super::promises::keep_promises(library, run.id, &reports);
    Ok(())
}

/// Determines the final state of a run and the problems to report.
pub fn judge_outcome(tool: &str, exit: Exit, watch: &crate::launch::runs::Watch, reports: &[Report]) -> (State, Vec<ExitProblem>) {
    let findings = explain_exit(tool, exit, watch, reports.len());
    let state = match exit {
        Exit { stopped: true, .. } => State::Stopped,
        Exit { code: Some(0), .. } if !reports.is_empty() => State::Done,
        _ => State::Failed,
    };
    (state, findings)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// Records facts about the machine and the code while the profiler is already running.
pub fn look_around(run: &Run) -> JoinHandle<()> {
    let (id, directory, tool) = (run.id, run.directory.clone(), run.argv.first().cloned());
    std::thread::spawn(move || {
        let Ok(library) = Library::open() else { return };
        let tell = |column, value: &str| {
            // Missing facts are not an error.
            let _ = library.set_fact(id, column, value);
        };
        if let Some(gpus) = environment::query_gpus() {
            tell("devices", &gpus.names);
            tell("driver", &gpus.driver);
            tell("clocks_start", &gpus.clocks);
        }
        if let Some((commit, dirty)) = environment::git_commit(&directory) {
            tell("git_commit", &commit);
            let _ = library.set_dirty(id, dirty);
        }
        let external = |name: &std::ffi::OsStr| PROFILERS.iter().any(|p| p.external && name == p.name);
        let tool = tool.filter(|t| Path::new(t).file_name().is_some_and(external));
        if let Some(version) = tool.and_then(|t| environment::tool_version(Path::new(&t))) {
            tell("tool_version", &version);
        }
    })
}
