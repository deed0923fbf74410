//! Nsight Systems reports (`.nsys-rep`, `.qdrep`). The format is not public, so the user's `nsys` exports a report
//! into the cache, once.

use super::{ImportError, Importer, Input, Job, cache, input::Bytes, nsys};
use crate::launch::{self, Tool, Version, locate_tools};
use crate::model::Profile;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct NsysReport;

const MAGIC: &[u8] = b"NVIDIA Tegra Profiler Report ";

impl Importer for NsysReport {
    fn name(&self) -> &'static str {
        "Nsight Systems report"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".nsys-rep", ".qdrep"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".nsys-rep", ".qdrep"]
    }

    fn knows(&self, input: &Input) -> bool {
        input.head.starts_with(MAGIC)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let export = cached_export(input, job)?;
        let recorded = Version::find_in(&String::from_utf8_lossy(&input.head));
        let read = nsys::NsysSqlite.read(&input.with_export(&export)?, job);
        if let Err(ImportError::Damaged { .. } | ImportError::Refused { .. }) = &read {
            // Remove a broken export from the cache, so that a new one is made next time.
            let _ = std::fs::remove_file(&export);
        }
        let mut profile = read?;
        // The export states the version of the nsys that exported it; the report, that of the nsys that recorded it.
        if let Some(recorded) = recorded {
            profile.source.version = Some(recorded.to_string());
        }
        Ok(profile)
    }
}

/// Returns the export of a report, from the cache if possible.
pub fn cached_export(input: &Input, job: &Job<'_>) -> Result<PathBuf, ImportError> {
    let Bytes::File(report) = &input.bytes else {
        return Err(ImportError::refused(&input.path, "a report built into the program", "open a file"));
    };
    let meta = std::fs::metadata(report).map_err(|e| ImportError::io(report, e))?;
    cache::get_or_make(&job.cache, &job.cancel, report, &meta, "sqlite", |out| run_export(input, report, out, job))
}

/// Chooses the `nsys` to export with: the first one that is at least as recent as the report.
fn choose_tool(path: &Path, recorded: Option<&Version>, job: &Job<'_>) -> Result<Tool, ImportError> {
    let candidates = locate_tools::find_nsys(job.nsys.as_deref());
    let wanted = recorded.map_or_else(|| "any version from its year on".to_owned(), |v| format!("{v} or newer"));
    let mut found: Vec<Tool> = Vec::new();
    let mut silent: Option<PathBuf> = None;
    for candidate in candidates {
        let tool = locate_tools::query_version(&candidate, &|| job.cancel.is_cancelled());
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        match (&tool.version, recorded) {
            (Some(have), Some(need)) if !have.can_read(need) => found.push(tool),
            (Some(_), _) => return Ok(tool),
            (None, _) => silent = silent.or(Some(tool.path)),
        }
    }
    let elsewhere = "or export it where it was recorded with `nsys export --type sqlite` and open the .sqlite";
    let tool_error = |what: String, next: String| ImportError::Tool { path: path.to_owned(), what, next };
    found.sort_by(|a, b| b.version.cmp(&a.version));
    Err(match (found.first(), &job.nsys) {
        (Some(Tool { version: Some(have), path: tool }), _) => tool_error(
            format!(
                "recorded by nsys {}, but the newest nsys here is {have} ({})",
                recorded.map_or_else(String::new, ToString::to_string),
                tool.display()
            ),
            format!("install nsys {wanted}, {elsewhere}"),
        ),
        (_, Some(chosen)) => tool_error(
            format!("the configured nsys ({}) does not run", chosen.display()),
            format!("correct `nsys` in the configuration, {elsewhere}"),
        ),
        _ if silent.is_some() => tool_error(
            format!("{} exists but does not report its version", silent.unwrap_or_default().display()),
            format!("run it with `--version` by hand to see why, {elsewhere}"),
        ),
        _ => tool_error(
            "reading an .nsys-rep needs the nsys command, and none was found (looked on PATH, in /opt/nvidia and in /usr/local/cuda*)"
                .to_owned(),
            format!("install nsys {wanted}, {elsewhere}"),
        ),
    })
}

fn run_export(input: &Input, report: &Path, out: &Path, job: &Job<'_>) -> Result<(), ImportError> {
    let path = &input.path;
    let recorded = Version::find_in(&String::from_utf8_lossy(&input.head));
    let tool = choose_tool(path, recorded.as_ref(), job)?;
    let stage = "exporting with nsys";
    job.report_progress(stage, 0, 0);
    let run = |blobs: bool| {
        let mut command = Command::new(&tool.path);
        command.args(["export", "--type", "sqlite", "--force-overwrite", "true"]);
        if blobs {
            command.args(["--include-blobs", "true"]);
        }
        command.arg("-o").arg(absolute_path(out)).arg(absolute_path(report));
        launch::run_query(
            &mut command,
            |line| {
                if let Some(percent) = parse_percent(line) {
                    job.report_progress(stage, percent, 100);
                }
            },
            || job.cancel.is_cancelled(),
        )
        .map_err(|e| ImportError::io(&tool.path, e))
    };
    // Include the payloads of NVTX ranges, which contain NCCL's collectives. Older releases reject this option
    // immediately.
    let mut ended = run(true)?;
    if !ended.status.success()
        && !ended.cancelled
        && ended.log.iter().any(|l| l.contains("include-blobs") || l.contains("usage: nsys export"))
    {
        ended = run(false)?;
    }
    if ended.cancelled {
        return Err(ImportError::Cancelled { path: path.clone() });
    }
    let made = std::fs::metadata(out).is_ok_and(|m| m.len() > 0);
    if ended.status.success() && made {
        return Ok(());
    }
    let version = tool.version.as_ref().map_or_else(String::new, |v| format!(" {v}"));
    let (what, next) = explain_failure(&ended.log, &version, ended.status.code());
    // Report a damaged file as such, rather than as a failure of the tool.
    Err(if finds_damage(&ended.log).is_some() {
        ImportError::refused(path, what, next)
    } else {
        ImportError::Tool { path: path.clone(), what, next }
    })
}

/// Returns the absolute path, because nsys runs in another directory and would parse a leading dash as an option.
fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Parses the last percentage in a line from nsys's progress bar.
fn parse_percent(line: &str) -> Option<u64> {
    let before = line.rsplit_once('%')?.0;
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    before[before.len() - digits..].parse().ok().filter(|&p| p <= 100)
}

/// Returns the line in which nsys reports that the file is damaged.
fn finds_damage(log: &[String]) -> Option<&String> {
    const WORDS: [&str; 5] = ["magic number mismatch", "truncated", "end of file", "Wire format", "corrupt"];
    // If a library is missing or the disk is full, ignore what nsys says about the report.
    let other = ["cannot open shared object", "error while loading shared libraries", "newer than your current version", "No space left"];
    if log.iter().any(|l| other.iter().any(|w| l.contains(w))) {
        return None;
    }
    log.iter().find(|l| WORDS.iter().any(|w| l.contains(w)))
}

/// Derives the error and the next step from nsys's output.
fn explain_failure(log: &[String], version: &str, code: Option<i32>) -> (String, String) {
    let line_with = |words: &[&str]| log.iter().find(|l| words.iter().any(|w| l.contains(w)));
    let missing = Cell::new(None);
    for line in log {
        if line.contains("cannot open shared object") || line.contains("error while loading shared libraries") {
            missing.set(line.split([' ', ':', '\'', '"']).find(|w| w.starts_with("lib") && w.contains(".so")).map(str::to_owned));
        }
    }
    if let Some(library) = missing.take() {
        let package = match library.split('.').next() {
            Some("libdw") => " (Debian and Ubuntu: libdw1)",
            Some("libelf") => " (Debian and Ubuntu: libelf1)",
            _ => "",
        };
        return (
            format!("the importer of nsys{version} is missing {library}"),
            format!("install it{package}, or add its folder to LD_LIBRARY_PATH"),
        );
    }
    if let Some(line) = line_with(&["newer than your current version", "required fields", "newer version"]) {
        return (
            format!("nsys{version} cannot read it: {}", shorten_line(line)),
            "install the nsys that recorded it or a newer one, or export it there with `nsys export --type sqlite`".to_owned(),
        );
    }
    if let Some(line) = finds_damage(log) {
        return (
            format!("nsys{version} reports that it is damaged: {}", shorten_line(line)),
            "copy it again: it may be truncated".to_owned(),
        );
    }
    if let Some(line) = line_with(&["No space left"]) {
        return (
            format!("nsys{version} ran out of disk: {}", shorten_line(line)),
            "free space on the disk of the cache, or set XDG_CACHE_HOME to a larger disk".to_owned(),
        );
    }
    let last = log.iter().rev().find(|l| !l.trim().is_empty()).map_or_else(|| "it printed nothing".to_owned(), |l| shorten_line(l));
    let code = code.map_or_else(|| "was killed".to_owned(), |c| format!("failed with code {c}"));
    (format!("nsys{version} {code} exporting it: {last}"), "try `nsys export --type sqlite` by hand".to_owned())
}

fn shorten_line(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(200) {
        Some((i, _)) => format!("{}…", &line[..i]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(line: &str) -> String {
        let (what, next) = explain_failure(&[line.to_owned()], " 2023.4.4", Some(1));
        format!("{what}; {next}")
    }

    #[test]
    fn what_nsys_prints_becomes_a_sentence_with_a_next_step() {
        assert!(
            explained("Importer: error while loading shared libraries: libdw.so.1: cannot open shared object file")
                .contains("is missing libdw.so.1; install it (Debian and Ubuntu: libdw1)")
        );
        assert!(
            explained("Report was created in Nsight Systems version (2025.2.1.130), newer than your current version (2023.4.4.54).")
                .contains("2025.2.1.130")
        );
        assert!(explained("Exportation error: Section Table Reference magic number mismatch.").contains("damaged"));
        assert!(explained("boom").contains("failed with code 1 exporting it: boom"));
    }

    #[test]
    fn progress_bars_give_their_percentage() {
        assert_eq!(parse_percent("Processing [====    ] 45%"), Some(45));
        assert_eq!(parse_percent("Exporting 1234 events: [=100%]"), Some(100));
        assert_eq!(parse_percent("no progress"), None);
    }
}
