//! Joins the traces of a run's processes into one file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Concatenates the parts into `whole` and removes them; a single part is renamed. On an error the parts stay as they
/// are.
pub fn join_traces(parts: &[PathBuf], whole: &Path) -> io::Result<()> {
    match parts {
        [] => return Ok(()),
        [one] if !whole.exists() => return std::fs::rename(one, whole),
        _ => {}
    }
    let unfinished = whole.with_extension("wstrace.joining");
    let done = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished).and_then(|mut out| {
        for part in parts {
            io::copy(&mut File::open(part)?, &mut out)?;
        }
        if whole.exists() { Err(io::ErrorKind::AlreadyExists.into()) } else { std::fs::rename(&unfinished, whole) }
    });
    if let Err(e) = done {
        let _ = std::fs::remove_file(&unfinished);
        return Err(e);
    }
    for part in parts {
        // The part's contents are in `whole`, so an error is harmless.
        let _ = std::fs::remove_file(part);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_gone_only_when_the_whole_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let parts: Vec<PathBuf> = ["r.1.wstrace", "r.2.wstrace"].map(&at).into();
        let write = || parts.iter().for_each(|p| std::fs::write(p, p.file_name().unwrap().as_encoded_bytes()).unwrap());
        write();
        join_traces(&parts, &at("r.wstrace")).unwrap();
        assert_eq!(std::fs::read(at("r.wstrace")).unwrap(), b"r.1.wstracer.2.wstrace");
        assert!(parts.iter().all(|p| !p.exists()));
        write();
        assert!(join_traces(&parts, &at("r.wstrace")).is_err() && parts.iter().all(|p| p.exists()));
        join_traces(&parts[..1], &at("other.wstrace")).unwrap();
        assert!(!parts[0].exists() && at("other.wstrace").exists());
    }
}
