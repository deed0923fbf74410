//! File names in a profiler's command: tool path, output path, and report names.

use crate::launch::locate_tools;
use crate::launch::runs::options;
use crate::launch::tracer;
use crate::library::{LibraryError, Report, Run, export};
use crate::rerun::shell;
use std::path::{Path, PathBuf};

/// Replaces the tool with its full path if it is not on PATH, or if the user chose a different one.
pub fn find_tool(argv: &mut [String], nsys: Option<&Path>) {
    let Some(first) = argv.first_mut() else { return };
    if first == "warpscope" {
        // The tracer is part of this program: use the program's current path.
        *first = std::env::current_exe().map_or_else(|_| first.clone(), |p| p.display().to_string());
        return;
    }
    let named = nsys.is_some() && first == "nsys";
    if first.contains('/') || (!named && locate_tools::find_on_path(first).is_some()) {
        return;
    }
    let found = match first.as_str() {
        "nsys" => locate_tools::find_nsys(nsys).into_iter().next(),
        other => locate_tools::find_installed(other),
    };
    if let Some(path) = found {
        *first = path.display().to_string();
    }
}

/// Removes options that the installed profiler does not support, and returns one sentence per removed option. Fails if
/// essential options are not supported, unless `forced`. Commands that begin with another program (a launcher) are not
/// changed.
pub fn drop_unsupported(argv: &mut Vec<String>, program: usize, tool: &str, forced: bool) -> Result<Vec<String>, LibraryError> {
    let first = argv.first().map_or("", String::as_str);
    if Path::new(first).file_name().is_none_or(|n| n != tool) {
        return Ok(Vec::new());
    }
    let path = if first.contains('/') { Some(Path::new(first).to_owned()) } else { locate_tools::find_on_path(first) };
    let Some(known) = path.and_then(|p| options::known_options(&p, tool)) else { return Ok(Vec::new()) };
    let fitted = options::drop_unknown_options(argv, program, &known);
    if !fitted.missing.is_empty() && !forced {
        let missing = fitted.missing.join(", ");
        return Err(LibraryError::Refused(format!(
            "the installed {tool} does not support {missing}, without which this would record something else: use another recipe, or a newer {tool} (`warpscope doctor` shows which one is used)"
        )));
    }
    Ok(fitted.dropped.iter().map(|option| format!("skipped {option}, which this {tool} does not support")).collect())
}

/// Redirects the report to a folder, keeping the last part of its name. Returns the new path; `None` if the command
/// contains no report name.
pub fn redirect_report(argv: &mut [String], program: usize, tool: &str, folder: &Path) -> Option<String> {
    let at = options::report_name_index(argv, program, tool)?;
    let value = argv.get_mut(at)?;
    let name = value.rsplit('/').find(|p| !p.is_empty()).unwrap_or("report").to_owned();
    let folder = folder.to_str()?;
    // The tracer does not expand macros in names.
    *value = format!("{}/{name}", if tool == "trace" { folder.to_owned() } else { shell::output_path(folder) });
    Some(format!("{folder}/{name}"))
}

/// Combines the traces of a run's processes into one report, unless the report is there already.
pub fn join_traces(run: &Run, reports: &mut Vec<Report>, folder: &Path) -> std::io::Result<()> {
    let whole = run.patterns.first().filter(|p| run.tool == "trace" && !p.contains('*')).map(PathBuf::from);
    let Some(whole) = whole.filter(|w| !reports.is_empty() && reports.iter().all(|r| r.path != *w)) else { return Ok(()) };
    let parts: Vec<PathBuf> = reports.iter().map(|r| r.path.clone()).collect();
    tracer::join_traces(&parts, &whole)?;
    *reports = vec![export::describe_report(whole, folder)];
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_go_where_they_are_looked_for() {
        let mut argv: Vec<String> = ["ncu", "--export", "out/gemm-5", "./app", "--export", "x"].map(str::to_owned).into();
        assert_eq!(redirect_report(&mut argv, 3, "ncu", Path::new("/runs/1%/ncu")).unwrap(), "/runs/1%/ncu/gemm-5");
        assert_eq!(argv[2], "/runs/1%%/ncu/gemm-5");
        assert_eq!(argv[5], "x");
        assert_eq!(redirect_report(&mut argv, 3, "nsys", Path::new("/x")), None);
    }
}
