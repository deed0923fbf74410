//! Joins the traces of a run's processes into a single file.

use crate::launch::open;
use std::io;
use std::path::{Path, PathBuf};

/// Concatenates the parts into `whole` and removes them; a single part is renamed. On an error, the parts are left as
/// they are.
pub fn join_traces(parts: &[PathBuf], whole: &Path) -> io::Result<()> {
    match parts {
        [] => return Ok(()),
        [one] if !whole.exists() => return std::fs::rename(one, whole),
        _ => {}
    }
    // Others may be able to write to the folder: a name that they can guess could be a link to one of this user's
    // files.
    let folder = whole.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut joined = tempfile::Builder::new().prefix(".").suffix(".joining").tempfile_in(folder)?;
    for part in parts {
        io::copy(&mut open::open_regular(part)?, &mut joined)?;
    }
    joined.persist_noclobber(whole).map_err(|e| e.error)?;
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
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing unfinished is left");
        // Another user may have created a link with a name that can be guessed.
        write();
        std::fs::write(at("elsewhere"), "theirs").unwrap();
        for name in ["third.wstrace.joining", ".third.wstrace.joining", "third.joining"] {
            std::os::unix::fs::symlink(at("elsewhere"), at(name)).unwrap();
        }
        join_traces(&parts, &at("third.wstrace")).unwrap();
        assert_eq!(std::fs::read(at("third.wstrace")).unwrap(), b"r.1.wstracer.2.wstrace");
        std::os::unix::fs::symlink(at("elsewhere"), at("fourth.wstrace")).unwrap();
        write();
        assert!(join_traces(&parts, &at("fourth.wstrace")).is_err());
        assert_eq!(std::fs::read(at("elsewhere")).unwrap(), b"theirs");
    }
}
