//! `warpscope watch`: a program while it is being traced, on a screen or as lines.

use super::super::args::{Args, Watch};
use super::super::live::{self, Told};
use super::super::{FAILED, Failure, explore, interrupt, print};
use super::{list, plain};
use crate::config::Config;
use crate::import::{Cancel, trace};
use crate::library::{Library, Run};
use crate::report;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is watched.
enum What {
    Run(Box<Run>),
    /// Traces by their path without process id and suffix.
    Traces(PathBuf),
}

/// `PREFIX` of `PREFIX.PID.wstrace`, also of `PREFIX.PID-1.wstrace` and `PREFIX.PID.7.wstrace`.
fn prefix(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?.strip_suffix(&format!(".{}", trace::SUFFIX))?;
    let number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let (mut head, mut tail) = name.rsplit_once('.')?;
    if let Some((before, pid)) = head.rsplit_once('.').filter(|(_, pid)| number(pid) && number(tail)) {
        (head, tail) = (before, pid);
    }
    number(tail).then(|| file.with_file_name(head))
}

/// What the user named: a run's number, a file of traces, a folder with traces of one program, or their path without process id and suffix.
fn what(args: &Watch) -> Result<What, Failure> {
    let Some(named) = &args.what else {
        return Ok(What::Run(Box::new(list::the(&Library::open()?, None, true)?)));
    };
    if let Some(run) = named.to_str().and_then(|n| n.parse().ok()).filter(|_| !named.exists()) {
        return Ok(What::Run(Box::new(list::the(&Library::open()?, Some(run), false)?)));
    }
    let path = std::path::absolute(named)?;
    if path.is_file() {
        let wrong = || Failure::wrong(format!("{}: not a trace of a program that runs", named.display()));
        return Ok(What::Traces(prefix(&path).ok_or_else(wrong)?));
    }
    if path.is_dir() {
        let mut found: Vec<PathBuf> = std::fs::read_dir(&path)?.flatten().filter_map(|e| prefix(&e.path())).collect();
        found.sort();
        found.dedup();
        // Of several that of a program that still runs: it listens.
        let listens = |p: &PathBuf| {
            let stem = p.file_name().map(|n| format!("{}.", n.to_string_lossy())).unwrap_or_default();
            let sock = |name: &str| name.strip_prefix(&stem).is_some_and(|n| n.strip_suffix(".sock").is_some());
            std::fs::read_dir(&path).is_ok_and(|d| d.flatten().any(|e| sock(&e.file_name().to_string_lossy())))
        };
        if found.len() > 1 && found.iter().filter(|p| listens(p)).count() == 1 {
            found.retain(listens);
        }
        return match <[PathBuf; 1]>::try_from(found) {
            Ok([one]) => Ok(What::Traces(one)),
            Err(found) if found.is_empty() => Err(Failure::wrong(format!("{}: there are no traces in this folder", named.display()))),
            Err(found) => Err(Failure::wrong(format!(
                "{}: there are traces of {} programs in this folder; name one of them, such as {}",
                named.display(),
                found.len(),
                found[0].display()
            ))),
        };
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return Err(Failure::wrong(format!("the folder {} does not exist", folder.display())));
    }
    Ok(What::Traces(path))
}

/// Watches a program.
pub fn watch(all: &Args, args: &Watch, config: &Config) -> Result<(), Failure> {
    let what = what(args)?;
    if let What::Run(run) = &what
        && live::output(run).is_none()
    {
        return Err(Failure::wrong(format!("run {} is not one of the built-in tracer; `warpscope attach {0}` follows it", run.id)));
    }
    if let What::Run(run) = &what
        && !run.state.live()
    {
        return Err(Failure::wrong(format!("run {} is not in progress: it is {}", run.id, run.state.word())));
    }
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if terminal && !args.plain && args.format.is_none() && args.seconds.is_none() {
        return match what {
            What::Run(run) => explore::attach(all, config, *run),
            What::Traces(output) => explore::watch(all, config, output),
        };
    }
    let asked = plain::listen()?;
    as_lines(&what, args, &asked)
}

/// A line each second, until the program ends, the time is over, or somebody stops this.
fn as_lines(what: &What, args: &Watch, asked: &AtomicUsize) -> Result<(), Failure> {
    let output = match what {
        What::Run(run) => live::output(run),
        What::Traces(output) => Some(output.clone()),
    };
    let Some(output) = output else { return Ok(()) };
    let until = args.seconds.map(|s| Instant::now() + Duration::from_secs_f64(s));
    let over = || asked.load(Ordering::SeqCst) > 0 || until.is_some_and(|u| Instant::now() >= u);
    let ended = || match what {
        What::Run(run) => Library::open().and_then(|l| l.run(run.id)).is_ok_and(|r| !r.state.live()),
        What::Traces(_) => false,
    };
    let (enough, mut failed, mut seen) = (Cancel::default(), None, false);
    if output
        .parent()
        .is_some_and(|f| std::fs::read_dir(f).is_ok_and(|d| !d.flatten().any(|e| prefix(&e.path()).as_deref() == Some(&*output))))
    {
        print::error(&format!("waiting for a process that writes {}.PID.{}", output.display(), trace::SUFFIX));
    }
    let (_keep, asks) = crossbeam_channel::unbounded();
    let followed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Nothing may be told for long: no process has used CUDA yet.
        scope.spawn(|| {
            while !enough.is_cancelled() && !over() && !ended() {
                std::thread::park_timeout(Duration::from_millis(200));
            }
            enough.cancel();
            // The rest may wait for a disk or a network that is gone.
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
            let text = match args.format.as_deref() {
                Some("json") => report::live::json(&live).to_string(),
                _ => report::live::line(&live),
            };
            failed = print::lines(&[text]).err();
            let done = !live.catching_up() && live.ended();
            failed.is_none() && !(done && matches!(what, What::Traces(_)))
        };
        live::follow(&output, &asks, tell, &enough);
        followed.store(true, Ordering::SeqCst);
        enough.cancel();
    });
    match failed {
        Some(failure) => Err(failure),
        None if seen || asked.load(Ordering::SeqCst) > 0 => Ok(()),
        None => Err(Failure { text: format!("no process was traced to {}", output.display()), code: FAILED }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_a_process_lead_to_those_of_its_program() {
        let of = |name: &str| prefix(Path::new(name)).map(|p| p.display().to_string());
        assert_eq!(of("/t/run.12.wstrace").as_deref(), Some("/t/run"));
        assert_eq!(of("/t/run.12-1.wstrace").as_deref(), Some("/t/run"));
        assert_eq!(of("/t/run.v2.12.3.wstrace").as_deref(), Some("/t/run.v2"));
        assert_eq!((of("/t/run.wstrace"), of("/t/run.12.nsys-rep")), (None, None));
    }
}
