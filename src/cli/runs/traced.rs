//! Resolves the names of traced programs for `warpscope watch` and `attach`.

use super::super::failure::Failure;
use super::find_run::{find_run, of_process};
use crate::import::wstrace::prefix_of_trace;
use crate::library::{Library, Run};
use std::path::{Path, PathBuf};

/// A traced program.
pub enum Traced {
    Run(Box<Run>),
    /// Path of the traces without process id and suffix.
    Traces(PathBuf),
}

/// Resolves the program named by the user: a run number, the id of a traced process, a trace file, a folder that
/// contains the traces of one program, or their path without process id and suffix. The default is the newest run in
/// progress.
pub fn resolve_traced(named: Option<&Path>) -> Result<Traced, Failure> {
    let Some(named) = named else {
        return Ok(Traced::Run(Box::new(find_run(&Library::open()?, None, true)?)));
    };
    if let Some((text, number)) = named.to_str().and_then(|n| Some((n, n.parse().ok()?))).filter(|_| !named.exists()) {
        let run = Library::open().map_err(Failure::from).and_then(|library| find_run(&library, Some(number), false));
        return match (run, of_process(text)) {
            // The number of a run that has ended may equal a process id.
            (Ok(run), None) => Ok(Traced::Run(Box::new(run))),
            (Ok(run), Some(_)) if run.state.is_live() => Ok(Traced::Run(Box::new(run))),
            (_, Some(output)) => Ok(Traced::Traces(output)),
            (Err(why), None) => Err(why),
        };
    }
    let path = std::path::absolute(named)?;
    if path.is_file() {
        let wrong = || Failure::wrong(format!("{}: not a trace of a program that runs", named.display()));
        return Ok(Traced::Traces(prefix_of_trace(&path).ok_or_else(wrong)?));
    }
    if path.is_dir() {
        let mut found: Vec<PathBuf> = std::fs::read_dir(&path)?.flatten().filter_map(|e| prefix_of_trace(&e.path())).collect();
        found.sort();
        found.dedup();
        // If exactly one program has a control socket, prefer it, because it is still running.
        let listens = |p: &PathBuf| {
            let stem = p.file_name().map(|n| format!("{}.", n.to_string_lossy())).unwrap_or_default();
            let sock = |name: &str| name.strip_prefix(&stem).is_some_and(|n| n.strip_suffix(".sock").is_some());
            std::fs::read_dir(&path).is_ok_and(|d| d.flatten().any(|e| sock(&e.file_name().to_string_lossy())))
        };
        if found.len() > 1 && found.iter().filter(|p| listens(p)).count() == 1 {
            found.retain(listens);
        }
        return match <[PathBuf; 1]>::try_from(found) {
            Ok([one]) => Ok(Traced::Traces(one)),
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
    Ok(Traced::Traces(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_a_process_lead_to_those_of_its_program() {
        let of = |name: &str| prefix_of_trace(Path::new(name)).map(|p| p.display().to_string());
        assert_eq!(of("/t/run.12.wstrace").as_deref(), Some("/t/run"));
        assert_eq!(of("/t/run.12-1.wstrace").as_deref(), Some("/t/run"));
        assert_eq!(of("/t/run.v2.12.3.wstrace").as_deref(), Some("/t/run.v2"));
        assert_eq!((of("/t/run.wstrace"), of("/t/run.12.nsys-rep")), (None, None));
    }
}
