//! `warpscope attach`: follows a run live.

use super::super::failure::Failure;
use super::super::global_args::GlobalArgs;
use super::super::live;
use super::super::values;
use super::super::{event_loop, print};
use super::attach_pid;
use super::headless::{self, Holder};
use super::traced::{self, Traced};
use super::watch::WatchArgs;
use crate::config::Config;
use crate::import::wstrace::Follow;
use crate::launch::runs::process;
use crate::launch::tracer;
use crate::library::Library;
use clap::builder::NonEmptyStringValueParser;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// `warpscope attach`.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct AttachArgs {
    /// A run's number; or, with `--open`, `--close`, `--measure` and `--snapshot`, a program that `warpscope trace` started: PATH of its -o, a file, a
    /// folder, a process id [default: the newest run in progress].
    pub what: Option<PathBuf>,
    /// Record a program that was started without warpscope; without PID, list the programs that use a GPU. Ends with Ctrl-C or --seconds; the program goes on.
    #[arg(long, group = "word", value_name = "PID", num_args = 0..=1, value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "what")]
    pub pid: Option<Option<i32>>,
    /// With --pid: record for SECONDS seconds.
    #[arg(long, value_name = "SECONDS", requires = "pid", value_parser = super::super::values::parse_seconds)]
    pub seconds: Option<f64>,
    /// Without the explorer: output to stderr, the reports' names to stdout.
    #[arg(long)]
    pub plain: bool,
    /// Stop the run; each repetition escalates: INT, TERM, KILL.
    #[arg(long, group = "word")]
    pub stop: bool,
    /// Built-in tracer only: start recording now.
    #[arg(long, group = "word")]
    pub open: bool,
    /// Built-in tracer only: stop recording; the program keeps running.
    #[arg(long, group = "word")]
    pub close: bool,
    /// Built-in tracer only: save the last seconds as a report, and print its name.
    #[arg(long, group = "word")]
    pub snapshot: bool,
    /// Built-in tracer only: measure counters of the next launches of KERNEL, by its function or mangled name.
    #[arg(long, group = "word", value_name = "KERNEL", value_parser = NonEmptyStringValueParser::new())]
    pub measure: Option<String>,
    /// Length of the snapshot, in seconds.
    #[arg(long, value_name = "SECONDS", requires = "snapshot", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub last: u32,
    /// With --snapshot: file to write [default: beside the run's traces]. With --pid: prefix of the trace, which is named FILE.PID.wstrace [default: attached].
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Returns the path of a program's traces without process id and suffix.
fn trace_prefix(what: &Traced) -> Result<PathBuf, Failure> {
    match what {
        Traced::Traces(output) => Ok(output.clone()),
        Traced::Run(run) => live::trace_prefix(run).ok_or_else(|| {
            Failure::wrong(format!("run {} is not one of the built-in tracer: nothing can be opened, closed or measured", run.id))
        }),
    }
}

/// Opens or closes the recording of a program's processes.
fn set_recording(what: &Traced, word: &str) -> Result<(), Failure> {
    let answers = tracer::send_command(&trace_prefix(what)?, word)?;
    if answers.is_empty() {
        let of = match what {
            Traced::Run(run) => format!("run {}", run.id),
            Traced::Traces(output) => output.display().to_string(),
        };
        let text = format!("no process of {of} is being traced: it has not used CUDA yet, or has ended");
        return Err(Failure::unable(text));
    }
    let (mut said, mut silent) = (Vec::new(), Vec::new());
    for (pid, answer) in answers {
        match answer {
            Ok(answer) if answer.starts_with("not recorded") || answer.starts_with("cannot measure") => {
                silent.push(format!("process {pid}: {answer}"));
            }
            Ok(answer) => said.push(format!("process {pid}: {answer}")),
            Err(why) => silent.push(format!("process {pid}: {why}")),
        }
    }
    print::lines(&said)?;
    if silent.is_empty() { Ok(()) } else { Err(Failure::unable(silent.join("\n"))) }
}

/// Saves the last seconds of a program.
fn save_snapshot(what: &Traced, args: &AttachArgs) -> Result<(), Failure> {
    let failed = |text| Failure::unable(text);
    if let Traced::Run(run) = what
        && (live::trace_prefix(run).is_none() || !run.state.is_live())
    {
        return Err(Failure::wrong(format!(
            "run {} is not one of the built-in tracer that is in progress: `warpscope attach` opens its report",
            run.id
        )));
    }
    let output = trace_prefix(what)?;
    let path = args.output.clone().unwrap_or_else(|| live::snapshot_path(&output));
    live::save_snapshot(&mut Follow::new(&output), &output, Some(i64::from(args.last) * 1_000_000_000), &path).map_err(failed)?;
    print::lines(&[path.display().to_string()])
}

/// Follows a run; opens the reports if the run has ended.
pub fn attach_run(all: &GlobalArgs, args: &AttachArgs, config: &Config) -> Result<(), Failure> {
    if let Some(pid) = args.pid {
        return match pid {
            Some(pid) => {
                let watch = WatchArgs { what: None, plain: args.plain, format: None, seconds: args.seconds };
                attach_pid::attach_to_process(all, args.output.as_deref(), &watch, pid, config)
            }
            None => attach_pid::print_candidates(),
        };
    }
    if args.output.is_some() && !args.snapshot {
        return Err(Failure::wrong("-o names a snapshot (--snapshot) or the trace of a program (--pid)"));
    }
    let what = traced::resolve_traced(args.what.as_deref())?;
    if args.stop {
        let Traced::Run(run) = &what else {
            return Err(Failure::wrong("only runs of the library are stopped, by their number; this program is its starter's"));
        };
        let Some((pid, started)) = run.holder.filter(|_| run.state.is_live()) else {
            return Err(Failure::wrong(format!("run {} is not in progress: it is {}", run.id, run.state.as_str())));
        };
        process::ask_to_stop(pid, started).map_err(|e| Failure::unable(format!("cannot stop run {}: {e}", run.id)))?;
        print::error(&format!("run {} was asked to stop; `warpscope attach {}` shows its progress", run.id, run.id));
        return Ok(());
    }
    if args.open || args.close {
        return set_recording(&what, if args.open { "open" } else { "close" });
    }
    if let Some(kernel) = &args.measure {
        let chosen = values::parse_kernel(kernel).map_err(Failure::wrong)?;
        if chosen.nth.is_some() {
            let text = "launches of a running program are measured as they come: name the kernel without a number, or start the program with `--measure KERNEL#N`";
            return Err(Failure::wrong(text));
        }
        return set_recording(&what, &format!("measure {kernel}"));
    }
    if args.snapshot {
        return save_snapshot(&what, args);
    }
    let Traced::Run(run) = what else {
        let named = args.what.as_deref().unwrap_or(Path::new("")).display();
        return Err(Failure::wrong(format!("{named} is not a run of the library: `warpscope watch {named}` shows the program")));
    };
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if args.plain || !terminal {
        let ended = headless::follow_to_end(Library::open()?, &run, Holder::Other, &*headless::count_signals()?)?;
        return if ended.state.is_live() { Ok(()) } else { headless::print_outcome(&ended) };
    }
    event_loop::explore_attached(all, config, *run)
}
