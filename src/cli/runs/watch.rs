//! `warpscope watch`: shows a traced program live, on a screen or as lines.

use super::super::failure::Failure;
use super::super::global_args::GlobalArgs;
use super::super::live::{self, Told};
use super::super::{event_loop, interrupt, print};
use super::headless;
use super::traced::{self, Traced};
use crate::config::Config;
use crate::import::{Cancel, wstrace};
use crate::library::Library;
use crate::report;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// `warpscope watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct WatchArgs {
    /// A run's number, or a program that `warpscope trace` started: PATH of its -o, a file, a folder, a process id [default: the newest run in progress].
    pub what: Option<PathBuf>,
    /// Without the explorer: a line each second.
    #[arg(long)]
    pub plain: bool,
    /// Lines as text or as JSON objects.
    #[arg(long, value_name = "FORMAT", value_parser = ["table", "json"])]
    pub format: Option<String>,
    /// End after so many seconds; the program keeps running.
    #[arg(long, value_name = "SECONDS", value_parser = super::super::values::parse_seconds)]
    pub seconds: Option<f64>,
}

pub fn watch_program(all: &GlobalArgs, args: &WatchArgs, config: &Config) -> Result<(), Failure> {
    let what = traced::resolve_traced(args.what.as_deref())?;
    if let Traced::Run(run) = &what
        && live::trace_prefix(run).is_none()
    {
        return Err(Failure::wrong(format!("run {} is not one of the built-in tracer; `warpscope attach {0}` follows it", run.id)));
    }
    if let Traced::Run(run) = &what
        && !run.state.is_live()
    {
        return Err(Failure::wrong(format!("run {} is not in progress: it is {}", run.id, run.state.as_str())));
    }
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if terminal && !args.plain && args.format.is_none() && args.seconds.is_none() {
        return match what {
            Traced::Run(run) => event_loop::explore_attached(all, config, *run),
            Traced::Traces(output) => event_loop::explore_traces(all, config, output),
        };
    }
    let asked = headless::count_signals()?;
    as_lines(&what, args, &asked)
}

/// Prints one line per second until the program ends, the time is up, or a signal arrives.
pub fn as_lines(what: &Traced, args: &WatchArgs, asked: &AtomicUsize) -> Result<(), Failure> {
    let output = match what {
        Traced::Run(run) => live::trace_prefix(run),
        Traced::Traces(output) => Some(output.clone()),
    };
    let Some(output) = output else { return Ok(()) };
    let until = args.seconds.map(|s| Instant::now() + Duration::from_secs_f64(s));
    let over = || asked.load(Ordering::SeqCst) > 0 || until.is_some_and(|u| Instant::now() >= u);
    let ended = || match what {
        Traced::Run(run) => Library::open().and_then(|l| l.run(run.id)).is_ok_and(|r| !r.state.is_live()),
        Traced::Traces(_) => false,
    };
    let (enough, mut failed, mut seen) = (Cancel::default(), None, false);
    if has_traces(&output) == Some(false) {
        print::error(&format!("waiting for a process that writes {}.PID.{}", output.display(), wstrace::SUFFIX));
    }
    let (_keep, asks) = crossbeam_channel::unbounded();
    let followed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Poll for the end, since the first message arrives only after a process has initialized CUDA.
        scope.spawn(|| {
            while !enough.is_cancelled() && !over() && !ended() {
                std::thread::park_timeout(Duration::from_millis(200));
            }
            enough.cancel();
            // The other thread may be blocked on an unreachable disk or network.
            let since = Instant::now();
            while asked.load(Ordering::SeqCst) > 0 && !followed.load(Ordering::SeqCst) {
                if since.elapsed() > interrupt::PATIENCE {
                    std::process::exit(128 + signal_hook::consts::SIGINT);
                }
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let tell = |told| {
            let Told::Live(live) = told else { return true };
            seen = true;
            failed = match args.format.as_deref() {
                Some("json") => print::to_stdout(|out| report::live::write_json(out, &live)).err(),
                _ => print::lines(&[report::live::status_line(&live)]).err(),
            };
            let done = !live.catching_up() && live.has_ended();
            failed.is_none() && !(done && matches!(what, Traced::Traces(_)))
        };
        live::follow_traces(&output, &asks, tell, &enough);
        followed.store(true, Ordering::SeqCst);
        enough.cancel();
    });
    match failed {
        Some(failure) => Err(failure),
        // On a busy machine, the time may be over before the first state is read.
        None if seen || asked.load(Ordering::SeqCst) > 0 || has_traces(&output) == Some(true) => Ok(()),
        None => Err(Failure::unable(format!("no process was traced to {}", output.display()))),
    }
}

/// Tests whether there are traces of this name; `None` if their folder cannot be read.
fn has_traces(output: &Path) -> Option<bool> {
    let files = std::fs::read_dir(output.parent()?).ok()?;
    let is_file = |e: &std::fs::DirEntry| e.file_type().is_ok_and(|t| t.is_file());
    Some(files.flatten().any(|e| wstrace::is_trace_of(output, &e.path()) && is_file(&e)))
}
