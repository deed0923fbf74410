//! Names in a profiler's command: where the tool is, where its report goes, what it will be called.

use crate::launch::find;
use crate::launch::runs::options;
use crate::launch::tracer;
use crate::library::{LibraryError, Report, Run, export};
use crate::rerun::shell;
use std::path::{Path, PathBuf};

/// Puts the tool's whole path in front where it is not on PATH, or where the user named another.
pub fn find_tool(argv: &mut [String], nsys: Option<&Path>) {
    let Some(first) = argv.first_mut() else { return };
    if first == "warpscope" {
        // The tracer is this program, wherever it lies.
        *first = std::env::current_exe().map_or_else(|_| first.clone(), |p| p.display().to_string());
        return;
    }
    let named = nsys.is_some() && first == "nsys";
    if first.contains('/') || (!named && find::on_path(first).is_some()) {
        return;
    }
    let found = match first.as_str() {
        "nsys" => find::nsys(nsys).into_iter().next(),
        other => find::installed(other),
    };
    if let Some(path) = found {
        *first = path.display().to_string();
    }
}

/// Leaves out of a command what the profiler that is here does not know, and says so in a sentence for each. Fails when the profiler lacks what
/// the command is about, unless that is `forced`. Of commands that begin with something else (a launcher) nothing is known.
pub fn fit(argv: &mut Vec<String>, program: usize, tool: &str, forced: bool) -> Result<Vec<String>, LibraryError> {
    let first = argv.first().map_or("", String::as_str);
    if Path::new(first).file_name().is_none_or(|n| n != tool) {
        return Ok(Vec::new());
    }
    let path = if first.contains('/') { Some(Path::new(first).to_owned()) } else { find::on_path(first) };
    let Some(known) = path.and_then(|p| options::known(&p, tool)) else { return Ok(Vec::new()) };
    let fitted = options::fit(argv, program, &known);
    if !fitted.missing.is_empty() && !forced {
        let missing = fitted.missing.join(", ");
        return Err(LibraryError::Refused(format!(
            "the installed {tool} does not support {missing}, without which this would record something else: use another recipe, or a newer {tool} (`warpscope doctor` shows which one is used)"
        )));
    }
    Ok(fitted.dropped.iter().map(|option| format!("skipped {option}, which this {tool} does not support")).collect())
}

/// Sends the report to a folder: its name keeps its last part. Returns where it goes then, or nothing when the command does not name it.
pub fn redirect(argv: &mut [String], program: usize, tool: &str, folder: &Path) -> Option<String> {
    let at = options::report_at(argv, program, tool)?;
    let value = argv.get_mut(at)?;
    let name = value.rsplit('/').find(|p| !p.is_empty()).unwrap_or("report").to_owned();
    let folder = folder.to_str()?;
    // The tracer takes names as they are.
    *value = format!("{}/{name}", if tool == "trace" { folder.to_owned() } else { shell::output_path(folder) });
    Some(format!("{folder}/{name}"))
}

/// The traces of a run's processes as the one report that they are.
pub fn joined(run: &Run, reports: &mut Vec<Report>, folder: &Path) -> std::io::Result<()> {
    let whole = run.patterns.first().filter(|p| run.tool == "trace" && !p.contains('*')).map(PathBuf::from);
    let Some(whole) = whole.filter(|w| !reports.is_empty() && reports.iter().all(|r| r.path != *w)) else { return Ok(()) };
    let parts: Vec<PathBuf> = reports.iter().map(|r| r.path.clone()).collect();
    tracer::join(&parts, &whole)?;
    *reports = vec![export::report(whole, folder)];
    Ok(())
}

/// The files that a profiler makes of a name: macros (`%q{RANK}`, `%p`) may become anything.
#[must_use]
pub fn patterns(tool: &str, output: &str) -> Vec<String> {
    let suffix = match tool {
        "nsys" => "nsys-rep",
        "ncu" => "ncu-rep",
        // One of each rank.
        "torch" => return vec![output.replace("{rank}", "*")],
        "trace" => return vec![format!("{output}.wstrace"), format!("{output}.*.wstrace")],
        "rocprofv3" => {
            let plain = ["%pid%", "%rank%", "%hostname%"].iter().fold(output.to_owned(), |o, word| o.replace(word, "*"));
            return vec![format!("{}*", plain.trim_end_matches('*'))];
        }
        _ => return vec![format!("{output}*")],
    };
    let (folder, name) = output.rsplit_once('/').map_or(("", output), |(f, n)| (f, n));
    let name = name.strip_suffix(&format!(".{suffix}")).unwrap_or(name);
    // Between the first macro and the last anything may stand.
    let (mut head, mut tail, mut open) = (String::new(), String::new(), false);
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        tail.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if let Some(after) = after.strip_prefix('%') {
            tail.push('%');
            after
        } else {
            if !open {
                head = std::mem::take(&mut tail);
            }
            tail.clear();
            open = true;
            after.strip_prefix("q{").and_then(|a| a.split_once('}')).map_or_else(|| after.get(1..).unwrap_or_default(), |(_, a)| a)
        };
    }
    tail.push_str(rest);
    let plain = if open { format!("{head}*{tail}") } else { tail };
    let whole = if folder.is_empty() { plain } else { format!("{folder}/{plain}") };
    let mut out = vec![format!("{whole}.{suffix}")];
    // Reports of repeated ranges are numbered.
    if tool == "nsys" && !open {
        out.push(format!("{whole}.*.{suffix}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_go_where_they_are_looked_for() {
        let mut argv: Vec<String> = ["ncu", "--export", "out/gemm-5", "./app", "--export", "x"].map(str::to_owned).into();
        assert_eq!(redirect(&mut argv, 3, "ncu", Path::new("/runs/1%/ncu")).unwrap(), "/runs/1%/ncu/gemm-5");
        assert_eq!(argv[2], "/runs/1%%/ncu/gemm-5");
        assert_eq!(argv[5], "x");
        assert_eq!(redirect(&mut argv, 3, "nsys", Path::new("/x")), None);
        assert_eq!(patterns("ncu", "/r/gemm-5"), ["/r/gemm-5.ncu-rep"]);
        assert_eq!(patterns("nsys", "/r/report"), ["/r/report.nsys-rep", "/r/report.*.nsys-rep"]);
        assert_eq!(patterns("nsys", "/r/r.%q{RANK}"), ["/r/r.*.nsys-rep"]);
        assert_eq!(patterns("nsys", "/r/r.%h.x.%p-%%"), ["/r/r.*-%.nsys-rep"], "what stands between two macros may be anything");
        assert_eq!(patterns("ncu", "a%%b%p"), ["a%b*.ncu-rep"]);
        assert_eq!(patterns("rocprofv3", "/r/k-%pid%"), ["/r/k-*"]);
    }
}
