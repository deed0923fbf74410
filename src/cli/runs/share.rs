//! `warpscope runs export`: copies a run's files for sharing, after listing the private data in them.

use super::super::failure::Failure;
use super::super::{interrupt, print};
use crate::import::{Job, Wants, export_path};
use crate::launch::open;
use crate::library::{Library, LibraryError, Report, export, gc, store};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Copies a run's reports into a folder. With `clean`, copies timelines only as exports without the environment.
pub fn export_run(library: &Library, id: i64, folder: &Path, clean: bool, nsys: Option<&Path>) -> Result<(), Failure> {
    let run = library.run(id)?;
    if run.reports.is_empty() {
        return Err(Failure::wrong(format!("run {id} left no report")));
    }
    let wrong = |path: &Path| {
        let path = path.display().to_string();
        move |source| LibraryError::File { path, source }
    };
    // Keep the permissions as restrictive as in the library.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong(folder))?;
    let scratch = store::library_folder()?;
    if let Some(odd) = run.reports.iter().find(|r| r.path.exists() && !gc::is_sound(&library.run_folder(id), r)) {
        let text = format!("{} is not where run {id} left its reports; nothing was copied", odd.path.display());
        return Err(Failure::wrong(text));
    }
    let (mut written, mut left_out) = (Vec::new(), 0);
    for report in &run.reports {
        let name = own_name(&run.reports, report);
        let timeline = has_extension(&name, &[".nsys-rep", ".qdrep", ".sqlite"]);
        if clean && timeline {
            let nsys = nsys.map(Path::to_owned);
            let from = interrupt::read_cancellable(&report.path, |cancel| {
                export_path(&report.path, &Job { cancel, nsys, ..Job::new(Wants::ALL, &|_| {}) })
            })?;
            let stem = name.trim_end_matches(".zst").rsplit_once('.').map_or(name.as_str(), |(s, _)| s).to_owned();
            let target = folder.join(format!("{stem}.clean.sqlite"));
            let cleaned = export::clean_export(&from, &target, &scratch)?;
            print::error(&format!(
                "{}: {} environment variables removed, and verified to be gone from every cell and byte by byte (pairs shorter than {} letters are not searched for)",
                target.display(),
                cleaned.variables,
                export::TELLING
            ));
            if !cleaned.elsewhere.is_empty() {
                print::error(&format!(
                    "{}: the values of {} still occur in other fields (folders, the program's arguments); check them before you share",
                    target.display(),
                    cleaned.elsewhere.join(", ")
                ));
            }
            written.push(target);
            continue;
        }
        if clean && has_extension(&name, &[".ncu-rep"]) {
            print::error(&format!(
                "{}: skipped; {}, and that cannot be removed: share what `warpscope metrics` prints, or copy it by hand",
                report.path.display(),
                private_contents(&name)
            ));
            left_out += 1;
            continue;
        }
        let target = folder.join(&name);
        if target.symlink_metadata().is_ok() {
            return Err(Failure::wrong(format!("{} already exists; choose another folder", target.display())));
        }
        let mut from = open::open_regular(&report.path).map_err(wrong(&report.path))?;
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target).map_err(wrong(&target))?;
        std::io::copy(&mut from, &mut to).map_err(wrong(&report.path))?;
        if clean {
            print::error(&format!("{}: copied unchanged; {}", target.display(), private_contents(&name)));
        }
        written.push(target);
    }
    if !clean {
        let names: BTreeSet<&str> = run.reports.iter().map(|r| private_contents(&r.path.to_string_lossy())).collect();
        names.into_iter().for_each(print::error);
    }
    print::lines(&written.iter().map(|p| p.display().to_string()).collect::<Vec<_>>())?;
    if left_out > 0 {
        let text = format!(
            "{left_out} of {} reports could not be cleaned and {} skipped",
            run.reports.len(),
            if left_out == 1 { "was" } else { "were" }
        );
        return Err(Failure::unable(text));
    }
    Ok(())
}

fn has_extension(name: &str, kinds: &[&str]) -> bool {
    let name = name.trim_end_matches(".zst").trim_end_matches(".gz");
    kinds.iter().any(|k| name.ends_with(k))
}

/// Describes the private data in a report.
fn private_contents(name: &str) -> &'static str {
    if has_extension(name, &[".nsys-rep", ".qdrep", ".sqlite"]) {
        "timelines contain the environment of every traced process, secrets included; --clean makes copies without it"
    } else if has_extension(name, &[".ncu-rep"]) {
        "Nsight Compute reports contain the program's command, directory and environment (`warpscope metrics FILE --session` shows them)"
    } else if has_extension(name, &[".json"]) {
        "PyTorch traces contain the program's command, folders and function names, but no environment"
    } else {
        "check what it contains before you share it"
    }
}

/// Returns the name of a report's copy; prepends the folder's name if two reports have the same name.
fn own_name(all: &[Report], report: &Report) -> String {
    let name = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let own = name(&report.path);
    if all.iter().filter(|r| name(&r.path) == own).count() < 2 {
        return own;
    }
    format!("{}-{own}", report.path.parent().map(name).unwrap_or_default())
}
