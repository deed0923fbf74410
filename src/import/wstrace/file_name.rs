//! Names of the files of a trace: `PREFIX.PID.wstrace`, and `PREFIX.PID.NUMBER.wstrace` if the trace is rotated.

use super::rotation::{self, SUFFIX};
use std::path::{Path, PathBuf};

/// Returns true for the name of a process id (`12`, or `12-1` of its child) or of a rotated file.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Returns `12` for `PREFIX.12.wstrace`, and `12.7` if that is rotated; `None` for files of other programs.
pub fn numbers_of_trace<'n>(prefix: &str, name: &'n str) -> Option<&'n str> {
    let numbers = name.strip_prefix(prefix)?.strip_prefix('.')?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    (numbers.split('.').count() <= 2 && numbers.split('.').all(is_number)).then_some(numbers)
}

/// Returns true if a file has the name of a trace of `prefix`.
pub fn is_trace_of(prefix: &Path, file: &Path) -> bool {
    let text = |path: &Path| path.file_name().and_then(|n| n.to_str()).map(str::to_owned);
    let (Some(of), Some(name)) = (text(prefix), text(file)) else { return false };
    file.parent() == prefix.parent() && numbers_of_trace(&of, &name).is_some()
}

/// Returns `PREFIX` for `PREFIX.PID.wstrace`, `PREFIX.PID-1.wstrace` and `PREFIX.PID.7.wstrace`. The name
/// `run.5.12.wstrace` is ambiguous: it may be the trace of process 12 with prefix `run.5`, or file 12 of process 5 with
/// prefix `run`. The facts in the file decide if it can be read.
pub fn prefix_of_trace(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?.strip_suffix(&format!(".{SUFFIX}"))?;
    let (head, tail) = name.rsplit_once('.').filter(|(_, tail)| is_number(tail))?;
    let rotated = head.rsplit_once('.').filter(|(_, pid)| is_number(pid));
    let prefix = match rotated {
        Some((before, _)) if rotation::number_of_file(file).is_none_or(|n| Some(n) == tail.parse().ok()) => before,
        _ => head,
    };
    Some(file.with_file_name(prefix))
}
