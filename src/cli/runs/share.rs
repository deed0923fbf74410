//! `warpscope runs export`: a run's files for somebody else, with what is private in them said first.

use super::super::{Failure, interrupt, print};
use crate::import::{Job, Wants, exported};
use crate::library::{Library, LibraryError, export};
use std::path::Path;

/// Copies a run's reports into a folder; `clean`: of timelines, only copies without the environment.
pub fn export_run(library: &Library, id: i64, folder: &Path, clean: bool, nsys: Option<&Path>) -> Result<(), Failure> {
    let run = library.run(id)?;
    if run.reports.is_empty() {
        return Err(Failure::wrong(format!("run {id} left no report")));
    }
    let wrong = |path: &Path| {
        let path = path.display().to_string();
        move |source| LibraryError::File { path, source }
    };
    std::fs::create_dir_all(folder).map_err(wrong(folder))?;
    let mut written = Vec::new();
    for report in &run.reports {
        let name = report.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let timeline = [".nsys-rep", ".qdrep", ".sqlite"].iter().any(|k| name.trim_end_matches(".zst").ends_with(k));
        if clean && timeline {
            let nsys = nsys.map(Path::to_owned);
            let from =
                interrupt::reading(&report.path, |cancel| exported(&report.path, &Job { cancel, nsys, ..Job::new(Wants::ALL, &|_| {}) }))?;
            let stem = name.trim_end_matches(".zst").rsplit_once('.').map_or(name.as_str(), |(s, _)| s).to_owned();
            let target = folder.join(format!("{stem}.clean.sqlite"));
            let cleaned = export::clean(&from, &target)?;
            print::error(&format!(
                "{}: {} environment variables taken out, and verified gone byte by byte",
                target.display(),
                cleaned.variables
            ));
            if !cleaned.elsewhere.is_empty() {
                print::error(&format!(
                    "{}: the values of {} still occur as other facts (folders, the program's arguments); look at them before you share",
                    target.display(),
                    cleaned.elsewhere.join(", ")
                ));
            }
            written.push(target);
            continue;
        }
        let target = folder.join(&name);
        if target.symlink_metadata().is_ok() {
            return Err(Failure::wrong(format!("{} is there already; name another folder", target.display())));
        }
        std::fs::copy(&report.path, &target).map_err(wrong(&report.path))?;
        if clean {
            print::error(&format!(
                "{}: copied as it is; reports of Nsight Compute hold the program's command, directory and environment (`warpscope metrics FILE --session` shows them)",
                target.display()
            ));
        }
        written.push(target);
    }
    if !clean {
        print::error(
            "these reports hold the environment of every process that they saw, secrets included; --clean makes copies of timelines without it",
        );
    }
    print::lines(&written.iter().map(|p| p.display().to_string()).collect::<Vec<_>>())
}
