//! Traces of a folder that form one report: those of the processes of one run

use super::file_name::prefix_of_trace;
use super::key_values::Facts;
use super::rotation;
use crate::import::ImportError;
use crate::model::units::format_count;
use crate::model::{Note, NoteKind, Severity};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum number of files that a note or an error names.
const NAMED: usize = 6;
/// Hosts' clocks differ: runs that follow each other this closely may be one.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// Version of the format that is supported.
pub const FORMAT: u32 = 1;

/// Contents of a file.
pub struct TraceFile<'a> {
    pub path: PathBuf,
    pub bytes: Cow<'a, [u8]>,
}

/// Files that form one report.
pub struct Selected<'a> {
    pub files: Vec<Cow<'a, [u8]>>,
    pub notes: Vec<Note>,
}

/// A trace of the folder.
struct Member<'a> {
    path: &'a Path,
    facts: Facts,
    size: usize,
    /// Time of its last state, or of its last change; only `None` if the file system does not know it.
    changed: Option<SystemTime>,
}

/// Removes traces that are copies of others, and returns notes about what was read. Returns an error if the traces are
/// of runs that followed each other: together, they would have idle times that no run has.
pub fn select_files<'a>(folder: &Path, files: Vec<TraceFile<'a>>) -> Result<Selected<'a>, ImportError> {
    let members: Vec<Member<'_>> = files
        .iter()
        .map(|TraceFile { path, bytes }| Member {
            path,
            facts: rotation::facts_of(bytes).unwrap_or_default(),
            size: bytes.len(),
            changed: rotation::last_time(bytes)
                .map(|ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns))
                .or_else(|| std::fs::metadata(path).and_then(|m| m.modified()).ok()),
        })
        .collect();
    let later = members.iter().find_map(|m| Some((m.path, m.facts.number::<u32>("format").filter(|f| *f > FORMAT)?)));
    if let Some((path, format)) = later {
        return Err(later_format(path, format));
    }
    let copies: Vec<Option<usize>> = (0..members.len()).map(|at| original_of(&members, at)).collect();
    if let Some(names) = names_of_runs(&members) {
        let what = format!("a folder with traces of {}", format_count(names.len(), "run"));
        let first: Vec<String> = names.iter().take(NAMED).map(|n| n.display().to_string()).collect();
        return Err(ImportError::refused(folder, what, format!("name one of them: {}", first.join(", "))));
    }
    let name = |at: usize| files[at].path.strip_prefix(folder).unwrap_or(&files[at].path).display().to_string();
    let list = |all: &[usize]| {
        let rest = if all.len() > NAMED { " …" } else { "" };
        format!("{}{rest}", all.iter().take(NAMED).map(|&at| name(at)).collect::<Vec<_>>().join(", "))
    };
    let kept: Vec<usize> = (0..files.len()).filter(|&at| copies[at].is_none()).collect();
    let mut notes = Vec::new();
    if kept.len() > 1 && folder.is_dir() {
        let text = format!("{} of this folder are read as one report: {}.", format_count(kept.len(), "trace"), list(&kept));
        notes.push(Note::new(Severity::Info, NoteKind::Tool, text));
    }
    for (at, original) in copies.iter().enumerate().filter_map(|(at, original)| Some((at, (*original)?))).take(NAMED) {
        let text = format!("{} is a copy of {} and is left out.", name(at), name(original));
        notes.push(Note::new(Severity::Info, NoteKind::Tool, text));
    }
    let keep: Vec<bool> = copies.iter().map(Option::is_none).collect();
    let files = files.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(file, _)| file.bytes).collect();
    Ok(Selected { files, notes })
}

/// Returns the trace of which another one is a copy: both have the same facts, and the original is not shorter.
fn original_of(members: &[Member<'_>], at: usize) -> Option<usize> {
    let own = &members[at];
    // Without facts, nothing is known of a file.
    own.facts.get("pid")?;
    let better = |other: usize| (members[other].size, at) > (own.size, other);
    (0..members.len()).find(|&other| other != at && members[other].facts == own.facts && better(other))
}

/// Names under which each run can be opened if the traces have several names, and one of the runs had ended before
/// another began.
fn names_of_runs(members: &[Member<'_>]) -> Option<Vec<PathBuf>> {
    struct Run {
        name: PathBuf,
        begun: SystemTime,
        changed: SystemTime,
    }
    let mut runs: Vec<Run> = Vec::new();
    for member in members {
        let begun = SystemTime::UNIX_EPOCH + Duration::from_nanos(member.facts.number("started")?);
        let (name, changed) = (prefix_of_trace(member.path).unwrap_or_else(|| member.path.to_owned()), member.changed?);
        match runs.iter_mut().find(|r| r.name == name) {
            Some(run) => (run.begun, run.changed) = (run.begun.min(begun), run.changed.max(changed)),
            None => runs.push(Run { name, begun, changed }),
        }
    }
    runs.sort_by_key(|r| r.begun);
    let first_end = runs.iter().map(|r| r.changed).min()?;
    let apart = runs.iter().any(|run| first_end + CLOCKS_DIFFER < run.begun);
    apart.then(|| runs.into_iter().map(|r| r.name).collect())
}

/// Error for a trace whose format is newer than this program.
pub fn later_format(path: &Path, format: u32) -> ImportError {
    ImportError::refused(path, format!("a trace of a later warpscope (format {format})"), "open it with the version that recorded it")
}
