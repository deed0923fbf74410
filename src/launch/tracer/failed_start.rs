//! Explains why a program could not be started at all.

use super::obstacle::find_program;
use crate::launch::locate_tools::find_on_path;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const LONGEST_LINE: u64 = 256;

/// Interpreter in a script's first line, and its first argument, which may name another one (`/usr/bin/env python3`).
fn read_interpreter(path: &Path) -> Option<(PathBuf, Option<String>)> {
    let mut line = Vec::new();
    BufReader::new(File::open(path).ok()?.take(LONGEST_LINE)).read_until(b'\n', &mut line).ok()?;
    let text = String::from_utf8_lossy(&line).strip_prefix("#!")?.to_owned();
    let mut words = text.split_whitespace().map(str::to_owned);
    Some((PathBuf::from(words.next()?), words.next()))
}

/// Dynamic loader that a program names.
fn read_loader(path: &Path) -> Option<PathBuf> {
    let data = ReadCache::new(File::open(path).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &data).ok()?;
    let named = segments.iter().find(|s| s.p_type(endian) == PT_INTERP)?.data(endian, &data).ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(named).trim_end_matches('\0').to_owned()))
}

/// Command line that starts a script with its interpreter, by the script's suffix.
fn command_with_interpreter(shown: &str) -> String {
    match Path::new(shown).extension().and_then(|e| e.to_str()) {
        Some("py") => format!("`python3 {shown}`"),
        Some("sh") => format!("`sh {shown}`"),
        _ => format!("if it is a script, `sh {shown}` or `python3 {shown}`"),
    }
}

/// Explains why a program could not be started, and what to do; `None` if there is nothing to add to the system's
/// error. `word` is the program as the user wrote it.
pub fn explain_failed_start(word: &str, error: &std::io::Error) -> Option<String> {
    let Some(path) = find_program(word) else {
        let place = if word.contains('/') { PathBuf::from(word) } else { std::env::current_dir().ok()?.join(word) };
        return Some(if word.contains('/') && place.is_dir() {
            "it is a folder; name the program in it".to_owned()
        } else if word.contains('/') {
            "there is no such file; check its path".to_owned()
        } else if place.is_file() {
            format!("it is not on PATH; to start the one in this folder, write `./{word}`")
        } else {
            format!("it is not on PATH; `command -v {word}` shows what the shell would run, such as an alias")
        });
    };
    let mode = path.metadata().ok()?.permissions().mode();
    match error.kind() {
        ErrorKind::NotFound => {
            if let Some((interpreter, of)) = read_interpreter(&path) {
                let named = of.filter(|_| interpreter.ends_with("env")).unwrap_or_default();
                let missing = if interpreter.exists() { named } else { interpreter.display().to_string() };
                return Some(format!(
                    "its first line names {missing}, which is not there; start it with one that is: {}",
                    command_with_interpreter(word)
                ));
            }
            let loader = read_loader(&path).filter(|loader| !loader.exists())?;
            Some(format!(
                "it needs the dynamic loader {}, which is not there: it was built for another system (such as one with musl); build it for this one",
                loader.display()
            ))
        }
        ErrorKind::PermissionDenied if mode & 0o111 == 0 => {
            Some(format!("it is not executable; `chmod +x {word}`, or {}", command_with_interpreter(word)))
        }
        ErrorKind::PermissionDenied => {
            let disk = nix::sys::statvfs::statvfs(&path).ok()?;
            let noexec = disk.flags().contains(nix::sys::statvfs::FsFlags::ST_NOEXEC);
            Some(if noexec {
                format!("its folder is mounted noexec; copy it elsewhere, or {}", command_with_interpreter(word))
            } else {
                format!("this user may not execute it; `ls -l {word}` shows who may")
            })
        }
        _ => None,
    }
}

/// Tests whether a program can be found at all.
pub fn is_there(word: &str) -> bool {
    word.contains('/') && Path::new(word).is_file() || find_on_path(word).is_some()
}
