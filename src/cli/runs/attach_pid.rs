//! `warpscope attach --pid`: records a program that was started without warpscope.

use super::super::failure::Failure;
use super::super::global_args::GlobalArgs;
use super::super::{event_loop, print};
use super::headless;
use super::traced::Traced;
use super::watch;
use super::watch::WatchArgs;
use crate::config::Config;
use crate::import::cache;
use crate::launch::attach::{self, GpuProcess, Target};
use crate::launch::tracer::{self, Gate, Library, Record, find_libraries};
use crate::model::Nanos;
use crate::model::text::escape_unsafe;
use crate::report::runs::format_clock;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for the tracer to answer after it has been injected: it has to load CUPTI first.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// Time for the tracer to detach from CUPTI: half a second after the recording has closed, it tries for three seconds.
const LEAVING: Duration = Duration::from_secs(6);

fn failed(e: impl std::fmt::Display) -> Failure {
    Failure::unable(e.to_string())
}

/// Lists the processes that use a GPU.
pub fn print_candidates() -> Result<(), Failure> {
    let all = attach::list_processes();
    if all.is_empty() {
        return Err(Failure::unable("no process of this user has loaded the CUDA driver"));
    }
    let line = |p: &GpuProcess| {
        let since = p.seconds.map_or_else(String::new, |s| format_clock(i64::try_from(s).unwrap_or(0) * 1000));
        let traced = if p.traced { "  (traced)" } else { "" };
        format!("{:>8}  {since:>12}  {}{traced}", p.pid, escape_unsafe(&p.command.join(" ")))
    };
    let head = format!("{:>8}  {:>12}  program", "pid", "running for");
    let lines: Vec<String> = std::iter::once(head).chain(all.iter().map(line)).collect();
    print::lines(&lines)?;
    print::note("`warpscope attach --pid PID` records one of them");
    Ok(())
}

/// Reads the arguments or environment variables of a running process.
fn read_words(pid: i32, file: &str) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    bytes.split(|&b| b == 0).filter(|w| !w.is_empty()).map(|w| String::from_utf8_lossy(w).into_owned()).collect()
}

/// Candidates for CUPTI, as if this shell started the program in the process's environment.
fn libraries_for(pid: i32) -> Vec<Library> {
    let variables = read_words(pid, "environ");
    let variable = |name: &str| {
        let value = variables.iter().find_map(|v| v.strip_prefix(name)?.strip_prefix('='))?;
        Some(PathBuf::from(value)).filter(|v| !v.as_os_str().is_empty())
    };
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok().map(|p| p.display().to_string());
    let words: Vec<String> = program.into_iter().chain(read_words(pid, "cmdline")).collect();
    find_libraries(Path::new("/"), &words, variable)
}

/// Records a program to traces named `output`, shows it while it is being recorded, and then detaches.
pub fn attach_to_process(all: &GlobalArgs, output: Option<&Path>, watch: &WatchArgs, pid: i32, config: &Config) -> Result<(), Failure> {
    let target = Target::find(pid).map_err(failed)?;
    // If the user suspends this program (^Z), the target's threads must not remain stopped.
    let unstoppable = attach::Unstoppable::begin();
    // Determine this before the tracer loads its own libcupti into the process.
    let may_profile_itself = target.has_cupti() && target.trace_prefix().is_none();
    let output = match target.trace_prefix() {
        Some(prefix) => {
            let named = output.map(std::path::absolute).transpose()?;
            if named.is_some_and(|n| n != prefix) {
                print::note(&format!(
                    "-o has no effect: the tracer of process {pid} was loaded with {}, and adds to it; `warpscope attach --snapshot` saves \
                     a part of it",
                    prefix.display()
                ));
            }
            prefix
        }
        None => load_tracer(output, &target)?,
    };
    open_recording(&target, &output)?;
    drop(unstoppable);
    // Have the tracer write what it has recorded so far, so that there is data to show at once.
    let _ = tracer::send_command(&output, "flush");
    let trace = format!("{}.{pid}.{}", output.display(), crate::import::wstrace::SUFFIX);
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    print::note(&format!("recording process {pid} to {trace}"));
    if may_profile_itself {
        print::note("a profiler that the program starts meanwhile, such as torch.profiler, sees no kernels");
    }
    let watched = if terminal && !watch.plain && watch.seconds.is_none() {
        event_loop::explore_traces(all, config, output.clone())
    } else {
        watch::as_lines(&Traced::Traces(output.clone()), watch, &*headless::count_signals()?)
    };
    // The program continues without being recorded, unless it has ended.
    let closed = tracer::send_command(&output, "close").unwrap_or_default();
    if target.check_alive().is_ok() && !closed.iter().any(|(_, answer)| answer.is_ok()) {
        print::error(&format!("process {pid} did not answer and may still be recorded; `warpscope attach --close {}`", output.display()));
    }
    let _ = tracer::send_command(&output, "flush");
    if let Some(note) = describe_leaving(&target, &output) {
        print::note(&note);
    }
    watched?;
    print::lines(&[trace])
}

/// Waits until the tracer has detached from CUPTI; describes the state in which the program continues.
fn describe_leaving(target: &Target, output: &Path) -> Option<String> {
    let (pid, until) = (target.pid, Instant::now() + LEAVING);
    loop {
        let answers = tracer::send_command(output, "left").ok()?;
        let (_, answer) = answers.into_iter().find(|(p, _)| i32::try_from(*p) == Ok(pid))?;
        match answer.ok()?.as_str() {
            "left" => return Some(format!("process {pid} runs as before: CUPTI is no longer used")),
            "idle" => return Some(format!("process {pid} makes no CUDA calls now; CUPTI is left when it does")),
            "leaving" if Instant::now() < until => std::thread::park_timeout(PAUSE),
            said => {
                let why = said.strip_prefix("subscribed: ")?;
                return Some(format!("CUPTI stays in process {pid} ({why}); `warpscope help trace` says what that costs"));
            }
        }
    }
}

/// Loads the tracer into the process, which has not been traced yet; returns the path of its traces without process id
/// and suffix.
fn load_tracer(named: Option<&Path>, target: &Target) -> Result<PathBuf, Failure> {
    let pid = target.pid;
    let output = std::path::absolute(named.unwrap_or(Path::new("attached")))?;
    let folder = output.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return Err(Failure::wrong(format!("the folder {} does not exist", folder.display())));
    }
    // Graphs cannot be recorded as a whole here: the program may have instantiated them already (activity.c).
    let record = Record { output, stack_rate: 100, gate: Some(Gate::ByHand), ..Record::default() };
    let files = tracer::write_attachable(&record, &libraries_for(pid), &cache::default_folder(), (target.user, pid)).map_err(failed)?;
    attach::load_object(target, &files.object, &files.settings).map_err(failed)?;
    Ok(record.output)
}

/// Opens the recording. Threads are stopped only once the tracer is known to listen for commands.
fn open_recording(target: &Target, output: &Path) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    await_answer(target, output, "left", until)?;
    // Loading CUPTI may take longer than an answer is waited for. The tracer of an earlier version answers, too.
    while let Err(e) = await_answer(target, output, "prepare", until) {
        target.check_alive().map_err(failed)?;
        if Instant::now() >= until {
            return Err(e);
        }
        std::thread::park_timeout(PAUSE);
    }
    loop {
        let held = attach::hold_threads(target).map_err(failed)?;
        let answer = await_answer(target, output, "open", until)?;
        drop(held);
        if answer.starts_with("open") {
            return Ok(());
        }
        // Another thread is subscribing, or instantiating a graph.
        if !answer.contains("try again") || Instant::now() >= until {
            return Err(Failure::unable(format!("process {}: {answer}", target.pid)));
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Sends a command until the tracer answers it.
fn await_answer(target: &Target, output: &Path, command: &str, until: Instant) -> Result<String, Failure> {
    loop {
        let answers = tracer::send_command(output, command).map_err(failed)?;
        match answers.into_iter().find(|(pid, _)| i32::try_from(*pid) == Ok(target.pid)) {
            Some((_, Ok(answer))) => return Ok(answer),
            Some((pid, Err(why))) => return Err(Failure::unable(format!("process {pid}: {why}"))),
            None => {}
        }
        target.check_alive().map_err(failed)?;
        if Instant::now() >= until {
            let waited = Nanos(i64::try_from(PATIENCE.as_nanos()).unwrap_or(i64::MAX));
            let folder = output.parent().unwrap_or(Path::new("/")).display();
            return Err(Failure::unable(format!(
                "process {}: the tracer did not answer within {waited}; can the program write to {folder}? `-o PATH` names another place",
                target.pid
            )));
        }
        std::thread::park_timeout(PAUSE);
    }
}
