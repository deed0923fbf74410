//! Rotated files of a trace that keeps only the most recent data: opening any of them opens all as one report.

use super::blocks::{BlockKind, find_blocks};
use super::key_values::Facts;
use super::rows::Rows;
use crate::import::Wants;
use crate::launch::open;
use std::io::Read;
use std::path::{Path, PathBuf};

/// File name suffix of traces.
pub const SUFFIX: &str = "wstrace";

/// Maximum number of other files of a process; the tracer may not have deleted a file that it replaced yet.
const MOST: usize = 8;

/// Reads the facts at the start of a file.
pub fn facts_of(bytes: &[u8]) -> Option<Facts> {
    // The first block is smaller than 64 KiB.
    let (found, _) = find_blocks(&bytes[..bytes.len().min(1 << 16)]);
    let first = found.first().filter(|b| b.at == 0 && b.kind == BlockKind::Facts && b.has_valid_checksum())?;
    let mut rows = Rows::default();
    rows.decode_block(first, Wants::ALL);
    Some(Facts::join_all(&rows.facts))
}

/// Time of the last state that a trace recorded, ns since 1970. Unlike the file's own time, it stays when it is copied.
pub fn last_time(bytes: &[u8]) -> Option<u64> {
    let (found, _) = find_blocks(bytes);
    let last = found.iter().rev().find(|b| matches!(b.kind, BlockKind::State) && b.has_valid_checksum())?;
    let mut rows = Rows::default();
    rows.decode_block(last, Wants::ALL);
    rows.state?.number("time")
}

/// Number of a rotated file, 0 for the first one of a process; `None` if it cannot be read.
pub fn number_of_file(path: &Path) -> Option<u64> {
    let mut start = Vec::new();
    open::open_regular(path).ok()?.take(1 << 16).read_to_end(&mut start).ok()?;
    Some(facts_of(&start)?.number("continues").unwrap_or(0))
}

/// Reads the other files of the process that wrote this file, from the same directory.
pub fn read_siblings(path: &Path, bytes: &[u8]) -> Vec<(PathBuf, Vec<u8>)> {
    let siblings = || {
        let facts = facts_of(bytes)?;
        let name = path.file_name()?.to_str()?.strip_suffix(SUFFIX)?.strip_suffix('.')?;
        let common = match facts.number::<u64>("continues") {
            Some(number) => name.strip_suffix(&format!(".{number}"))?,
            None => Some(name).filter(|_| facts.is_rolling())?,
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let Ok(other) = entry.file_name().into_string() else { continue };
            let Some(between) = other.strip_prefix(common).and_then(|rest| rest.strip_suffix(SUFFIX)) else { continue };
            // `between` is `.` for the first file of the process, and `.NUMBER.` for the others.
            let number = between.trim_matches('.');
            if path.file_name() == Some(&entry.file_name()) || !between.starts_with('.') || !number.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            // An earlier process may have had the same pid.
            if let Ok(bytes) = open::read_regular(&entry.path())
                && facts_of(&bytes).is_some_and(|f| f.process_key() == facts.process_key())
            {
                found.push((entry.path(), bytes));
            }
            if found.len() == MOST {
                break;
            }
        }
        Some(found)
    };
    siblings().unwrap_or_default()
}
